"""Uploads, looks and runs of many workers in any order of their steps, with deaths and time in between, on
the real lake and the real ledger: in the end every report is what the files say, and nothing is left over.

A failure prints its steps, and a blob: put `@reproduce_failure(...)` on the model to replay it, or run with
the `--hypothesis-seed` it names.
"""

from __future__ import annotations

import random
import shutil
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from domain.carbon.catalogue import catalogue
from domain.carbon.jobs import ALL_KINDS
from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTORS, REPORT_MODULES, REPORTS, TABLES, UNITS
from domain.shared.error import PerennialError
from orchestration.domains.carbon import carbon_settings
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from services.carbon.calculate import calculate_emissions, sum_modules, sum_reports
from services.carbon.intake import ingest_entries, ingest_factors, ingest_units
from services.carbon.pipelines import list_pipelines
from services.carbon.reconcile import CarbonReconciler
from services.carbon.upload import upload
from services.carbon.uploaded_file import File
from services.partitions import Attempt
from services.reconcile import RunStart, Unfinished, reconcile
from tests.chaos.carbon_checks import (
    excess_aggregations,
    needless_aggregations,
    newest_work,
    sheets_in_order,
    wrong_reports,
)
from tests.chaos.carbon_files import Sheet, SheetWriter
from tests.chaos.market_checks import duplicate_keys
from tests.integration.services.carbon.workers import (
    Clock,
    Crew,
    SteppedCarbon,
    SteppedLake,
    SteppedStaging,
    Worker,
    stop,
)

pytestmark = pytest.mark.slow

EXAMPLES, STEPS = 2, 8
"""Few, as every step is real; `make chaos` explores for long."""
YEAR = 2025
NAMES = ("train", "paper")
MAKERS = {
    UNITS.table: (ingest_units, UNITS),
    FACTORS.table: (ingest_factors, FACTORS),
    DATA_ENTRIES.table: (ingest_entries, DATA_ENTRIES),
    EMISSIONS.table: (calculate_emissions, EMISSIONS),
    REPORT_MODULES.table: (sum_modules, REPORT_MODULES),
    REPORTS.table: (sum_reports, REPORTS),
}
PICK = st.integers(0, 40)
A_LEASE, AN_HOUR = timedelta(seconds=61), timedelta(hours=1)

Home = Callable[[], Settings]


