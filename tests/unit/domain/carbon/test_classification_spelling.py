"""One spelling for all that means the same, and another for what does not."""

from __future__ import annotations

import json
import unicodedata
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.carbon.classification import NOTHING, canonical, canonical_key, canonical_value, factor_id, parse
from domain.shared.error import InvalidInput

ODD = 'aAzé\u0301\u0308ßİſΐ\u0345字٣1207.+-eE \t\u00a0\u2003"\\{}:,'
"""Characters that case, composition, numbers, spaces or JSON make something else of."""
NUMBERS = st.tuples(
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 9_999).map(str),
    st.sampled_from(["", ".0", ".50", ".125"]),
    st.sampled_from(["", "e0", "e3", "E-2", "e+1"]),
).map("".join)
WORDS = st.text(ODD, max_size=8) | NUMBERS
VALUES = WORDS | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none()
NAMES = st.text(ODD, min_size=1, max_size=5).filter(lambda name: canonical_key(name) != "")
PARTS = st.dictionaries(NAMES, VALUES, max_size=5).filter(
    lambda parts: len({canonical_key(key) for key in parts}) == len(parts)
)


@given(PARTS)
def test_a_spelling_is_its_own_spelling(parts: dict[str, Any]) -> None:
    once = canonical(parts)
    assert canonical(json.loads(once)) == once
    assert parse(once) == once
    assert all(unicodedata.is_normalized("NFC", text) for pair in json.loads(once).items() for text in pair)


@given(PARTS, st.randoms())
def test_the_order_of_keys_says_nothing(parts: dict[str, Any], random: Any) -> None:
    names = list(parts)
    random.shuffle(names)
    assert canonical({name: parts[name] for name in names}) == canonical(parts)


@given(PARTS, st.sampled_from(["", " ", "\t", "\u00a0"]))
def test_spaces_around_say_nothing_and_the_case_of_keys_neither(parts: dict[str, Any], space: str) -> None:
    written = {
        f"{space}{key}{space}": f"{space}{value}{space}" if isinstance(value, str) else value
        for key, value in parts.items()
    }
    assert canonical(written) == canonical(parts)
    assert canonical({"HAUL": "long"}) == canonical({"haul": "long"})


@given(PARTS)
def test_composed_and_decomposed_characters_are_one(parts: dict[str, Any]) -> None:
    def apart(value: Any) -> Any:
        return unicodedata.normalize("NFD", value) if isinstance(value, str) else value

    assert canonical({apart(key): apart(value) for key, value in parts.items()}) == canonical(parts)


@given(PARTS, st.integers(0, 4))
def test_json_however_it_is_laid_out_is_one(parts: dict[str, Any], indent: int) -> None:
    assert parse(json.dumps(parts, indent=indent)) == parse(json.dumps(parts, ensure_ascii=False))


@pytest.mark.parametrize("one", ["1", "1.0", "1.00", "+1", " 1 ", "1e0", "10e-1", "0.1E1", 1, 1.0])
def test_a_number_has_one_spelling(one: Any) -> None:
    assert canonical({"k": one}) == '{"k":"1"}'


@pytest.mark.parametrize(
    ("written", "spelled"),
    [("-0.0", "0"), ("0e9", "0"), ("-1.50", "-1.5"), ("1e3", "1000"), ("1.5e-3", "0.0015"), ("100", "100")],
)
def test_numbers_are_spelled_out(written: str, spelled: str) -> None:
    assert canonical_value(written) == spelled


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3), st.decimals(-9, 9, places=3))
def test_numbers_are_one_exactly_if_they_are_equal(a: Decimal, b: Decimal) -> None:
    assert (canonical_value(str(a)) == canonical_value(str(b))) == (a == b)


def test_no_digit_of_a_long_number_is_lost() -> None:
    meter = "123456789012345678901234567890123456"
    assert canonical_value(meter) == meter
    assert canonical_value(meter + ".0") == meter


@pytest.mark.parametrize(
    "name", ["007", "1.", ".5", "1,5", "1 000", "0x10", "1e5000", "R134a", "2-3", "nan", "1٢"]
)
def test_what_only_looks_like_a_number_stays_as_it_is(name: str) -> None:
    assert canonical_value(name) == name


@pytest.mark.parametrize("nothing", [None, "", "  ", "\t\n"])
def test_a_key_without_a_value_says_nothing(nothing: Any) -> None:
    assert canonical({"haul": nothing}) == NOTHING
    assert parse(json.dumps({"haul": nothing})) == NOTHING


@pytest.mark.parametrize(
    "parts", [{" ": "word"}, {"a": "1", "A ": "2"}, {"a": ["1"]}, {"a": {"b": "c"}}], ids=str
)
def test_what_says_no_one_thing_is_refused(parts: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        canonical(parts)
    assert refused.value.reason_code == "classification"


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "1", '"word"', "null", '{"a":"1","a":"2"}', "{'a':'b'}", '{"a":[1]}', '{"a":"\\ud83d"}'],
)
def test_what_is_no_object_of_words_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(text)
    assert refused.value.reason_code == "classification"


def test_a_text_nested_without_end_is_refused() -> None:
    with pytest.raises(InvalidInput):
        parse('{"a":' * 100_000)


# Ids


@pytest.mark.parametrize(
    ("year", "kind", "emission", "classification", "number"),
    [
        (2025, "plane", "flight_co2", '{"cabin":"economy","haul":"short"}', 4364948456458643),
        (2024, "water", "water", "{}", 3417549082908590),
        (2025, "goods", "goods", '{"category":"Café"}', 4031981217448329),
    ],
)
def test_ids_are_for_ever(year: int, kind: str, emission: str, classification: str, number: int) -> None:
    """Entries of old years refer to them: these numbers may never be others."""
    assert factor_id(year, kind, emission, classification) == number


@settings(max_examples=50)
@given(st.integers(1990, 2100), NAMES, NAMES, NAMES)
def test_ids_are_whole_numbers_a_spreadsheet_can_hold(
    year: int, kind: str, emission: str, words: str
) -> None:
    number = factor_id(year, kind, emission, words)
    assert 0 <= number < 2**52
    assert float(number) == number


def test_every_part_of_an_identity_makes_another_id() -> None:
    same = (2025, "plane", "flight_co2", "{}")
    others = [(2024, *same[1:]), (2025, "train", *same[2:]), (*same[:2], "x", "{}"), (*same[:3], '{"a":"b"}')]
    assert len({factor_id(*one) for one in (same, *others)}) == 5
    assert factor_id(2025, "ab", "c", "{}") != factor_id(2025, "a", "bc", "{}")
