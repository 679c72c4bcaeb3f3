"""The types of settings: how the text of an environment variable becomes a checked value, and back.

A validator raises ValueError with what it wants, as the end of the sentence "… must be …".
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

MARKET_TIMEZONE = timezone(timedelta(hours=8), "Asia/Shanghai")
"""Shanghai has kept UTC+8 without summer time since 1991; a moment set by hand is never older."""

HIDDEN = "***"

UNSAFE = frozenset("#?%*[]{}'\"\\\n")
"""Would be read as patterns or as parts of an address by one of the programs that share the files."""

_POSTGRES = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")
_MEMORY = re.compile(r"^(\d+(?:\.\d+)?)\s*([KMGT])i?B$", re.IGNORECASE)
_UNITS = {"K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_LEAST_MEMORY = 16e6
_SECRET_PARAMETER = re.compile(r"pass|secret|token|key", re.IGNORECASE)


def _split(raw: object) -> object:
    """The parts of a text, separated by commas; `none` has none."""
    if not isinstance(raw, str):
        return raw
    return () if raw.lower() == "none" else [part.strip() for part in raw.split(",")]


def _day(raw: object) -> object:
    try:
        return date.fromisoformat(raw) if isinstance(raw, str) else raw
    except ValueError:
        raise ValueError("a day written as 2026-11-17") from None


def _time_of_day(raw: object) -> object:
    if not isinstance(raw, str):
        return raw
    match = re.fullmatch(r"(\d{1,2}):(\d{2})", raw)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        raise ValueError("a time of day written as 18:30")
    return time(int(match[1]), int(match[2]))


def _moment(raw: object) -> object:
    """A moment in UTC; without a time zone it is Shanghai's."""
    if not isinstance(raw, str):
        return raw
    try:
        value = datetime.fromisoformat(raw)
        value = value if value.tzinfo else value.replace(tzinfo=MARKET_TIMEZONE)
        return value.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("a moment written as 2026-11-17T18:31 or 2026-11-17T10:31:00Z") from None


def _memory(raw: str) -> str:
    match = _MEMORY.match(raw)
    # With less a connection cannot even be opened.
    if match is None or float(match[1]) * _UNITS[match[2].upper()] < _LEAST_MEMORY:
        raise ValueError("a size with its unit, such as 512MB or 1GB, and at least 16MB")
    return raw


def _absolute(path: Path) -> Path:
    # absolute, not resolve: a link to a bigger disk stays what the person wrote.
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        raise ValueError("a path: there is no such user, or its home folder is unknown") from None


def _folder(raw: Path) -> Path:
    """A folder whose path means the same to everybody: it becomes part of databases' addresses."""
    path = _absolute(raw)
    if bad := sorted(UNSAFE & set(str(path))):
        raise ValueError(f"a folder's path without {' '.join(bad)}")
    return path


def _database_url(raw: str) -> str:
    """A SQLAlchemy URL of SQLite or Postgres, its file absolute, its driver the one that is installed."""
    if _POSTGRES.match(raw):
        url = _POSTGRES.sub("postgresql+psycopg2://", raw)
        if not _has_parts(url) or _hides_its_user(url):
            raise ValueError(
                "a URL of Postgres (postgresql://user:password@host:5432/name): in user and password write "
                "/ as %2F, @ as %40, # as %23, ? as %3F, [ as %5B"
            )
        if not urlsplit(url).path.strip("/"):
            raise ValueError(
                "complete: it names no database, as in postgresql://user:password@host:5432/perennial"
            )
        return url
    path = raw.removeprefix("sqlite:///")
    if path in (raw, "", ":memory:"):
        raise ValueError(
            "a URL of a SQLite file (sqlite:////folder/file.db) or of Postgres (postgresql://user:password@host/name)"
        )
    return sqlite_url(_absolute(Path(path)))


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


def is_postgres(url: str) -> bool:
    return url.startswith("postgresql")


def _location(raw: str) -> str:
    """An absolute URI. Paths are not percent-encoded: the lake's file layer takes them literally."""
    scheme = urlsplit(raw).scheme
    if scheme == "s3":
        if not urlsplit(raw).netloc:
            raise ValueError("complete: it names no bucket, as in s3://bucket/warehouse")
        return raw.rstrip("/")
    if scheme not in ("", "file"):
        raise ValueError("a folder or a URI of file or s3")
    return f"file://{_absolute(Path(raw.removeprefix('file://')))}"


def _http_url(raw: str) -> str:
    parts = urlsplit(raw) if _has_parts(raw) and not _hides_its_user(raw) else None
    if not parts or parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", raw):
        raise ValueError("a URL that begins with https:// or http:// and names a host")
    return raw.rstrip("/")


def _has_parts(url: str) -> bool:
    """Whether its parts can be separated, and its port is a number."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def _hides_its_user(url: str) -> bool:
    """A password with `/`, `?` or `#` in it ends the host too early: what follows looks like a path."""
    scheme, _, rest = url.partition("://")
    return scheme not in ("file", "s3", "sqlite") and "@" in rest and "@" not in urlsplit(url).netloc


def redacted_url(url: str) -> str:
    """The URL without its password and secret parameters, for people to read."""
    if "://" not in url:
        return url
    if not _has_parts(url) or _hides_its_user(url):
        scheme, _, rest = url.partition("://")
        return f"{scheme}://{HIDDEN}" if "@" in rest or "?" in rest else url
    parts = urlsplit(url)
    if not parts.scheme or not (parts.netloc or parts.query):
        return url
    credentials, at, host = parts.netloc.rpartition("@")
    user, colon, _ = credentials.partition(":")
    netloc = f"{user}{colon}{HIDDEN if colon else ''}{at}{host}"
    query = [(k, HIDDEN if _SECRET_PARAMETER.search(k) else v) for k, v in parse_qsl(parts.query)]
    return urlunsplit(parts._replace(netloc=netloc, query=urlencode(query, safe="/*")))


def as_text(value: object) -> str:
    """A value written so that its type reads it back."""
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, tuple):
        return ",".join(map(as_text, value)) or "none"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, time):
        return value.strftime("%H:%M")
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


LowerCase = BeforeValidator(lambda raw: raw.lower() if isinstance(raw, str) else raw)
UpperCase = BeforeValidator(lambda raw: raw.upper() if isinstance(raw, str) else raw)
CommaSeparated = BeforeValidator(_split)
Day = Annotated[date, BeforeValidator(_day)]
TimeOfDay = Annotated[time, BeforeValidator(_time_of_day)]
Moment = Annotated[datetime, BeforeValidator(_moment)]
Memory = Annotated[str, AfterValidator(_memory)]
AbsolutePath = Annotated[Path, AfterValidator(_absolute)]
Folder = Annotated[Path, AfterValidator(_folder)]
DatabaseUrl = Annotated[str, AfterValidator(_database_url)]
Location = Annotated[str, AfterValidator(_location)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]
Port = Annotated[int, Field(ge=1, le=65535)]
