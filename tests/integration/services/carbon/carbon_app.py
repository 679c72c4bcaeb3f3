"""A whole carbon app under test: a home folder, files that people upload, the real command and its passes.

Only the files are written here; everything from the upload to the report is the product as it runs.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from domain.carbon.tables import TABLES
from orchestration.cli.runner import runner
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings
from services.carbon.reconcile import CarbonReconciler
from services.carbon.service import CarbonService
from services.reconcile import Reconciliation, reconcile
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


class CarbonApp:
    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.home = folder / "home"
        patch.setenv("PERENNIAL_HOME", str(self.home))
        patch.setenv("PERENNIAL_SOURCE", "sandbox")
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

    def furnish(self) -> None:
        """Everything of a year, up to its report."""
        for kind, text, options in (
            ("units", UNITS, ()),
            ("factors", FACTORS, ()),
            ("data", TRAIN, ("--type", "train")),
            ("data", ELECTRICITY, ("--type", "electricity")),
            ("data", PAPER, ("--type", "paper", "--wait")),
        ):
            done = self.upload(kind, text, *options)
            assert done.code == 0, done.err

    # What there is

    @property
    def carbon(self) -> CarbonService:
        return open_carbon(load_settings(), write=True)

    def content(self) -> dict[tuple[str, str], str]:
        """The version of every partition of every table."""
        lake = self.carbon.lake
        return {
            (table.table, partition): str(version)
            for table in TABLES
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
        found = reconcile(CarbonReconciler(self.carbon))
        with runner(load_settings()) as run:
            for start in found.starts:
                run.start(start)
        return found


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
