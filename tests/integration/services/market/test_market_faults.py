"""A misbehaving source: what the ledger says, that nothing wrong is kept, that it heals."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pytest

from domain.market.plan import FILL
from tests.integration.services.market.market_app import (
    AFTER_HOLIDAY,
    TODAY,
    MarketApp,
    expected_rows,
)
from tests.integration.services.market.market_app import API as API_OF

TABLE = "normalized_adj_factor"
API = "adj_factor"
KEY = f"{TABLE}:{TODAY}"
MINUTE = timedelta(minutes=1)
PASSES = 4


@dataclass(frozen=True)
class Case:
    """`calls`: how often a run asked. `wait`: from when to when the next attempt is put off."""

    kind: str
    reason: str
    calls: int = 1
    wait: tuple[timedelta, timedelta] = (MINUTE, MINUTE)
    details: dict[str, Any] = field(default_factory=dict)
    table: str = TABLE


SECONDS_HELP = [
    Case("http_500", "source_fails", PASSES),
    Case("truncate", "source_down", PASSES),
    Case("partial_day", "incomplete", PASSES, details={"keep": 0.5}),
    Case("duplicate_rows", "bad_answer", PASSES),
]
ONLY_LATER_HELPS = [
    Case("rate_limit", "rate_limit"),
    Case("day_quota", "quota", wait=(timedelta(0), timedelta(days=1))),
    Case("empty_day", "empty_answer", table="normalized_daily"),  # published at 16:00: not overdue yet
]


@pytest.mark.parametrize("case", [*SECONDS_HELP, *ONLY_LATER_HELPS], ids=lambda case: case.kind)
def test_fetch__transient_fault__keeps_nothing_is_deferred_and_heals(app: MarketApp, case: Case) -> None:
    table, api, key = case.table, API_OF[case.table], f"{case.table}:{TODAY}"
    content = app.content([table])
    app.drop(table, TODAY)
    app.fault(api, case.kind, **case.details)

    ask(app, table)
    row = app.newest(key)
    assert (row.status, row.reason_code, row.attempts) == ("deferred", case.reason, 1), row.error
    assert app.calls(api) == case.calls
    assert case.wait[0] <= row.not_before - app.now <= case.wait[1]
    assert row.error is not None
    if case.calls == PASSES:
        assert row.error.startswith(f"{api} failed after 3 retries: ")
    assert app.rows(table, TODAY) == 0

    app.expect_healthy()
    app.at(row.not_before.isoformat())
    app.next_minute()
    ask(app, table)
    assert (app.newest(key).id, app.newest(key).status) == (row.id, "completed")
    assert app.content([table]) == content


def ask(app: MarketApp, table: str) -> None:
    """Dispatch what is due of this table, and run that alone: the fault's own work and nothing else."""
    market, key = app.market, f"{table}:{TODAY}"
    market.ledger.enqueue([v.request for v in market.plan().due if v.key == key])
    assert [d.keys for d in market.ledger.dispatch(FILL, limit=9)] == [(key,)]
    with app.instance() as instance:
        app.materialize(instance, [table], TODAY)


def test_heal__permanent_fault__waits_for_a_changed_configuration(app: MarketApp) -> None:
    content = app.content()
    app.drop(TABLE, TODAY)
    app.fault(API, "no_permission")
    assert app.run("market", "heal").code == 1
    failed = app.newest(KEY)
    assert (failed.status, failed.reason_code) == ("failed", "permission")
    assert app.calls(API) == 1
    finding = app.status()[KEY]
    assert (finding["health"], finding["next_attempt"]) == ("broken", None)
    assert finding["action"].startswith("raise the account's points")

    app.later(hours=3)
    assert app.run("market", "heal").code == 1
    assert app.calls(API) == 1, "it asked again although nobody had changed anything"

    app.expect_healthy()
    app.set(TUSHARE_TOKEN="sandbox-5000")
    assert app.run("market", "heal").code == 0
    assert app.content() == content
    assert app.newest(KEY).id > failed.id


