"""Modules and data entry types as values: what is counted, how, and by which factors. Rows: `catalogue.yaml`.

Every type has one formula: (amount + plus) × every `times`, `share` and `flag` column × the factor that its
`key` and `class` columns name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
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
    """Read a catalogue; an error names the row and the field."""
    document = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe loaders
    if not isinstance(document, dict) or not isinstance(document.get("modules"), dict):
        raise InvalidInput("the carbon catalogue has no section modules")
    modules = tuple(_module(name, row) for name, row in document["modules"].items())
    names = [t.name for m in modules for t in m.types]
    if twice := sorted({n for n in names if names.count(n) > 1}):
        raise InvalidInput(f"the carbon catalogue names a type twice: {', '.join(twice)}")
    return Catalogue(modules)


def _module(name: str, row: Any) -> Module:
    where = f"carbon catalogue, module {name}"
    _fields(row, {"title", "description", "types"}, set(), where)
    types = tuple(_type(name, type_name, each) for type_name, each in row["types"].items())
    if not types:
        raise InvalidInput(f"{where}: it has no types")
    return Module(name, row["title"], row["description"], types)


def _type(module: str, name: str, row: Any) -> EntryType:
    where = f"carbon catalogue, type {name}"
    _fields(row, {"title", "description", "method", "unit", "emissions", "columns"}, {"plus"}, where)
    _word(name, where)
    try:
        unit(row["unit"])
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error.message}", remedy=error.remedy) from None
    found = EntryType(
        name=name,
        module=module,
        title=row["title"],
        description=row["description"],
        method=row["method"],
        unit=row["unit"],
        emissions=tuple(_emission(e, spec, where) for e, spec in row["emissions"].items()),
        columns=tuple(_column(c, spec, where) for c, spec in row["columns"].items()),
        plus=float(row.get("plus", 0.0)),
    )
    if sum(c.role == "amount" for c in found.columns) != 1:
        raise InvalidInput(f"{where}: exactly one column has the role amount")
    if not found.emissions:
        raise InvalidInput(f"{where}: it causes no emissions")
    if found.emissions[0].optional:
        # A measured mass is counted under the first, and an entry must never vanish.
        raise InvalidInput(f"{where}: its first emission type is optional", remedy="begin with another")
    return found


def _emission(name: str, spec: Any, where: str) -> EmissionType:
    where = f"{where}, emission type {name}"
    _word(name, where)
    _fields(spec, {"scope", "category"}, {"optional"}, where)
    if spec["scope"] not in (1, 2, 3):
        raise InvalidInput(f"{where}: scope is {spec['scope']!r}", remedy="1, 2 or 3")
    if not isinstance(optional := spec.get("optional", False), bool):
        raise InvalidInput(f"{where}: optional is {optional!r}", remedy="true or false")
    return EmissionType(name, spec["scope"], spec["category"], optional)


_BY_ROLE: Mapping[str, tuple[set[str], set[str]]] = {
    "amount": (set(), set()),
    "times": (set(), {"default"}),
    "share": (set(), {"default"}),
    "flag": ({"times"}, {"default"}),
    "key": (set(), {"values", "default", "required", "fallback"}),
    "class": ({"steps"}, set()),
}
"""The fields a column must and may have, by its role."""


def _column(name: str, spec: Any, where: str) -> EntryColumn:
    where = f"{where}, column {name}"
    _word(name, where)
    if name in GIVEN:
        raise InvalidInput(f"{where}: every type has a column of that name")
    if not isinstance(spec, dict) or spec.get("role") not in get_args(Role):
        raise InvalidInput(f"{where}: its role is none", remedy=f"one of {', '.join(get_args(Role))}")
    needed, allowed = _BY_ROLE[spec["role"]]
    shown = set() if spec["role"] == "class" else {"example"}
    _fields(spec, {"role", "description"} | needed | shown, allowed, where)
    column = EntryColumn(
        name=name,
        role=spec["role"],
        description=spec["description"],
        example=_text(spec.get("example", "")),
        default=_text(spec.get("default", "")),
        required=bool(spec.get("required", spec["role"] == "amount")),
        values=tuple(_text(v) for v in spec.get("values", ())),
        fallback=_text(spec.get("fallback", "")),
        times=float(spec.get("times", 1.0)),
        steps=_steps(spec.get("steps", ()), where),
    )
    for word in (column.default, column.fallback, column.example):
        if column.values and word and word not in column.values:
            raise InvalidInput(f"{where}: {word!r} is not among its values")
    return column


def _steps(rows: Sequence[Any], where: str) -> tuple[Step, ...]:
    steps = tuple(Step(_text(r.get("is")), float(r["below"]) if "below" in r else None) for r in rows)
    bounds = [s.below for s in steps]
    if steps and (bounds[-1] is not None or None in bounds[:-1]):
        raise InvalidInput(f"{where}: every step but the last has a `below`")
    if any(a is not None and b is not None and b <= a for a, b in pairwise(bounds)):
        raise InvalidInput(f"{where}: its steps do not rise")
    return steps


def _fields(row: Any, needed: set[str], allowed: set[str], where: str) -> None:
    if not isinstance(row, dict):
        raise InvalidInput(f"{where}: it is no mapping")
    if missing := needed - row.keys():
        raise InvalidInput(f"{where}: missing {', '.join(sorted(missing))}")
    if unknown := row.keys() - needed - allowed:
        raise InvalidInput(f"{where}: unknown {', '.join(sorted(map(str, unknown)))}")


def _word(name: Any, where: str) -> None:
    if not isinstance(name, str) or not name.isascii() or not name.isidentifier() or name != name.lower():
        raise InvalidInput(f"{where}: {name!r} is no lower-case word")


def _text(value: Any) -> str:
    """YAML makes booleans of yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)
