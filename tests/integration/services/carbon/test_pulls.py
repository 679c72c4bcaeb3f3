"""Requests of people for a reading of applications, on every database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from domain.carbon.catalogue import catalogue
from domain.shared.error import InvalidInput
from resources.ledger.client import Ledger
from services.carbon.feed_uploads import MAY_SHRINK
from services.carbon.pulls import request_pull
from services.carbon.service import CarbonService

UNIT_SYNC = "carbon.unit_sync"
NOTHING: Any = None
"""No lake, no staging, no application: a request touches the ledger alone."""


@pytest.fixture
def carbon(ledger: Ledger) -> CarbonService:
    return CarbonService(
        catalogue(), NOTHING, ledger, NOTHING, feeds={"api": NOTHING}, years=range(2020, 2027)
    )


def test_request_pull__many_at_once__are_one_job(carbon: CarbonService) -> None:
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda _: request_pull(carbon, "units", 2025), range(12)))
    [row] = carbon.ledger.find(UNIT_SYNC)
    assert {job.id for one in found for job in one.jobs} == {row.id}
    members = carbon.ledger.pipelines.members({one.pipeline_id for one in found})
    assert all([work.id for work in rows] == [row.id] for rows in members.values())


def test_request_pull__while_it_runs__names_the_running_job(carbon: CarbonService) -> None:
    first = request_pull(carbon, "factors", 2025, "train")
    [running] = carbon.ledger.claim("carbon.factor_ingest", holder="worker:1", limit=1)
    again = request_pull(carbon, "factors", 2025, "train")
    assert [job.id for job in again.jobs] == [running.id]
    assert (again.pipeline_id, again.known) == (first.pipeline_id, True)
    assert len(carbon.ledger.find("carbon.factor_ingest")) == 1


def test_request_pull__again_with_more_accepted__updates_the_waiting_job(carbon: CarbonService) -> None:
    first = request_pull(carbon, "units", 2025)
    again = request_pull(carbon, "units", 2025, may_shrink=True)
    assert [job.id for job in again.jobs] == [job.id for job in first.jobs]
    [row] = carbon.ledger.find(UNIT_SYNC)
    assert row.params == {MAY_SHRINK: True}
    assert carbon.ledger.requested_by_person([row.id]) == {row.id}


def test_request_pull__more_accepted_than_what_runs__is_read_again_behind_it(carbon: CarbonService) -> None:
    request_pull(carbon, "units", 2025)
    [running] = carbon.ledger.claim(UNIT_SYNC, holder="worker:1", limit=1)
    again = request_pull(carbon, "units", 2025, may_shrink=True)
    [behind] = again.jobs
    assert (behind.id != running.id, behind.params, again.known) == (True, {MAY_SHRINK: True}, False)
    assert request_pull(carbon, "units", 2025, may_shrink=True).jobs[0].id == behind.id
    assert len(carbon.ledger.find(UNIT_SYNC)) == 2


@pytest.mark.parametrize(
    ("arguments", "reason_code"),
    [
        (("units", 2019), "year_outside"),
        (("units", 2025, "train"), "bad_name"),
        (("units",), "not_in_feed"),
        (("factors", 2025), "not_in_feed"),
    ],
)
def test_request_pull__nothing_to_read__is_refused(
    carbon: CarbonService, arguments: tuple[Any, ...], reason_code: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        request_pull(carbon, *arguments)
    assert refusal.value.reason_code == reason_code
    assert carbon.ledger.find(UNIT_SYNC) == []


def test_request_pull__no_application__is_refused(carbon: CarbonService) -> None:
    carbon.feeds = {}
    with pytest.raises(InvalidInput) as refusal:
        request_pull(carbon, "units", 2025)
    assert refusal.value.reason_code == "no_application"
