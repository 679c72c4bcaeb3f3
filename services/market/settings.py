"""The settings of the market domain."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from domain.shared.hashing import digest
from services.setting_types import (
    MARKET_TIMEZONE,
    CommaSeparated,
    Day,
    HttpUrl,
    LowerCase,
    Port,
    Seconds,
    TimeOfDay,
    as_text,
)
from services.settings import StorageSettings, setting

TUSHARE_API = "https://api.tushare.pro"
SANDBOX_TOKEN = "sandbox-token"  # noqa: S105 - known to everybody, opens nothing but the sandbox


def _not_in_clear_text(url: str) -> str:
    official = (urlsplit(url).hostname or "").endswith(("tushare.pro", "waditu.com"))
    if official and url.startswith("http://"):
        raise ValueError("safe: the token would travel in clear text, write https://")
    return url


class MarketSettings(StorageSettings):
    tushare_token: SecretStr = setting(
        "Token of your Tushare account.",
        default=SecretStr(""),
        shown="none",
        alias="TUSHARE_TOKEN",
        example="0123456789abcdef",
    )
    source: Annotated[Literal["sandbox", "tushare"], LowerCase] = setting(
        "Where market data comes from. A home folder keeps the source it was first filled from.",
        derived=lambda data: "tushare" if data["tushare_token"].get_secret_value() else "sandbox",
        shown="`tushare` if `TUSHARE_TOKEN` is set, else `sandbox`",
        example="sandbox",
    )
    tushare_url: Annotated[HttpUrl, AfterValidator(_not_in_clear_text)] = setting(
        "A server that speaks Tushare's protocol.",
        derived=lambda data: TUSHARE_API if data["source"] == "tushare" else "",
        shown=f"`{TUSHARE_API}`; for the sandbox one is started when needed",
        alias="TUSHARE_URL",
        example="http://exchange.internal:8712",
    )
    tushare_points: int = setting(
        "Points of the account: they decide the pace and which tables may be fetched.",
        derived=lambda data: 2000 if data["source"] == "tushare" else 15000,
        shown="`2000`; for the sandbox `15000`",
        alias="TUSHARE_POINTS",
        ge=1,
        le=1_000_000,
        example="5000",
    )
    tushare_calls_per_minute: int | None = setting(
        "Calls per minute over all processes, where an account differs from the published table.",
        default=None,
        shown="what the points allow",
        alias="TUSHARE_CALLS_PER_MINUTE",
        ge=1,
        le=100_000,
        example="180",
    )
    tushare_retry_delays: Annotated[
        tuple[Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)], ...], CommaSeparated
    ] = setting(
        "Seconds between one run's passes over failed calls; n waits are n + 1 passes. `none`: one pass.",
        default=(10.0, 20.0, 40.0),
        alias="TUSHARE_RETRY_DELAYS",
        example="1,2,4",
    )
    tushare_timeout_seconds: Seconds = setting(
        "How long one call may take.", default=30.0, alias="TUSHARE_TIMEOUT_SECONDS", example="60"
    )
    market_start: Day = setting(
        "First day of the warehouse's partitions. The exchange opened on the default.",
        default=date(1990, 12, 19),
        example="2015-01-01",
    )
    gap_window_days: int = setting(
        "How many days back each pass searches for gaps.", default=7, ge=1, le=366, example="14"
    )
    gap_limit: int = setting(
        "How many days one pass fills at most, newest first; of older days, how many are filled at a time.",
        default=3,
        ge=1,
        le=366,
        example="5",
    )
    daily_at: TimeOfDay = setting(
        "When the daily schedule runs, Asia/Shanghai.", default=time(18, 30), example="19:05"
    )
    fetch_workers: int = setting(
        "Calls to the source that one run makes at the same time.", default=4, ge=1, le=64, example="8"
    )
    sandbox_port: Port = setting(
        "Port of the sandbox that `perennial up` starts.", default=8712, example="8713"
    )

    @property
    def token(self) -> str:
        return self.tushare_token.get_secret_value() or SANDBOX_TOKEN

    @property
    def starts_sandbox(self) -> bool:
        """Whether the source is a sandbox that nobody else runs for us."""
        return self.source == "sandbox" and not self.tushare_url

    @property
    def source_fingerprint(self) -> str:
        """Changes when a person changed what could cure a permanent failure. Not reversible."""
        # The address of the sandbox is nobody's decision: `up` gives it a port, a command another.
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
        today = (self.now or now).astimezone(MARKET_TIMEZONE).date()
        if self.market_start > today:
            yield (
                f"PERENNIAL_MARKET_START: {self.market_start} is after today, {today}. "
                f"Set a day that has passed{', or a later PERENNIAL_NOW' if self.now else ''}"
            )
