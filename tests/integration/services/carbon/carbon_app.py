"""A whole carbon app under test: a home folder, files that people upload, the real command and its passes.

Runs are the service's own functions, called as the assets call them; tests of runs in Dagster say so.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from domain.carbon import tables
from domain.carbon.feeds import FEED_TABLES
from domain.shared.error import PerennialError
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings
from services.carbon.calculate import calculate_emissions, sum_modules, sum_reports
from services.carbon.feeds import read_feeds
from services.carbon.intake import ingest_entries, ingest_factors, ingest_units
from services.carbon.reconcile import CarbonReconciler
from services.carbon.service import CarbonService
from services.partitions import Attempt
from services.reconcile import Reconciliation, RunStart, reconcile
from tests.command import Said, said
from tests.databases import clear, closed_afterwards

YEAR = "2025"
UNITS = """unit_id,name,parent_id
UNI,University,
SCI,Science,UNI
ART,Arts,UNI
PHY,Physics,SCI
"""
FACTORS = """data_entry_type,emission_type,classification,value,unit,source
train,,"{""country"": ""CH""}",8,g/km,sample
train,,"{""country"": ""world""}",30,g/km,sample
electricity,electricity,"{""mix"": ""grid""}",0.12,kg/kWh,sample
electricity,electricity_upstream,"{""mix"": ""grid""}",0.02,kg/kWh,sample
paper,,"{""kind"": ""recycled""}",0.7,kg/kg,sample
"""
TRAIN = """unit_id,distance,passengers,country
PHY,1000,2,CH
ART,500,1,FR
"""
ELECTRICITY = """unit_id,consumption,unit,use_share
SCI,10,MWh,0.5
ART,2000,kWh,
"""
PAPER = """unit_id,mass,kind
ART,100,recycled
"""
FURNITURE = (
    ("units", UNITS, ()),
    ("factors", FACTORS, ()),
    ("data", TRAIN, ("--type", "train")),
    ("data", ELECTRICITY, ("--type", "electricity")),
    ("data", PAPER, ("--type", "paper")),
)


WORK: Mapping[str, Callable[..., None]] = {
    tables.UNITS.table: ingest_units,
    tables.FACTORS.table: ingest_factors,
    tables.DATA_ENTRIES.table: ingest_entries,
    tables.EMISSIONS.table: calculate_emissions,
    tables.REPORT_MODULES.table: sum_modules,
    tables.REPORTS.table: sum_reports,
}
"""By table, what its asset calls."""


class CarbonApp:
    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.home = folder / "home"
        patch.setenv("PERENNIAL_HOME", str(self.home))
        patch.setenv("PERENNIAL_SOURCE", "sandbox")
        patch.setenv("PERENNIAL_REFERENCES_SOURCES", "none")  # else they are due too
        for name in ("TUSHARE_TOKEN", "TUSHARE_URL", "DAGSTER_HOME", "PERENNIAL_NOW"):
            patch.delenv(name, raising=False)

    # People

    def run(self, *arguments: str) -> Said:
        return said("carbon", *arguments)

    def file(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def upload(self, kind: str, text: str | bytes, *options: str, name: str = "") -> Said:
        path = self.file(name or f"{kind}.csv", text)
        return self.run("upload", kind, str(path), "--year", YEAR, *options)

    def upload_and_settle(self, kind: str, text: str | bytes, *options: str, name: str = "") -> None:
        """Upload a file; everything that follows succeeds."""
        done = self.upload(kind, text, *options, name=name)
        assert done.code == 0, done.err
        assert self.settle() == []

    def furnish(self) -> None:
        """Everything of a year, up to its report."""
        for kind, text, options in FURNITURE:
            assert self.upload(kind, text, *options).code == 0
        assert self.settle() == []

    # What there is

    @property
    def carbon(self) -> CarbonService:
        return open_carbon(load_settings(), write=True)

    def content(self) -> dict[tuple[str, str], str]:
        """The version of every partition of every table."""
        lake = self.carbon.lake
        return {
            (table.table, partition): str(version)
            for table in tables.TABLES
            for partition, version in lake.versions(table.name, lake.partitions(table.name)).items()
        }

    def data_files(self, table: str) -> set[str]:
        folder = self.home / "lake" / "warehouse" / "carbon" / table
        return {str(p.relative_to(folder)) for p in folder.rglob("*.parquet")}

    def milligrams(self, unit: str | None = None) -> int:
        options = ["--unit", unit] if unit else []
        return int(self.run("report", YEAR, *options, "--json").json["total_mg"])

    def sql(self, query: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.carbon.lake.sql(query).to_pylist()
        return rows

    def due(self) -> set[str]:
        return {v.key for v in self.carbon.plan().due}

    # What the daemon does

    def reconcile(self) -> Reconciliation:
        """One pass and the runs it starts, one after another."""
        carbon = self.carbon
        found = reconcile(CarbonReconciler(carbon))
        for start in found.starts:
            start_run(carbon, start)
        return found

    def settle(self) -> list[str]:
        """Passes and their runs until no pass starts any; return the messages of what failed."""
        return settle(self.carbon)


def settle(carbon: CarbonService) -> list[str]:
    failed: list[str] = []
    while starts := reconcile(CarbonReconciler(carbon)).starts:
        for start in starts:
            failed += start_run(carbon, start)
    return failed


def start_run(carbon: CarbonService, start: RunStart) -> list[str]:
    """Do the work of a run, as its asset does; return the message of its failure."""
    table, run = start.tables[0], start.dispatch_id
    wanted = carbon.sent(run, table, start.partitions)
    try:
        if table in FEED_TABLES.values():
            read_feeds(carbon, table, wanted, run, lambda *_: None)
        else:
            WORK[table](carbon, wanted, Attempt(run), lambda _: None)
    except PerennialError as error:
        return [error.message]
    return []


def furnished_once(place: Path, name: str, furnish: Callable[[CarbonApp], None]) -> Path:
    """A home to be copied. The catalogue holds absolute paths, so all stand in one place in turn."""
    template = place.with_name(name)
    with running(place, None), pytest.MonkeyPatch.context() as patch:
        with closed_afterwards():
            furnish(CarbonApp(place, patch))
        shutil.copytree(place, template)
    return template


@contextmanager
def running(place: Path, template: Path | None) -> Iterator[None]:
    """A copy of the template stands in the place, or an empty folder."""
    if template is None:
        place.mkdir()
    else:
        shutil.copytree(template, place)
    try:
        with closed_afterwards():
            yield
    finally:
        clear(place)
