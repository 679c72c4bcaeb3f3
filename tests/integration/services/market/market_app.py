"""A whole app under test: a home folder, a sandbox exchange on a socket, one clock, the real command.

Only the network's far end and the clock are set up; everything between is the product as it runs.
"""

from __future__ import annotations

import contextlib
import shutil
import warnings
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

from domain.market.trading import SHANGHAI
from domain.shared.clock import stopped_at
from domain.shared.work import Work
from orchestration.build import build_definitions
from orchestration.domains.market import open_market
from orchestration.environments import load_settings
from orchestration.instance import open_instance
from orchestration.settings import Settings
from sandbox.exchange import Exchange
from sandbox.faults import Fault
from sandbox.server import SandboxServer
from services.market.reconcile import MarketReconciler
from services.market.service import MarketService
from services.reconcile import Reconciliation, Unfinished, reconcile
from tests.command import Said, said
from tests.databases import clear
from tests.oracles.exchange import true_rows

FETCHED = ("normalized_daily", "normalized_adj_factor", "normalized_daily_basic", "suspensions")
DERIVED = ("adjusted_daily", "coverage", "revisions")
API = {
    "normalized_daily": "daily",
    "normalized_adj_factor": "adj_factor",
    "normalized_daily_basic": "daily_basic",
    "suspensions": "suspend_d",
    "normalized_trade_cal": "trade_cal",
    "normalized_stock_basic": "stock_basic",
}

EVENING = "2024-09-30T18:31"
"""The Monday before a week's holiday, one minute after the daily pass: a prepared app is whole then."""
TODAY = "2024-09-30"
PREPARED = ("2024-09-23", "2024-09-24", "2024-09-25", "2024-09-26", "2024-09-27", "2024-09-30")
"""The days a prepared app has: the whole gap window of that evening."""
AFTER_HOLIDAY = "2024-10-08"
"""The next trading day."""


