"""The catalogue of apis: fields, parameters, publication hour and the points an account needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Literal
from zoneinfo import ZoneInfo

SHANGHAI = ZoneInfo("Asia/Shanghai")
ROW_CAP = 6000
"""Rows per call, whatever `limit` says."""

Type = Literal["text", "day", "number", "count"]


@dataclass(frozen=True)
class Field:
    """`default`: sent when the caller names no fields. `decimals`: a number never has more."""

    name: str
    type: Type = "number"
    default: bool = True
    decimals: int = 0


@dataclass(frozen=True)
class Endpoint:
    """`published`: the hour of a trading day, in Shanghai, from which its rows can be had.

    `revised`: the numbers a source may correct afterwards (see faults).
    """

    name: str
    fields: tuple[Field, ...]
    params: frozenset[str]
    points: int = 120
    published: time | None = None
    revised: tuple[str, ...] = ()

    @property
    def by_day(self) -> bool:
        return self.published is not None

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)

    def visible_until(self, now: datetime) -> date:
        """The last calendar day whose rows, if there are any, may be shown at `now`."""
        local = now.astimezone(SHANGHAI)
        if self.published is None or local.time() >= self.published:
            return local.date()
        return date.fromordinal(local.date().toordinal() - 1)


def _texts(*names: str, default: bool = True) -> tuple[Field, ...]:
    return tuple(Field(name, "text", default) for name in names)


def _numbers(*names: str, decimals: int) -> tuple[Field, ...]:
    return tuple(Field(name, decimals=decimals) for name in names)


_PAGE = frozenset({"limit", "offset"})
_BY_DAY = _PAGE | {"ts_code", "trade_date", "start_date", "end_date"}
_CODE_DAY = (Field("ts_code", "text"), Field("trade_date", "day"))

TRADE_CAL = Endpoint(
    "trade_cal",
    (
        Field("exchange", "text"),
        Field("cal_date", "day"),
        Field("is_open", "count"),
        Field("pretrade_date", "day"),
    ),
    _PAGE | {"exchange", "start_date", "end_date", "is_open"},
)
STOCK_BASIC = Endpoint(
    "stock_basic",
    (
        *_texts("ts_code", "symbol", "name", "area", "industry"),
        *_texts("fullname", "enname", default=False),
        *_texts("cnspell", "market"),
        *_texts("exchange", "curr_type", "list_status", default=False),
        Field("list_date", "day"),
        Field("delist_date", "day", default=False),
        *_texts("is_hs", default=False),
        *_texts("act_name", "act_ent_type"),
    ),
    _PAGE | {"ts_code", "name", "exchange", "market", "is_hs", "list_status"},
)
DAILY = Endpoint(
    "daily",
    (
        *_CODE_DAY,
        *_numbers("open", "high", "low", "close", "pre_close", "change", decimals=2),
        *_numbers("pct_chg", decimals=4),
        *_numbers("vol", decimals=2),
        *_numbers("amount", decimals=3),
    ),
    _BY_DAY,
    published=time(15, 30),
    revised=("vol", "amount"),
)
ADJ_FACTOR = Endpoint(
    "adj_factor",
    (*_CODE_DAY, *_numbers("adj_factor", decimals=4)),
    _BY_DAY,
    published=time(9, 20),
    revised=("adj_factor",),
)
DAILY_BASIC = Endpoint(
    "daily_basic",
    (
        *_CODE_DAY,
        *_numbers("close", decimals=2),
        *_numbers("turnover_rate", "turnover_rate_f", decimals=4),
        *_numbers("volume_ratio", decimals=2),
        *_numbers("pe", "pe_ttm", "pb", "ps", "ps_ttm", "dv_ratio", "dv_ttm", decimals=4),
        *_numbers("total_share", "float_share", "free_share", "total_mv", "circ_mv", decimals=4),
    ),
    _BY_DAY,
    points=2000,
    published=time(16, 30),
    revised=("pe", "pb"),
)
SUSPEND_D = Endpoint(
    "suspend_d",
    (*_CODE_DAY, *_texts("suspend_timing", "suspend_type")),
    _BY_DAY | {"suspend_type"},
    published=time(9, 0),
)


def _flows() -> Iterator[Field]:
    for size in ("sm", "md", "lg", "elg"):
        for side in ("buy", "sell"):
            yield Field(f"{side}_{size}_vol", "count")
            yield Field(f"{side}_{size}_amount", decimals=2)
    yield Field("net_mf_vol", "count")
    yield Field("net_mf_amount", decimals=2)


MONEYFLOW = Endpoint(
    "moneyflow",
    (*_CODE_DAY, *_flows()),
    _BY_DAY,
    points=2000,
    published=time(17, 0),
    revised=("net_mf_amount",),
)

ENDPOINTS: Mapping[str, Endpoint] = {
    endpoint.name: endpoint
    for endpoint in (TRADE_CAL, STOCK_BASIC, DAILY, ADJ_FACTOR, DAILY_BASIC, SUSPEND_D, MONEYFLOW)
}