class Model(RuleBasedStateMachine):
    """`home` gives an empty place each time."""

    home: Home

    def __init__(self) -> None:
        super().__init__()
        self.settings = type(self).home()
        self.clock = Clock()
        self.lake = SteppedLake(
            catalog_url=self.settings.catalog_url,
            warehouse=self.settings.warehouse,
            home=self.settings.home,
            tables=TABLES,
        )
        self.ledger = Ledger.open(
            self.settings.database_url, kinds=ALL_KINDS, clock=self.clock, machine_clock=self.clock
        )
        self.ledger.migrate()
        self.staging = SteppedStaging.at(carbon_settings(self.settings).uploads)
        self.crew = Crew()
        self.sheets: list[Sheet] = []
        self.runs: dict[str, Worker] = {}
        self.disturbed = 0

    @property
    def carbon(self) -> SteppedCarbon:
        """What a process opens: nothing is shared but what lies in the databases and the lake."""
        return SteppedCarbon(catalogue(), self.lake, self.ledger, self.staging)

    @initialize(luck=st.integers(0, 2**31), whole=st.booleans())
    def it_begins(self, luck: int, whole: bool) -> None:
        self.desk = SheetWriter(random.Random(luck), years=(YEAR,), names=NAMES)
        furniture = self.desk.complete_set()
        for sheet in furniture if whole else furniture[:1]:
            self._upload(sheet)
        self._all_is_done()
        self.since = newest_work(self.carbon)

    def teardown(self) -> None:
        with self.crew:
            pass
        self.ledger.close()
        shutil.rmtree(self.settings.home)

    # People and processes

    def _upload(self, sheet: Sheet) -> None:
        self.sheets.append(sheet)
        file = File(
            sheet.kind,
            sheet.name,
            sheet.content,
            "somebody",
            sheet.institution,
            year=sheet.year,
            data_entry_type=sheet.topic or None,
        )
        upload(self.carbon, file, may_shrink=True)

    @rule(at_once=st.booleans())
    def somebody_uploads(self, at_once: bool) -> None:
        sheet = self.desk.any_sheet(partly=True)
        worker = self.crew.hire(f"upload of {sheet.name}", lambda: self._upload(sheet))
        while at_once and not worker.ended:
            self._step(len(self.crew.alive) - 1)

    @rule(at_once=st.sampled_from([1, 100]))
    def somebody_looks(self, at_once: int) -> None:
        self.crew.hire("look", lambda: self._pass(at_once))

    def _pass(self, at_once: int = 100) -> None:
        unfinished = frozenset(d for d, worker in self.runs.items() if not worker.ended)
        for start in reconcile(CarbonReconciler(self.carbon), Unfinished(unfinished), at_once).starts:
            self._start(start)

    def _start(self, start: RunStart) -> None:
        make, table = MAKERS[start.tables[0]]
        run_id = uuid.uuid4().hex

        def work() -> None:
            carbon = self.carbon
            wanted = carbon.sent(start.dispatch_id, table.table, start.partitions)
            make(carbon, wanted, Attempt(run_id), lambda _: stop("reported"))

        worker = self.crew.hire(f"{start.tables[0]} {start.partitions}", work)
        worker.run_id = run_id
        self.runs[start.dispatch_id] = worker

    @precondition(lambda self: self.crew.alive)
    @rule(pick=PICK, times=st.sampled_from([1, 1, 2, 3, 5, 30]))
    def somebody_goes_on(self, pick: int, times: int) -> None:
        self._step(pick, times)

    def _step(self, pick: int, times: int = 1) -> None:
        ended = self.crew.step(pick, times)
        # A run may be refused, robbed or too early, and says so; anything else is nobody's plan.
        if ended is not None and ended.error is not None and not isinstance(ended.error, PerennialError):
            raise ended.error

    # Accidents

    @precondition(lambda self: self.crew.alive)
    @rule(pick=PICK)
    def somebody_dies(self, pick: int) -> None:
        self.crew.die(pick)
        self.disturbed += 1

    @rule()
    def the_dead_are_found(self) -> None:
        """As where their processes are known to be gone."""
        self._sweep()

    @rule(by=st.sampled_from([A_LEASE, AN_HOUR]))
    def time_passes(self, by: timedelta) -> None:
        """Whoever has work in hand and did nothing meanwhile is believed no more."""
        self.clock.now += by
        self.disturbed += len(self._sweep())

    def _sweep(self) -> list[object]:
        gone = [worker.run_id for worker in self.crew.dead if worker.run_id]
        self.runs = {d: w for d, w in self.runs.items() if w not in self.crew.dead}
        return list(self.ledger.sweep(finished_runs=gone))

    # What must hold

    @rule()
    def all_go_on_to_their_end(self) -> None:
        """And then some look until nothing is due: all reports are what the files say."""
        self._all_is_done()
        carbon = self.carbon
        came = sheets_in_order(carbon, self.sheets)
        wrong = [*wrong_reports(carbon, came), *duplicate_keys(carbon.lake, "carbon.")]
        wrong += needless_aggregations(carbon, self.disturbed)
        wrong += [f"{v.key} {v.state}: {v.reason}" for v in carbon.plan().verdicts if v.state != "healthy"]
        wrong += [f"{row.key} is {row.status}" for row in self._open()]
        ends = self._ends()
        wrong += [one.failure for one in list_pipelines(carbon, 1000) if one.state.status not in ends]
        assert not wrong

    def _ends(self) -> tuple[str, ...]:
        return ("SUCCESS", "PARTIAL", "FAILED") if self.disturbed else ("SUCCESS",)

    def _open(self) -> list[object]:
        return list(self.ledger.find(status=("queued", "running", "deferred"), limit=None))

    def _all_is_done(self) -> None:
        for _ in range(40):
            self._go_on()
            self._sweep()
            self._pass()
            if not self.crew.alive and not self._open() and not self.carbon.plan().due:
                return
            if not self.crew.alive:
                self.clock.now += AN_HOUR
                self._retry()
        raise AssertionError(f"no end: {self._open()}, {self.carbon.plan().due}")

    def _go_on(self) -> None:
        while self.crew.alive:
            self._step(0, 100)

    def _retry(self) -> None:
        """What a person does about what killed too many of its workers."""
        for row in self.ledger.find(status="failed", limit=None):
            if row.reason_code == "abandoned" and f"{row.key}" in {v.key for v in self.carbon.plan().due}:
                self.ledger.retry(row.id)

    @rule(luck=st.integers(0, 2**31), meanwhile=st.booleans())
    def many_upload_and_the_year_is_summed_once(self, luck: int, meanwhile: bool) -> None:
        """Eight files, with passes at any time; perhaps factors land during an aggregation."""
        self._all_is_done()
        since, order = newest_work(self.carbon), random.Random(luck)
        for _ in range(8):
            sheet = self.desk.any_sheet()
            self.crew.hire(sheet.name, lambda sheet=sheet: self._upload(sheet))
        while self.crew.alive:
            self._step(order.randrange(len(self.crew.alive)))
        landed = not meanwhile
        while True:
            for _ in range(3):
                self.crew.hire("look", self._pass)
            while self.crew.alive:
                self._step(order.randrange(len(self.crew.alive)))
                if not landed and self._is_summing():
                    landed = True
                    self._land(self.desk.factors(YEAR, NAMES))
            if not self._open() and not self.carbon.plan().due:
                break
        self.all_go_on_to_their_end()
        assert not list(excess_aggregations(self.carbon, YEAR, since))

    def _land(self, sheet: Sheet) -> None:
        """The file is in before others go on: one that came later would rightly be summed by itself."""
        landing = self.crew.hire("landing", lambda: self._upload(sheet))
        while not landing.ended:
            self._step(self.crew.alive.index(landing))
        self.crew.hire("look", self._pass)

    def _is_summing(self) -> bool:
        return any(row.key == f"{REPORTS.table}:{YEAR}" for row in self.ledger.running())


