"""Tushare's refusals: every code and message the sandbox answers with, in one place."""

from __future__ import annotations

from domain.shared.error import PerennialError

_DETAILS = "权限的具体详情访问：https://tushare.pro/document/1?doc_id=108。"


class Refusal(PerennialError):
    """An answer with HTTP 200 and a code other than 0."""

    reason_code = "refused"

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class BadParameter(Refusal):
    def __init__(self, message: str) -> None:
        super().__init__(-2001, message)


def bad_token() -> Refusal:
    return Refusal(40101, "您的token不对，请确认。")


def unknown_api() -> Refusal:
    return Refusal(-2001, "请指定正确的接口名")


def no_permission() -> Refusal:
    return Refusal(2002, f"抱歉，您没有访问该接口的权限，{_DETAILS}")


def minute_limit(calls: int) -> Refusal:
    return Refusal(40203, f"抱歉，您每分钟最多访问该接口{calls}次，{_DETAILS}")


def hour_quota(calls: int) -> Refusal:
    return Refusal(40203, f"抱歉，您每小时最多访问该接口{calls}次，{_DETAILS}")


def day_quota(calls: int) -> Refusal:
    return Refusal(40203, f"抱歉，您每天最多访问该接口{calls}次，{_DETAILS}")


def no_permission_by_name(api: str) -> Refusal:
    """The newer wording, met beside the older one."""
    return Refusal(40203, f"抱歉，您没有接口({api})访问权限，{_DETAILS}")


def minute_limit_by_name(api: str, calls: int) -> Refusal:
    """The newer wording, met beside the older one."""
    return Refusal(40203, f"抱歉，您访问接口({api})频率超限({calls}次/分钟)，{_DETAILS}")


def rubbish() -> Refusal:
    return Refusal(-2001, "请求不是有效的JSON，请检查api_name、token、params、fields")
