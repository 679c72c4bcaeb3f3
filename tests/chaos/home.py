"""One home folder, its sandbox, and the command as child processes; one clock for all of them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
from sqlalchemy import NullPool, create_engine, inspect, text

from domain.market.trading import SHANGHAI
from domain.shared.clock import machine_clock, stopped_at
from orchestration.domains.carbon import open_carbon
from orchestration.domains.market import market_settings, open_market
from orchestration.environments import child_environment
from orchestration.health import platform_findings
from orchestration.instance import open_instance
from orchestration.settings import PROJECT_ROOT, Settings
from sandbox.accounts import ACCOUNTS, Account
from sandbox.exchange import Exchange
from sandbox.server import SandboxServer
from sensors.reconcile import UNFINISHED
from services.carbon.service import CarbonService
from services.market.service import MarketService
from tests.postgres import PostgresMissing, find_binaries, running_server
from tests.settings import make_settings

EVENING = datetime(2024, 9, 30, 18, 31, tzinfo=SHANGHAI)
"""The evening before a week's holiday: the clock can go on for days without a new trading day."""
TOKENS = ("chaos-first", "chaos-second")
COMMAND = (sys.executable, "-m", "orchestration.cli")
COMMAND_SECONDS = 1800.0
EXCHANGE = Exchange()
LONG_AGO = "2000-01-01 00:00:00.000000"


@dataclass(frozen=True)
class Ended:
    """How a command ended; a killed one has the code of its signal."""

    code: int
    text: str

    @property
    def failed_badly(self) -> bool:
        """Neither success nor a failure that was explained."""
        return self.code not in (0, 1) or "Traceback" in self.text


@dataclass
class Home:
    """The sandbox runs in this process, where its faults and calls can be read and set; commands do not."""

    folder: Path
    server: SandboxServer
    settings: Settings
    _commands: int = field(default=0, repr=False)

    @classmethod
    @contextmanager
    def opened(
        cls,
        folder: Path,
        *,
        timeout: float = 30.0,
        now: datetime | None = EVENING,
        database_url: str = "",
        **settings: Any,
    ) -> Iterator[Home]:
        """An empty home at `now`, or in real time if that is None; its folder is deleted in the end."""
        accounts = (*ACCOUNTS, *(Account(token, 15_000, unlimited=True) for token in TOKENS))
        clock = machine_clock if now is None else stopped_at(now)
        with SandboxServer(EXCHANGE, clock=clock, accounts=accounts) as server:
            made = make_settings(
                home=folder,
                source="sandbox",
                now=now,
                tushare_url=server.url,
                tushare_token=TOKENS[0],
                tushare_calls_per_minute=100_000,
                tushare_retry_delays=(0.0, 0.0, 0.0),
                tushare_timeout_seconds=timeout,
                references_sources="none",
            )
            if database_url:
                made = make_settings(
                    made,
                    env="production",
                    database_url=database_url,
                    catalog_url=database_url,
                    market_start=market_settings(made).market_start,
                )
            try:
                yield cls(folder, server, make_settings(made, **settings))
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def sibling(self, suffix: str) -> Path:
        """A path next to the home, for files of the round."""
        return self.folder.with_name(f"{self.folder.name}-{suffix}")

    # The surroundings

    def move_clock(self, by: timedelta) -> None:
        """Move the business clock of platform and source."""
        self.settings = make_settings(self.settings, now=self.settings.business_clock()() + by)
        self.server.clock.stop_at(self.settings.business_clock()())

    def change_account(self) -> None:
        """What a person does about a refused token: a new configuration."""
        self.settings = make_settings(self.settings, tushare_token=TOKENS[1])

    def end_minute(self) -> None:
        """The source's minute is over: calls it had refused for their number are free again."""
        self._execute("pace", "DELETE FROM pace")

    def expire_leases(self) -> None:
        """As if the time had passed after which a silent worker, and a silent run, are dead."""
        self._execute("work", f"UPDATE work SET lease_until = '{LONG_AGO}' WHERE status = 'running'")
        with open_instance(self.settings) as instance:
            for run in instance.get_runs(filters=dg.RunsFilter(statuses=UNFINISHED)):
                instance.report_run_failed(run, "its worker is dead")

    def end_waits(self) -> None:
        """As if the time had passed until which work was deferred or queued."""
        waiting = "status IN ('queued', 'deferred')"
        self._execute("work", f"UPDATE work SET not_before = '{LONG_AGO}' WHERE {waiting}")

    def _execute(self, table: str, statement: str) -> None:
        """Straight into the ledger's database, unless no command has made it yet."""
        url = self.settings.database_url
        if url.startswith("sqlite") and not (self.folder / "ledger.db").exists():
            return
        engine = create_engine(url, poolclass=NullPool)
        with engine.begin() as connection:
            if inspect(connection).has_table(table):
                connection.execute(text(statement))

    # The command

    def start(
        self, *arguments: str, command: Sequence[str] = COMMAND
    ) -> tuple[subprocess.Popen[bytes], Path]:
        """Start a command in a process group of its own; the file is what it prints."""
        self._commands += 1
        output = self.sibling(f"output-{self._commands}.txt")
        with output.open("wb") as stream:
            process = subprocess.Popen(
                [*command, *arguments],
                cwd=PROJECT_ROOT,
                env=child_environment(self.settings),
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return process, output

    def run(self, *arguments: str, command: Sequence[str] = COMMAND) -> Ended:
        process, output = self.start(*arguments, command=command)
        try:
            process.wait(COMMAND_SECONDS)
        finally:
            kill_group(process)
        return Ended(process.returncode, output.read_text(errors="replace"))

    def run_killed(self, *arguments: str, when: Callable[[], bool]) -> Ended:
        """Start a command and kill -9 its whole group as soon as `when` is true, if it still runs."""
        process, output = self.start(*arguments)
        wait_until(lambda: process.poll() is not None or when(), COMMAND_SECONDS)
        kill_group(process)
        return Ended(process.returncode, output.read_text(errors="replace"))

    # What became of it

    @property
    def market(self) -> MarketService:
        return open_market(self.settings)

    @property
    def carbon(self) -> CarbonService:
        return open_carbon(self.settings, write=True)

    def healthy(self) -> bool:
        return not any(f.health in ("broken", "stale", "healing") for f in platform_findings(self.settings))


def kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_until(seen: Callable[[], bool], seconds: float, every: float = 0.002) -> bool:
    """Whether `seen` became true within the seconds."""
    end = time.monotonic() + seconds
    while not seen():
        if time.monotonic() > end:
            return False
        time.sleep(every)
    return True


def after(seconds: float, seen: Callable[[], bool]) -> Callable[[], bool]:
    """True from `seconds` after `seen` was true for the first time."""
    since: list[float] = []

    def when() -> bool:
        if not since and seen():
            since.append(time.monotonic())
        return bool(since) and time.monotonic() - since[0] >= seconds

    return when


def commits(home: Home, namespace: str) -> int:
    """The number of lake commits so far."""
    return sum(1 for _ in (home.folder / "lake" / "warehouse" / namespace).glob("*/metadata/*.metadata.json"))


@contextmanager
def postgres_url() -> Iterator[str]:
    """An empty Postgres of the round's own."""
    with running_server() as server:
        yield server.url("postgres")


def has_postgres() -> bool:
    try:
        find_binaries()
    except PostgresMissing:
        return False
    return True
