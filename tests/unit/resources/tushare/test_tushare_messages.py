"""The source's refusals, as reported by its users, get the type that says what to do about them."""

import logging
from datetime import UTC, datetime, timedelta

import pytest

from domain.shared.error import InfrastructureError, TransientResourceError
from resources.tushare.errors import (
    NotPermitted,
    QuotaUsedUp,
    RateLimited,
    RequestRefused,
    SourceDown,
    TokenRefused,
    UnknownRefusal,
)
from resources.tushare.messages import refusal

NOW = datetime(2026, 11, 17, 10, 40, 30, tzinfo=UTC)  # 18:40:30 in Shanghai
DETAILS = "，权限的具体详情访问：https://tushare.pro/document/1?doc_id=108。"


def classified(code: object, message: str, now: datetime = NOW) -> InfrastructureError:
    return refusal("daily", code, message, now)


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (40203, f"抱歉，您每分钟最多访问该接口500次{DETAILS}", RateLimited),
        (-2002, "抱歉，您访问接口(daily)频率超限(500次/分钟)，具体频次详情", RateLimited),
        (40203, "抱歉，您访问该接口的频率超限", RateLimited),
        (429, "您当前使用该API的并发数过高，请降低并发", RateLimited),
        (40203, f"抱歉，您每小时最多访问该接口1次{DETAILS}", QuotaUsedUp),
        (40203, "抱歉，您访问接口(stock_basic)频率超限(1次/小时)", QuotaUsedUp),
        (40203, f"抱歉，您每天最多访问该接口5次{DETAILS}", QuotaUsedUp),
        (40203, "抱歉，您访问接口(stk_mins)频率超限(2次/天)", QuotaUsedUp),
        (40203, f"抱歉，您没有访问该接口的权限{DETAILS}", NotPermitted),
        (-2002, f"抱歉，您没有权限访问该接口{DETAILS}", NotPermitted),
        (40203, f"抱歉，您没有接口(fund_daily)访问权限{DETAILS}", NotPermitted),
        (2002, "抱歉，您的积分不足", NotPermitted),
        (40101, "您的token不对，请确认。", TokenRefused),
        (-1001, "Token无效: Token不存在", TokenRefused),
        (40101, "请指定正确的接口名", RequestRefused),
        (-2001, "必填参数, ts_code", RequestRefused),
        (50101, "系统内部错误", SourceDown),
        (40203, "busy", RateLimited),
        (40101, "denied", TokenRefused),
        (2002, "", NotPermitted),
        (99999, "新的错误", UnknownRefusal),
        (None, "", UnknownRefusal),
        (["x"], "", UnknownRefusal),
    ],
)
def test_refusal__message_and_code__decide_its_type_in_this_order(
    code: object, message: str, kind: type[InfrastructureError]
) -> None:
    error = classified(code, message)
    assert type(error) is kind
    assert error.message.startswith("daily: Tushare refused with code ")
    assert message in error.message


@pytest.mark.parametrize(
    ("message", "in_run"),
    [
        ("每分钟最多访问", False),
        ("每小时最多访问", False),
        ("每天最多访问", False),
        ("系统繁忙", True),
        ("?", True),
    ],
)
def test_refusal__transient__is_retried_in_the_run_only_if_seconds_help(message: str, in_run: bool) -> None:
    error = classified(1, message)
    assert isinstance(error, TransientResourceError)
    assert error.retry_in_run is in_run


@pytest.mark.parametrize(
    ("now", "message", "wait"),
    [
        (NOW, "每分钟最多访问", timedelta(seconds=60)),
        (NOW, "每小时最多访问", timedelta(minutes=19, seconds=30)),
        (NOW, "每天最多访问", timedelta(hours=5, minutes=19, seconds=30)),
        (
            datetime(2026, 11, 17, 16, 0, tzinfo=UTC),
            "每天最多访问",
            timedelta(days=1),
        ),  # midnight in Shanghai
        (datetime(2026, 11, 17, 15, 59, 59, tzinfo=UTC), "每天最多访问", timedelta(seconds=1)),
    ],
)
def test_refusal__window_used_up__says_when_the_next_one_starts(
    now: datetime, message: str, wait: timedelta
) -> None:
    error = classified(40203, message, now)
    assert isinstance(error, RateLimited | QuotaUsedUp)
    assert error.retry_after == wait


def test_refusal__unknown_code__is_logged_once_with_its_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        for code in (777, 777, 778, 777):
            refusal("daily", code, "未知", NOW)
    assert [record.getMessage().split(": ", 1)[1] for record in caplog.records] == [
        "daily: Tushare refused with code 777: 未知",
        "daily: Tushare refused with code 778: 未知",
    ]
