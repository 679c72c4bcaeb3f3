"""Ranges of days of which some go wrong: the others are done, and nothing is told better than it is."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

import dagster as dg
import pytest

from assets.policies.tags import ONLY, ONLY_NEEDED
from services.market import backfill
from tests.integration.market.house import DERIVED, FETCHED, PREPARED, House

FETCH = "normalized_adj_factor"
WELL, ILL = "2024-09-10", "2024-09-11"
LAST = "2024-09-12"


def test_a_day_refused_in_the_first_pass_is_not_done_by_the_second(house: House) -> None:
    house.fault("adj_factor", "http_502", day=date.fromisoformat(WELL), times=1)
    house.fault("adj_factor", "partial_day", day=date.fromisoformat(ILL), keep=0.5)
    with house.instance() as instance:
        ended = house.materialize(instance, [FETCH], days=(WELL, ILL))
    assert not ended.success, "a range with a refused day is no success"
    assert house.newest(f"{FETCH}:{WELL}").status == "completed"
    refused = house.newest(f"{FETCH}:{ILL}")
    assert (refused.status, refused.reason_code, refused.attempts) == ("deferred", "incomplete", 1)
    assert house.rows(FETCH, ILL) == 0
    assert house.calls("adj_factor") == 3, "one failed, one repeated, one refused and left to the ledger"


def test_a_success_beside_a_failure_is_no_success_of_the_source(house: House) -> None:
    house.later(minutes=1)
    house.fault("adj_factor", "partial_day", day=date.fromisoformat(ILL), keep=0.5)
    with house.instance() as instance:
        house.materialize(instance, [FETCH], days=(WELL, ILL))
    assert house.rows(FETCH, WELL) > 0
    assert house.status()["tushare.adj_factor"]["reason_code"] == "source_error"
    assert house.run("check", "market").code == 1


def test_one_bad_day_keeps_nothing_from_the_days_beside_it(house: House) -> None:
    house.fault("adj_factor", "partial_day", day=date.fromisoformat(ILL), keep=0.5)
    said = house.run("market", "backfill", "--from", WELL, "--to", LAST)
    assert said.code == 1
    for day in (WELL, LAST):
        assert house.rows("adjusted_daily", day) == house.rows("normalized_daily", day) > 0
        assert house.rows("coverage", day) > 0
    assert house.rows("adjusted_daily", ILL) == 0


def test_what_has_nothing_to_be_made_from_is_left_alone(house: House) -> None:
    said = house.run("market", "backfill", "--from", WELL, "--to", WELL, "--table", "suspensions")
    assert said.code == 0
    assert house.rows("suspensions", WELL) > 0
    assert house.work(f"adjusted_daily:{WELL}") == []
    with house.instance() as instance:
        assert WELL not in instance.get_materialized_partitions(_key("adjusted_daily"))


def test_a_table_that_completes_the_inputs_brings_what_derives_from_them(house: House) -> None:
    for table in ("suspensions", "normalized_daily", FETCH):
        said = house.run("market", "backfill", "--from", WELL, "--to", WELL, "--table", table)
        assert said.code == 0, said.err
    assert house.rows("adjusted_daily", WELL) == house.rows("normalized_daily", WELL) > 0


@pytest.mark.parametrize(
    ("first", "last"),
    [("1990-12-19", "1990-12-20"), ("1991-07-02", "1991-07-04"), ("2020-12-31", "2021-01-04")],
    ids=["the first of all days", "SZSE opens", "before BSE, and its first year"],
)
def test_history_reaches_back_beyond_the_opening_of_an_exchange(house: House, first: str, last: str) -> None:
    said = house.run("market", "backfill", "--from", first, "--to", last)
    assert said.code == 0, said.err
    for day in (first, last):
        assert house.rows("normalized_daily", day) == house.rows("adjusted_daily", day) > 0


def test_days_far_apart_are_filled_by_a_run_each_and_nothing_is_told_of_those_between(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "FAR", 2)
    content = house.content()
    first, *between, last = PREPARED
    house.drop(FETCH, first, last)
    with house.instance() as instance:
        runs = instance.get_runs_count()
        before = [told(instance, day) for day in between]
        said = house.run("market", "backfill", "--from", first, "--to", last)
        assert said.code == 0, said.err
        assert said.out == "2 of 6 trading days needed work, all whole now (2 closed days)\n"
        assert instance.get_runs_count() == runs + 2
        assert [told(instance, day) for day in between] == before
    assert house.content() == content


def test_a_run_of_several_that_fails_keeps_nothing_from_the_next(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "FAR", 2)
    first, last = PREPARED[0], PREPARED[-1]
    house.drop(FETCH, first, last)
    house.fault("adj_factor", "partial_day", day=date.fromisoformat(first), keep=0.5)
    said = house.run("market", "backfill", "--from", first, "--to", last, "--json")
    assert said.code == 1
    assert {piece["day"] for piece in said.json["failed"]} == {first}
    assert house.rows(FETCH, last) > 0


def test_range_run__some_days_are_complete__only_the_others_have_an_event(house: House) -> None:
    kept, dropped = PREPARED[:2]
    house.drop(FETCH, dropped)
    with house.instance() as instance:
        before = told(instance, kept)
        done = house.materialize(instance, [FETCH], days=(kept, dropped), tags={ONLY: ONLY_NEEDED})
        assert told(instance, kept) == before
        assert events(instance, done.run_id) == {(FETCH, dropped): 1}


def test_range_run__several_tables_and_a_second_pass__every_partition_has_one_event(house: House) -> None:
    house.fault("adj_factor", "http_502", day=date.fromisoformat(ILL), times=1)
    tables = (*FETCHED, *DERIVED)
    with house.instance() as instance:
        done = house.materialize(instance, tables, days=(WELL, LAST))
        assert done.success
        days = (WELL, ILL, LAST)
        assert events(instance, done.run_id) == {(table, day): 1 for table in tables for day in days}


def test_a_day_that_is_kept_is_shown_where_dagster_never_saw_it(house: House) -> None:
    """Its history was lost, say; also if the run goes wrong, as nothing would tell of the day later."""
    kept, dropped = PREPARED[:2]
    house.drop(FETCH, dropped)
    house.fault("adj_factor", "partial_day", day=date.fromisoformat(dropped), keep=0.5)
    with house.instance() as instance:
        instance.wipe_assets([_key(FETCH)])
        house.materialize(instance, [FETCH], days=(kept, dropped), tags={ONLY: ONLY_NEEDED})
        assert instance.get_materialized_partitions(_key(FETCH)) == {kept}


def test_gaps_cannot_be_forced(house: House) -> None:
    said = house.run("market", "backfill", "--gaps", "--force")
    assert said.code == 2
    assert "every day between" in said.err


def told(instance: dg.DagsterInstance, day: str) -> list[dict[str, Any]]:
    """What was ever told of a day, oldest first."""
    wanted = dg.AssetRecordsFilter(asset_key=_key(FETCH), asset_partitions=[day])
    records = instance.fetch_materializations(wanted, limit=100, ascending=True).records
    found = [record.asset_materialization for record in records]
    return [{name: value.value for name, value in one.metadata.items()} for one in found if one]


def events(instance: dg.DagsterInstance, run_id: str) -> Counter[tuple[str, str | None]]:
    """How often each partition was materialized in a run, by table and partition."""
    logged = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
    found = (entry.dagster_event for entry in logged)
    return Counter(
        (event.asset_key.path[-1], event.partition) for event in found if event and event.asset_key
    )


def _key(table: str) -> dg.AssetKey:
    return dg.AssetKey(["market", table])