def play(home: Home) -> None:
    long = settings.get_current_profile_name() == "chaos"
    run_state_machine_as_test(
        type("Played", (Model,), {"home": staticmethod(home)}),
        settings=settings(
            max_examples=settings.default.max_examples if long else EXAMPLES,
            stateful_step_count=settings.default.stateful_step_count if long else STEPS,
            deadline=None,
            derandomize=False,
            print_blob=True,
            database=None,
            # Every step is real: a failure is reported as it was found, and not shrunk.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.chaos
def test_on_files_whatever_happens_reports_are_what_the_files_say(tmp_path: Path) -> None:
    play(lambda: Settings(home=tmp_path / uuid.uuid4().hex))


@pytest.mark.chaos
def test_on_postgres_whatever_happens_reports_are_what_the_files_say(
    tmp_path: Path, databases: Callable[[], str]
) -> None:
    def home() -> Settings:
        url = databases()
        return Settings(home=tmp_path / uuid.uuid4().hex, database_url=url, catalog_url=url)

    play(home)


@pytest.fixture
def databases(postgres_server: object, postgres_url: str) -> Iterator[Callable[[], str]]:
    """A new one each time."""
    engine = sqlalchemy.create_engine(
        postgres_url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool
    )

    def one() -> str:
        name = f"t{uuid.uuid4().hex[:12]}"
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        return postgres_server.url(name)  # type: ignore[attr-defined]

    yield one
    engine.dispose()


# What the model found


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Model]:
    made = type("Played", (Model,), {"home": staticmethod(lambda: Settings(home=tmp_path / "home"))})()
    made.it_begins(luck=1, whole=True)
    yield made
    made.teardown()


def test_a_pass_that_was_slow_asks_for_nothing_that_is_done_meanwhile(model: Model) -> None:
    model._upload(model.desk.factors(YEAR, NAMES))
    while {v.table for v in model.carbon.plan().due} & {FACTORS.table, EMISSIONS.table}:
        model._pass(at_once=1)
        model._go_on()
    slow = model.crew.hire("slow look", model._pass)
    while slow.where != "observed":
        slow.step()
    model.crew.alive.remove(slow)
    model._all_is_done()
    model.crew.alive.append(slow)
    model._all_is_done()
    assert not list(needless_aggregations(model.carbon))


@pytest.mark.parametrize("dies", [False, True])
@pytest.mark.parametrize("kind", ["units", "data"])
def test_a_file_that_another_overtook_before_anybody_looked_ends_with_it(
    model: Model, kind: str, dies: bool
) -> None:
    """Noted, and not enqueued yet: the next file of the same scope speaks for it."""

    def sheet() -> Sheet:
        return model.desk.units(YEAR) if kind == "units" else model.desk.data(YEAR, "train")

    known = len(model.carbon.store.uploads.find())
    slow = model.crew.hire("slow upload", lambda: model._upload(sheet()))
    while len(model.carbon.store.uploads.find()) == known:
        slow.step()
    model.crew.alive.remove(slow)
    model._upload(sheet())
    if dies:
        model._all_is_done()
        slow.bury()
    else:
        model.crew.alive.append(slow)
    model._all_is_done()
    assert [one.failure for one in list_pipelines(model.carbon, 2)] == ["", ""]
