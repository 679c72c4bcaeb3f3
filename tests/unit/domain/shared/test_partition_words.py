"""Reasons and partitions in the few words that a run's tag has."""

from __future__ import annotations

import pytest

from domain.shared.partition_words import partitions_in_words, reason_in_words, reasons_in_words


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("", "requested by a person"),
        ("missing", "gap"),
        ("incomplete", "thin"),
        ("corrupt", "corrupt"),
        ("inputs_changed", "input changed"),
        ("feed_changed", "feed changed"),
    ],
)
def test_reason__of_any_code__is_in_words(code: str, words: str) -> None:
    assert reason_in_words(code) == words


@pytest.mark.parametrize(
    ("partitions", "words"),
    [
        (["2026-11-17"], "2026-11-17"),
        (["2026-11-17", "2026-11-16"], "2 days"),
        (["2025", "2026"], "2 years"),
        (["train|2025", "train|2026"], "2 partitions"),
    ],
)
def test_partitions__one_or_several__are_named_or_counted(partitions: list[str], words: str) -> None:
    assert partitions_in_words(partitions) == words


def test_reasons__of_several_partitions__count_each_partition_once() -> None:
    pairs = [("missing", "2026-11-16"), ("missing", "2026-11-17"), ("missing", "2026-11-17")]
    assert reasons_in_words([*pairs, ("changed", "2026-11-13")]) == "changed: 2026-11-13, gap: 2 days"
    assert reasons_in_words([("missing", "2026-11-17"), ("changed", "2026-11-17")]) == "changed, gap"
