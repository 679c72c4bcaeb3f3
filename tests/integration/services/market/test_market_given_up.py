"""Days outside the gap window: tried some times, then left to `look-back`; lost days are reported at once."""

from __future__ import annotations

import pytest

from domain.market.plan import FILL
from domain.shared.error import TransientResourceError
from domain.shared.work import Work, WorkRequest
from services.market.reconcile import ATTEMPTS_OUTSIDE, MarketReconciler
from services.reconcile import RunStart, observe_and_enqueue
from tests.integration.services.market.market_app import FETCHED, PREPARED, TODAY, MarketApp

TABLE = "normalized_adj_factor"
OLD = f"{TABLE}:2024-08-01"


def put_off(app: MarketApp, key: str, times: int) -> None:
    """As `times` runs would that found the source down."""
    ledger = app.market.ledger
    ledger.enqueue([WorkRequest(kind=FILL, key=key, fingerprint="as asked", reason_code="missing")])
    for attempt in range(times):
        with ledger.lease(FILL, [key], f"run {attempt}") as lease:
            lease.defer(key, TransientResourceError("down"))


@pytest.mark.parametrize(
    ("attempts", "status", "reason"),
    [
        (ATTEMPTS_OUTSIDE - 1, "deferred", "transient"),
        (ATTEMPTS_OUTSIDE, "superseded", "outside_window"),
    ],
)
def test_withdraw__old_day_after_some_attempts__is_superseded(
    app: MarketApp, attempts: int, status: str, reason: str
) -> None:
    put_off(app, OLD, attempts)
    observe_and_enqueue(MarketReconciler(app.market))
    assert (app.newest(OLD).status, app.newest(OLD).reason_code) == (status, reason)


def test_withdraw__day_of_the_window__stays_deferred(app: MarketApp) -> None:
    app.drop(TABLE, TODAY)
    put_off(app, f"{TABLE}:{TODAY}", 3 * ATTEMPTS_OUTSIDE)
    observe_and_enqueue(MarketReconciler(app.market))
    assert app.newest(f"{TABLE}:{TODAY}").status == "deferred"


def test_withdraw__no_calendar__leaves_old_days(app: MarketApp) -> None:
    lake = app.market.lake
    nothing = lake.tables["market.normalized_trade_cal"].schema.empty_table()
    for year in lake.partitions("market.normalized_trade_cal"):
        lake.replace("market.normalized_trade_cal", year, nothing, allow_empty=True)
    put_off(app, OLD, ATTEMPTS_OUTSIDE)
    observe_and_enqueue(MarketReconciler(app.market))
    assert app.newest(OLD).status == "deferred"


def test_oldest_days_gone__are_reported_at_once_and_found_by_look_back(
    app: MarketApp,
) -> None:
    """Losing its first days must not make history look as if it had begun later."""
    days = ("2024-09-19", "2024-09-20")
    assert app.run("market", "backfill", "--from", days[0], "--to", days[1]).code == 0
    for table in FETCHED:
        for day in days:
            app.drop(table, day)
    reported = app.status()["normalized_daily"]
    assert (reported["health"], reported["reason_code"]) == ("broken", "history_lost")
    assert (
        reported["reason"]
        == "2 older days that were fetched are gone from the lake: 2024-09-19 to 2024-09-20"
    )
    assert app.run("market", "look-back").code == 0
    found = app.sql("SELECT DISTINCT trade_date FROM market.history_gaps ORDER BY 1")
    assert [str(row["trade_date"]) for row in found] == list(days)
    command = reported["action"].split("`")[1].split()
    assert app.run(*command[1:]).code == 0
    app.run("market", "look-back")
    assert app.status() == {}


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
