"""Keeps all processes of a home below the source's calls per minute: one shared row per window.

A process reserves calls in small blocks, so that the database is asked once per block and not once
per call; what it does not use by the end of the window is lost. Windows are minutes of the *machine*
clock. The server counts as well, by endpoint: what it refuses pauses that endpoint for everybody here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import sqlalchemy as sa

from domain.shared.clock import Clock, machine_clock
from resources.database.engine import writing
from resources.database.schema import UtcDateTime, metadata
from resources.database.statements import insert_into
from resources.tushare.errors import RateLimited

WINDOW = timedelta(minutes=1)
_CALLS_PER_MINUTE = ((10_000, 1000), (5000, 500), (2000, 200), (0, 50))
_KEPT = timedelta(minutes=10)
_BLOCK = 10
_GUARD = timedelta(milliseconds=250)
"""No call starts this close to a window's end: the server would count it in the next one."""
_LONGEST = 2 * WINDOW
"""How long one call waits, at most."""

_waits = logging.getLogger("perennial.progress.wait")
"""What the command shows while it waits."""

pace = sa.Table(
    "pace",
    metadata,
    sa.Column("source", sa.String, primary_key=True),
    sa.Column("window_start", UtcDateTime, primary_key=True),
    sa.Column("used", sa.Integer, nullable=False),
)


def calls_per_minute(points: int) -> int:
    """What an account with these points may call per minute."""
    return next(calls for least, calls in _CALLS_PER_MINUTE if points >= least)


class Pacer:
    """`take()` before every call. Thread-safe; processes that share `engine` share the limit.

    `engine` None: the source does not count.
    """

    def __init__(
        self,
        engine: sa.Engine | None,
        *,
        per_minute: int,
        source: str = "tushare",
        clock: Clock = machine_clock,
        sleeper: Callable[[float], None] = time.sleep,
    ) -> None:
        if per_minute < 1:
            raise ValueError(f"{per_minute} calls per minute allow no call at all")
        self._engine = engine
        self._limit = per_minute
        self._source = source
        self._clock = clock
        self._sleep = sleeper
        # A slow account shared by several processes must not lose much to unused reservations.
        self._block = max(1, min(_BLOCK, per_minute // 10))
        self._lock = threading.Lock()
        self._window: datetime | None = None
        self._left = 0
        self._paused: dict[str, datetime] = {}
        """Until when the server wants no call, by endpoint."""

    def take(self, api_name: str) -> None:
        """Returns when one call may be made; RateLimited if that would take more than about two minutes."""
        if self._engine is None:
            return
        waited = timedelta(0)
        while (pause := self._try(self._engine, api_name)) is not None:
            waited += pause
            if waited > _LONGEST:
                text = f"{api_name}: no call of {self._source} became free in {_LONGEST}"
                raise RateLimited(text, retry_after=max(pause, WINDOW))
            seconds = pause.total_seconds()
            _waits.info("%s: no call is free, going on in %.0f s", api_name, seconds)
            self._sleep(seconds)

    def pause(self, api_name: str, wait: timedelta | None) -> None:
        """Pauses an endpoint for every process of the home, because the server refused a call: for this long,
        or until the minute is over."""
        if self._engine is None:
            return
        now = self._clock()
        until = _window_of(now) + WINDOW if wait is None else now + wait
        with self._lock:
            self._paused[api_name] = until
            with writing(self._engine) as connection:
                row = {"source": self._key(api_name), "window_start": until, "used": 0}
                connection.execute(insert_into(pace, connection).values(row).on_conflict_do_nothing())

    def _key(self, api_name: str) -> str:
        return f"{self._source}.{api_name}"

    def _try(self, engine: sa.Engine, api_name: str) -> timedelta | None:
        """None if a call was taken, otherwise how long to wait before the next try."""
        with self._lock:
            while True:
                # Read again after each reservation: it may have lasted past the end of the window.
                now = self._clock()
                window = _window_of(now)
                if (until := self._paused.get(api_name, now)) > now:
                    return until - now
                pause = window + WINDOW - now
                if pause <= _GUARD:
                    return pause
                if self._window != window:
                    self._window, self._left = window, 0
                if self._left:
                    self._left -= 1
                    return None
                self._left = self._granted(engine, window)
                if not self._left:
                    return pause

    def _granted(self, engine: sa.Engine, window: datetime) -> int:
        """A block of the window, or a single call of what a block no longer fits in, or nothing. Learns which
        endpoints other processes paused."""
        with writing(engine) as connection:
            prefix = self._key("")
            later = pace.c.source.startswith(prefix), pace.c.window_start > window
            for source, until, _ in connection.execute(sa.select(pace).where(*later)):
                api_name = source.removeprefix(prefix)
                self._paused[api_name] = max(until, self._paused.get(api_name, window))
            for size in (self._block, 1):
                used = connection.execute(self._reserve(connection, window, used=size)).scalar_one_or_none()
                if used is None:
                    continue
                if used == size:  # the first reservation of a window deletes old ones
                    old = pace.c.window_start < window - _KEPT
                    ours = (pace.c.source == self._source) | pace.c.source.startswith(prefix)
                    connection.execute(sa.delete(pace).where(ours, old))
                return size
        return 0

    def _reserve(self, connection: sa.Connection, window: datetime, *, used: int) -> sa.Executable:
        """One statement, so that it is atomic on both databases: no row comes back when nothing is left."""
        statement = insert_into(pace, connection).values(source=self._source, window_start=window, used=used)
        return statement.on_conflict_do_update(
            index_elements=[pace.c.source, pace.c.window_start],
            set_={"used": pace.c.used + used},
            where=pace.c.used + used <= self._limit,
        ).returning(pace.c.used)


def _window_of(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
