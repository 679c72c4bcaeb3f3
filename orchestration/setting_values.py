"""How the text of a setting becomes a value and back.

Pure functions. A parser raises ValueError with what it wanted, in words that finish the sentence
"… is not …"; who collects the problems is `environments.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

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


def text(raw: str) -> str:
    return raw


def one_of(*choices: str) -> Callable[[str], str]:
    def parse(raw: str) -> str:
        if raw.lower() not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return raw.lower()

    return parse


def some_of(*choices: str) -> Callable[[str], tuple[str, ...]]:
    """In the order of `choices`, whatever order a person writes them in."""

    def parse(raw: str) -> tuple[str, ...]:
        chosen = {part.strip().lower() for part in raw.split(",")}
        if not chosen.issubset(choices):
            raise ValueError(f"one or more of {', '.join(choices)}, separated by commas")
        return tuple(choice for choice in choices if choice in chosen)

    return parse


def log_level(raw: str) -> str:
    return one_of("debug", "info", "warning", "error")(raw).upper()


def whole(low: int, high: int) -> Callable[[str], int]:
    def parse(raw: str) -> int:
        wanted = f"a whole number from {low} to {high}"
        try:
            value = int(raw)
        except ValueError:
            raise ValueError(wanted) from None
        if not low <= value <= high:
            raise ValueError(wanted)
        return value

    return parse


def seconds(raw: str) -> float:
    try:
        value = float(raw)
    except ValueError:
        value = math.nan
    if not 0 < value <= 3600:
        raise ValueError("a number of seconds above 0 and at most 3600")
    return value


def delays(raw: str) -> tuple[float, ...]:
    """Waits between passes, separated by commas; `0,0,0` retries at once, `none` never."""
    if raw.lower() == "none":
        return ()
    wanted = "a comma-separated list of seconds from 0 to 3600 (such as 10,20,40), or none"
    try:
        values = tuple(float(part) for part in raw.split(","))
    except ValueError:
        raise ValueError(wanted) from None
    if not all(0 <= value <= 3600 for value in values):
        raise ValueError(wanted)
    return values


def day(raw: str) -> date:
    try:
        return date.fromisoformat(raw)
    except ValueError:
        raise ValueError("a day written as 2026-11-17") from None


def time_of_day(raw: str) -> time:
    match = re.fullmatch(r"(\d{1,2}):(\d{2})", raw)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        raise ValueError("a time of day written as 18:30")
    return time(int(match[1]), int(match[2]))


def moment(raw: str) -> datetime:
    """A moment in UTC; without a time zone it is Shanghai's."""
    try:
        value = datetime.fromisoformat(raw)
    except ValueError:
        raise ValueError("a moment written as 2026-11-17T18:31 or 2026-11-17T10:31:00Z") from None
    if value.tzinfo is None:
        value = value.replace(tzinfo=MARKET_TIMEZONE)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("a moment of our time") from None


def memory(raw: str) -> str:
    """With less than the least a connection cannot even be opened."""
    match = _MEMORY.match(raw)
    if match is None:
        raise ValueError("a size with its unit, such as 512MB or 1GB")
    if float(match[1]) * _UNITS[match[2].upper()] < _LEAST_MEMORY:
        raise ValueError("enough: it takes at least 16MB")
    return raw


def absolute_path(raw: str) -> Path:
    # abspath, not resolve: a link to a bigger disk stays what the person wrote.
    try:
        return Path(raw).expanduser().absolute()
    except RuntimeError:
        raise ValueError("a path: there is no such user, or its home folder is unknown") from None


def plain_folder(raw: str) -> Path:
    """A folder whose path means the same to everybody: it becomes part of databases' addresses."""
    path = absolute_path(raw)
    if bad := sorted(UNSAFE & set(str(path))):
        raise ValueError(f"a folder's path without {' '.join(bad)}")
    return path


def database_url(raw: str) -> str:
    """A SQLAlchemy URL of SQLite or Postgres, its file absolute, its driver the one that is installed."""
    if _POSTGRES.match(raw):
        url = _POSTGRES.sub("postgresql+psycopg2://", raw)
        if not _splits(url) or _hides_its_user(url):
            raise ValueError(
                "a URL of Postgres (postgresql://user:password@host:5432/name): in user and password write "
                "/ as %2F, @ as %40, # as %23, ? as %3F, [ as %5B"
            )
        if not urlsplit(url).path.strip("/"):
            raise ValueError(
                "complete: it names no database, as in postgresql://user:password@host:5432/perennial"
            )
        return url
    if raw.startswith("sqlite:///"):
        path = raw.removeprefix("sqlite:///")
        if path and path != ":memory:":
            return sqlite_url(absolute_path(path))
        raise ValueError("a file: a database in memory is lost with its process")
    raise ValueError(
        "a URL of SQLite (sqlite:////folder/file.db) or Postgres (postgresql://user:password@host/name)"
    )


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


def is_postgres(url: str) -> bool:
    return url.startswith("postgresql")


def warehouse_uri(raw: str) -> str:
    """An absolute URI. Paths are not percent-encoded: the lake's file layer takes them literally."""
    scheme = urlsplit(raw).scheme
    if scheme == "s3":
        if not urlsplit(raw).netloc:
            raise ValueError("complete: it names no bucket, as in s3://bucket/warehouse")
        return raw.rstrip("/")
    if scheme not in ("", "file"):
        raise ValueError("a folder or a URI of file or s3")
    path = raw.removeprefix("file://") if scheme == "file" else raw
    return f"file://{absolute_path(path)}"


def http_url(raw: str) -> str:
    wanted = "a URL that begins with https:// or http:// and names a host"
    if not _splits(raw) or _hides_its_user(raw):
        raise ValueError(wanted)
    parts = urlsplit(raw)
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", raw):
        raise ValueError(wanted)
    official = parts.hostname.endswith(("tushare.pro", "waditu.com"))
    if parts.scheme == "http" and official:
        raise ValueError("safe: the token would travel in clear text, write https://")
    return raw.rstrip("/")


def _splits(url: str) -> bool:
    """Whether its parts can be told, and its port is a number."""
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
    if not _splits(url) or _hides_its_user(url):
        scheme, _, rest = url.partition("://")
        return f"{scheme}://{HIDDEN}" if "@" in rest or "?" in rest else url
    parts = urlsplit(url)
    if not parts.scheme or not (parts.netloc or parts.query):
        return url
    credentials, at, place = parts.netloc.rpartition("@")
    user, colon, _ = credentials.partition(":")
    netloc = f"{user}{colon}{HIDDEN if colon else ''}{at}{place}"
    query = [(k, HIDDEN if _SECRET_PARAMETER.search(k) else v) for k, v in parse_qsl(parts.query)]
    return urlunsplit(parts._replace(netloc=netloc, query=urlencode(query, safe="/*")))


def as_text(value: object) -> str:
    """A value written so that its parser reads it back."""
    if isinstance(value, tuple):
        return ",".join(item if isinstance(item, str) else f"{item:g}" for item in value) or "none"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, time):
        return value.strftime("%H:%M")
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
