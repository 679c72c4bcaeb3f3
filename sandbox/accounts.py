"""Tokens: how many points an account has, what that permits and how often it may call."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from domain.shared.clock import Clock, machine_clock
from sandbox import messages
from sandbox.endpoints import Endpoint

_PER_MINUTE = ((10_000, 1000), (5000, 500), (2000, 200), (0, 50))
"""From so many points on, so many calls per minute and api."""


@dataclass(frozen=True)
class Account:
    token: str = field(repr=False)
    points: int
    unlimited: bool = False

    @property
    def calls_per_minute(self) -> int | None:
        if self.unlimited:
            return None
        return next(calls for points, calls in _PER_MINUTE if self.points >= points)


ACCOUNTS = (
    Account("sandbox-token", 15_000),
    Account("sandbox-unlimited", 15_000, unlimited=True),
    Account("sandbox-5000", 5000),
    Account("sandbox-2000", 2000),
    Account("sandbox-120", 120),
)


class Gate:
    """Lets a call pass or refuses it, as Tushare does: token, then permission, then pace.

    Calls are counted by account, api and minute of the machine clock; a refused call is not counted.
    """

    def __init__(self, accounts: Iterable[Account] = ACCOUNTS, clock: Clock = machine_clock) -> None:
        self._accounts = {account.token: account for account in accounts}
        self._clock = clock
        self._lock = threading.Lock()
        self._minute = -1
        self._used: dict[tuple[str, str], int] = {}

    def check(self, token: object, endpoint: Endpoint) -> None:
        """Raises the Refusal the caller gets."""
        account = self._accounts.get(token) if isinstance(token, str) else None
        if account is None:
            raise messages.bad_token()
        if account.points < endpoint.points:
            raise messages.no_permission()
        allowed = account.calls_per_minute
        if allowed is not None and not self._take(account.token, endpoint.name, allowed, self._clock()):
            raise messages.minute_limit(allowed)

    def _take(self, token: str, api: str, allowed: int, now: datetime) -> bool:
        with self._lock:
            minute = int(now.timestamp()) // 60
            if minute != self._minute:
                self._minute = minute
                self._used.clear()
            used = self._used.get((token, api), 0)
            if used >= allowed:
                return False
            self._used[token, api] = used + 1
            return True
