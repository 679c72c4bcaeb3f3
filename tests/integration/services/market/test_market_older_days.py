"""Days before the gap window: recorded ones are healed at any age, holes are reported."""

from __future__ import annotations

import math
from typing import Any

import pytest

from domain.market.plan import FILL
from domain.shared.error import TransientResourceError
from domain.shared.work import Work, WorkRequest
from sensors.market import freshness
from services.market import history, resource, service
from services.market.reconcile import MarketReconciler
from services.reconcile import RunStart, observe_and_enqueue, reconcile
from tests.breaking import break_lake
from tests.integration.services.market.market_app import FETCHED, PREPARED, TODAY, MarketApp

PRICES, TABLE = "normalized_daily", "normalized_adj_factor"
OLD = PREPARED[1]
LONG_AGO = ("2023-12-04", "2023-12-05")
"""300 days before the evening of a prepared app."""

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # pyiceberg's, about the break itself


@pytest.fixture
def narrow(app: MarketApp) -> MarketApp:
    """Only the newest day is in the gap window."""
    app.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    return app


def harm(app: MarketApp, table: str, *deeds: str) -> None:
    break_lake(app.home, f"market.{table}", *deeds)


def found(app: MarketApp) -> dict[str, str]:
    return {subject: finding["reason_code"] for subject, finding in app.status().items()}


def plan(app: MarketApp) -> dict[str, str]:
    """The verdicts on days before the window."""
    near = set(map(str, app.market.window()))
    verdicts = app.market.plan().verdicts
    return {v.key: v.reason_code for v in verdicts if v.partition not in near and v.partition[4:5] == "-"}


def test_heal__half_a_day_of_300_days_ago__is_one_finding_and_healed(app: MarketApp) -> None:
    app.set(PERENNIAL_MARKET_START="2023-01-01")
    assert app.run("market", "backfill", "--from", LONG_AGO[0], "--to", LONG_AGO[1]).code == 0
    content, hole = app.content(), "history:2023-12-06…2024-09-20"
    assert found(app) == {hole: "never_fetched"}
    assert plan(app) == {}, "days that were never fetched are no gaps"
    assert app.run("check", "market").code == 0

    harm(app, PRICES, "drop-half", LONG_AGO[1])
    assert found(app) == {hole: "never_fetched", f"{PRICES}:{LONG_AGO[1]}": "incomplete"}
    checked = app.run("check", "market")
    assert (checked.code, f"{PRICES} of {LONG_AGO[1]} is incomplete" in checked.out) == (1, True)
    assert plan(app) == {f"{PRICES}:{LONG_AGO[1]}": "incomplete"}

    calls = app.calls()
    app.run("market", "heal")
    assert (app.calls("daily"), app.calls() - calls) == (3, 1), "two for the backfill, and the one again"
    assert app.content() == content
    assert found(app) == {hole: "never_fetched"}
    assert app.run("check", "market").code == 0


def test_heal__older_days_wrong_in_several_ways__restores_them(narrow: MarketApp) -> None:
    content = narrow.content()
    harm(narrow, PRICES, "corrupt-day", OLD)
    harm(narrow, "adjusted_daily", "rot-file", OLD)
    harm(narrow, "coverage", "corrupt-day", PREPARED[0])
    harm(narrow, "suspensions", "drop-day", PREPARED[3])
    with narrow.market.ledger.engine.begin() as connection:
        connection.exec_driver_sql(
            "DELETE FROM partition_record WHERE table_name = 'market.normalized_adj_factor'"
            f" AND partition = '{PREPARED[2]}'"
        )
    assert plan(narrow) == {
        f"{PRICES}:{OLD}": "changed",
        # A month is one file; what derives from another gap of its day comes after it.
        **{f"adjusted_daily:{PREPARED[n]}": "corrupt" for n in (0, 4)},
        f"coverage:{PREPARED[0]}": "changed",
        f"{TABLE}:{PREPARED[2]}": "unrecorded",
        f"suspensions:{PREPARED[3]}": "missing",
    }
    healed = narrow.run("market", "heal")
    assert healed.code == 0, healed.err
    assert (narrow.calls("daily"), narrow.calls("adj_factor"), narrow.calls("daily_basic")) == (1, 1, 0)
    assert narrow.content() == content
    assert narrow.status() == {}


