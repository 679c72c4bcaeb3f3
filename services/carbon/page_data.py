"""What the page of a report shows beside the report itself, as plain values.

`page_data` makes it of rows as queries give them. Texts that people wrote are made harmless here: what is
copied from a page into a spreadsheet runs no formula.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.carbon.catalogue import Catalogue, EmissionType, EntryType
from domain.carbon.standing import Standing
from services.carbon.report import harmless

Row = Mapping[str, Any]


@dataclass(frozen=True)
class ModuleTitle:
    name: str
    title: str


@dataclass(frozen=True)
class UnitName:
    unit_id: str
    parent_id: str | None
    name: str


@dataclass(frozen=True)
class YearScope:
    """What one scope of another year was, as that year's report says."""

    year: int
    scope: int
    mg: int
    unmatched: int


@dataclass(frozen=True)
class Kind:
    """The results of one type for one kind of emissions; entries without a factor have no mass in `mg`."""

    name: str
    scope: int
    category: str
    mg: int
    entries: int
    unmatched: int
    overridden: int


@dataclass(frozen=True)
class Method:
    """How one data entry type is calculated, and what came of it."""

    name: str
    module: str
    title: str
    description: str
    formula: str
    method: str
    kinds: tuple[Kind, ...]
    old: str = ""
    """Why its results are not up to date; empty if they are."""

    @property
    def mg(self) -> int:
        return sum(kind.mg for kind in self.kinds)


@dataclass(frozen=True)
class Unmatched:
    """Entries of one kind that no factor fits, by the words that should have chosen one."""

    title: str
    kind: str
    words: str
    entries: int


@dataclass(frozen=True)
class Source:
    """Factors of one type and one origin that were used."""

    title: str
    source: str
    factors: int
    stale: int
    mg: int


@dataclass(frozen=True)
class Brought:
    """A file that the figures come from."""

    what: str
    file: str
    by: str
    at: datetime
    rows: int
    taken: int


@dataclass(frozen=True)
class Lock:
    reason: str
    by: str
    at: datetime


@dataclass(frozen=True)
class PageData:
    institution: str
    moment: datetime
    """When the page was made."""
    modules: tuple[ModuleTitle, ...]
    units: tuple[UnitName, ...] = ()
    years: tuple[YearScope, ...] = ()
    old_years: frozenset[int] = frozenset()
    """Of the others those whose own reports are not up to date."""
    methods: tuple[Method, ...] = ()
    sources: tuple[Source, ...] = ()
    files: tuple[Brought, ...] = ()
    unmatched: tuple[Unmatched, ...] = ()
    """The most frequent ones."""
    unmatched_kinds: int = 0
    lock: Lock | None = None
    as_of: datetime | None = None
    """The moment whose state is shown, if it is a past one."""
    standing: Standing = field(default_factory=lambda: Standing(0))
    versions: Mapping[str, str] = field(default_factory=dict)
    """What tells the state the numbers come from: name and version, as they shall be shown."""


def spoken(words: str) -> str:
    """What a person wrote, so that no spreadsheet runs it: neither as it stands nor after trimming it."""
    return str(harmless(words.strip()))


