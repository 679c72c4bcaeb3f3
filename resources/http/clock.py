"""The time by the clock of a server: what its answers say in the header Date."""

from __future__ import annotations

from contextlib import closing, suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

PATIENCE = 2.0
"""Seconds. Whoever asks wants to know of a wrong clock, not of a server that is down."""


def read_date(url: str) -> datetime | None:
    """Return the time that the server's answer names, None if it does not answer or names none."""
    parts = urlsplit(url)
    connect = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = connect(parts.hostname or "", parts.port, timeout=PATIENCE)
    with suppress(OSError, HTTPException, ValueError), closing(connection):
        connection.request("HEAD", "/")
        date = connection.getresponse().headers["Date"]
        return parsedate_to_datetime(date) if date else None
    return None
