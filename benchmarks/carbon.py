"""Recalculating millions of entries: (a) here, beside (b) pandas, (c) rows through an ORM, (d) the floor.

a  `calculate_emissions` over all types of a year, as a run does it: versions, ledger, uniqueness, commits
b  pandas: read, merge with the factors, multiply, write Parquet, type by type
c  one row at a time through the SQLAlchemy ORM into SQLite, on a sample, scaled up
d  the bare DuckDB query with the same arithmetic, writing the same columns as zstd Parquet: no catalogue, no
   versions, no checks

Then one factor of one type changes, and only that type is calculated again.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from assets.carbon.carbon import Carbon
from assets.carbon.making import Built, make
from domain.carbon.catalogue import EntryType, catalogue
from domain.carbon.classification import canonical, factor_id
from domain.carbon.jobs import KINDS
from domain.carbon.tables import DATA_ENTRIES, FACTOR_VERSIONS, FACTORS, TABLES
from domain.shared.clock import machine_clock
from resources.lake.client import Lake
from resources.ledger.client import Ledger
from resources.staging import Staging

YEAR = 2025
ENTRIES = 10_000_000
WORDS = 40
"""Distinct classifications of a type: countries, networks, kinds."""
UNITS = 300
SAMPLE = 20_000
ROOT = Path(__file__).resolve().parents[1]


def run(entries: int = ENTRIES) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        fill(opened(home), entries)
        ours, peak = _ours(home, "all")
        floor = _floor(home)
        pandas = _pandas(home)
        rows = _rows(home) * entries / SAMPLE
        one, _ = _ours(home, "one")
        share = 1 / len(types())
    for name, seconds in (
        ("a here", ours),
        ("b pandas", pandas),
        ("c rows (scaled up)", rows),
        ("d floor", floor),
    ):
        print(f"  {name:<20}{seconds:10.1f} s")
    print(f"  one type of {len(types())}: {one:.1f} s; peak memory of a {peak / 2**20:.2f} GiB")
    return {
        "carbon_a_over_d": ours / floor,
        "carbon_b_over_a": pandas / ours,
        "carbon_c_over_a": rows / ours,
        "carbon_one_type_over_its_share": one / (ours * share),
        "carbon_peak_gib": peak / 2**20,
    }


def types() -> list[EntryType]:
    return list(catalogue().types.values())[:15]


def partitions() -> list[str]:
    return sorted(f"{t.name}|{YEAR}" for t in types())


def opened(home: Path) -> Carbon:
    ledger = Ledger.open(f"sqlite:///{home}/ledger.db", kinds=KINDS, clock=machine_clock)
    ledger.migrate()
    lake = Lake.open(
        catalog_url=f"sqlite:///{home}/lake/catalog.db",
        warehouse=f"file://{home}/lake/warehouse",
        home=home,
        tables=TABLES,
    )
    return Carbon(catalogue(), lake, ledger, Staging.at(f"file://{home}/uploads"))


def fill(carbon: Carbon, count: int) -> None:
    each = count // len(types())
    make(carbon, FACTORS, [str(YEAR)], "fill", _nobody, lambda _, __: Built(_factors(0.0), {"uploads": "1"}))
    for number, kind in enumerate(types()):
        frame = _entries(kind, each, np.random.default_rng(number))
        built = Built({DATA_ENTRIES.name: frame}, {"uploads": "1"})
        make(
            carbon, DATA_ENTRIES, [f"{kind.name}|{YEAR}"], f"fill {number}", _nobody, lambda _, __, b=built: b
        )


def _nobody(_: object) -> None:
    """Nobody to tell: Dagster's part is measured elsewhere."""


def _classifications(kind: EntryType) -> list[str]:
    return [canonical({c.name: f"word {n}" for c in kind.keys} or {"word": str(n)}) for n in range(WORDS)]


