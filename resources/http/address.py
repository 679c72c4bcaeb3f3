"""Addresses of HTTP services: what may be shown of one, and whether it is on this machine."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit, urlunsplit


def is_loopback(host: str | None) -> bool:
    """Whether the host is this machine."""
    if host is None or host == "localhost":
        return host is not None
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def with_scheme(address: str) -> str:
    """The address with a scheme: https, or http on this machine, unless it has one."""
    if "://" in address:
        return address
    return f"{'http' if is_loopback(urlsplit(f'//{address}').hostname) else 'https'}://{address}"


def without_credentials(url: str) -> str:
    """The address as it may be shown: no user, no password, no query."""
    parts = urlsplit(url)
    host = parts.netloc.rsplit("@", 1)[-1]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
