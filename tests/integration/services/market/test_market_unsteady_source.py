"""A source that fails much of the time: what came is kept, nothing wrong is stored, and it converges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.services.market.market_app import FETCHED, PREPARED, TODAY, MarketApp, restore

BACKFILL = ("market", "backfill", "--from", PREPARED[0], "--to", PREPARED[-1])
STOCKS, STOCK_CALLS = "normalized_stock_basic", 16
EVERY_TABLE = (
    *FETCHED,
    *("adjusted_daily", "coverage", "revisions", STOCKS, "normalized_trade_cal"),
)


@pytest.fixture
def impatient(empty_app: MarketApp) -> MarketApp:
    """Nothing is there; the source counts no calls, so that its rate messages need no wait in real time."""
    empty_app.set(TUSHARE_TOKEN="sandbox-unlimited")
    return empty_app


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, dict[tuple[str, str], str]]:
    return {}


@pytest.mark.parametrize(("rate", "seed", "rounds"), [(0.25, 1, 2), (0.5, 2, 6)], ids=str)
def test_backfill__calls_fail_in_eight_ways__ends_in_the_content_of_an_undisturbed_one(
    impatient: MarketApp,
    template: Path,
    undisturbed: dict[str, dict[tuple[str, str], str]],
    rate: float,
    seed: int,
    rounds: int,
) -> None:
    app = impatient
    if not undisturbed:
        assert app.run(*BACKFILL).code == 0
        undisturbed["content"] = app.content(EVERY_TABLE)
        restore(None, app.home)
    app.fault("*", "any", rate=rate, seed=seed)
    codes = []
    for _ in range(rounds):
        codes.append(app.run(*BACKFILL).code)
        if codes[-1] == 0:
            break
    assert codes[-1] == 0, codes
    assert app.content(EVERY_TABLE) == undisturbed["content"]
    assert not list((app.home / "answers").rglob("*.arrow")), "answers are kept of what is whole"


def test_stock_list__one_call_fails__only_it_is_repeated_by_the_next_run(impatient: MarketApp) -> None:
    app = impatient
    app.set(TUSHARE_RETRY_DELAYS="none")
    app.fault("stock_basic", "http_500", times=1)
    with app.instance() as instance:
        assert not app.materialize(instance, [STOCKS]).success
        assert app.calls("stock_basic") == STOCK_CALLS
        assert app.market.stocks().num_rows == 0
        assert len(list((app.home / "answers").rglob("*.arrow"))) == STOCK_CALLS - 1
        assert app.materialize(instance, [STOCKS]).success
    assert app.calls("stock_basic") == STOCK_CALLS + 1
    assert not list((app.home / "answers").rglob("*.arrow"))


def test_materialize__no_stock_list__waits_without_a_call(app: MarketApp) -> None:
    app.drop("normalized_daily", TODAY)
    lake, name = app.market.lake, f"market.{STOCKS}"
    lake.replace(name, ["ALL"], lake.tables[name].schema.empty_table(), allow_empty=True)
    with app.instance() as instance:
        assert not app.materialize(instance, ["normalized_daily"], TODAY).success
    row = app.newest(f"normalized_daily:{TODAY}")
    assert (row.status, row.reason_code, app.calls()) == ("deferred", "stock_list_missing", 0)
    assert all(one.last_failure is None for one in app.market.source_freshness())


def test_backfill__no_stock_list__fetches_what_is_not_counted_by_it_and_asks_for_nothing_else(
    impatient: MarketApp,
) -> None:
    app = impatient
    app.fault("stock_basic", "http_500")
    said = app.run(*BACKFILL, "--json")
    assert said.code == 1
    assert {one["why"] for one in said.json["failed"]} == {"waiting for stock_basic"}
    assert {one["table"] for one in said.json["failed"]} == {*FETCHED} - {"suspensions"}
    assert (app.calls("daily"), app.calls("suspend_d")) == (0, 2)
    assert app.work("normalized_daily") == [], "an attempt was counted"

    app.expect_healthy()
    app.fault("stock_basic", "http_500", times=4 * STOCK_CALLS)  # all passes of the first run
    assert app.run(*BACKFILL).code == 0, "it goes on in the same round"


@pytest.mark.parametrize("kind", ["empty_day", "partial_day"])
def test_stock_list__a_thin_answer__is_found_and_asked_for_again(impatient: MarketApp, kind: str) -> None:
    app = impatient
    app.fault("stock_basic", kind, times=1)
    with app.instance() as instance:
        assert app.materialize(instance, [STOCKS]).success
    thin = app.content([STOCKS])
    restore(None, app.home)
    app.expect_healthy()
    with app.instance() as instance:
        assert app.materialize(instance, [STOCKS]).success
    assert app.content([STOCKS]) == thin


@pytest.mark.parametrize("kind", ["empty_day", "partial_day"])
def test_suspensions__a_thin_answer__is_not_believed(app: MarketApp, kind: str) -> None:
    content = app.content(["suspensions"])
    app.drop("suspensions", TODAY)
    app.fault("suspend_d", kind, times=1)
    with app.instance() as instance:
        assert app.materialize(instance, ["suspensions"], TODAY).success
    assert app.content(["suspensions"]) == content
    assert app.calls("suspend_d") == 3
