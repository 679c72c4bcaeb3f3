"""The files people upload in carbon rounds: a few types of two years, always other words and numbers."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from services.carbon.uploaded_file import File

YEARS = (2024, 2025)
TOP = "UNI"
TREES = (
    {TOP: "", "SCI": TOP, "ART": TOP, "PHY": "SCI"},
    {TOP: "", "SCI": TOP, "ART": TOP, "PHY": "ART"},
)
INSTITUTIONS = ("main", "clinic")
SHARED_TYPE = "train"
"""The type that two institutions have data of."""


@dataclass(frozen=True)
class Shape:
    """A type's columns, and what its factors are for."""

    amount: str
    key: str
    words: tuple[str, str]
    per: str
    emissions: tuple[str, ...]


SHAPES: Mapping[str, Shape] = {
    "train": Shape("distance", "country", ("CH", "world"), "g/km", ("train",)),
    "hotel": Shape("nights", "country", ("FR", "world"), "kg/night", ("hotel",)),
    "electricity": Shape(
        "consumption", "mix", ("grid", "solar"), "kg/kWh", ("electricity", "electricity_upstream")
    ),
    "paper": Shape("mass", "kind", ("recycled", "virgin"), "kg/kg", ("paper",)),
}


@dataclass(frozen=True)
class Sheet:
    """A file and the arguments of its upload. `topic` is the type of a data file."""

    kind: Literal["units", "factors", "data"]
    name: str
    year: int
    content: bytes
    topic: str = ""
    institution: str = "main"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def rows(self) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.content.decode())))

    def file(self) -> File:
        return File(
            kind=self.kind,
            name=self.name,
            content=self.content,
            by="chaos",
            institution=self.institution,
            year=self.year,
            data_entry_type=self.topic or None,
        )


@dataclass
class SheetWriter:
    """Writes random sheets. No two of them have the same content."""

    luck: random.Random
    years: Sequence[int] = YEARS
    names: Sequence[str] = tuple(SHAPES)
    _written: int = 0

    def complete_set(self) -> list[Sheet]:
        """Something of everything: a report of each year follows from it."""
        made = [self.units(year) for year in self.years]
        made += [self.factors(year, self.names) for year in self.years]
        made += [self.data(year, name) for year in self.years for name in self.names]
        return [*made, *(self.data(year, SHARED_TYPE, "clinic") for year in self.years)]

    def any_sheet(self, *, partly: bool = False) -> Sheet:
        """Mostly of one year, so that uploads overlap. `partly`: factors may be left out."""
        year = self.luck.choice((*tuple(self.years[1:]) * 3, *self.years))
        kind = self.luck.choice(("factors", "factors", "data", "data", "data", "units"))
        if kind == "factors":
            names = self.luck.sample(self.names, self.luck.randint(1, len(self.names)))
            return self.factors(year, names, partly=partly)
        if kind == "units":
            return self.units(year)
        name = self.luck.choice(self.names)
        return self.data(year, name, self.luck.choice(INSTITUTIONS) if name == SHARED_TYPE else "main")

    def units(self, year: int) -> Sheet:
        tree = self.luck.choice(TREES)
        rows = [{"unit_id": u, "name": self._word(), "parent_id": above} for u, above in tree.items()]
        return self._sheet("units", year, rows)

    def factors(self, year: int, names: Iterable[str], *, partly: bool = False) -> Sheet:
        rows = [row for name in names for row in self._factor_rows(name)]
        if partly and len(rows) > 1:
            rows = self.luck.sample(rows, self.luck.randint(1, len(rows)))
        return self._sheet("factors", year, rows)

    def _factor_rows(self, name: str) -> Iterator[dict[str, object]]:
        shape = SHAPES[name]
        for emission in shape.emissions:
            for word in shape.words:
                yield {
                    "data_entry_type": name,
                    "emission_type": emission,
                    "classification": json.dumps({shape.key: word}),
                    "value": self.luck.randint(1, 999),
                    "unit": shape.per,
                    "source": self._word(),
                }

    def data(self, year: int, name: str, institution: str = "main") -> Sheet:
        shape = SHAPES[name]
        rows = [
            {
                "entry_id": f"{institution} {number}",
                "unit_id": self.luck.choice(tuple(TREES[0])),
                shape.amount: self.luck.randint(1, 9_999),
                shape.key: self.luck.choice(shape.words),
                "note": self._word(),
            }
            for number in range(self.luck.randint(1, 4))
        ]
        return self._sheet("data", year, rows, name, institution)

    def _word(self) -> str:
        return f"{self.luck.randrange(16**8):08x}"

    def _sheet(
        self,
        kind: Literal["units", "factors", "data"],
        year: int,
        rows: Sequence[Mapping[str, object]],
        topic: str = "",
        institution: str = "main",
    ) -> Sheet:
        self._written += 1
        out = io.StringIO()
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        name = f"{self._written}-{topic or kind}-{year}.csv"
        return Sheet(kind, name, year, out.getvalue().encode(), topic, institution)
