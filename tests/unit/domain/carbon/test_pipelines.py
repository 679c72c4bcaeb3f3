"""The status of a pipeline, derived from its work items: what counts, and from when until when."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from domain.carbon.jobs import ALL_KINDS
from domain.carbon.pipelines import PHASES, Pipeline, pipeline
from domain.shared.work import Work
from tests.unit.domain.rows import row

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
KIND = {"data": "carbon.csv_ingest", "emissions": "carbon.emission_recalc", "sums": "carbon.aggregation"}
ENDED = ("completed", "failed", "skipped", "cancelled", "superseded")


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


def items(*described: str) -> list[Work]:
    """`data completed`, `sums failed`: each in the minute after the one before."""
    found = []
    for number, words in enumerate(described):
        phase, status = words.split()
        started = minute(number) if status not in ("queued", "cancelled", "superseded") else None
        finished = minute(number + 1) if status in ENDED else None
        key = f"{phase}:{number}|2025"
        times = {"created_at": minute(number), "started_at": started, "finished_at": finished}
        found.append(row(status, key, KIND[phase], **times))
    return found


@pytest.mark.parametrize(
    ("described", "status"),
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
def test_pipeline__work_items_in_any_order__decide_the_status(described: list[str], status: str) -> None:
    for order in permutations(items(*described)):
        assert pipeline(order).status == status


@pytest.mark.parametrize(
    ("described", "flags", "status"),
    [
        (["data completed"], {"more": True}, "RUNNING"),
        (["data failed"], {"more": True}, "FAILED"),
        (["data completed", "emissions failed"], {"more": True}, "PARTIAL"),
        ([], {"more": True}, "NOT_STARTED"),
        (["data completed"], {"locked": True}, "PARTIAL"),
        (["data skipped"], {"locked": True}, "PARTIAL"),
        (["data completed", "emissions superseded"], {"locked": True}, "PARTIAL"),
        (["data completed", "emissions running"], {"locked": True}, "RUNNING"),
        (["data failed"], {"locked": True}, "FAILED"),
        ([], {"locked": True}, "NOT_STARTED"),
        ([], {"refused": True}, "FAILED"),
    ],
)
def test_pipeline__more_to_come_or_locked__is_no_success(
    described: list[str], flags: dict[str, Any], status: str
) -> None:
    found = pipeline(items(*described), **flags)
    assert found.status == status
    assert found.finished is None or status != "RUNNING"


def test_pipeline__work_tried_again__counts_as_it_ended_last() -> None:
    done, first = items("data completed", "emissions failed")
    again = replace(first, status="completed", created_at=minute(4), started_at=minute(5))
    for order in permutations([done, first, again]):
        assert pipeline(order).status == "SUCCESS"


def test_pipeline__work_back_in_the_queue__was_started() -> None:
    [queued] = items("data queued")
    assert pipeline([replace(queued, started_at=NOON)]).status == "RUNNING"


def test_pipeline__each_phase__has_its_own_status_and_times() -> None:
    found = pipeline(
        items("data completed", "data completed", "emissions completed", "emissions failed", "sums queued")
    )
    data, emissions, sums = found.phases.values()
    assert (data.status, data.started, data.finished) == ("SUCCESS", minute(0), minute(2))
    assert data.duration == timedelta(minutes=2)
    assert (emissions.status, emissions.started, emissions.finished) == ("PARTIAL", minute(2), minute(4))
    assert (sums.status, sums.started, sums.finished, sums.duration) == ("NOT_STARTED", None, None, None)
    assert (found.status, found.started, found.finished) == ("RUNNING", minute(0), None)


@pytest.mark.parametrize(
    ("described", "started", "finished"),
    [
        (["data completed", "emissions failed", "sums completed"], minute(0), minute(3)),
        (["data completed", "data running"], minute(0), None),
        (["data cancelled"], None, minute(1)),
    ],
)
def test_pipeline__its_work__is_its_span(
    described: list[str], started: datetime | None, finished: datetime | None
) -> None:
    found: Pipeline = pipeline(items(*described))
    assert (found.started, found.finished) == (started, finished)
    assert found.duration == (finished - started if started and finished else None)


def test_pipeline__work_superseded__began_with_it() -> None:
    old, new = items("data superseded", "data completed")
    found = pipeline([replace(old, started_at=minute(-5), finished_at=minute(9)), new])
    assert (found.started, found.finished) == (minute(-5), minute(2))


def test_phases__every_kind__has_one() -> None:
    assert sorted(kind for kinds in PHASES.values() for kind in kinds) == sorted(k.name for k in ALL_KINDS)
