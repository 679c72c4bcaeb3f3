"""What the source's refusals mean: the one table of codes and messages, and nothing else.

The source answers HTTP 200 and explains itself in a code and a Chinese sentence. Its codes are
ambiguous (40203 means "too fast" as well as "not allowed"), so the sentence decides and the code is
asked only when the sentence is unknown. Order matters: a rate message ends with "for the details of
your *permissions* see …", so rates are matched before permissions.

The pairs were collected from public reports, not from a specification. An unknown one is transient
and logged once, with its text, so that it can be added here.
"""

from __future__ import annotations

import logging
import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

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

logger = logging.getLogger(__name__)

SHANGHAI = ZoneInfo("Asia/Shanghai")
MINUTE = timedelta(minutes=1)

MESSAGES: tuple[tuple[str, str], ...] = (
    (r"每天最多|每日最多|次/[天日]", "day"),
    (r"每小时最多|次/小时", "hour"),
    (r"每分钟最多|次/分钟|频率超限|访问频率|并发数", "minute"),
    (r"token\s*(不对|无效|过期|错误|失效|不存在)|(无效|过期|错误)的?\s*token", "token"),
    (r"没有.{0,60}?权限|无权限|权限不足|积分", "permission"),
    (r"请指定正确的接口名|接口名称?不存在|必填参数|参数(错误|校验失败|缺失|不正确)", "request"),
    (r"系统(内部)?(错误|异常|繁忙)|服务(器)?(内部)?(错误|异常|繁忙)|超时", "down"),
)
"""Patterns and their meanings, tried in this order; the first that is found decides."""

CODES: dict[object, str] = {
    40203: "minute",  # rate and permission share it: without a known sentence, waiting is the safe half
    40101: "token",
    2002: "permission",
    -2002: "permission",
}
"""Asked only when no sentence matched."""

MEANINGS: dict[str, tuple[type[InfrastructureError], str]] = {
    "day": (QuotaUsedUp, "this account's calls of the day are used up"),
    "hour": (QuotaUsedUp, "this account's calls of the hour are used up"),
    "minute": (RateLimited, "too many calls in this minute"),
    "token": (TokenRefused, "it does not know the token"),
    "permission": (NotPermitted, "this account may not call it"),
    "request": (RequestRefused, "it does not understand the call"),
    "down": (SourceDown, "an error of its own"),
}
"""The error of a meaning, and the meaning in English."""

_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), meaning) for pattern, meaning in MESSAGES)


_logged: set[str] = set()
"""The unknown codes that this process has logged."""


def refusal(api_name: str, code: object, message: str, now: datetime) -> InfrastructureError:
    """The error to raise. `message` must be redacted already: it becomes the error's text."""
    text = f"{api_name}: Tushare refused with code {code}: {message or 'no message'}"
    meaning = _meaning_of(message) or (CODES.get(code) if isinstance(code, int) else None)
    if meaning is None:
        if str(code) not in _logged:
            _logged.add(str(code))
            logger.warning(
                "Unknown refusal, treated as transient (extend resources/tushare/messages.py): %s", text
            )
        return UnknownRefusal(text)
    kind, english = MEANINGS[meaning]
    text = f"{text} ({english})"
    if issubclass(kind, TransientResourceError):
        return kind(text, retry_after=_wait(meaning, now))
    return kind(text)


def _meaning_of(message: str) -> str | None:
    return next((meaning for pattern, meaning in _COMPILED if pattern.search(message)), None)


def _wait(meaning: str, now: datetime) -> timedelta | None:
    """Until the next window, whose calls are not used up."""
    local = now.astimezone(SHANGHAI)
    if meaning == "day":
        return local.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1) - local
    if meaning == "hour":
        return local.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1) - local
    # A whole minute, not "until :00": the source's minutes need not start where ours do.
    return MINUTE if meaning == "minute" else None