def test_heal__oldest_days_gone__history_does_not_begin_later(app: MarketApp) -> None:
    days = ("2024-09-19", "2024-09-20")
    assert app.run("market", "backfill", "--from", days[0], "--to", days[1]).code == 0
    content = app.content()
    for table in FETCHED:
        app.drop(table, *days)
    gaps = {f"{table}:{day}" for day in days for table in FETCHED if (table, day) in content}
    assert set(found(app)) == gaps
    assert app.run("market", "heal").code == 0
    assert app.content() == content
    assert app.status() == {}


def test_heal__derived_day_never_made__is_made(narrow: MarketApp) -> None:
    """As after a kill between the commit of the prices and what derives from them."""
    content = narrow.content()
    narrow.drop("adjusted_daily", OLD)
    with narrow.market.ledger.engine.begin() as connection:
        connection.exec_driver_sql(
            f"DELETE FROM partition_record WHERE table_name = 'market.adjusted_daily' AND partition = '{OLD}'"
        )
    assert plan(narrow) == {f"adjusted_daily:{OLD}": "missing"}
    assert narrow.run("market", "heal").code == 0
    assert (narrow.calls(), narrow.content()) == (0, content)


def test_heal_history__set__fills_days_never_fetched(app: MarketApp) -> None:
    assert app.run("market", "backfill", "--from", "2024-09-18", "--to", "2024-09-18").code == 0
    hole = ("2024-09-19", "2024-09-20")
    finding = app.status()[f"history:{hole[0]}…{hole[1]}"]
    assert (finding["health"], finding["reason_code"]) == ("stale", "never_fetched")
    app.set(PERENNIAL_MARKET_HEAL_HISTORY="true")
    assert {v.partition for v in app.market.plan().due} == set(hole)
    assert app.run("market", "heal").code == 0
    assert app.status() == {}
    assert all(app.rows(PRICES, day) for day in hole)


def test_backfill__command_of_the_finding__fills_the_hole(app: MarketApp) -> None:
    tables = ("--table", PRICES, "--table", TABLE)
    assert app.run("market", "backfill", "--from", "2024-09-18", "--to", "2024-09-20", *tables).code == 0
    [finding] = app.status().values()
    assert (finding["subject"], finding["health"]) == ("earlier:2024-09-18…2024-09-20", "explained")
    assert app.run("status").code == 0, "nobody may have wanted the other tables"
    assert app.run("market", "backfill", "--from", "2024-09-18", "--to", "2024-09-18").code == 0
    [finding] = app.status().values()
    assert (finding["subject"], finding["health"]) == ("history:2024-09-19…2024-09-20", "stale")
    assert app.run(*finding["action"].split("`")[1].split()[1:]).code == 0
    assert app.status() == {}


def test_backfill__killed_at_its_first_table__the_others_are_named(app: MarketApp) -> None:
    span = ("--from", "2024-09-18", "--to", "2024-09-20")
    assert app.run("market", "backfill", *span, "--table", PRICES).code == 0
    [finding] = app.status().values()
    assert (finding["reason_code"], finding["health"]) == ("never_fetched", "explained")
    assert app.run(*finding["action"].split("`")[1].split()[1:]).code == 0
    assert app.status() == {}
    assert all(app.rows(TABLE, day) for day in ("2024-09-18", "2024-09-20"))


