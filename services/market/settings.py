"""The settings of the market domain."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, SecretStr

from domain.market.trading import shanghai
from domain.shared.hashing import digest
from services.market.first_day import first_day, kept_day
from services.setting_types import (
    CommaSeparated,
    Day,
    HttpUrl,
    LowerCase,
    Seconds,
    TimeOfDay,
    as_text,
)
from services.settings import PREFIX, StorageSettings, setting

TUSHARE_API = "https://api.tushare.pro"
SANDBOX_TOKEN = "sandbox-token"  # noqa: S105 - known to everybody, opens nothing but the sandbox

SANDBOX_UNLIMITED = "sandbox-unlimited"


def _not_in_clear_text(url: str) -> str:
    official = (urlsplit(url).hostname or "").endswith(("tushare.pro", "waditu.com"))
    if official and url.startswith("http://"):
        raise ValueError("should begin with https://, or the token would travel in clear text")
    return url


def _variable(name: str) -> str:
    return name.upper() if name.startswith("tushare_") else f"{PREFIX}{name.upper()}"


class MarketSettings(StorageSettings):
    model_config = ConfigDict(alias_generator=_variable)

    tushare_token: SecretStr = setting(SecretStr(""), shown="none", example="0123456789abcdef")
    """Token of your Tushare account."""
    source: Annotated[Literal["sandbox", "tushare"], LowerCase] = setting(
        derived=lambda data: "tushare" if data["tushare_token"].get_secret_value() else "sandbox",
        shown="`tushare` if `TUSHARE_TOKEN` is set, else `sandbox`",
        example="sandbox",
    )
    """Where market data comes from. A home folder keeps the source it was first filled from."""
    tushare_url: Annotated[HttpUrl, AfterValidator(_not_in_clear_text)] = setting(
        derived=lambda data: TUSHARE_API if data["source"] == "tushare" else "",
        shown=f"`{TUSHARE_API}`; for the sandbox one is started when needed",
        example="http://exchange.internal:8712",
    )
    """A server that speaks Tushare's protocol."""
    tushare_points: int = setting(
        derived=lambda data: 2000 if data["source"] == "tushare" else 15000,
        shown="`2000`; for the sandbox `15000`",
        ge=1,
        le=1_000_000,
        example="5000",
    )
    """Points of the account: they decide the pace and which tables may be fetched."""
    tushare_calls_per_minute: int | None = setting(
        None, shown="what the points allow", ge=1, le=100_000, example="180"
    )
    """Calls per minute over all processes, where an account differs from the published table."""
    tushare_retry_delays: Annotated[
        tuple[Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)], ...], CommaSeparated
    ] = setting((10.0, 20.0, 40.0), example="1,2,4")
    """Seconds between one run's passes over failed calls; n waits are n + 1 passes. `none`: one pass."""
    tushare_timeout_seconds: Seconds = setting(30.0, example="60")
    """How long one call may take."""
    market_start: Day = setting(
        derived=first_day,
        shown="the day that the home keeps; of a new home the first of the month two years ago. "
        "Production requires it, unless the home keeps one",
        example="2015-01-01",
    )
    """First day of the warehouse's partitions. The home keeps it, until another one is set."""
    gap_window_days: int = setting(7, ge=1, le=366, example="14")
    """How many days back each pass searches for gaps."""
    gap_limit: int = setting(3, ge=1, le=366, example="5")
    """How many days one pass fills at most, newest first; of older days, how many are filled at a time."""
    market_heal_history: bool = setting(False, example="true")
    """Whether days that were never fetched are filled too, between days that were; newest first."""
    daily_at: TimeOfDay = setting(time(18, 30), example="19:05")
    """When the daily schedule runs, Asia/Shanghai."""
    fetch_workers: int = setting(4, ge=1, le=64, example="8")
    """Calls to the source that one run makes at the same time."""

    @property
    def token(self) -> str:
        return self.tushare_token.get_secret_value() or SANDBOX_TOKEN

    @property
    def is_real(self) -> bool:
        return self.source != "sandbox"

    @property
    def answers(self) -> str:
        """Where answers of the source are kept until a reference is whole."""
        remote = self.warehouse.startswith("s3://")
        return f"{self.warehouse}-answers" if remote else f"file://{self.home / 'answers'}"

    @property
    def source_is_unlimited(self) -> bool:
        """Whether the source counts no calls: the sandbox with its token for benchmarks."""
        return self.source == "sandbox" and self.token == SANDBOX_UNLIMITED

    @property
    def source_fingerprint(self) -> str:
        """Changes when a person changed what could cure a permanent failure. Not reversible."""
        # Nobody chooses the sandbox's address: `up` gives it one port, a command another.
        url = "" if self.source == "sandbox" else self.tushare_url
        return digest([self.source, url, self.token, self.tushare_points])

    def problems(self, now: datetime) -> Iterator[str]:
        yield from super().problems(now)
        if self.source == "tushare" and not self.tushare_token.get_secret_value():
            yield (
                "TUSHARE_TOKEN: the source tushare needs the token of your account. "
                "Set it, or PERENNIAL_SOURCE=sandbox"
            )
        if self.now is not None and self.source != "sandbox":
            yield (
                f"PERENNIAL_NOW: {as_text(self.now)} would stop the clock while real data comes in. "
                "Unset it, or set PERENNIAL_SOURCE=sandbox"
            )
        today = shanghai(self.now or now).date()
        given = "market_start" in self.model_fields_set
        if self.env == "production" and not given and kept_day(self.home) is None:
            yield (
                "PERENNIAL_MARKET_START: production needs the first day of the warehouse, the same in every "
                "process; the home keeps none. Set PERENNIAL_MARKET_START=2015-01-01, or the day it began"
            )
        if given and self.market_start > today:
            yield (
                f"PERENNIAL_MARKET_START: {self.market_start} is after today, {today}. "
                f"Set a day that has passed{', or a later PERENNIAL_NOW' if self.now else ''}"
            )