def _factors(more: float) -> dict[str, pa.Table]:
    rows = [
        {
            "year": YEAR,
            "factor_id": factor_id(YEAR, kind.name, emission.name, words),
            "data_entry_type": kind.name,
            "emission_type": emission.name,
            "classification": words,
            "value": 0.1 + n / 100 + (more if kind is types()[0] else 0.0),
            "unit": f"kg/{kind.unit}",
            "source": "sample",
            "version": 1,
        }
        for kind in types()
        for emission in kind.emissions[:1]
        for n, words in enumerate(_classifications(kind))
    ]
    factors = [row | {"stale": False, "last_seen_job_id": 1} for row in rows]
    at = machine_clock().replace(microsecond=0)
    history = {"valid_from": at, "valid_to": None, "file": "sample", "line": 1, "job_id": 1}
    return {
        FACTOR_VERSIONS.name: pa.Table.from_pylist([r | history for r in rows], FACTOR_VERSIONS.schema),
        FACTORS.name: pa.Table.from_pylist(factors, FACTORS.schema),
    }


def _entries(kind: EntryType, count: int, luck: np.random.Generator) -> pa.Table:
    def one_of(words: list[str]) -> pa.Array:
        return pa.array(words).take(pa.array(luck.integers(0, len(words), count)))

    numbers = np.arange(count)
    columns = {
        "year": pa.array(np.full(count, YEAR), pa.int32()),
        "data_entry_type": one_of([kind.name]),
        "entry_key": pa.array(luck.permutation(count).astype(np.int64)),
        "entry_id": pa.array(numbers).cast(pa.string()),
        "institution": one_of(["main"]),
        "source": one_of(["csv"]),
        "unit_id": one_of([f"unit {n}" for n in range(UNITS)]),
        "quantity": pa.array(luck.lognormal(4, 2, count)),
        "unit": one_of([kind.unit]),
        "classification": one_of(_classifications(kind)),
        "kg_co2eq": pa.array(np.where(luck.random(count) < 0.001, 12.5, np.nan), from_pandas=True),
        "note": pa.nulls(count, pa.string()),
        "details": one_of(["{}"]),
        "file": one_of(["sample"]),
        "line": pa.array(numbers),
    }
    return pa.table(columns).cast(DATA_ENTRIES.schema)


def _ours(home: Path, what: str) -> tuple[float, int]:
    """In a process of its own, so that its peak is its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.carbon", str(home), what],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout), max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)


def _inside(home: Path, what: str) -> None:
    from assets.carbon.calculate import calculate_emissions

    carbon = opened(home)
    wanted = partitions()
    if what == "one":
        make(
            carbon,
            FACTORS,
            [str(YEAR)],
            "change",
            _nobody,
            lambda _, __: Built(_factors(0.01), {"uploads": "1"}),
        )
        wanted = [f"{types()[0].name}|{YEAR}"]
    began = time.monotonic()
    calculate_emissions(carbon, wanted, f"run {what}", _nobody)
    sys.stdout.write(f"{time.monotonic() - began}\n")


def _timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def _files(carbon: Carbon, kind: EntryType) -> list[str]:
    from resources.lake.store import LocalStore

    view = carbon.lake._views.of(DATA_ENTRIES)  # noqa: SLF001 - the very files that (a) reads
    partition = f"{kind.name}|{YEAR}"
    return [LocalStore().sql_path(f.path) for f in view.files if f.may_hold(DATA_ENTRIES, partition)]


_FLOOR = """
    SELECT e.year, '{type}' AS data_entry_type, e.entry_key, r.emission_type, e.unit_id, 'matched' AS status,
           CAST(round(e.quantity * r.mg_per_unit) AS BIGINT) AS mg_co2e, r.factor_id, r.factor_version
    FROM {entries} e JOIN rates r USING (classification, unit) WHERE e.kg_co2eq IS NULL
    UNION ALL
    SELECT year, '{type}', entry_key, '{first}', unit_id, 'overridden', CAST(round(kg_co2eq * 1e6) AS BIGINT),
           NULL, NULL
    FROM {entries} WHERE kg_co2eq IS NOT NULL
