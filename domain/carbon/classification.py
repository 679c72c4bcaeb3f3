"""What a factor is for, in one spelling: `{"cabin":"economy","haul":"short"}`.

Two descriptions that mean the same are the same text, so texts are compared, hashed and joined, and the
order of keys, spaces, or `1` written as `1.0`, never makes a second factor.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from domain.shared.error import InvalidInput

NOTHING = "{}"
_NUMBER = re.compile(r"^[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$")
"""Not `007`: a leading zero says that it is a name."""
_HALF_CHARACTER = re.compile(r"[\ud800-\udfff]")
"""JSON can write one (`\\ud83d`); no file and no table can."""
_ID_BITS = 52
"""Ids go through JSON and spreadsheets, where a whole number is exact up to 2^53."""


def canonical(parts: Mapping[str, Any]) -> str:
    """The one spelling. Keys without a value say nothing and are left out."""
    found: dict[str, str] = {}
    for key, value in parts.items():
        name, word = canonical_key(key), canonical_value(value)
        if not word:
            continue
        if not name:
            raise InvalidInput(f"the value {word!r} has no key", reason_code="classification")
        if found.setdefault(name, word) != word:
            raise InvalidInput(
                f"the key {name!r} has two values, {found[name]!r} and {word!r}", reason_code="classification"
            )
    return spelled(found)


def spelled(words: Mapping[str, str]) -> str:
    """Return the spelling of values that are canonical already."""
    return json.dumps(words, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_key(key: str) -> str:
    """Folding may take characters apart, so it comes between taking all apart and composing all."""
    folded = unicodedata.normalize("NFD", str(key)).strip().casefold()
    return unicodedata.normalize("NFC", folded)


def canonical_value(value: Any) -> str:
    """Text as it is, trimmed; numbers and yes/no in one spelling; nothing as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list | tuple):
        raise InvalidInput(f"{value!r} is more than one value", reason_code="classification")
    word = " ".join(unicodedata.normalize("NFC", str(value)).split())
    return canonical_number(word) if _NUMBER.match(word) else word


def canonical_number(word: str) -> str:
    """Every digit stays: what looks like a number may be the long number of a meter."""
    number = Decimal(word)
    if not number:
        return "0"
    digits = format(number, "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def parse(text: str) -> str:
    """Return the canonical spelling of a JSON object."""
    if not text.strip():
        return NOTHING
    try:
        parts = json.loads(text, parse_float=str, parse_int=str, object_pairs_hook=_pairs)
    except ValueError as error:
        raise InvalidInput(f"{text!r} is no JSON object: {error}", reason_code="classification") from None
    except RecursionError:
        raise InvalidInput("is nested without end", reason_code="classification") from None
    if not isinstance(parts, dict):
        raise InvalidInput(f"{text!r} is no JSON object", reason_code="classification")
    found = canonical(parts)
    if _HALF_CHARACTER.search(found):
        raise InvalidInput(f"{text!r} holds half a character", reason_code="classification")
    return found


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that comes twice with different values."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ValueError(f"the key {key!r} comes twice")
        found[key] = value
    return found


def factor_id(year: int, data_entry_type: str, emission_type: str, classification: str) -> int:
    """Return the identity as a number: a hash, so it is the same everywhere."""
    words = json.dumps([year, data_entry_type, emission_type, classification], ensure_ascii=False)
    return int.from_bytes(blake2b(words.encode(), digest_size=8).digest(), "big") >> (64 - _ID_BITS)
