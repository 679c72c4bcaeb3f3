"""The canonical form: what survives reformatting has the same hash, and nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from domain.references.content import canonical, canonical_json, payload_hash

PAYLOAD = {"id": 7, "tags": ["a", "b"], "price": 12.5, "who": {"name": "Zoë", "age": 40}}


def hash_of(payload: dict[str, object], title: str = "t", at: datetime | None = None) -> str:
    return payload_hash(title, None, at, payload)


@pytest.mark.parametrize(
    "same",
    [
        dict(reversed(PAYLOAD.items())),
        json.loads(json.dumps(PAYLOAD, indent=4)),
        {**PAYLOAD, "id": 7.0},
        {**PAYLOAD, "who": {"age": 4e1, "name": "Zoe\u0308"}},
    ],
)
def test_payload_hash__reformatted_content__is_the_same(same: dict[str, object]):
    assert hash_of(same) == hash_of(PAYLOAD)


@pytest.mark.parametrize(
    "other",
    [
        {**PAYLOAD, "id": 8},
        {**PAYLOAD, "id": "7"},
        {**PAYLOAD, "tags": ["b", "a"]},
        {**PAYLOAD, "price": 12.51},
        {**PAYLOAD, "price": None},
        {k: v for k, v in PAYLOAD.items() if k != "price"},
        {**PAYLOAD, "id": True},
    ],
)
def test_payload_hash__other_content__differs(other: dict[str, object]):
    assert hash_of(other) != hash_of(PAYLOAD)


def test_payload_hash__other_title_or_moment__differs():
    noon = datetime(2026, 11, 17, 12, tzinfo=UTC)
    assert len({hash_of({}), hash_of({}, "u"), hash_of({}, at=noon)}) == 3


def test_payload_hash__same_moment_in_another_zone__is_the_same():
    noon = datetime(2026, 11, 17, 12, tzinfo=UTC)
    assert hash_of({}, at=noon) == hash_of({}, at=noon.astimezone(timezone(timedelta(hours=8))))


def test_canonical_json__what_no_table_could_hold__is_text_all_the_same():
    odd = {"half": "\ud83d", "endless": float("inf"), "zero": -0.0, 3: "key"}
    assert json.loads(canonical_json(odd)) == {"half": "?", "endless": None, "zero": 0, "3": "key"}
    assert canonical_json(odd).encode()


def test_canonical__large_whole_number__keeps_its_digits():
    assert canonical([2**60, 1e3]) == [2**60, 1000]
