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
def test_wrong_parameters_are_refused(api: str, params: dict[str, str]) -> None:
    with pytest.raises(Refusal) as caught:
        parse(ENDPOINTS[api], params, "")
    assert caught.value.code != 0
    assert "参数校验失败" in caught.value.message


def test_unknown_parameters_are_ignored_because_the_stock_client_sends_its_own() -> None:
    asked = parse(ENDPOINTS["daily"], {"trade_date": "20261117", "ts_type_name": "http://x"}, "")
    assert asked == parse(ENDPOINTS["daily"], {"trade_date": "20261117"}, "")


def test_fields_come_in_the_callers_order_and_unknown_ones_are_left_out() -> None:
    asked = parse(ENDPOINTS["daily"], {}, "close, ts_code,nonsense,close")
    assert [field.name for field in asked.fields] == ["close", "ts_code"]


def test_the_stock_list_sends_its_rarer_fields_only_if_asked() -> None:
    usual = {field.name for field in parse(ENDPOINTS["stock_basic"], {}, "").fields}
    assert {"ts_code", "symbol", "name", "area", "industry", "cnspell", "market", "list_date"} <= usual
    assert not usual & {"fullname", "enname", "exchange", "curr_type", "list_status", "delist_date", "is_hs"}


# Pages ------------------------------------------------------------------------------------------


def test_pages_of_a_range_join_to_the_whole(exchange: Exchange) -> None:
    codes, offset = [], 0
    while True:
        page = ask(exchange, "adj_factor", start_date="20261112", end_date="20261117", offset=offset)
        codes += list(zip(page.columns["trade_date"], page.columns["ts_code"], strict=True))
        offset += ROW_CAP
        if not page.has_more:
            break
        assert len(page) == ROW_CAP
    days = exchange.open_days(date(2026, 11, 12), date(2026, 11, 17))
    assert len(codes) == len(set(codes)) == sum(len(listed_codes(exchange, day)) for day in days)
    assert [day for day, _ in codes] == sorted((day for day, _ in codes), reverse=True)


def test_no_page_exceeds_the_cap_whatever_the_limit(exchange: Exchange) -> None:
    page = ask(exchange, "daily", start_date="20261101", limit=100_000)
    assert len(page) == ROW_CAP
    assert page.has_more


def test_a_limit_and_an_offset_cut_a_day(exchange: Exchange) -> None:
    whole = ask(exchange, "daily", trade_date="20261117").columns["ts_code"].tolist()
    part = ask(exchange, "daily", trade_date="20261117", limit=10, offset=5)
    assert part.columns["ts_code"].tolist() == whole[5:15]
    assert part.has_more


def test_some_stocks_over_some_days(exchange: Exchange) -> None:
    page = ask(
        exchange, "daily", ts_code="600000.SH,000001.SZ,999999.SH", start_date="20261101", end_date="20261110"
    )
    assert set(page.columns["ts_code"].tolist()) == {"600000.SH", "000001.SZ"}
    days = {day.strftime("%Y%m%d") for day in exchange.open_days(date(2026, 11, 1), date(2026, 11, 10))}
    assert set(page.columns["trade_date"].tolist()) == days


def test_a_code_asked_twice_comes_once(exchange: Exchange) -> None:
    page = ask(exchange, "daily", ts_code="000001.SZ,000001.SZ", trade_date="20261117")
    assert len(page) == 1


def test_stock_lists_by_status(exchange: Exchange) -> None:
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


def test_resumptions_only(exchange: Exchange) -> None:
    page = ask(exchange, "suspend_d", start_date="20261101", suspend_type="R")
    assert set(page.columns["suspend_type"].tolist()) == {"R"}


def test_open_days_only(exchange: Exchange) -> None:
    page = ask(exchange, "trade_cal", exchange="SSE", start_date="20261001", end_date="20261031", is_open="1")
    days = [day.strftime("%Y%m%d") for day in exchange.open_days(date(2026, 10, 1), date(2026, 10, 31))]
    assert page.columns["cal_date"].tolist() == days[::-1]


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
def test_a_day_appears_at_its_hour_in_shanghai(exchange: Exchange, api: str, hour: int, minute: int) -> None:
    published = datetime(2026, 11, 17, hour, minute, tzinfo=SHANGHAI).astimezone(UTC)
    just_before = published - timedelta(seconds=1)
    assert len(ask(exchange, api, just_before, trade_date="20261117")) == 0
    assert len(ask(exchange, api, published, trade_date="20261117")) > 0
    newest = ask(exchange, api, just_before, start_date="20261101", limit=1)
    assert newest.columns["trade_date"].tolist() == ["20261116"]


def test_future_and_closed_days_are_empty(exchange: Exchange) -> None:
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
def test_points_decide_the_calls_per_minute_and_api(token: str, calls: int) -> None:
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


def test_benchmarks_are_never_refused() -> None:
    gate = Gate(clock=Minutes())
    for _ in range(5000):
        gate.check("sandbox-unlimited", ENDPOINTS["daily"])


@pytest.mark.parametrize("api", ["daily_basic", "moneyflow"])
def test_few_points_do_not_permit_everything(api: str) -> None:
    gate = Gate(clock=Minutes())
    gate.check("sandbox-2000", ENDPOINTS[api])
    with pytest.raises(Refusal, match="没有访问该接口的权限") as caught:
        gate.check("sandbox-120", ENDPOINTS[api])
    assert caught.value.code == 2002


@pytest.mark.parametrize("token", ["", None, 7, "sandbox-token ", "wrong"])
def test_a_wrong_token_is_refused(token: object) -> None:
    with pytest.raises(Refusal, match="您的token不对") as caught:
        Gate(clock=Minutes()).check(token, ENDPOINTS["daily"])
    assert caught.value.code == 40101
