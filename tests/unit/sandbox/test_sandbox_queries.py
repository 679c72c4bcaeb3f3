"""What callers may ask, who may ask it, and how much of it they get."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from sandbox.accounts import Gate
from sandbox.endpoints import ENDPOINTS, ROW_CAP, SHANGHAI
from sandbox.exchange import Exchange, Page
from sandbox.messages import Refusal
from sandbox.query import parse
from tests.oracles.exchange import listed_codes

EVENING = datetime(2026, 11, 17, 20, tzinfo=SHANGHAI)


def ask(source: Exchange, api: str, now: datetime = EVENING, /, **params: Any) -> Page:
    return source.rows(parse(ENDPOINTS[api], params, ""), now)


# Parameters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "params"),
    [
        ("daily", {"trade_date": "2026-11-17"}),
        ("daily", {"trade_date": "20261332"}),
        ("daily", {"trade_date": "２０２６1117"}),
        ("daily", {"limit": "-1"}),
        ("daily", {"limit": "many"}),
        ("trade_cal", {"exchange": "NYSE"}),
        ("trade_cal", {"is_open": "2"}),
        ("stock_basic", {"list_status": "X"}),
        ("suspend_d", {"suspend_type": "Q"}),
    ],
)
def test_parse__wrong_parameter__is_refused(api: str, params: dict[str, str]) -> None:
    with pytest.raises(Refusal) as caught:
        parse(ENDPOINTS[api], params, "")
    assert caught.value.code != 0
    assert "参数校验失败" in caught.value.message


# Pages ------------------------------------------------------------------------------------------


def test_rows__pages_of_a_range__join_to_the_whole(exchange: Exchange) -> None:
    codes, offset = [], 0
    while True:
        page = ask(
            exchange, "adj_factor", start_date="20261112", end_date="20261117", offset=offset, limit=99_999
        )
        codes += list(zip(page.columns["trade_date"], page.columns["ts_code"], strict=True))
        offset += ROW_CAP
        if not page.has_more:
            break
        assert len(page) == ROW_CAP
    days = exchange.open_days(date(2026, 11, 12), date(2026, 11, 17))
    assert len(codes) == len(set(codes)) == sum(len(listed_codes(exchange, day)) for day in days)
    assert [day for day, _ in codes] == sorted((day for day, _ in codes), reverse=True)


def test_stock_basic__by_status__lists_the_stocks(exchange: Exchange) -> None:
    listed = ask(exchange, "stock_basic")
    assert set(listed.columns["list_status"].tolist()) == {"L"}
    assert len(listed) == len(listed_codes(exchange, date(2026, 11, 17)))
    gone = ask(exchange, "stock_basic", list_status="D").columns["ts_code"].tolist()
    assert len(gone) > 300
    assert len(ask(exchange, "stock_basic", ts_code=gone[0])) == 0
    assert len(ask(exchange, "stock_basic", ts_code=gone[0], list_status="L,D")) == 1
    assert len(ask(exchange, "stock_basic", list_status="P")) == 0
    assert len(ask(exchange, "stock_basic", list_status="G")) < 50
    assert set(ask(exchange, "stock_basic", exchange="BSE").columns["market"].tolist()) == {"北交所"}


# Publication --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "hour", "minute"),
    [
        ("suspend_d", 9, 0),
        ("adj_factor", 9, 20),
        ("daily", 15, 30),
        ("daily_basic", 16, 30),
        ("moneyflow", 17, 0),
    ],
)
def test_rows__of_a_day__appear_at_their_hour_in_shanghai(
    exchange: Exchange, api: str, hour: int, minute: int
) -> None:
    published = datetime(2026, 11, 17, hour, minute, tzinfo=SHANGHAI).astimezone(UTC)
    just_before = published - timedelta(seconds=1)
    assert len(ask(exchange, api, just_before, trade_date="20261117")) == 0
    assert len(ask(exchange, api, published, trade_date="20261117")) > 0
    newest = ask(exchange, api, just_before, start_date="20261101", limit=1)
    assert newest.columns["trade_date"].tolist() == ["20261116"]


def test_rows__future_or_closed_day__are_none(exchange: Exchange) -> None:
    assert len(ask(exchange, "daily", trade_date="20261118")) == 0
    assert len(ask(exchange, "daily", trade_date="20261115")) == 0
    assert len(ask(exchange, "daily", trade_date="19900101")) == 0
    assert len(ask(exchange, "daily", trade_date="99991231")) == 0


# Accounts -----------------------------------------------------------------------------------------


class Minutes:
    """A machine clock a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 17, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.mark.parametrize(
    ("token", "calls"), [("sandbox-120", 50), ("sandbox-2000", 200), ("sandbox-token", 1000)]
)
def test_gate__points__decide_the_calls_per_minute_and_api(token: str, calls: int) -> None:
    clock = Minutes()
    gate = Gate(clock=clock)
    for _ in range(calls):
        gate.check(token, ENDPOINTS["daily"])
    with pytest.raises(Refusal) as caught:
        gate.check(token, ENDPOINTS["daily"])
    assert caught.value.message.startswith(f"抱歉，您每分钟最多访问该接口{calls}次")
    gate.check(token, ENDPOINTS["adj_factor"])
    clock.now += timedelta(minutes=1)
    gate.check(token, ENDPOINTS["daily"])


@pytest.mark.parametrize("api", ["daily_basic", "moneyflow"])
def test_gate__few_points__do_not_permit_everything(api: str) -> None:
    gate = Gate(clock=Minutes())
    gate.check("sandbox-2000", ENDPOINTS[api])
    with pytest.raises(Refusal, match="没有访问该接口的权限") as caught:
        gate.check("sandbox-120", ENDPOINTS[api])
    assert caught.value.code == 2002


@pytest.mark.parametrize("token", ["", None, 7, "sandbox-token ", "wrong"])
def test_gate__wrong_token__is_refused(token: object) -> None:
    with pytest.raises(Refusal, match="您的token不对") as caught:
        Gate(clock=Minutes()).check(token, ENDPOINTS["daily"])
    assert caught.value.code == 40101
