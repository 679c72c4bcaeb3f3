"""The year that the carbon benchmarks calculate: types, factors and millions of entries, in its own home."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from domain.carbon.catalogue import EntryType, catalogue
from domain.carbon.classification import canonical, factor_id
from domain.carbon.jobs import KINDS
from domain.carbon.tables import DATA_ENTRIES, FACTOR_VERSIONS, FACTORS, TABLES
from domain.shared.clock import machine_clock
from resources.lake.client import Lake
from resources.ledger.client import Ledger
from resources.objects.staging import Staging
from services.carbon.calculate import calculate_emissions
from services.carbon.service import CarbonService
from services.partitions import Attempt, Built

YEAR = 2025
WORDS = 40
"""Distinct classifications of a type: countries, networks, kinds."""
UNITS = 300


def nobody(_: object) -> None:
    """Report to nobody: Dagster's part is measured elsewhere."""


@dataclass(frozen=True)
class World:
    home: Path
    count: int
    """Types that have entries."""

    @property
    def types(self) -> list[EntryType]:
        return list(catalogue().types.values())[: self.count]

    @property
    def partitions(self) -> list[str]:
        return sorted(f"{t.name}|{YEAR}" for t in self.types)

    def open(self) -> CarbonService:
        ledger = Ledger.open(f"sqlite:///{self.home}/ledger.db", kinds=KINDS, clock=machine_clock)
        ledger.migrate()
        lake = Lake(
            catalog_url=f"sqlite:///{self.home}/lake/catalog.db",
            warehouse=f"file://{self.home}/lake/warehouse",
            home=self.home,
            tables=TABLES,
        )
        return CarbonService(catalogue(), lake, ledger, Staging.at(f"file://{self.home}/uploads"))

    def fill(self, entries: int) -> None:
        """The entries, their factors, and a first calculation: what follows is calculated again."""
        carbon = self.open()
        self.new_factors(carbon, 0, 0)
        for number, kind in enumerate(self.types):
            frame = _entries(kind, entries // self.count, np.random.default_rng(number))
            partition = f"{kind.name}|{YEAR}"
            built = Built(partition, {DATA_ENTRIES.name: frame}, {"uploads": "1"})
            carbon.materialize(
                [DATA_ENTRIES], [partition], Attempt(f"fill {number}"), nobody, lambda _, b=built: b
            )
        calculate_emissions(carbon, self.partitions, Attempt("first"), nobody)

    def new_factors(self, carbon: CarbonService, first: int, others: int) -> None:
        """Factors whose values follow from a number: one for the first type, one for the others."""
        frames = self._factors(first, others)
        carbon.materialize(
            [FACTORS, FACTOR_VERSIONS],
            [str(YEAR)],
            Attempt(f"factors {first} {others}"),
            nobody,
            lambda _: Built(str(YEAR), frames, {"uploads": "1"}),
        )

    def _factors(self, first: int, others: int) -> dict[str, pa.Table]:
        rows = [
            {
                "year": YEAR,
                "factor_id": factor_id(YEAR, kind.name, emission.name, words),
                "data_entry_type": kind.name,
                "emission_type": emission.name,
                "classification": words,
                "value": value(n, first if kind is self.types[0] else others),
                "unit": f"kg/{kind.unit}",
                "source": "sample",
                "version": 1,
            }
            for kind in self.types
            for emission in kind.emissions[:1]
            for n, words in enumerate(classifications(kind))
        ]
        factors = [row | {"stale": False, "last_seen_job_id": 1} for row in rows]
        at = machine_clock().replace(microsecond=0)
        history = {"valid_from": at, "valid_to": None, "file": "sample", "line": 1, "job_id": 1}
        return {
            FACTOR_VERSIONS.name: pa.Table.from_pylist([r | history for r in rows], FACTOR_VERSIONS.schema),
            FACTORS.name: pa.Table.from_pylist(factors, FACTORS.schema),
        }


def value(word: int, number: int) -> float:
    return 0.1 + word / 100 + number / 1000


def classifications(kind: EntryType) -> list[str]:
    return [canonical({c.name: f"word {n}" for c in kind.keys} or {"word": str(n)}) for n in range(WORDS)]


def _entries(kind: EntryType, count: int, luck: np.random.Generator) -> pa.Table:
    def one_of(words: list[str]) -> pa.Array:
        return pa.array(words).take(pa.array(luck.integers(0, len(words), count)))

    numbers = np.arange(count)
    columns = {
        "year": pa.array(np.full(count, YEAR), pa.int32()),
        "data_entry_type": one_of([kind.name]),
        # As the intake makes them: 60 bits of a hash.
        "entry_key": pa.array(_keys(count, luck)),
        "entry_id": pa.array(numbers).cast(pa.string()),
        "institution": one_of(["main"]),
        "source": one_of(["csv"]),
        "unit_id": one_of([f"unit {n}" for n in range(UNITS)]),
        "quantity": pa.array(luck.lognormal(4, 2, count)),
        "unit": one_of([kind.unit]),
        "classification": one_of(classifications(kind)),
        "kg_co2eq": pa.array(np.where(luck.random(count) < 0.001, 12.5, np.nan), from_pandas=True),
        "note": pa.nulls(count, pa.string()),
        "details": one_of(["{}"]),
        "file": one_of(["sample"]),
        "line": pa.array(numbers),
    }
    return pa.table(columns).cast(DATA_ENTRIES.schema)


def _keys(count: int, luck: np.random.Generator) -> np.ndarray:
    """Distinct for sure: the low bits are a permutation."""
    low = luck.permutation(count).astype(np.int64)
    return (luck.integers(0, 1 << 35, count, dtype=np.int64) << 24) | low