def test_recheck__source_has_a_part_now__keeps_the_day_and_asks_again(app: MarketApp) -> None:
    """Two equal answers of a part would be believed, and the day be healthy with fewer rows."""
    content, key = app.content(), f"normalized_daily:{TODAY}"
    app.fault("daily", "partial_day", day=date.fromisoformat(TODAY), keep=0.95)
    app.at(f"{AFTER_HOLIDAY}T18:31")
    app.run("market", "heal")
    row = app.newest(key)
    assert (row.status, row.reason_code, row.error_kind) == ("deferred", "thinner", "transient"), row.error
    app.at(row.not_before.isoformat())
    app.run("market", "heal")
    assert (app.newest(key).id, app.newest(key).attempts) == (row.id, 2)
    assert {place: app.content()[place] for place in content} == content
    assert (app.status()[key]["health"], app.status()[key]["reason_code"]) == ("healing", "thinner")

    app.at("2024-10-11T18:31")  # it is not among the newest days any more
    app.run("market", "heal")
    assert (app.newest(key).id, app.newest(key).status) == (row.id, "superseded")
    assert key not in app.status()


def test_recheck__source_has_other_rows_of_a_whole_day__takes_them(app: MarketApp) -> None:
    content, key = app.content(["normalized_daily"]), f"normalized_daily:{TODAY}"
    app.fault("daily", "partial_day", day=date.fromisoformat(TODAY), keep=0.995)
    app.at(f"{AFTER_HOLIDAY}T18:31")
    app.run("market", "heal")
    assert app.newest(key).status == "completed"
    place = "normalized_daily", TODAY
    assert app.content(["normalized_daily"])[place] != content[place]


def test_fetch__empty_long_after_publication__is_overdue(app: MarketApp) -> None:
    app.drop(TABLE, TODAY)
    app.fault(API, "empty_day")
    ask(app, TABLE)
    row = app.newest(KEY)
    assert row.reason_code == "empty_overdue"
    assert row.error == (
        "adj_factor failed after 3 retries: "
        "adj_factor 2024-09-30: empty answer for an open day, though it was due at 09:30 Asia/Shanghai"
    )


def test_status__source_late__is_an_error_only_when_overdue(app: MarketApp) -> None:
    table, key = "normalized_daily", f"normalized_daily:{TODAY}"
    app.drop(table, TODAY)
    app.fault("daily", "empty_day")
    app.later(minutes=1)
    app.run("market", "heal")
    assert app.newest(key).reason_code == "empty_answer"
    early = app.status()
    assert early[key]["health"] == "healing"
    assert "tushare.daily" not in early
    assert "tushare.daily" not in app.run("check", "market").out
    assert app.run("status").code == 0

    app.at(f"{TODAY}T19:01")  # published at 16:00
    app.run("market", "heal")
    assert app.newest(key).reason_code == "empty_overdue"
    late = app.status()["tushare.daily"]
    assert (late["health"], late["reason_code"]) == ("healing", "source_error"), "it is asked again"
    assert app.run("status").code == 0
    assert app.run("check", "market").code == 1


def test_heal__partial_day__is_kept_fetched_again_and_explained_by_the_same_answer(
    app: MarketApp,
) -> None:
    whole = expected_rows(app.exchange, TODAY)[TABLE]
    app.drop(TABLE, TODAY)
    app.fault(API, "partial_day", keep=0.95)
    assert app.run("market", "heal").code == 1
    held = app.rows(TABLE, TODAY)
    assert 0.90 * whole < held < 0.99 * whole
    assert (app.newest(KEY).status, app.newest(KEY).reason_code) == ("completed", "partial")
    assert covered(app) == (held, whole, "partial", whole - held)
    watched = app.run("check", "market")
    assert (watched.code, f"{TABLE} of {TODAY} is partial" in watched.out) == (1, True)
    assert app.status()[KEY]["health"] == "healing"

    app.later(minutes=59)
    app.run("market", "heal")
    assert app.calls(API) == 1, "asked again before the hour was over"
    app.later(minutes=1)
    assert app.run("market", "heal").code == 0
    assert app.calls(API) == 2
    assert covered(app) == (held, whole, "explained", whole - held)
    assert app.run("check", "market").code == 0
    finding = app.status()[KEY]
    assert (finding["health"], finding["reason_code"]) == ("explained", "source_says_so")

    app.later(hours=6)
    assert app.run("market", "heal").code == 0
    assert app.calls(API) == 2, "an explained day is no gap"


