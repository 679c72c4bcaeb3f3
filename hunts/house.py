"""One home folder, the source beside it, and the command as child processes. One business clock for both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from pathlib import Path

from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from domain.market.trading import SHANGHAI
from domain.shared.clock import machine_clock, stopped_at
from orchestration.domains.carbon import open_carbon
from orchestration.domains.market import open_market
from orchestration.environments import child_environment
from orchestration.health import platform_findings
from orchestration.settings import PROJECT_ROOT, Settings
from sandbox.accounts import ACCOUNTS, Account
from sandbox.exchange import Exchange
from sandbox.server import SandboxServer
from services.carbon.service import CarbonService
from services.market.service import MarketService
from tests.settings import make_settings

EVENING = datetime(2024, 9, 30, 18, 31, tzinfo=SHANGHAI)
"""The evening before a week's holiday: the clock can go on for days without a new trading day."""
TOKENS = ("hunts-first", "hunts-second")
COMMAND = (sys.executable, "-m", "orchestration.cli")
PATIENCE = 1800.0


@dataclass(frozen=True)
class Said:
    """How a command ended; a killed one has the code of its signal."""

    code: int
    text: str


@dataclass
class House:
    """The source lives in this process, where its faults and calls are at hand; the command does not."""

    home: Path
    server: SandboxServer
    settings: Settings
    _said: int = field(default=0, repr=False)

    @classmethod
    def build(cls, home: Path, *, timeout: float = 30.0, now: datetime | None = EVENING) -> House:
        """An empty home on the evening, or in real time where `now` is None; its source listens."""
        accounts = (*ACCOUNTS, *(Account(token, 15_000, unlimited=True) for token in TOKENS))
        server = SandboxServer(
            _EXCHANGE, clock=machine_clock if now is None else stopped_at(now), accounts=accounts
        )
        server.start()
        settings = make_settings(
            home=home,
            source="sandbox",
            now=now,
            tushare_url=server.url,
            tushare_token=TOKENS[0],
            tushare_calls_per_minute=100_000,
            tushare_retry_delays=(0.0, 0.0, 0.0),
            tushare_timeout_seconds=timeout,
        )
        return cls(home, server, settings)

    def close(self) -> None:
        self.server.stop()

    # The surroundings

    @property
    def now(self) -> datetime:
        return self.settings.business_clock()()

    def later(self, by: timedelta) -> None:
        """Move the business clock of platform and source."""
        self.settings = make_settings(self.settings, now=self.now + by)
        self.server.clock.stop_at(self.now)

    def other_account(self) -> None:
        """What a person does about a refused token: a new configuration."""
        self.settings = replace(self.settings, tushare_token=TOKENS[1])

    def next_minute(self) -> None:
        """The source's minute is over: calls it had refused for their number are free again."""
        self._tell_ledger("DELETE FROM pace")

    def lease_runs_out(self) -> None:
        """As if the minute had passed for which a silent holder is believed."""
        self._tell_ledger(
            "UPDATE work SET lease_until = '2000-01-01 00:00:00.000000' WHERE status = 'running'"
        )

    def waits_run_out(self) -> None:
        """As if the time had passed for which work was put off, or believed to be on its way."""
        self._tell_ledger(
            "UPDATE work SET not_before = '2000-01-01 00:00:00.000000' WHERE status IN ('queued', 'deferred')"
        )

    def _tell_ledger(self, statement: str) -> None:
        """Straight into the database, which may not be there yet, or not yet have its tables."""
        url = self.settings.database_url
        if url.startswith("sqlite") and not (self.home / "ledger.db").exists():
            return
        engine = create_engine(url, poolclass=NullPool)
        with suppress(OperationalError, ProgrammingError), engine.begin() as connection:
            connection.execute(text(statement))

    # The command

    def start(
        self, *arguments: str, command: Sequence[str] = COMMAND
    ) -> tuple[subprocess.Popen[bytes], Path]:
        """Start a command in a process group of its own; it writes what it says into a file."""
        self._said += 1
        words = self.home.parent / "said" / f"{self.home.name}-{self._said}.txt"
        words.parent.mkdir(exist_ok=True)
        with words.open("wb") as stream:
            process = subprocess.Popen(
                [*command, *arguments],
                cwd=PROJECT_ROOT,
                env=child_environment(self.settings),
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return process, words

    def run(self, *arguments: str, command: Sequence[str] = COMMAND) -> Said:
        process, words = self.start(*arguments, command=command)
        try:
            process.wait(PATIENCE)
        finally:
            kill_group(process)
        return Said(process.returncode, words.read_text(errors="replace"))

    def run_killed(self, *arguments: str, when: Callable[[], bool]) -> Said:
        """Start a command and kill -9 its whole group as soon as `when` says so, if it still runs."""
        process, words = self.start(*arguments)
        try:
            while process.poll() is None and not when():
                time.sleep(0.002)
        finally:
            kill_group(process)
        return Said(process.returncode, words.read_text(errors="replace"))

    # What became of it

    @property
    def market(self) -> MarketService:
        return open_market(self.settings)

    @property
    def carbon(self) -> CarbonService:
        return open_carbon(self.settings, write=True)

    def healthy(self) -> bool:
        return not any(f.health in ("broken", "stale", "healing") for f in platform_findings(self.settings))


_EXCHANGE = Exchange()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def last_days(count: int) -> list[date]:
    """The newest `count` trading days of the evening, oldest first."""
    today = EVENING.date()
    return list(_EXCHANGE.open_days(today - timedelta(days=2 * count + 30), today))[-count:]
