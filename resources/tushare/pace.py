"""Keeps all processes of a home below the source's calls per minute: one shared row per window.

A process reserves calls in small blocks, so that the database is asked once per block and not once
per call; what it does not use by the end of the window is lost. Windows are minutes of the *machine*
clock. The server counts as well: what it refuses closes the window for everybody here.
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

    def take(self) -> None:
        """Returns when one call may be made; RateLimited if that would take more than about two minutes."""
        if self._engine is None:
            return
        waited = timedelta(0)
        while (pause := self._try(self._engine)) is not None:
            waited += pause
            if waited > _LONGEST:
                text = f"{self._source}: none of {self._limit} calls per minute became free in {_LONGEST}"
                raise RateLimited(text, retry_after=WINDOW)
            seconds = pause.total_seconds()
            _waits.info("%s: no call is free for %.0f s", self._source, seconds)
            self._sleep(seconds)

    def mark_used_up(self) -> None:
        """Closes this window for every process of the home, because the server refused a call."""
        if self._engine is None:
            return
        with self._lock:
            window = _window_of(self._clock())
            self._window, self._left = window, 0
            with writing(self._engine) as connection:
                connection.execute(self._reserve(connection, window, used=self._limit, closing=True))

    def _try(self, engine: sa.Engine) -> timedelta | None:
        """None if a call was taken, otherwise how long to wait before the next try."""
        with self._lock:
            while True:
                # Read again after each reservation: it may have lasted past the end of the window.
                now = self._clock()
                window = _window_of(now)
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
        """A block of the window, or a single call of what a block no longer fits in, or nothing."""
        with writing(engine) as connection:
            for size in (self._block, 1):
                used = connection.execute(self._reserve(connection, window, used=size)).scalar_one_or_none()
                if used is None:
                    continue
                if used == size:  # the first reservation of a window deletes old ones
                    old = pace.c.window_start < window - _KEPT
                    connection.execute(sa.delete(pace).where(pace.c.source == self._source, old))
                return size
        return 0

    def _reserve(
        self, connection: sa.Connection, window: datetime, *, used: int, closing: bool = False
    ) -> sa.Executable:
        """One statement, so that it is atomic on both databases: no row comes back when nothing is left."""
        statement = insert_into(pace, connection).values(source=self._source, window_start=window, used=used)
        total = sa.literal(self._limit) if closing else pace.c.used + used
        return statement.on_conflict_do_update(
            index_elements=[pace.c.source, pace.c.window_start],
            set_={"used": total},
            where=None if closing else pace.c.used + used <= self._limit,
        ).returning(pace.c.used)


def _window_of(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)
