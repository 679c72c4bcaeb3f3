"""Faults of the content of the made-up sources: what else they say, and how they write it."""

from __future__ import annotations

import unicodedata
from typing import Any

import orjson

from sandbox.faults import Fault

_EXTRA = 5
_MORE = 7


def kinds_of(struck: tuple[Fault, ...]) -> set[str]:
    return {rule.kind for rule in struck}


def spoil_items(items: list[dict[str, Any]], struck: tuple[Fault, ...]) -> list[dict[str, Any]]:
    """Return the references as data faults show them."""
    kinds = kinds_of(struck)
    if "changed" in kinds:
        items = [
            {**item, "title": f"{item['title']} (changed)"} if n % 3 == 0 else item
            for n, item in enumerate(items)
        ]
    if "growing" in kinds:
        new = [{**items[0], "id": f"{items[0]['id']}-new-{n}"} for n in range(_EXTRA)]
        items = [*new, *items]
    if "duplicate_ids" in kinds:
        items = [*items[:3], {**items[0], "title": "Another reference of the same id"}, *items[3:]]
    return items


def spoil_text(document: dict[str, Any], struck: tuple[Fault, ...]) -> bytes:
    """Return a page of atlas as text."""
    kinds = kinds_of(struck)
    if "half_page" in kinds:
        document = {**document, "items": document["items"][::2]}
    if "wrong_total" in kinds:
        document = {**document, "total": document["total"] + _MORE}
    if "reformatted" not in kinds:
        return orjson.dumps(document)
    items = [{name: _rewritten(item[name]) for name in reversed(item)} for item in document["items"]]
    return orjson.dumps({**document, "items": items}, option=orjson.OPT_INDENT_2)


def _rewritten(value: Any) -> Any:
    """Return the same content in other words of JSON: 12.0 for 12, accents apart from their letters."""
    if isinstance(value, list):
        return [_rewritten(one) for one in value]
    if isinstance(value, str):
        return unicodedata.normalize("NFD", value)
    return float(value) if isinstance(value, int) else value
