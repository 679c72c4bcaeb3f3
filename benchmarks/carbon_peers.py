"""The same calculation by others, over the very files that the product reads: pandas, an ORM, bare DuckDB.

Each does as well as its kind can without becoming another: only the columns it needs, the same arithmetic,
the same nine columns, zstd at the level the lake writes. None has a catalogue, versions, checks or a ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from benchmarks.carbon_world import WORDS, YEAR, World, classifications, value
from domain.carbon.catalogue import EntryType
from domain.carbon.classification import factor_id
from domain.carbon.tables import DATA_ENTRIES
from resources.objects.store import Store

SAMPLE = 10_000
"""Rows that the ORM calculates; what it takes is scaled up."""
NUMBER = 0
"""Of the factors' values: which they are does not matter for the time."""


def files(world: World, kind: EntryType) -> list[str]:
    view = world.open().lake._views.of(DATA_ENTRIES)  # noqa: SLF001 - the very files that (a) reads
    partition = f"{kind.name}|{YEAR}"
    return [Store().sql_path(f.path) for f in view.holding([partition])]


def rates(kind: EntryType) -> pa.Table:
    emission = kind.emissions[0].name
    words = classifications(kind)
    return pa.table(
        {
            "classification": words,
            "unit": [kind.unit] * WORDS,
            "emission_type": [emission] * WORDS,
            "factor_id": [factor_id(YEAR, kind.name, emission, w) for w in words],
            "factor_version": pa.array([1] * WORDS, pa.int32()),
            "mg_per_unit": [value(n, NUMBER) * 1e6 for n in range(WORDS)],
        }
    )


_FLOOR = """
    SELECT e.year, '{type}'::ENUM ('{type}') AS data_entry_type, e.entry_key,
           '{emission}'::ENUM ('{emission}') AS emission_type, e.unit_id,
           CASE WHEN e.kg_co2eq IS NULL THEN 'matched'::{status} ELSE 'overridden'::{status} END AS status,
           CAST(round(CASE WHEN e.kg_co2eq IS NULL THEN e.quantity * r.mg_per_unit
                           ELSE e.kg_co2eq * 1e6 END) AS BIGINT) AS mg_co2e,
           CASE WHEN e.kg_co2eq IS NULL THEN r.factor_id END AS factor_id,
           CASE WHEN e.kg_co2eq IS NULL THEN r.factor_version END AS factor_version
    FROM read_parquet({files}) e JOIN rates r USING (classification, unit)
"""
"""One pass over the entries. Every entry of this world has a factor and a unit that is the factor's, and one
kind of emissions. As ENUMs the words that repeat are written a fifth faster than as text."""


def floor(world: World, out: Path) -> Callable[[], object]:
    """The bare query. Its rows have no order, which spares DuckDB keeping one."""
    import duckdb

    config = {"threads": 2, "memory_limit": "1GB", "preserve_insertion_order": "false"}
    bare = duckdb.connect(":memory:", config=config)
    known = {kind.name: files(world, kind) for kind in world.types}

    def work() -> None:
        for kind in world.types:
            bare.register("rates", rates(kind))
            query = _FLOOR.format(
                files=known[kind.name],
                type=kind.name,
                emission=kind.emissions[0].name,
                status="ENUM ('matched', 'overridden')",
            )
            target = f"'{out / kind.name}.parquet' (FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1)"
            bare.execute(f"COPY ({query}) TO {target}").fetchall()

    return work


