"""The types of settings: how the text of an environment variable becomes a checked value, and back."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from domain.shared.clock import PLATFORM_ZONE
from resources.http.address import without_credentials

HIDDEN = "***"

_POSTGRES = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")


def _from_text(parse: Callable[[str], Any]) -> BeforeValidator:
    return BeforeValidator(lambda raw: parse(raw) if isinstance(raw, str) else raw)


def _split(raw: str) -> list[str]:
    return [] if raw.lower() == "none" else [part.strip() for part in raw.split(",")]


def _time_of_day(raw: str) -> time:
    return datetime.strptime(raw, "%H:%M").replace(tzinfo=UTC).time()


def _moment(raw: str) -> datetime:
    moment = datetime.fromisoformat(raw)
    return (moment if moment.tzinfo else moment.replace(tzinfo=PLATFORM_ZONE)).astimezone(UTC)


def _absolute(path: Path) -> Path:
    try:
        # absolute, not resolve: a link to a bigger disk stays what the person wrote.
        return path.expanduser().absolute()
    except RuntimeError as error:  # of `~somebody`
        raise ValueError(str(error)) from None


def _database_url(raw: str) -> str:
    """A SQLAlchemy URL of SQLite or Postgres, its file absolute, its driver the one that is installed."""
    if raw.startswith("sqlite:///") and raw != "sqlite:///:memory:":
        return sqlite_url(_absolute(Path(raw.removeprefix("sqlite:///"))))
    if not (_POSTGRES.match(raw) and _has_parts(raw) and urlsplit(raw).path.strip("/")):
        raise ValueError(
            "should be sqlite:////folder/file.db or postgresql://user:password@host:5432/database; "
            "in user and password write / as %2F, @ as %40, # as %23, ? as %3F, [ as %5B"
        )
    return _POSTGRES.sub("postgresql+psycopg2://", raw)


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


def is_postgres(url: str) -> bool:
    return url.startswith("postgresql")


def _location(raw: str) -> str:
    """An absolute URI. Paths are not percent-encoded: the lake's file layer takes them literally."""
    parts = urlsplit(raw)
    if parts.scheme == "s3" and parts.netloc:
        return raw.rstrip("/")
    if parts.scheme not in ("", "file"):
        raise ValueError("should be a folder, or a URI such as s3://bucket/folder")
    return f"file://{_absolute(Path(raw.removeprefix('file://')))}"


def _http_url(raw: str) -> str:
    if not re.match(r"https?://[^\s/]+\S*$", raw) or not _has_parts(raw):
        raise ValueError("should be a URL that begins with https:// or http:// and names a host")
    return raw.rstrip("/")


def _has_parts(url: str) -> bool:
    """Whether the parts can be separated: a password with `/`, `?` or `#` in it ends the host too early."""
    try:
        parts = urlsplit(url)
        return parts.port != 0 and ("@" not in url or "@" in parts.netloc)
    except ValueError:
        return False


def redacted_url(url: str) -> str:
    """The URL as it may be shown: without user, password and query."""
    scheme, _, rest = url.partition("://")
    if scheme in ("file", "sqlite") or not {"@", "?"} & set(rest):
        return url
    return without_credentials(url) if _has_parts(url) else f"{scheme}://{HIDDEN}"


def _duration(raw: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,6})\s*([smhd])", raw.strip().lower())
    if not found or int(found[1]) == 0:
        raise ValueError("should be a number and one of s, m, h, d, such as 30m or 1h")
    return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def as_text(value: object) -> str:
    """A value written so that its type reads it back."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, tuple):
        return ",".join(map(as_text, value)) or "none"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, time):
        return f"{value:%H:%M}"
    if isinstance(value, timedelta):
        seconds = int(value.total_seconds())
        unit = next(unit for unit in "dhms" if seconds % _SECONDS[unit] == 0)
        return f"{seconds // _SECONDS[unit]}{unit}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


LowerCase = _from_text(str.lower)
UpperCase = _from_text(str.upper)
CommaSeparated = _from_text(_split)
"""`none` has no parts."""
Day = Annotated[date, _from_text(date.fromisoformat)]
TimeOfDay = Annotated[time, _from_text(_time_of_day)]
Moment = Annotated[datetime, _from_text(_moment)]
"""In UTC; without a time zone it is Shanghai's."""
Duration = Annotated[timedelta, _from_text(_duration)]
"""Written as a number and a unit: 30s, 15m, 1h, 2d."""
Memory = Annotated[str, Field(pattern=r"^\d+(\.\d+)?\s*[kKmMgGtT][iI]?[bB]$")]
AbsolutePath = Annotated[Path, AfterValidator(_absolute)]
DatabaseUrl = Annotated[str, AfterValidator(_database_url)]
Location = Annotated[str, AfterValidator(_location)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=1, le=65535)]
PortOrNone = Annotated[int, Field(ge=0, le=65535)]