"""


def _rates(kind: EntryType) -> pa.Table:
    emission = kind.emissions[0].name
    words = _classifications(kind)
    return pa.table(
        {
            "classification": words,
            "unit": [kind.unit] * WORDS,
            "emission_type": [emission] * WORDS,
            "factor_id": [factor_id(YEAR, kind.name, emission, w) for w in words],
            "factor_version": pa.array([1] * WORDS, pa.int32()),
            "mg_per_unit": [(0.1 + n / 100) * 1e6 for n in range(WORDS)],
        }
    )


def _floor(home: Path) -> float:
    import duckdb

    carbon = opened(home)
    bare = duckdb.connect(":memory:", config={"threads": 2, "memory_limit": "1GB"})
    out = home / "floor"
    out.mkdir()

    def work() -> None:
        for kind in types():
            files = _files(carbon, kind)
            entries = f"read_parquet({files})"
            bare.register("rates", _rates(kind))
            query = _FLOOR.format(entries=entries, type=kind.name, first=kind.emissions[0].name)
            bare.sql(f"COPY ({query}) TO '{out / kind.name}.parquet' (FORMAT parquet, COMPRESSION zstd)")

    return _timed(work)


def _pandas(home: Path) -> float:
    import pandas as pd

    carbon = opened(home)
    factors = carbon.factors(YEAR).to_pandas()
    out = home / "pandas"
    out.mkdir()

    def work() -> None:
        for kind in types():
            entries = pd.concat([pd.read_parquet(f) for f in _files(carbon, kind)])
            of_type = factors[factors["data_entry_type"] == kind.name]
            joined = entries.merge(of_type, on="classification", how="left", suffixes=("", "_factor"))
            joined["mg_co2e"] = (joined["quantity"] * joined["value"] * 1e6).round()
            measured = joined["kg_co2eq"].notna()
            joined.loc[measured, "mg_co2e"] = joined["kg_co2eq"] * 1e6
            columns = [
                "year",
                "data_entry_type",
                "entry_key",
                "emission_type",
                "unit_id",
                "mg_co2e",
                "factor_id",
            ]
            joined[columns].to_parquet(out / f"{kind.name}.parquet", compression="zstd")

    return _timed(work)


def _rows(home: Path) -> float:
    """A session, an object per row, a look-up per row: what an application would do."""
    from sqlalchemy import Column, Float, Integer, String, create_engine
    from sqlalchemy.orm import DeclarativeBase, Session

    class Base(DeclarativeBase):
        pass

    class Factor(Base):
        __tablename__ = "factor"
        classification = Column(String, primary_key=True)
        value = Column(Float)

    class Emission(Base):
        __tablename__ = "emission"
        entry_key = Column(Integer, primary_key=True)
        unit_id = Column(String)
        mg_co2e = Column(Integer)

    kind = types()[0]
    carbon = opened(home)
    entries = carbon.rows(DATA_ENTRIES, [f"{kind.name}|{YEAR}"]).slice(0, SAMPLE).to_pylist()
    engine = create_engine(f"sqlite:///{home}/rows.db")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(Factor(classification=c, value=0.1) for c in _classifications(kind))
        session.commit()

    def work() -> None:
        with Session(engine) as session:
            for entry in entries:
                factor = session.query(Factor).filter_by(classification=entry["classification"]).one()
                mass = entry["kg_co2eq"] or entry["quantity"] * factor.value
                session.add(
                    Emission(
                        entry_key=entry["entry_key"], unit_id=entry["unit_id"], mg_co2e=round(mass * 1e6)
                    )
                )
            session.commit()

    return _timed(work)


if __name__ == "__main__":
    _inside(Path(sys.argv[1]), sys.argv[2])