def page_data(
    catalogue: Catalogue,
    *,
    institution: str,
    moment: datetime,
    units: Iterable[Row] = (),
    years: Iterable[Row] = (),
    old_years: Iterable[int] = (),
    results: Iterable[Row] = (),
    factors: Iterable[Row] = (),
    files: Iterable[Row] = (),
    unmatched: Sequence[Row] = (),
    standing: Standing | None = None,
    lock: Lock | None = None,
    as_of: datetime | None = None,
    versions: Mapping[str, str] | None = None,
) -> PageData:
    """Of rows:

    units    unit_id, parent_id, name: those of the report's year
    years    year, scope, mg, unmatched: one row per year and scope; the report's own year may be among them
    results  data_entry_type, emission_type, mg, entries, unmatched, overridden: one row per kind of
             emissions, of the same units as the report
    factors  data_entry_type, source, factors, stale, mg: one row per type and source of the factors used
    files    kind, data_entry_type, file, by, at, rows, taken: one row per upload that the figures come from
    unmatched  data_entry_type, emission_type, classification, entries, kinds: what no factor fits; no
             classification where the entries have changed since
    """
    places = {name: place for place, name in enumerate(catalogue.types)}
    standing = standing or Standing(0)
    return PageData(
        institution=spoken(institution),
        moment=moment,
        modules=tuple(ModuleTitle(m.name, m.title) for m in catalogue.modules),
        units=tuple(
            UnitName(spoken(u["unit_id"]), u["parent_id"] and spoken(u["parent_id"]), spoken(u["name"]))
            for u in units
        ),
        years=tuple(YearScope(y["year"], y["scope"], y["mg"], y["unmatched"]) for y in years),
        old_years=frozenset(old_years),
        methods=_methods(catalogue, results, standing.old),
        sources=tuple(
            Source(
                title=_title(catalogue, f["data_entry_type"]),
                source=spoken(f["source"] or ""),
                factors=f["factors"],
                stale=f["stale"],
                mg=f["mg"],
            )
            for f in sorted(factors, key=lambda f: places.get(f["data_entry_type"], len(places)))
        ),
        files=tuple(_brought(catalogue, f) for f in files),
        unmatched=tuple(_unmatched(catalogue, u) for u in unmatched),
        unmatched_kinds=unmatched[0]["kinds"] if unmatched else 0,
        lock=lock and Lock(spoken(lock.reason), spoken(lock.by), lock.at),
        as_of=as_of,
        standing=standing,
        versions=dict(versions or {}),
    )


def _brought(catalogue: Catalogue, row: Row) -> Brought:
    what = _title(catalogue, row["data_entry_type"]) if row["kind"] == "data" else row["kind"].capitalize()
    return Brought(what, spoken(row["file"]), spoken(row["by"]), row["at"], row["rows"], row["taken"])


def _unmatched(catalogue: Catalogue, row: Row) -> Unmatched:
    kind = catalogue.types.get(row["data_entry_type"])
    several = kind is not None and len(kind.emissions) > 1
    title = _title(catalogue, row["data_entry_type"])
    words = _words(row["classification"])
    return Unmatched(title, row["emission_type"] if several else "", spoken(words), row["entries"])


def _words(classification: str | None) -> str:
    if classification is None:
        return "entries that have changed since"
    return ", ".join(f"{name} {value}" for name, value in json.loads(classification).items())


def _title(catalogue: Catalogue, name: str) -> str:
    """Of a type that the catalogue lost since, its name: a published report is shown all the same."""
    kind = catalogue.types.get(name)
    return name if kind is None else kind.title


def _methods(catalogue: Catalogue, results: Iterable[Row], old: Mapping[str, str]) -> tuple[Method, ...]:
    """In the catalogue's order, the types that have results or should have newer ones."""
    by_type: dict[str, list[Row]] = defaultdict(list)
    for row in results:
        by_type[row["data_entry_type"]].append(row)
    return tuple(
        _method(kind, by_type.get(kind.name, ()), spoken(old.get(kind.name, "")))
        for kind in catalogue.types.values()
        if kind.name in by_type or kind.name in old
    )


def _method(kind: EntryType, rows: Sequence[Row], old: str) -> Method:
    return Method(
        name=kind.name,
        module=kind.module,
        title=kind.title,
        description=kind.description,
        formula=kind.formula,
        method=kind.method,
        kinds=tuple(_kind(e, row) for e in kind.emissions for row in rows if row["emission_type"] == e.name),
        old=old,
    )


def _kind(emission: EmissionType, row: Row) -> Kind:
    return Kind(
        name=emission.name,
        scope=emission.scope,
        category=emission.category,
        mg=row["mg"],
        entries=row["entries"],
        unmatched=row["unmatched"],
        overridden=row["overridden"],
    )