def covered(app: MarketApp) -> tuple[int, int, str, int]:
    row = app.sql(
        f"SELECT * FROM market.coverage WHERE trade_date = DATE '{TODAY}' AND table_name = '{TABLE}'"
    )[0]
    return row["rows"], row["expected"], row["status"], row["missing_stocks"]


def test_materialize__day_revised__keeps_the_old_values(app: MarketApp) -> None:
    old = {row["ts_code"]: row for row in app.frame("normalized_daily", TODAY).to_pylist()}
    adjusted = app.content(["adjusted_daily"])
    app.fault("daily", "revised_day")
    with app.instance() as instance:
        ended = app.materialize(
            instance, ["normalized_daily", "adjusted_daily", "coverage", "revisions"], TODAY
        )
    assert ended.success
    new = {row["ts_code"]: row for row in app.frame("normalized_daily", TODAY).to_pylist()}
    changed = {
        code: (
            {k: old[code][k] for k in ("vol", "amount") if old[code][k] != new[code][k]},
            {k: new[code][k] for k in ("vol", "amount") if old[code][k] != new[code][k]},
        )
        for code in old
        if old[code] != new[code]
    }
    assert 0.02 * len(old) < len(changed) < 0.1 * len(old)
    reported = app.sql(f"SELECT * FROM market.revisions WHERE trade_date = DATE '{TODAY}'")
    assert {row["ts_code"]: (json.loads(row["old"]), json.loads(row["new"])) for row in reported} == changed
    assert {(row["table_name"], row["change"], row["seen"]) for row in reported} == {
        ("normalized_daily", "changed", app.now)
    }
    assert app.content(["adjusted_daily"]) != adjusted, "what is derived follows"
    assert app.status() == {}


def test_heal__old_rows_of_a_revision_gone__reports_it_as_lost(
    app: MarketApp,
) -> None:
    app.fault("daily", "revised_day")
    with app.instance() as instance:
        assert app.materialize(instance, ["normalized_daily"], TODAY).success
    with app.market.ledger.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE partition_revision SET old_snapshot_id = 7")
    assert app.run("market", "heal").code == 0
    reported = app.sql("SELECT table_name, ts_code, change, old, new FROM market.revisions")
    assert reported == [
        {"table_name": "normalized_daily", "ts_code": "", "change": "lost", "old": None, "new": None}
    ]
    assert app.status() == {}


def test_daily__evening_after__fetches_the_newest_days_again_and_finds_a_revision(
    app: MarketApp,
) -> None:
    app.set(PERENNIAL_GAP_LIMIT="2")
    app.at(f"{AFTER_HOLIDAY}T18:31")
    app.fault(API, "revised_day", day=date.fromisoformat(TODAY))
    assert app.run("market", "daily").code == 0
    reported = app.sql("SELECT DISTINCT trade_date, table_name, change FROM market.revisions")
    assert [(str(r["trade_date"]), r["table_name"], r["change"]) for r in reported] == [
        (TODAY, TABLE, "changed")
    ]
    assert app.status() == {}


def test_daily__stock_list_empty__is_deferred_and_fetched_later(empty_app: MarketApp) -> None:
    key = "normalized_stock_basic:ALL"
    empty_app.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    empty_app.fault("stock_basic", "empty_day")
    assert empty_app.run("market", "daily").code == 1
    assert (empty_app.newest(key).status, empty_app.newest(key).reason_code) == ("deferred", "incomplete")
    assert empty_app.market.stocks().num_rows == 0
    empty_app.expect_healthy()
    empty_app.later(hours=1)
    assert empty_app.run("market", "daily").code == 0
    assert empty_app.status() == {}