def test_backfill__gaps__fills_holes_and_what_is_wrong(app: MarketApp) -> None:
    assert app.run("market", "backfill", "--from", "2024-09-18", "--to", "2024-09-19").code == 0
    app.drop(PRICES, "2024-09-18")
    filled = app.run("market", "backfill", "--gaps")
    assert filled.code == 0, filled.err
    assert app.status() == {}
    assert all(app.rows(PRICES, day) for day in ("2024-09-18", "2024-09-20"))


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The years that were compared, one after the other."""
    years: list[str] = []
    real = history.differing

    def counted(*args: object) -> set[str]:
        years.append("")
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(history, "differing", counted)
    return years


def test_observe__nothing_committed_since__compares_nothing(narrow: MarketApp, compared: list[str]) -> None:
    market, now = narrow.market, [0.0]
    market.comparison.clock = lambda: now[0]
    market.plan()
    assert len(compared) == 1
    market.plan()
    assert len(compared) == 1
    narrow.drop(PRICES, OLD)
    assert f"{PRICES}:{OLD}" in {v.key for v in market.plan().due}
    assert len(compared) == 2
    now[0] += history.COMPARED_AGAIN + 1
    market.plan()
    assert len(compared) == 3, "a lost file makes no snapshot"


def test_observe__another_process__takes_what_was_found_unless_something_is_lost(
    narrow: MarketApp, compared: list[str]
) -> None:
    narrow.market.plan()
    compared.clear()
    assert plan(narrow) == {}
    assert compared == []
    with narrow.market.ledger.engine.begin() as connection:
        connection.exec_driver_sql(
            f"DELETE FROM partition_record WHERE table_name = 'market.suspensions' AND partition = '{OLD}'"
        )
    narrow.market.plan()
    assert len(compared) == 1, "a record is gone"
    harm(narrow, "adjusted_daily", "rot-file", OLD)
    assert f"adjusted_daily:{PREPARED[2]}" in plan(narrow)


def test_observe__no_time_left__leaves_earlier_years_to_the_next_pass(
    app: MarketApp, compared: list[str]
) -> None:
    app.set(PERENNIAL_MARKET_START="2023-01-01")
    assert app.run("market", "backfill", "--from", LONG_AGO[0], "--to", LONG_AGO[1]).code == 0
    app.drop(PRICES, LONG_AGO[1])
    app.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    compared.clear()
    market = app.market
    market.comparison.clock = iter([0.0, 0.0, 99.0, 99.0, 99.0, 99.0]).__next__
    assert not market.observe(patience=15).older
    assert len(compared) == 1
    assert market.observe(patience=15).older
    assert len(compared) == 2


def test_freshness_sensor__older_day_wrong__turns_its_check_red_and_green_again(narrow: MarketApp) -> None:
    def checks(ticked: Any) -> list[tuple[str, str, bool]]:
        return [(e.asset_key.path[-1], e.check_name, e.passed) for e in ticked.asset_events]

    with narrow.instance() as instance:
        before = narrow.tick_sensor(instance, "market_freshness_sensor")
        assert all(name != "whole_day" for _, name, _ in checks(before))
        harm(narrow, PRICES, "drop-half", OLD)
        red = narrow.tick_sensor(instance, "market_freshness_sensor", before.cursor)
        assert checks(red) == [(PRICES, "whole_day", False)]
        assert red.asset_events[0].metadata["first_and_last"].value == OLD
        again = narrow.tick_sensor(instance, "market_freshness_sensor", red.cursor)
        assert checks(again) == []
        assert narrow.run("market", "heal").code == 0
        green = narrow.tick_sensor(instance, "market_freshness_sensor", again.cursor)
        assert checks(green) == [(PRICES, "whole_day", True)]


def test_freshness_sensor__another_pass_compares__waits_for_a_while_and_stays_red(
    narrow: MarketApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    harm(narrow, PRICES, "drop-half", OLD)
    with narrow.instance() as instance:
        red = narrow.tick_sensor(instance, "market_freshness_sensor")
        assert [e.passed for e in red.asset_events if e.check_name == "whole_day"] == [False]
        monkeypatch.setattr(freshness, "PATIENCE", 0.01)
        comparison = resource._COMPARISONS[narrow.settings.catalog_url]
        with comparison.turn:
            assert narrow.tick_sensor(instance, "market_freshness_sensor", red.cursor).asset_events == []
            comparison.history, comparison.ended = history.History(), False
            again = narrow.tick_sensor(instance, "market_freshness_sensor", red.cursor)
            assert (again.asset_events, again.cursor) == ([], red.cursor)


def test_observe__very_many_days_differ__a_pass_judges_the_newest(
    narrow: MarketApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a loss of the ledger. Days that were given up do not hide others."""
    monkeypatch.setattr(service, "JUDGED_AT_ONCE", 2)
    narrow.drop(PRICES, *PREPARED[:5])

    def older(patience: float = history.PATIENCE) -> list[str]:
        return sorted(map(str, narrow.market.observe(patience=patience).older))

    assert older() == list(PREPARED[3:5])
    assert not narrow.market.observe(patience=history.PATIENCE).every
    assert older(math.inf) == list(PREPARED[:5])
    for day in PREPARED[2:5]:
        put_off(narrow, f"{PRICES}:{day}", 1)
    assert older() == [*PREPARED[:2], *PREPARED[3:5]]
    assert narrow.run("market", "heal").code == 0
    assert narrow.status() == {}


