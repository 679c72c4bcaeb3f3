"""Keeping a secret out of everything people can read: messages, reprs, exception chains, logs."""

from __future__ import annotations

import json
import re
from urllib.parse import quote

from domain.shared.printable import printable

MASK = "<token>"
_TELLTALE = 6
"""A cut-off end of the token is masked from this many characters on."""


class Redactor:
    """Holds a token and blanks it in texts; its own repr shows nothing."""

    __slots__ = ("_spellings", "_token")

    def __init__(self, token: str) -> None:
        self._token = token
        self._spellings = sorted(_spellings(token), key=len, reverse=True)

    def __repr__(self) -> str:
        return "Redactor()"

    def reveal(self) -> str:
        """The token itself, for the request and nothing else."""
        return self._token

    def clean(self, text: str, *, limit: int = 300) -> str:
        """The text without the token, on one printable line, shortened after it was blanked."""
        for spelling in self._spellings:
            text = text.replace(spelling, MASK)
        text = printable(" ".join(self._without_cut_off_token(text).split()))
        return text if len(text) <= limit else text[: limit - 1] + "…"

    def _without_cut_off_token(self, text: str) -> str:
        # A body that broke off may end in the first half of an echoed token.
        for size in range(len(self._token) - 1, _TELLTALE - 1, -1):
            if text.endswith(self._token[:size]):
                return text[:-size] + MASK
        return text


def _spellings(token: str) -> set[str]:
    """The token as servers and libraries write it: plain, in JSON, in a URL."""
    quoted = quote(token, safe="")
    small = re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), quoted)
    return {token, json.dumps(token)[1:-1], quoted, small} - {""}
