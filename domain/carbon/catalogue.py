"""Modules and data entry types as values: what is counted, how, and by which factors. Rows: `catalogue.yaml`.

Every type has one formula: (amount + plus) × every `times`, `share` and `flag` column × the factor that its
`key` and `class` columns name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import yaml

from domain.carbon.quantities import of_dimension, unit
from domain.shared.error import InvalidInput

Role = Literal["amount", "times", "share", "flag", "key", "class"]
"""What a column does in the formula.

amount  the quantity, in the type's unit or one that converts into it
times   a number that multiplies it: trips, persons, days
share   a number from 0 to 1 that multiplies it: the part of a building, of a year
flag    yes or no; yes multiplies by the column's `times`
key     a value that chooses the factor
class   a word that chooses the factor, derived from the amount: short, medium or long haul
"""

GIVEN = ("year", "data_entry_type", "entry_id", "unit_id", "unit", "kg_co2eq", "note")
"""Columns that every type has."""
ARITHMETIC = 2
"""Raised when the program calculates otherwise: every result is then out of date, and made again."""


@dataclass(frozen=True)
class Step:
    """A class: amounts below `below`, which none of the steps before it took."""

    name: str
    below: float | None


@dataclass(frozen=True)
class EntryColumn:
    name: str
    role: Role
    description: str
    example: str = ""
    default: str = ""
    """What an empty cell means; without one an empty cell is an error, for a key it is no key."""
    required: bool = False
    values: tuple[str, ...] = ()
    fallback: str = ""
    """Of a key: the value whose factor serves where the entry's own value has none."""
    times: float = 1.0
    steps: tuple[Step, ...] = ()

    @property
    def chooses(self) -> bool:
        return self.role in ("key", "class")


@dataclass(frozen=True)
class EmissionType:
    """One kind of emissions of a type, named as in the GHG Protocol."""

    name: str
    scope: int
    category: str
    optional: bool = False
    """Without any factor in a year it is not counted; any other is then unmatched."""


@dataclass(frozen=True)
class EntryType:
    """One data entry type: a row of the catalogue."""

    name: str
    module: str
    title: str
    description: str
    method: str
    unit: str
    emissions: tuple[EmissionType, ...]
    columns: tuple[EntryColumn, ...]
    plus: float = 0.0
    """Added to every amount, in the type's unit, before anything multiplies it."""

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Those an amount may be given in."""
        return of_dimension(self.unit)

    @property
    def amount(self) -> EntryColumn:
        return next(c for c in self.columns if c.role == "amount")

    @property
    def keys(self) -> tuple[EntryColumn, ...]:
        """The columns that choose the factor."""
        return tuple(c for c in self.columns if c.chooses)

    @property
    def read_columns(self) -> tuple[EntryColumn, ...]:
        """The columns of a file: all but classes, which are derived from the amount."""
        return tuple(c for c in self.columns if c.role != "class")

    @property
    def formula(self) -> str:
        """For people."""
        keys = ", ".join(c.name for c in self.keys)
        return f"{self.quantity} × {f'factor[{keys}]' if keys else 'factor'}"

    @property
    def quantity(self) -> str:
        """What the factor is multiplied by, for people."""
        amount = f"{self.amount.name} [{self.unit}]"
        parts = [f"({amount} + {self.plus:g} {self.unit})" if self.plus else amount]
        for column in self.columns:
            if column.role in ("times", "share"):
                parts.append(column.name)
            elif column.role == "flag":
                parts.append(f"({column.times:g} if {column.name})")
        return " × ".join(parts)

    @property
    def rules(self) -> list[Any]:
        """All that a calculation depends on besides its data; its digest detects a change."""
        return [
            ARITHMETIC,
            self.unit,
            self.plus,
            [[e.name, e.optional] for e in self.emissions],
            [
                [c.name, c.role, c.fallback, c.times, c.default, [[s.name, s.below] for s in c.steps]]
                for c in self.columns
            ],
        ]

    def emission(self, name: str) -> EmissionType:
        for emission in self.emissions:
            if emission.name == name:
                return emission
        raise InvalidInput(
            f"{self.name} has no emission type {name!r}",
            reason_code="unknown_emission_type",
            remedy=f"one of {', '.join(e.name for e in self.emissions)}",
        )


@dataclass(frozen=True)
class Module:
    name: str
    title: str
    description: str
    types: tuple[EntryType, ...] = field(repr=False)


@dataclass(frozen=True)
class Catalogue:
    modules: tuple[Module, ...]

    @cached_property
    def types(self) -> Mapping[str, EntryType]:
        return {t.name: t for m in self.modules for t in m.types}

    def type(self, name: str) -> EntryType:
        if (found := self.types.get(name)) is None:
            raise InvalidInput(
                f"there is no data entry type {name!r}",
                reason_code="unknown_type",
                remedy=f"one of {', '.join(sorted(self.types))}",
            )
        return found

    def module(self, name: str) -> Module:
        for module in self.modules:
            if module.name == name:
                return module
        known = ", ".join(m.name for m in self.modules)
        raise InvalidInput(f"there is no module {name!r}", reason_code="unknown_module", remedy=known)


@cache
def catalogue() -> Catalogue:
    """The packaged catalogue."""
    return parse(Path(__file__).with_name("catalogue.yaml").read_text(encoding="utf-8"))


def parse(text: str) -> Catalogue:
    """Read a catalogue; an error names the row that is wrong."""
    document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    with _row("carbon catalogue"):
        modules = tuple(_module(name, row) for name, row in document["modules"].items())
    names = [t.name for m in modules for t in m.types]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise InvalidInput(f"the carbon catalogue names a type twice: {', '.join(twice)}")
    return Catalogue(modules)


@contextmanager
def _row(name: str) -> Iterator[None]:
    """Name the row in whatever is wrong with it: a field that is unknown, missing, or of another kind."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error.message}", remedy=error.remedy) from None
    except KeyError as error:
        raise InvalidInput(f"{name}: missing {error}") from None
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidInput(f"{name}: {error}") from None