# Work of days that the plan does not judge: a backfill could not do them


def put_off(app: MarketApp, key: str, times: int) -> None:
    """As `times` runs would that found the source down."""
    ledger = app.market.ledger
    ledger.enqueue([WorkRequest(kind=FILL, key=key, fingerprint="as asked", reason_code="missing")])
    for attempt in range(times):
        with ledger.lease(FILL, [key], f"run {attempt}") as lease:
            lease.defer(key, TransientResourceError("down"))


@pytest.mark.parametrize(
    ("day", "times", "history", "status"),
    [
        ("2024-08-01", 7, "false", "deferred"),
        ("2024-08-01", 8, "false", "superseded"),
        ("2024-08-01", 8, "true", "deferred"),
        (OLD, 8, "false", "deferred"),
        (TODAY, 8, "false", "deferred"),
    ],
)
def test_reconcile__old_day_after_many_attempts__is_given_up_if_never_recorded(
    narrow: MarketApp, day: str, times: int, history: str, status: str
) -> None:
    """Else a backfill of years that the source does not have would be tried hourly for ever."""
    narrow.set(PERENNIAL_MARKET_HEAL_HISTORY=history)
    put_off(narrow, f"{TABLE}:{day}", times)
    observe_and_enqueue(MarketReconciler(narrow.market))
    row = narrow.newest(f"{TABLE}:{day}")
    assert row.status == status
    assert (row.reason_code == "outside_window") == (status == "superseded")


def test_heal__days_given_up__are_named_by_a_finding(app: MarketApp) -> None:
    assert app.run("market", "backfill", "--from", "2024-09-18", "--to", "2024-09-18").code == 0
    for day in ("2024-09-19", "2024-09-20"):
        for table in FETCHED:
            put_off(app, f"{table}:{day}", 8)
    assert {f["health"] for f in app.status().values()} == {"healing"}
    observe_and_enqueue(MarketReconciler(app.market))
    [finding] = app.status().values()
    assert (finding["subject"], finding["reason_code"]) == (
        "history:2024-09-19…2024-09-20",
        "never_fetched",
    )


