"""The plan of the references: each difference, with the state, the reason code and the work it requests."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from domain.references.jobs import SCRAPE
from domain.references.plan import Observed, SourceSeen, plan
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT, Version
from domain.shared.verdict import Verdict

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
HELD = Version(3, "abc")
WHOLE = PartitionState(version=HELD, recorded=HELD)
SOUND = SourceSeen(WHOLE, WHOLE, scraped_at=NOON, handed_version=str(HELD), fingerprint="settings")
AWAY = Version(0, "", unavailable="no route")


def verdicts(seen: SourceSeen, *, available: bool = True, now: datetime = NOON) -> dict[str, Verdict]:
    found = plan(Observed({"atlas": seen}, handoffs_available=available, now=now))
    return {verdict.table: verdict for verdict in found.verdicts}


def test_plan__all_as_it_should_be__requests_nothing():
    found = verdicts(SOUND)
    assert {v.state for v in found.values()} == {"healthy"}
    assert set(found) == {"references", "handoffs", "documents"}


@pytest.mark.parametrize(
    ("references", "state", "code"),
    [
        (PartitionState(), "missing", "missing"),
        (replace(WHOLE, version=ABSENT), "missing", "missing"),
        (replace(WHOLE, version=Version(4, "x")), "changed", "changed"),
        (replace(WHOLE, recorded=None), "changed", "unrecorded"),
        (replace(WHOLE, version=Version(0, "", corrupt=True)), "corrupt", "corrupt"),
    ],
)
def test_plan__references_are_not_what_was_recorded__scrapes(
    references: PartitionState, state: str, code: str
):
    verdict = verdicts(replace(SOUND, references=references))["references"]
    assert (verdict.state, verdict.reason_code) == (state, code)
    assert verdict.request is not None
    assert (verdict.request.kind, verdict.request.key) == (SCRAPE, "references:atlas")


@pytest.mark.parametrize(("minutes", "due"), [(59, False), (60, True), (6_000, True)])
def test_plan__time_passes__scrapes_when_it_is_due(minutes: int, due: bool):
    verdict = verdicts(SOUND, now=NOON + timedelta(minutes=minutes))["references"]
    assert (verdict.due, verdict.reason_code) == (due, "scrape_due" if due else "")


def test_plan__due_again_after_a_scrape__is_another_request():
    once, again = (
        verdicts(replace(SOUND, scraped_at=NOON - timedelta(hours=hours)))["references"] for hours in (2, 3)
    )
    assert once.due
    assert once.fingerprint != again.fingerprint, "its next attempt would be put off as a recurrence"


def test_plan__settings_of_the_source_changed__are_another_request():
    late = replace(SOUND, scraped_at=None)
    first, second = (verdicts(one)["references"] for one in (late, replace(late, fingerprint="other")))
    assert first.fingerprint != second.fingerprint


def test_plan__bytes_cannot_be_read_now__waits():
    found = verdicts(replace(SOUND, references=replace(WHOLE, version=AWAY)), now=NOON + timedelta(days=9))
    assert (found["references"].state, found["references"].due) == ("unavailable", False)
    assert found["handoffs"].state == "healthy"


def test_plan__references_without_hand_off__are_left_to_the_pass():
    verdict = verdicts(replace(SOUND, handed_version=str(Version(2, "before"))))["handoffs"]
    assert (verdict.state, verdict.reason_code, verdict.due) == ("waiting", "without_handoff", False)


def test_plan__hand_offs_taken_away__are_explained():
    found = verdicts(replace(SOUND, handed_version=""), available=False)
    assert (found["handoffs"].state, found["handoffs"].reason_code) == ("waiting", "handoff_unavailable")
    assert found["references"].state == "healthy"
