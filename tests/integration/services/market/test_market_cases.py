"""The table of cases: a moment, a command, and what it says, returns and leaves in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import dagster as dg
import pytest

from tests.integration.services.market.market_app import DERIVED, FETCHED, TODAY, MarketApp

DAY_OF = [*FETCHED, *DERIVED]
REFERENCES = {"normalized_trade_cal:2024": "completed", "normalized_stock_basic:ALL": "completed"}


def whole(*days: str) -> dict[str, str]:
    """The work rows of days that were fetched, with what derives from them."""
    return {f"{table}:{day}": "completed" for day in days for table in DAY_OF}


@dataclass(frozen=True)
class Case:
    """`now` and `command` are done, `work` is every row of the ledger that they added, with its status."""

    name: str
    now: str
    command: str
    says: str
    code: int = 0
    work: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    calls: int | None = None


NEAR = {"PERENNIAL_GAP_WINDOW_DAYS": "1", "PERENNIAL_GAP_LIMIT": "1"}

CASES = [
    Case(
        "a day at 18:29",
        now="2024-10-08T18:29",
        command="market daily",
        says="2024-10-08 is due from 18:30 Asia/Shanghai; the newest due day is 2024-09-30",
        work=REFERENCES,
    ),
    Case(
        "a day at 18:31, the first after a week's holiday",
        now="2024-10-08T18:31",
        command="market daily",
        says="2024-10-08 is a trading day and due",
        # The two days before the holiday are asked once more, for revisions.
        work=REFERENCES | whole("2024-10-08", "2024-09-30", "2024-09-27"),
    ),
    Case(
        "a Saturday",
        now="2024-10-05T18:31",
        command="market daily",
        says="2024-10-05 (Saturday) is closed; the newest trading day is 2024-09-30",
        work=REFERENCES,
    ),
    Case(
        "31 December",
        now="2024-12-31T18:31",
        command="market daily",
        says="2024-12-31 is a trading day and due",
        code=1,  # October to December were never fetched, and nobody does it unasked
        settings=NEAR,
        work=REFERENCES | {"normalized_trade_cal:2025": "completed"} | whole("2024-12-31", "2024-12-30"),
    ),
    Case(
        "a backfill over a day that is there",
        now="2024-09-30T18:31",
        command="market backfill --from 2024-09-26 --to 2024-09-26",
        says="nothing to do: all 1 trading days are whole (0 closed days)",
        calls=0,
    ),
    Case(
        "a backfill over days of which some are there",
        now="2024-09-30T18:31",
        command="market backfill --from 2024-09-19 --to 2024-09-24",
        says="2 of 4 trading days needed work, all whole now (2 closed days)",
        work=whole("2024-09-19", "2024-09-20"),
        calls=8,
    ),
    Case(
        "a range of nothing but closed days",
        now="2024-10-05T18:31",
        command="market backfill --from 2024-10-01 --to 2024-10-05",
        says="no trading day to fill (5 closed days)",
        calls=0,
    ),
    Case(
        "a backfill of a day before its hour",
        now="2024-10-08T18:29",
        command="market backfill --from 2024-10-08 --to 2024-10-08",
        says="no trading day to fill (0 closed days, 1 not due yet)",
        calls=0,
    ),
    Case(
        "a range that ends before it begins",
        now="2024-09-30T18:31",
        command="market backfill --from 2024-09-24 --to 2024-09-20",
        says="error: the range ends before it begins: 2024-09-24 > 2024-09-20",
        code=2,
        calls=0,
    ),
    Case(
        "gaps by force",
        now="2024-09-30T18:31",
        command="market backfill --gaps --force",
        says="error: --force would fetch every day between the gaps again",
        code=2,
        calls=0,
    ),
    Case(
        "a table that does not exist",
        now="2024-09-30T18:31",
        command="market backfill --from 2024-09-20 --to 2024-09-20 --table daily",
        says="error: there is no market table 'daily'",
        code=2,
        calls=0,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_command__case__says_returns_and_records_it(app: MarketApp, case: Case) -> None:
    before = {row.id for row in app.work()}
    app.set(**case.settings)
    app.at(case.now)
    said = app.run(*case.command.split())
    assert (said.code, (said.out or said.err).splitlines()[0]) == (case.code, case.says), said.err
    assert {row.key: row.status for row in app.work() if row.id not in before} == case.work
    if case.calls is not None:
        assert app.calls() == case.calls


def test_backfill__complete_day_by_force__leaves_the_same_rows(app: MarketApp) -> None:
    rows = {table: app.frame(table, TODAY) for table in DAY_OF}
    said = app.run("market", "backfill", "--from", TODAY, "--to", TODAY, "--force")
    assert said.out == "1 of 1 trading days needed work, all whole now (0 closed days)\n"
    assert app.calls() == 5, "suspensions, which nothing counts, are asked for twice"
    assert {table: app.frame(table, TODAY) for table in DAY_OF} == rows


def test_backfill__source_has_fewer_rows_by_force__keeps_the_day(app: MarketApp) -> None:
    content, again = app.content(), ("market", "backfill", "--from", TODAY, "--to", TODAY, "--force")
    app.fault("daily", "partial_day", keep=0.95)
    said = app.run(*again, "--json")
    assert said.code == 1
    [kept] = said.json["kept"]
    assert (kept["table"], kept["day"]) == ("normalized_daily", TODAY)
    assert (said.json["ok"], said.json["failed"], said.json["partial"]) == (False, [], [])
    newest = app.newest(f"normalized_daily:{TODAY}")
    assert (newest.status, newest.reason_code) == ("skipped", "thinner")
    assert app.content() == content
    assert app.status() == {}, "the day is as whole as it was, and its source did answer"

    said = app.run(*again)
    assert f"1 kept, as the source has fewer rows now (normalized_daily {TODAY})" in said.out
    app.later(minutes=1)
    accepted = app.run(*again, "--accept-thinner")
    assert accepted.code == 0, accepted.err
    assert accepted.out.startswith(
        f"1 of 1 trading days needed work, 1 partial (normalized_daily {TODAY}) (0 closed days)\n"
    )
    assert app.content() != content
    nothing = app.run(*again[:-1])
    assert nothing.out.startswith(f"nothing to do: 1 partial (normalized_daily {TODAY}) (0 closed days)\n")


def test_materialize__source_has_fewer_rows__keeps_the_day_unless_the_run_is_tagged(app: MarketApp) -> None:
    content = app.content()
    app.fault("daily", "partial_day", keep=0.95)
    with app.instance() as instance:
        assert not app.materialize(instance, ["normalized_daily"], TODAY).success
        assert app.content() == content
        tags = {"perennial/accept": "thinner"}
        assert app.materialize(instance, ["normalized_daily"], TODAY, tags=tags).success
    assert app.content() != content


def test_materialize__closed_day__succeeds_and_writes_nothing(app: MarketApp) -> None:
    app.at("2024-10-08T18:31")
    snapshots, work = app.snapshots(), app.work()
    with app.instance() as instance:
        ended = app.materialize(instance, [*FETCHED, *DERIVED], "2024-10-01")
    assert ended.success
    for table in (*FETCHED, *DERIVED):
        reported = ended.asset_materializations_for_node(f"market__{table}")[0].metadata
        assert reported["closed"].value is True, table
    assert (app.snapshots(), app.work(), app.calls()) == (snapshots, work, 0)


def test_materialize__before_publication__names_the_hour(app: MarketApp) -> None:
    app.at("2024-10-08T15:00")
    with app.instance() as instance:
        ended = app.materialize(instance, ["normalized_daily"], "2024-10-08")
    reported = next(e.step_failure_data for e in ended.all_events if e.is_step_failure)
    assert not ended.success
    assert reported.user_failure_data is not None
    assert reported.user_failure_data.description == (
        "daily 2024-10-08 is published at 16:00 Asia/Shanghai; it is 2024-10-08 15:00 there"
    )
    assert app.work("normalized_daily:2024-10-08") == []
    assert app.calls() == 0


def test_materialize__range_with_closed_days__has_an_event_for_each_weekday(app: MarketApp) -> None:
    """In the UI a range over a holiday ends with every partition of it done."""
    app.at("2024-10-08T18:31")
    with app.instance() as instance:
        ended = app.materialize(instance, ["suspensions"], days=("2024-09-27", "2024-10-08"))
        assert ended.success
        done = instance.get_materialized_partitions(dg.AssetKey(["market", "suspensions"]))
    weekdays = {"2024-09-27", "2024-09-30", *(f"2024-10-{day:02}" for day in (1, 2, 3, 4, 7, 8))}
    assert weekdays <= set(done)
    assert app.calls() == 4, "two for each month"