def test_reconcile__newest_days_called_off__fills_an_older_day(app: MarketApp) -> None:
    """Three canceled days are the newest; the gap before them is still filled."""
    ledger = app.market.ledger

    def waiting() -> list[Work]:
        return ledger.find(FILL, status="queued", limit=None)

    for day in PREPARED[-3:]:
        app.drop(TABLE, day)
    observe_and_enqueue(MarketReconciler(app.market))
    for row in waiting():
        ledger.cancel(row.id)
    app.drop(TABLE, PREPARED[0])
    observe_and_enqueue(MarketReconciler(app.market))
    keys = {row.key for row in waiting()}
    assert f"{TABLE}:{PREPARED[0]}" in keys
    assert {key.split(":")[1] for key in keys} == {PREPARED[0]}
    reported = app.status()[f"{TABLE}:{TODAY}"]
    assert (reported["health"], reported["reason_code"]) == ("explained", "called_off")


def test_reconcile__older_gaps__are_healed_a_few_at_a_time_after_the_window(narrow: MarketApp) -> None:
    narrow.set(PERENNIAL_GAP_LIMIT="2")
    for day in (*PREPARED[:3], TODAY):
        narrow.drop(TABLE, day)
    first = narrow.reconcile().starts
    assert [start.partitions[0] for start in first] == [TODAY, PREPARED[2]]
    under_way = {start.dispatch_id for start in first}
    assert narrow.reconcile(under_way).starts == ()


LEFT = [f"2024-08-{day:02}" for day in (5, 6, 7, 8, 9, 12, 13, 14, 15, 16)]
"""Days that a backfill could not do: the daily quota was used up."""


def left_behind(app: MarketApp) -> None:
    for day in LEFT:
        put_off(app, f"{TABLE}:{day}", 1)
    app.later(minutes=2)


def test_reconcile__many_older_days_left__sends_a_few_at_a_time(app: MarketApp) -> None:
    left_behind(app)
    sent: list[RunStart] = []
    for _ in range(5):
        sent += app.reconcile({start.dispatch_id for start in sent}).starts
        app.later(minutes=20)
    assert [start.partitions[0] for start in sent] == LEFT[:-4:-1]


def test_reconcile__an_older_day_ended__sends_the_next(app: MarketApp) -> None:
    left_behind(app)
    first, *others = app.reconcile().starts
    with app.market.ledger.lease(FILL, [f"{TABLE}:{first.partitions[0]}"], "a run", heartbeat=False) as lease:
        assert app.reconcile().starts == ()
        lease.complete(f"{TABLE}:{first.partitions[0]}")
    deriving = {start.dispatch_id for start in (first, *others)}
    assert app.reconcile(deriving, [f"coverage:{first.partitions[0]}"]).starts == ()
    [following] = app.reconcile({start.dispatch_id for start in others}).starts
    assert following.partitions[0] == LEFT[-4]


def test_reconcile__older_days_under_way__sends_a_day_of_the_window(app: MarketApp) -> None:
    left_behind(app)
    unfinished = {start.dispatch_id for start in app.reconcile().starts}
    app.drop(TABLE, TODAY)
    assert [start.partitions[0] for start in app.reconcile(unfinished).starts] == [TODAY]


def test_heal__many_older_days_left__takes_them_in_ranges(app: MarketApp) -> None:
    """A person waits: each run costs seconds. The day between was done by nobody, so the range ends there."""
    left_behind(app)
    skipped = app.newest(f"{TABLE}:{LEFT[6]}")
    app.market.ledger.cancel(skipped.id)
    starts = reconcile(MarketReconciler(app.market, ranges=True)).starts
    assert [start.partitions for start in starts] == [tuple(LEFT[7:]), tuple(LEFT[:6])]
    assert [start.tables[0] for start in starts] == [TABLE, TABLE]

    app.later(minutes=20)
    done = app.run("market", "heal")
    with app.instance() as instance:
        firsts = [run.tags.get("dagster/asset_partition_range_start") for run in instance.get_runs()]
    assert [first for first in firsts if first in LEFT] == [LEFT[0], LEFT[7]], done.err
    assert {row.status for row in app.work(f"{TABLE}:2024-08")} == {"completed", "cancelled"}
    assert app.rows(TABLE, LEFT[0]) > 0
    assert app.rows(TABLE, LEFT[6]) == 0