class MarketApp:
    def __init__(self, home: Path, exchange: Exchange, port: int, patch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.exchange = exchange
        self._port = port
        self._patch = patch
        self._now = EVENING
        self.server: SandboxServer | None = None
        patch.setenv("PERENNIAL_HOME", str(home))
        patch.setenv("PERENNIAL_SOURCE", "sandbox")
        patch.setenv("PERENNIAL_REFERENCES_SOURCES", "none")  # else they are due too
        patch.setenv("TUSHARE_URL", f"http://127.0.0.1:{port}")
        patch.setenv("TUSHARE_RETRY_DELAYS", "0,0,0")
        patch.setenv("PERENNIAL_MARKET_START", "2024-01-01")  # Dagster lists the partitions in every run
        for name in ("TUSHARE_TOKEN", "DAGSTER_HOME"):
            patch.delenv(name, raising=False)
        self.at(EVENING)

    # The surroundings

    def at(self, moment: str) -> None:
        """Stop both clocks, the platform's and the source's, at a moment in Shanghai."""
        self._now = moment
        self._patch.setenv("PERENNIAL_NOW", moment)
        if self.server is not None:
            self.server.clock.stop_at(self.now)

    def let_time_run(self) -> None:
        self._patch.delenv("PERENNIAL_NOW")

    def later(self, **by: float) -> None:
        self.at((self.now + timedelta(**by)).isoformat())

    def next_minute(self) -> None:
        """The source's minute is over: calls it had refused for their number are free again."""
        with self.market.ledger.engine.begin() as connection:
            connection.exec_driver_sql("DELETE FROM pace")

    @property
    def now(self) -> datetime:
        moment = datetime.fromisoformat(self._now)
        return moment if moment.tzinfo else moment.replace(tzinfo=SHANGHAI)

    def set(self, **environment: str) -> None:
        for name, value in environment.items():
            self._patch.setenv(name, value)

    def start_source(self) -> SandboxServer:
        self.server = SandboxServer(self.exchange, clock=stopped_at(self.now), port=self._port)
        self.server.start()
        return self.server

    def stop_source(self) -> None:
        if self.server is not None:
            self.server.stop()
            self.server = None

    @property
    def source(self) -> SandboxServer:
        assert self.server is not None, "the source is stopped"
        return self.server

    def fault(self, api: str, kind: str, **details: Any) -> None:
        self.source.faults.add(Fault(api, kind, **details))

    def expect_healthy(self) -> None:
        self.source.faults.clear()

    def calls(self, api: str | None = None) -> int:
        return self.source.calls.count(api)

    # The command

    def run(self, *arguments: str) -> Said:
        """`perennial …` in this process, exactly as its console script starts it."""
        return said(*arguments)

    def status(self) -> dict[str, dict[str, Any]]:
        """Every finding of `status --json`, by its subject."""
        return {f["subject"]: f for f in self.run("status", "--json").json["findings"]}

    # What became of it

    @property
    def settings(self) -> Settings:
        return load_settings()

    @property
    def market(self) -> MarketService:
        return open_market(self.settings, write=True)

    def sql(self, query: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.market.lake.sql(query).to_pylist()
        return rows

    def frame(self, table: str, day: str) -> pa.Table:
        return self.market.lake.sql(f"SELECT * FROM market.{table} WHERE trade_date = DATE '{day}'")

    def rows(self, table: str, day: str) -> int:
        return int(self.frame(table, day).num_rows)

    def drop(self, table: str, *days: str) -> None:
        """Take days away behind the platform's back."""
        lake = self.market.lake
        nothing = lake.tables[f"market.{table}"].schema.empty_table()
        lake.replace(f"market.{table}", list(days), nothing, allow_empty=True)

    def content(self, tables: Sequence[str] = (*FETCHED, *DERIVED)) -> dict[tuple[str, str], str]:
        """The content hash of every partition, by table and partition."""
        lake = self.market.lake
        return {
            (table, partition): str(version)
            for table in tables
            for partition, version in lake.versions(
                f"market.{table}", lake.partitions(f"market.{table}")
            ).items()
        }

    def snapshots(self, table: str = "") -> set[str]:
        """The snapshots of every table, or of one, by their files."""
        return {str(path) for path in self.home.rglob("snap-*.avro") if table in path.parts or not table}

    def work(self, key: str = "") -> list[Work]:
        """The rows of the ledger whose key begins so, oldest first."""
        return sorted(self.market.ledger.find(key_prefix=key or None, limit=None), key=lambda row: row.id)

    def newest(self, key: str) -> Work:
        return self.work(key)[-1]

    def reconcile(self, dispatches: Collection[str] = (), keys: Collection[str] = ()) -> Reconciliation:
        """One pass, beside runs that are not finished."""
        return reconcile(MarketReconciler(self.market), Unfinished(frozenset(dispatches), frozenset(keys)))

    # Dagster

    @cached_property
    def definitions(self) -> dg.Definitions:
        return build_definitions(self.settings)

    def sensor(self, name: str) -> dg.SensorDefinition:
        return next(sensor for sensor in self.definitions.sensors or () if sensor.name == name)

    def schedule(self, name: str) -> dg.ScheduleDefinition:
        found = next(schedule for schedule in self.definitions.schedules or () if schedule.name == name)
        assert isinstance(found, dg.ScheduleDefinition)
        return found

    def tick_sensor(self, instance: dg.DagsterInstance, name: str, cursor: str | None = None) -> Any:
        """One look of a sensor, as the daemon has it evaluated."""
        with quiet(), dg.build_sensor_context(instance, cursor, **self._surroundings) as context:
            return self.sensor(name).evaluate_tick(context)

    def tick_schedule(self, instance: dg.DagsterInstance, name: str) -> Any:
        with quiet(), dg.build_schedule_context(instance, **self._surroundings) as context:
            return self.schedule(name).evaluate_tick(context)

    @property
    def _surroundings(self) -> dict[str, Any]:
        resources = dict(self.definitions.resources or {})
        return {"repository_def": self.definitions.get_repository_def(), "resources": resources}

    @contextlib.contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        with open_instance(self.settings) as instance:
            yield instance

    def materialize(
        self,
        instance: dg.DagsterInstance,
        tables: Collection[str],
        partition: str | None = None,
        days: tuple[str, str] | None = None,
        tags: dict[str, str] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """What a click does: a partition, or a range of them as one run."""
        span = (
            {"dagster/asset_partition_range_start": days[0], "dagster/asset_partition_range_end": days[1]}
            if days
            else {}
        )
        with quiet():
            return self.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
                instance=instance,
                asset_selection=[dg.AssetKey(["market", table]) for table in tables],
                partition_key=partition,
                tags={**span, **(tags or {})},
                raise_on_error=False,
            )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without Dagster's own warnings about itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def restore(template: Path | None, home: Path) -> None:
    """Make `home` a copy of `template`, or nothing."""
    clear(home)
    if template is not None:
        shutil.copytree(template, home)


def expected_rows(exchange: Exchange, day: str) -> dict[str, int]:
    """How many rows each table has on a day, counted without the platform."""
    when = date.fromisoformat(day)
    return {table: true_rows(exchange, API[table], when).num_rows for table in FETCHED}