def _module(name: str, row: Mapping[str, Any]) -> Module:
    with _row(f"module {name}"):
        types = tuple(_type(name, each, fields) for each, fields in row["types"].items())
        return Module(name, **{**row, "types": types})


def _type(module: str, name: str, row: Mapping[str, Any]) -> EntryType:
    with _row(f"type {name}"):
        unit(row["unit"])  # refuses one that is unknown
        emissions = tuple(_emission(each, fields) for each, fields in row["emissions"].items())
        columns = tuple(_column(each, fields) for each, fields in row["columns"].items())
        made = {"emissions": emissions, "columns": columns, "plus": float(row.get("plus", 0.0))}
        if sum(c.role == "amount" for c in columns) != 1:
            raise ValueError("exactly one column has the role amount")
        if not emissions or emissions[0].optional:
            # A measured mass is counted under the first, and an entry must never vanish.
            raise ValueError("its first emission type is missing or optional")
        return EntryType(name, module, **{**row, **made})


def _emission(name: str, row: Mapping[str, Any]) -> EmissionType:
    with _row(f"emission type {name}"):
        found = EmissionType(name, **row)
        if found.scope not in (1, 2, 3) or not isinstance(found.optional, bool):
            raise ValueError("scope is 1, 2 or 3, and optional true or false")
        return found


def _column(name: str, row: Mapping[str, Any]) -> EntryColumn:
    with _row(f"column {name}"):
        if name in GIVEN or row["role"] not in get_args(Role):
            raise ValueError(f"its name is taken, or its role is none of {', '.join(get_args(Role))}")
        made: dict[str, Any] = {
            key: _text(row[key]) for key in ("default", "example", "fallback") if key in row
        }
        made["values"] = tuple(map(_text, row.get("values", ())))
        made["steps"] = tuple(
            Step(_text(s["is"]), float(s["below"]) if "below" in s else None) for s in row.get("steps", ())
        )
        made["times"] = float(row.get("times", 1.0))
        made["required"] = bool(row.get("required", row["role"] == "amount"))
        column = EntryColumn(name, **{**row, **made})
        if column.values and {column.default, column.fallback, column.example} - {"", *column.values}:
            raise ValueError("its default, fallback or example is not among its values")
        return column


def _text(value: Any) -> str:
    """YAML makes booleans of yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
