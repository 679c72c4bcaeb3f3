"""A pipeline's status, derived from its work: what counts, what does not, and since when until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from domain.carbon.jobs import ALL_KINDS
from domain.carbon.pipelines import PHASES, Pipeline, pipeline

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
KIND = {"data": "carbon.csv_ingest", "emissions": "carbon.emission_recalc", "sums": "carbon.aggregation"}
ENDED = ("completed", "failed", "skipped", "cancelled", "superseded")


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


@dataclass(frozen=True)
class Piece:
    kind: str
    key: str
    status: str
    reason_code: str = ""
    created_at: datetime = NOON
    started_at: datetime | None = None
    finished_at: datetime | None = None


def pieces(*reported: str) -> list[Piece]:
    """`data completed`, `sums failed`: each in the minute after the one before."""
    found = []
    for number, words in enumerate(reported):
        phase, status = words.split()
        begun = status not in ("queued", "cancelled", "superseded")
        found.append(
            Piece(
                KIND[phase],
                f"{phase}:{number}|2025",
                status,
                "",
                minute(number),
                minute(number) if begun else None,
                minute(number + 1) if status in ENDED else None,
            )
        )
    return found


@pytest.mark.parametrize(
    ("reported", "status"),
    [
        ([], "NOT_STARTED"),
        (["data queued"], "NOT_STARTED"),
        (["data queued", "emissions queued"], "NOT_STARTED"),
        (["data running"], "RUNNING"),
        (["data deferred"], "RUNNING"),
        (["data completed", "emissions queued"], "RUNNING"),
        (["data failed", "data running"], "RUNNING"),
        (["data completed", "emissions failed", "sums deferred"], "RUNNING"),
        (["data completed"], "SUCCESS"),
        (["data skipped"], "SUCCESS"),
        (["data completed", "emissions skipped", "sums completed"], "SUCCESS"),
        (["data failed"], "FAILED"),
        (["data cancelled"], "FAILED"),
        (["data failed", "data cancelled"], "FAILED"),
        (["data failed", "sums completed"], "FAILED"),
        (["data completed", "data failed"], "PARTIAL"),
        (["data completed", "emissions failed"], "PARTIAL"),
        (["data completed", "emissions failed", "sums completed"], "PARTIAL"),
        (["data completed", "emissions cancelled"], "PARTIAL"),
        (["data completed", "emissions completed", "sums failed"], "PARTIAL"),
        (["emissions failed"], "FAILED"),
        (["emissions completed", "sums failed"], "PARTIAL"),
        (["data completed", "emissions superseded", "sums completed"], "SUCCESS"),
        (["data completed", "emissions superseded"], "SUCCESS"),
        (["data superseded"], "NOT_STARTED"),
    ],
)
def test_a_status_follows_from_the_work_in_whatever_order(reported: list[str], status: str) -> None:
    for order in permutations(pieces(*reported)):
        assert pipeline(order).status == status


def test_a_file_that_was_refused_is_a_chain_that_failed() -> None:
    assert pipeline([], refused=True) == Pipeline("FAILED", phases=pipeline([]).phases)


def test_work_that_was_tried_again_counts_as_it_ended_last() -> None:
    first, again = pieces("emissions failed", "emissions completed")
    again = Piece(first.kind, first.key, again.status, "", again.created_at, minute(5), minute(6))
    assert pipeline([*pieces("data completed"), first, again]).status == "SUCCESS"
    assert pipeline([*pieces("data completed"), again, first]).status == "SUCCESS"


def test_work_that_went_back_to_the_queue_was_started() -> None:
    [queued] = pieces("data queued")
    assert pipeline([Piece(queued.kind, queued.key, "queued", "", NOON, NOON)]).status == "RUNNING"


def test_more_to_come_keeps_a_chain_running_and_hides_no_failure() -> None:
    done = pipeline(pieces("data completed"), more=True)
    assert (done.status, done.finished) == ("RUNNING", None)
    assert pipeline(pieces("data failed"), more=True).status == "FAILED"
    assert pipeline(pieces("data completed", "emissions failed"), more=True).status == "PARTIAL"
    assert pipeline([], more=True).status == "NOT_STARTED"


def test_what_a_lock_keeps_back_is_no_success() -> None:
    assert pipeline(pieces("data completed"), locked=True).status == "PARTIAL"
    assert pipeline(pieces("data skipped:year_locked"), locked=True).status == "PARTIAL"
    assert pipeline(pieces("data completed", "emissions superseded"), locked=True).status == "PARTIAL"
    assert pipeline(pieces("data completed", "emissions running"), locked=True).status == "RUNNING"
    assert pipeline(pieces("data failed"), locked=True).status == "FAILED"
    assert pipeline([], locked=True).status == "NOT_STARTED"


def test_each_phase_has_a_status_and_times_of_its_own() -> None:
    found = pipeline(
        pieces("data completed", "data completed", "emissions completed", "emissions failed", "sums queued")
    )
    assert {name: span.status for name, span in found.phases.items()} == {
        "data": "SUCCESS",
        "emissions": "PARTIAL",
        "aggregation": "NOT_STARTED",
    }
    data, emissions, sums = found.phases.values()
    assert (data.started, data.finished, data.duration) == (minute(0), minute(2), timedelta(minutes=2))
    assert (emissions.started, emissions.finished) == (minute(2), minute(4))
    assert (sums.started, sums.finished, sums.duration) == (None, None, None)
    assert (found.status, found.started, found.finished) == ("RUNNING", minute(0), None)


def test_what_goes_on_has_no_end_yet() -> None:
    found = pipeline(pieces("data completed", "data running"))
    assert (found.phases["data"].started, found.phases["data"].finished) == (minute(0), None)
    assert (found.finished, found.duration) == (None, None)


def test_a_chain_lasts_from_its_first_start_to_its_last_end() -> None:
    found = pipeline(pieces("data completed", "emissions failed", "sums completed"))
    assert (found.started, found.finished, found.duration) == (minute(0), minute(3), timedelta(minutes=3))


def test_it_began_with_the_work_that_other_work_speaks_for_now() -> None:
    old, new = pieces("data superseded", "data completed")
    old = Piece(old.kind, old.key, old.status, old.reason_code, old.created_at, minute(-5), minute(9))
    found = pipeline([old, new])
    assert (found.started, found.finished) == (minute(-5), minute(2))


def test_a_chain_that_never_began_lasts_no_time() -> None:
    assert pipeline(pieces("data cancelled")).duration is None


def test_every_kind_of_work_has_its_phase() -> None:
    assert sorted(kind for kinds in PHASES.values() for kind in kinds) == sorted(k.name for k in ALL_KINDS)
