"""The client against the sandbox exchange, over its real socket: every fault and every message it has."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pytest

from resources.http.faults import Timeouts
from resources.tushare.client import TushareClient
from resources.tushare.errors import (
    NotPermitted,
    QuotaUsedUp,
    RateLimited,
    SourceDown,
    TokenRefused,
    Truncated,
)
from resources.tushare.pace import Pacer
from resources.tushare.request import TushareRequest
from sandbox.exchange import Exchange
from sandbox.server import SandboxServer

EVENING = datetime(2026, 11, 17, 10, 30, tzinfo=UTC)  # 18:30 in Shanghai
MIDDAY_MINUTE = datetime(2026, 11, 17, 10, 0, 5, tzinfo=UTC)
PRICES = ["open", "high", "low", "close", "pre_close", "change", "pct_chg", "vol", "amount"]
DAILY_SCHEMA = pa.schema(
    [("ts_code", pa.string()), ("trade_date", pa.date32()), *((name, pa.float64()) for name in PRICES)]
)
DAILY = TushareRequest("daily", {"trade_date": "20261117"}, DAILY_SCHEMA)
CALENDAR = TushareRequest(
    "trade_cal",
    {"exchange": "SSE", "start_date": "20261001", "end_date": "20261031"},
    pa.schema([("cal_date", pa.date32()), ("is_open", pa.bool_()), ("pretrade_date", pa.date32())]),
)
Connect = Callable[..., TushareClient]


@pytest.fixture(scope="module")
def exchange() -> Exchange:
    return Exchange()


@pytest.fixture
def sandbox(exchange: Exchange) -> Iterator[SandboxServer]:
    with SandboxServer(exchange, clock=lambda: EVENING, machine_clock=lambda: MIDDAY_MINUTE) as server:
        yield server


@pytest.fixture
def connect(sandbox: SandboxServer) -> Iterator[Connect]:
    made: list[TushareClient] = []

    def make(token: str = "sandbox-unlimited", read: float = 20) -> TushareClient:
        client = TushareClient(
            url=sandbox.url,
            token=token,
            points=2000,
            pacer=Pacer(None, per_minute=1),
            timeout=Timeouts(connect=10, read=read, total=60),
            clock=lambda: MIDDAY_MINUTE,
        )
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


def test_fetch__a_day_of_prices__has_the_schema(connect: Connect) -> None:
    table = connect().fetch(DAILY)
    assert table.schema.equals(DAILY_SCHEMA)
    assert table.num_rows > 5000
    assert table["trade_date"].unique().to_pylist() == [date(2026, 11, 17)]
    assert table["close"].null_count == 0
    assert len(set(table["ts_code"].to_pylist())) == table.num_rows


def test_fetch__more_rows_than_the_cap__is_split_without_loss(
    connect: Connect, sandbox: SandboxServer
) -> None:
    days = ["20261116", "20261117"]
    wide = TushareRequest("daily", {"start_date": days[0], "end_date": days[1]}, DAILY_SCHEMA)
    client = connect()
    with pytest.raises(Truncated):
        client.fetch(wide)
    table = client.fetch(wide, narrow=lambda: [{"trade_date": day} for day in days])
    singles = [client.fetch(TushareRequest("daily", {"trade_date": day}, DAILY_SCHEMA)) for day in days]
    assert table.num_rows == sum(single.num_rows for single in singles) > 6000
    assert table.sort_by([("trade_date", "ascending"), ("ts_code", "ascending")]).equals(
        pa.concat_tables(singles).sort_by([("trade_date", "ascending"), ("ts_code", "ascending")])
    )


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("http_500", SourceDown, "HTTP 500"),
        ("http_429", RateLimited, "HTTP 429"),
        ("html", SourceDown, "a web page instead of JSON"),
        ("truncate", SourceDown, "no readable JSON"),
        ("reset", SourceDown, "ConnectionResetError|IncompleteRead"),
        ("stall", SourceDown, "no answer within 0.3 s"),
        ("rate_limit", RateLimited, "每分钟最多访问该接口1次"),
        ("hour_quota", QuotaUsedUp, "每小时"),
        ("day_quota", QuotaUsedUp, "每天"),
        ("bad_token", TokenRefused, "40101"),
        ("no_permission", NotPermitted, "没有访问该接口的权限"),
        ("rate_limit_by_name", RateLimited, "频率超限"),
        ("no_permission_by_name", NotPermitted, "没有接口"),
    ],
)
def test_fetch__any_fault_of_the_source__has_its_type_and_passes(
    connect: Connect, sandbox: SandboxServer, kind: str, error: type[Exception], text: str
) -> None:
    client = connect()
    sandbox.faults.set("daily", kind, times=1)
    with pytest.raises(error, match=text):
        (connect(read=0.3) if kind == "stall" else client).fetch(DAILY)
    assert client.fetch(DAILY).num_rows > 5000


def test_fetch__source_asks_to_wait__error_carries_the_wait(connect: Connect, sandbox: SandboxServer) -> None:
    client = connect()
    waits = {}
    for kind in ("http_429", "http_503", "rate_limit", "hour_quota", "day_quota"):
        sandbox.faults.set("daily", kind, times=1)
        with pytest.raises((RateLimited, QuotaUsedUp, SourceDown)) as caught:
            client.fetch(DAILY)
        waits[kind] = caught.value.retry_after
    assert waits == {
        "http_429": timedelta(seconds=1),
        "http_503": timedelta(seconds=1),
        "rate_limit": timedelta(minutes=1),
        "hour_quota": timedelta(minutes=59, seconds=55),
        "day_quota": timedelta(hours=5, minutes=59, seconds=55),
    }