def pandas(world: World, out: Path) -> Callable[[], object]:
    import pandas as pd

    known = {kind.name: files(world, kind) for kind in world.types}
    needed = ["year", "entry_key", "unit_id", "quantity", "unit", "classification", "kg_co2eq"]

    def work() -> None:
        for kind in world.types:
            entries = pd.concat([pd.read_parquet(f, columns=needed) for f in known[kind.name]])
            joined = entries.merge(rates(kind).to_pandas(), on=["classification", "unit"], how="left")
            measured = joined["kg_co2eq"].notna()
            mass = (joined["quantity"] * joined["mg_per_unit"]).where(~measured, joined["kg_co2eq"] * 1e6)
            made = pd.DataFrame(
                {
                    "year": joined["year"],
                    "data_entry_type": pd.Categorical.from_codes([0] * len(joined), [kind.name]),
                    "entry_key": joined["entry_key"],
                    "emission_type": joined["emission_type"],
                    "unit_id": joined["unit_id"],
                    "status": pd.Categorical.from_codes(measured.astype("int8"), ["matched", "overridden"]),
                    "mg_co2e": mass.round().astype("int64"),
                    "factor_id": joined["factor_id"].astype("Int64").mask(measured),
                    "factor_version": joined["factor_version"].astype("Int32").mask(measured),
                }
            )
            made.to_parquet(out / f"{kind.name}.parquet", compression="zstd", index=False)

    return work


def rows(world: World, out: Path, *, looks_up: bool) -> Callable[[], object]:
    """An object per row. `looks_up`: each asks the database for its factor, as such code is mostly written;
    else the session remembers the factors. Inserts are gathered by SQLAlchemy in both."""
    from sqlalchemy import Column, Float, Integer, String, create_engine, delete, select
    from sqlalchemy.orm import DeclarativeBase, Session

    class Base(DeclarativeBase):
        pass

    class Factor(Base):
        __tablename__ = "factor"
        classification = Column(String, primary_key=True)
        id = Column(Integer)
        version = Column(Integer)
        mg_per_unit = Column(Float)

    class Entry(Base):
        __tablename__ = "entry"
        entry_key = Column(Integer, primary_key=True)
        unit_id = Column(String)
        quantity = Column(Float)
        classification = Column(String)
        kg_co2eq = Column(Float)

    class Emission(Base):
        __tablename__ = "emission"
        entry_key = Column(Integer, primary_key=True)
        year = Column(Integer)
        data_entry_type = Column(String)
        emission_type = Column(String)
        unit_id = Column(String)
        status = Column(String)
        mg_co2e = Column(Integer)
        factor_id = Column(Integer)
        factor_version = Column(Integer)

    kind = world.types[0]
    wanted = "entry_key, unit_id, quantity, classification, kg_co2eq"
    entries = world.open().rows(DATA_ENTRIES, [f"{kind.name}|{YEAR}"], wanted).slice(0, SAMPLE).to_pylist()
    engine = create_engine(f"sqlite:///{out}/rows.db")
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(Entry(**entry) for entry in entries)
        session.add_all(
            Factor(
                classification=r["classification"], id=r["factor_id"], version=1, mg_per_unit=r["mg_per_unit"]
            )
            for r in rates(kind).to_pylist()
        )
        session.commit()

    def factor_of(session: Session, words: str) -> Factor:
        if looks_up:
            return session.query(Factor).filter_by(classification=words).one()
        return session.get_one(Factor, words)

    def calculate(count: int) -> None:
        with Session(engine) as session:
            remembered = session.scalars(select(Factor)).all()  # noqa: F841 - the session holds them weakly
            with session.no_autoflush:
                for entry in session.scalars(select(Entry).limit(count).execution_options(yield_per=1000)):
                    measured = entry.kg_co2eq is not None
                    factor = factor_of(session, entry.classification)
                    mass = entry.kg_co2eq * 1e6 if measured else entry.quantity * factor.mg_per_unit
                    session.add(
                        Emission(
                            entry_key=entry.entry_key,
                            year=YEAR,
                            data_entry_type=kind.name,
                            emission_type=kind.emissions[0].name,
                            unit_id=entry.unit_id,
                            status="overridden" if measured else "matched",
                            mg_co2e=round(mass),
                            factor_id=None if measured else factor.id,
                            factor_version=None if measured else factor.version,
                        )
                    )
            session.commit()

    def clear() -> None:
        with Session(engine) as session:
            session.execute(delete(Emission))
            session.commit()

    calculate(100)  # what is made once shall not be scaled up
    clear()
    return lambda: calculate(SAMPLE)


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock and of work."""
    began, worked = time.monotonic(), time.process_time()
    work()
    return time.monotonic() - began, time.process_time() - worked
