"""The source is down: waits inside a run, longer ones between runs, one clear line, and it heals."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from tests.integration.services.market.market_app import TODAY, MarketApp

FETCH = "normalized_adj_factor"
KEY = f"{FETCH}:{TODAY}"


class PassingTime:
    """Time as Dagster's engine sees it: it passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds + 0.001


@pytest.fixture
def passing_time(monkeypatch: pytest.MonkeyPatch) -> PassingTime:
    time = PassingTime()
    monkeypatch.setattr("dagster._core.execution.plan.active.time", time)
    return time


def test_run__source_fails__waits_10_20_and_40_seconds(
    app: MarketApp, passing_time: PassingTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TUSHARE_RETRY_DELAYS")
    app.drop(FETCH, TODAY)
    app.fault("adj_factor", "http_502")
    with app.instance() as instance:
        ended = app.materialize(instance, [FETCH], TODAY)
    waits = [
        e.step_retry_data.seconds_to_wait
        for e in ended.all_events
        if e.event_type == dg.DagsterEventType.STEP_UP_FOR_RETRY
    ]
    assert waits == [10, 20, 40]
    assert passing_time.slept == pytest.approx([10, 20, 40], abs=0.1)
    assert app.calls("adj_factor") == 4
    row = app.newest(KEY)
    assert row.error is not None
    assert row.error.startswith(
        "adj_factor failed after 3 retries: adj_factor: HTTP 502 from http://127.0.0.1:"
    )
    assert (row.status, row.reason_code, row.attempts) == ("deferred", "source_fails", 1)


def test_run__a_later_pass_is_answered__succeeds(app: MarketApp) -> None:
    app.drop(FETCH, TODAY)
    app.fault("adj_factor", "http_502", times=3)
    with app.instance() as instance:
        ended = app.materialize(instance, [FETCH], TODAY)
    assert ended.success
    metadata = ended.asset_materializations_for_node(f"market__{FETCH}")[0].metadata
    assert metadata["attempts"].value == 4
    assert (app.newest(KEY).status, app.newest(KEY).attempts) == ("completed", 1)


def test_daily__source_down__is_reported_everywhere_and_heals(app: MarketApp) -> None:
    content = app.content()
    app.drop(FETCH, TODAY)
    app.stop_source()
    app.later(minutes=1)

    said = app.run("market", "daily")
    assert said.code == 1
    assert "adj_factor failed after 3 retries" in said.err
    assert f"healing: {KEY}: adj_factor failed after 3 retries" in said.out

    watched = app.run("check", "market")
    assert watched.code == 1
    assert watched.out.startswith(f"ALERT market: {FETCH} of {TODAY} is missing (its ")
    assert "tushare.adj_factor: adj_factor failed after 3 retries" in watched.out
    assert watched.out.count("\n") == 1

    query = "SELECT * FROM market.source_freshness WHERE source = 'tushare.adj_factor'"
    reported = app.run("sql", query, "--json").json[0]
    assert reported["last_success"] == "2024-09-30T10:31:00+00:00"
    assert reported["last_failure"] == "2024-09-30T10:32:00+00:00"
    assert reported["last_error"].startswith("adj_factor failed after 3 retries: ")
    finding = app.status()["tushare.adj_factor"]
    assert (finding["health"], finding["reason_code"]) == ("healing", "source_error"), "it is tried again"
    assert finding["caused_by"] == KEY

    app.start_source()
    app.later(seconds=61)
    assert app.run("market", "heal").code == 0
    assert app.content() == content
    assert app.run("check", "market").out.startswith("OK market")
    assert app.status() == {}


def test_heal__source_stays_down__is_deferred_ever_longer(app: MarketApp) -> None:
    app.drop(FETCH, TODAY)
    app.stop_source()
    app.set(TUSHARE_RETRY_DELAYS="none")
    put_off = []
    for _ in range(2):
        app.run("market", "heal")
        row = app.newest(KEY)
        put_off.append(row.not_before - app.now)
        app.later(seconds=put_off[-1].total_seconds() - 1)
        assert app.reconcile().starts == (), "it was tried before its time"
        app.later(seconds=1)
    assert put_off == [timedelta(seconds=s) for s in (60, 120)]
    assert app.newest(KEY).status == "deferred"


def test_backfill__forced_and_source_down__says_that_it_failed(app: MarketApp) -> None:
    content = app.content()
    app.stop_source()
    said = app.run("market", "backfill", "--from", TODAY, "--to", TODAY, "--force")
    assert said.code == 1
    assert said.out.startswith(
        "1 of 1 trading days needed work, the run failed, all are whole as before (0 closed days)"
    )
    assert app.content() == content


def test_backfill__calendar_missing__is_no_wrong_usage(app: MarketApp) -> None:
    app.stop_source()
    app.set(PERENNIAL_MARKET_START="2023-01-01")
    said = app.run("market", "backfill", "--from", "2023-05-08", "--to", "2023-05-08")
    assert said.code == 1
    assert "error: the trading calendar of 2023 is missing" in said.err


def test_freshness_sensor__source_fails_and_recovers__reports_each_once(app: MarketApp) -> None:
    key = dg.AssetKey(["market", FETCH])
    with app.instance() as instance:
        cursor = app.tick_sensor(instance, "market_freshness_sensor").cursor
        app.drop(FETCH, TODAY)
        app.later(minutes=1)
        app.fault("adj_factor", "http_500")
        app.run("market", "heal")
        red = app.tick_sensor(instance, "market_freshness_sensor", cursor)
        again = app.tick_sensor(instance, "market_freshness_sensor", red.cursor)
        app.expect_healthy()
        app.later(minutes=1)
        app.run("market", "heal")
        green = app.tick_sensor(instance, "market_freshness_sensor", red.cursor)
    reported = [
        [(e.asset_key, e.check_name, e.passed) for e in tick.asset_events] for tick in (red, again, green)
    ]
    turned = [[(key, name, passed) for name in ("fresh", "whole_day")] for passed in (False, True)]
    assert reported == [turned[0], [], turned[1]]
