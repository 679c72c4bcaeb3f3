"""A caller's parameters, read as Tushare reads them: into typed values or a refusal in its words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from sandbox.endpoints import ROW_CAP, Endpoint, Field
from sandbox.messages import BadParameter


@dataclass(frozen=True)
class Query:
    """What is asked of one endpoint. Values not asked for are empty."""

    endpoint: Endpoint
    fields: tuple[Field, ...]
    codes: tuple[str, ...] = ()
    trade_date: date | None = None
    start: date | None = None
    end: date | None = None
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Columns that must have one of the given values, e.g. list_status."""

    limit: int = ROW_CAP
    offset: int = 0

    @property
    def exchange(self) -> str:
        return dict(self.choices).get("exchange", ("SSE",))[0]

    def covers(self, day: date) -> bool:
        """Whether rows of `day` may be in the answer."""
        if self.trade_date is not None:
            return self.trade_date == day
        return (self.start is None or self.start <= day) and (self.end is None or day <= self.end)


_CHOICES = {
    "exchange": {"SSE", "SZSE", "BSE"},
    "list_status": {"L", "D", "P", "G"},
    "suspend_type": {"S", "R"},
    "is_open": {"0", "1"},
    "is_hs": {"N", "H", "S"},
    "market": None,
    "name": None,
}


def parse(endpoint: Endpoint, params: Mapping[str, Any], fields: str) -> Query:
    """Raises BadParameter. Parameters the endpoint does not know are ignored, as Tushare does."""
    given = {
        name: str(value).strip()
        for name, value in params.items()
        if name in endpoint.params and value is not None and str(value).strip()
    }
    return Query(
        endpoint=endpoint,
        fields=_fields(endpoint, fields),
        codes=tuple(sorted(_split(given["ts_code"].upper()))) if "ts_code" in given else (),
        trade_date=_day(given, "trade_date"),
        start=_day(given, "start_date"),
        end=_day(given, "end_date"),
        choices=_choices(endpoint, given),
        limit=min(_count(given, "limit", ROW_CAP) or ROW_CAP, ROW_CAP),
        offset=_count(given, "offset", 0),
    )


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _fields(endpoint: Endpoint, text: str) -> tuple[Field, ...]:
    """The fields asked for, in the caller's order; unknown ones are left out, as Tushare does."""
    asked = _split(text)
    if not asked:
        return tuple(field for field in endpoint.fields if field.default)
    known = tuple(field for name in dict.fromkeys(asked) if (field := endpoint.field(name)))
    if not known:
        raise BadParameter(f"参数校验失败,fields没有可用的字段: {','.join(asked)[:80]}")
    return known


def _day(given: Mapping[str, str], name: str) -> date | None:
    if name not in given:
        return None
    text = given[name]
    try:
        if len(text) != 8 or not text.isascii() or not text.isdigit():
            raise ValueError(text)
        return date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        raise BadParameter(f"参数校验失败,{name}格式应为YYYYMMDD: {text[:20]}") from None


def _count(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadParameter(f"参数校验失败,{name}应为非负整数: {text[:20]}")
    return int(text)


def _choices(endpoint: Endpoint, given: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if endpoint.name == "stock_basic":
        given = {"list_status": "L", **given}
    chosen = []
    for name, allowed in _CHOICES.items():
        if name not in given:
            continue
        values = tuple(sorted(_split(given[name])))
        if allowed is not None and not set(values) <= allowed:
            raise BadParameter(f"参数校验失败,{name}取值不对: {given[name][:20]}")
        chosen.append((name, values))
    return tuple(chosen)
