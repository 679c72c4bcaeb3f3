"""A name is something a person can see and a key can hold."""

from __future__ import annotations

import os

import pytest

from domain.shared.names import LONGEST, fault_of_name, fault_of_text


@pytest.mark.parametrize("word", ["main", "Zürich", "日本 2", "a" * LONGEST, "plane (2).csv", "x.y-z_1"])
def test_fault_of_name__visible_characters__is_none(word: str) -> None:
    assert fault_of_name(word) == ""


@pytest.mark.parametrize(
    "word",
    ["", "a" * (LONGEST + 1), "a\x1b[2J", "a\nb", "a\u202eb", os.fsdecode(b"\xff.csv"), "a\0"],
)
def test_fault_of_name__invisible_or_too_long__is_named(word: str) -> None:
    assert fault_of_name(word).endswith(f"1 to {LONGEST} characters that can be seen")
    assert fault_of_name(word).isprintable()


@pytest.mark.parametrize("word", ["a|b", "a:b", "../a", "a|b:c\x1b"])
def test_fault_of_name__separator__is_named(word: str) -> None:
    assert "may not be in it" in fault_of_name(word)


def test_fault_of_text__separator__is_none() -> None:
    assert fault_of_text("api: anna") == ""
    assert fault_of_text("https://app.example/feed") == ""
    assert fault_of_text("a\x1bb")


def test_fault_of_name__undecodable_letters__are_refused() -> None:
    one, other = (word.decode("utf-8", "replace") for word in (b"Z\xfcrich", b"Z\xf6rich"))
    assert one == other
    assert "not in UTF-8" in fault_of_name(one)
