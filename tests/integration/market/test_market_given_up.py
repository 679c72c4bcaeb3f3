"""Days outside the gap window: tried a while, then left to the weekly look; lost, they are told at once."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import event

from domain.market.plan import FILL
from domain.shared.error import TransientResourceError
from domain.shared.work import WorkRequest
from resources.ledger.model import Work
from services.market.reconcile import ATTEMPTS_OUTSIDE, MarketReconciler
from services.reconcile import RunStart, observe_and_enqueue
from tests.integration.market.house import FETCHED, PREPARED, TODAY, House

TABLE = "normalized_adj_factor"
OLD = f"{TABLE}:2024-08-01"


def put_off(house: House, key: str, times: int) -> None:
    """As `times` runs would that found the source down."""
    ledger = house.market.ledger
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
def test_an_old_day_is_given_up_after_some_attempts(
    house: House, attempts: int, status: str, reason: str
) -> None:
    put_off(house, OLD, attempts)
    observe_and_enqueue(MarketReconciler(house.market))
    assert (house.newest(OLD).status, house.newest(OLD).reason_code) == (status, reason)


def test_withdraw__a_run_claimed_the_day_meanwhile__leaves_it_to_the_run(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in (OLD, f"{TABLE}:2024-08-02"):
        put_off(house, key, ATTEMPTS_OUTSIDE)
    lease = house.market.ledger.lease(FILL, [OLD], "a run", heartbeat=False)
    withdraw = MarketReconciler.withdraw

    def after_a_click(*arguments: Any) -> None:
        lease.__enter__()
        withdraw(*arguments)

    monkeypatch.setattr(MarketReconciler, "withdraw", after_a_click)
    observe_and_enqueue(MarketReconciler(house.market))
    lease.check()
    lease.__exit__(None, None, None)
    assert house.newest(OLD).status == "completed"
    assert house.newest(f"{TABLE}:2024-08-02").reason_code == "outside_window"


def test_however_many_old_days_are_given_up_in_one_transaction(house: House) -> None:
    market, written = house.market, []
    event.listen(market.ledger.engine, "commit", lambda _: written.append(1))
    observe_and_enqueue(MarketReconciler(market))
    alone = len(written)
    for day in range(1, 6):
        put_off(house, f"{TABLE}:2024-08-0{day}", ATTEMPTS_OUTSIDE)
    written.clear()
    observe_and_enqueue(MarketReconciler(market))
    assert house.newest(f"{TABLE}:2024-08-05").reason_code == "outside_window"
    assert len(written) <= alone + 1


def test_a_day_inside_the_window_never_is(house: House) -> None:
    house.drop(TABLE, TODAY)
    put_off(house, f"{TABLE}:{TODAY}", 3 * ATTEMPTS_OUTSIDE)
    observe_and_enqueue(MarketReconciler(house.market))
    assert house.newest(f"{TABLE}:{TODAY}").status == "deferred"


def test_no_day_is_outside_a_window_nobody_can_see(house: House) -> None:
    lake = house.market.lake
    nothing = lake.tables["market.normalized_trade_cal"].schema.empty_table()
    for year in lake.partitions("market.normalized_trade_cal"):
        lake.replace("market.normalized_trade_cal", year, nothing, allow_empty=True)
    put_off(house, OLD, ATTEMPTS_OUTSIDE)
    observe_and_enqueue(MarketReconciler(house.market))
    assert house.newest(OLD).status == "deferred"


def test_the_weekly_look_tells_of_it_and_a_backfill_of_the_gaps_mends_it(house: House) -> None:
    put_off(house, OLD, ATTEMPTS_OUTSIDE)
    assert house.run("market", "backfill", "--from", "2024-08-01", "--to", "2024-08-01").code == 0
    house.drop(TABLE, "2024-08-01")
    put_off(house, OLD, ATTEMPTS_OUTSIDE)
    observe_and_enqueue(MarketReconciler(house.market))
    assert house.newest(OLD).reason_code == "outside_window"
    house.run("market", "look-back")
    assert house.status()["history"]["reason_code"] == "history_gaps"
    assert house.run("market", "backfill", "--gaps").code == 0
    assert "history" not in house.status()


def test_the_oldest_days_gone_are_told_at_once_and_found_by_the_weekly_look(house: House) -> None:
    """Losing its first days must not make history look as if it had begun later."""
    days = ("2024-09-19", "2024-09-20")
    assert house.run("market", "backfill", "--from", days[0], "--to", days[1]).code == 0
    for table in FETCHED:
        for day in days:
            house.drop(table, day)
    told = house.status()["normalized_daily"]
    assert (told["health"], told["reason_code"]) == ("broken", "history_lost")
    assert told["reason"] == "2 older days that were fetched are gone from the lake: 2024-09-19 to 2024-09-20"
    assert house.run("market", "look-back").code == 0
    found = house.sql("SELECT DISTINCT trade_date FROM market.history_gaps ORDER BY 1")
    assert [str(row["trade_date"]) for row in found] == list(days)
    command = told["action"].split("`")[1].split()
    assert house.run(*command[1:]).code == 0
    house.run("market", "look-back")
    assert house.status() == {}


def test_days_a_person_called_off_hide_no_older_day(house: House) -> None:
    """Three days nobody wants any more are the newest; the gap before them still heals."""
    ledger = house.market.ledger

    def waiting() -> list[Work]:
        return ledger.find(FILL, status="queued", limit=None)

    for day in PREPARED[-3:]:
        house.drop(TABLE, day)
    observe_and_enqueue(MarketReconciler(house.market))
    for row in waiting():
        ledger.cancel(row.id)
    house.drop(TABLE, PREPARED[0])
    observe_and_enqueue(MarketReconciler(house.market))
    keys = {row.key for row in waiting()}
    assert f"{TABLE}:{PREPARED[0]}" in keys
    assert {key.split(":")[1] for key in keys} == {PREPARED[0]}
    told = house.status()[f"{TABLE}:{TODAY}"]
    assert (told["health"], told["reason_code"]) == ("explained", "called_off")


LEFT = [f"2024-08-{day:02}" for day in (5, 6, 7, 8, 9, 12, 13, 14, 15, 16)]
"""Days that a backfill could not do: the daily quota was used up."""


def left_behind(house: House) -> None:
    for day in LEFT:
        put_off(house, f"{TABLE}:{day}", 1)
    house.later(minutes=2)


def test_of_what_a_backfill_left_only_a_few_days_are_under_way_at_a_time(house: House) -> None:
    left_behind(house)
    sent: list[RunStart] = []
    for _ in range(5):
        sent += house.reconcile({start.dispatch_id for start in sent}).starts
        house.later(minutes=20)
    assert [start.partitions[0] for start in sent] == LEFT[:-4:-1]


def test_a_day_that_ends_makes_room_for_the_next(house: House) -> None:
    left_behind(house)
    first, *others = house.reconcile().starts
    with house.market.ledger.lease(
        FILL, [f"{TABLE}:{first.partitions[0]}"], "a run", heartbeat=False
    ) as lease:
        assert house.reconcile().starts == ()
        lease.complete(f"{TABLE}:{first.partitions[0]}")
    deriving = {start.dispatch_id for start in (first, *others)}
    assert house.reconcile(deriving, [f"coverage:{first.partitions[0]}"]).starts == ()
    [following] = house.reconcile({start.dispatch_id for start in others}).starts
    assert following.partitions[0] == LEFT[-4]


def test_a_day_of_the_window_waits_for_no_older_one(house: House) -> None:
    left_behind(house)
    unfinished = {start.dispatch_id for start in house.reconcile().starts}
    house.drop(TABLE, TODAY)
    assert [start.partitions[0] for start in house.reconcile(unfinished).starts] == [TODAY]


def test_a_backfill_that_goes_on_leaves_room_for_older_days(house: House) -> None:
    left_behind(house)
    with house.market.ledger.lease(FILL, [f"{TABLE}:2024-07-{n:02}" for n in range(1, 6)], "a backfill"):
        assert [start.partitions[0] for start in house.reconcile().starts] == LEFT[:-4:-1]
