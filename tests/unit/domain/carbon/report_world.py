"""Reports of small and large institutions, summed by the domain's own queries, with all that a page shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pyarrow as pa

from domain.carbon.catalogue import catalogue
from domain.carbon.fallbacks import Fallback
from domain.carbon.report_state import Issue, ReportState
from domain.carbon.reports import report_rows
from domain.carbon.tables import UNITS
from services.carbon.report import Report
from services.carbon.report_html import render
from services.carbon.report_view import PageContext, PageRows, ReportView, view_of
from services.carbon.store import YearLock

CATALOGUE = catalogue()
MOMENT = datetime(2026, 3, 2, 14, 5, tzinfo=UTC)
_SUMS = pa.schema(
    [
        ("unit_id", pa.string()),
        ("data_entry_type", pa.string()),
        ("emission_type", pa.string()),
        ("mg_co2e", pa.int64()),
        ("entries", pa.int64()),
        ("unmatched", pa.int64()),
        ("overridden", pa.int64()),
    ]
)


@dataclass
class World:
    """An institution in one year."""

    year: int = 2025
    institution: str = "Example University"
    units: dict[str, tuple[str | None, str]] = field(default_factory=dict)
    sums: list[dict[str, Any]] = field(default_factory=list)
    before: dict[int, Sequence[int]] = field(default_factory=dict)
    """Milligrams of other years, by scope."""
    outdated_years: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    old: Mapping[str, str] = field(default_factory=dict)
    lock: YearLock | None = None
    factors: list[dict[str, Any]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    unmatched: list[dict[str, Any]] = field(default_factory=list)
    fallbacks: tuple[Fallback, ...] = ()

    def add(self, unit: str, parent: str | None = None, name: str = "") -> World:
        self.units[unit] = (parent, name or unit)
        return self

    def emit(
        self, unit: str, kind: str, mg: int, *, entries: int = 1, unmatched: int = 0, overridden: int = 0
    ) -> World:
        """`kind` is an emission type; its data entry type follows."""
        type_name = next(t.name for t in CATALOGUE.types.values() for e in t.emissions if e.name == kind)
        row = (unit, type_name, kind, mg, entries, unmatched, overridden)
        self.sums.append(dict(zip(_SUMS.names, row, strict=True)))
        return self

    def report(self, unit: str | None = None) -> Report:
        rows = report_rows(
            CATALOGUE, self.year, pa.Table.from_pylist(self.sums, _SUMS), self._units()
        ).to_pylist()
        sort = "own" if unit is None else "total"
        groups: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
        for row in rows:
            if unit is None or row["unit_id"] == unit:
                groups[row["module"], row["scope"]].append(row)
        return Report(
            year=self.year,
            unit=unit,
            rows=[
                {
                    "module": module,
                    "scope": scope,
                    **{what: sum(r[f"{sort}_{what}"] for r in of) for what in ("mg", "results", "unmatched")},
                }
                for (module, scope), of in sorted(groups.items())
            ],
            units=[{"name": self.units.get(r["unit_id"], (None, ""))[1], **r} for r in rows],
            notes=self.notes,
            fallbacks=self.fallbacks,
        )

    def _units(self) -> pa.Table:
        rows = [
            {
                "year": self.year,
                "institution": "main",
                "unit_id": unit,
                "parent_id": parent,
                "name": name,
                "last_seen_job_id": 1,
            }
            for unit, (parent, name) in self.units.items()
        ]
        return pa.Table.from_pylist(rows, UNITS.schema)

    def view(self, unit: str | None = None) -> ReportView:
        return view_of(CATALOGUE, self.report(unit), self.rows(), self.context())

    def rows(self) -> PageRows:
        return PageRows(
            units=self._units().to_pylist(),
            years=[
                {"year": year, "scope": scope, "mg": mg, "unmatched": 0}
                for year, scopes in self.before.items()
                for scope, mg in zip((1, 2, 3), scopes, strict=True)
            ],
            results=self._results(),
            factors=self.factors,
            files=self.files,
            unmatched=self.unmatched,
        )

    def context(self) -> PageContext:
        return PageContext(
            institution=self.institution,
            made_at=MOMENT,
            state=ReportState(
                self.year,
                tuple(Issue(f"data_entry_emissions {n}|{self.year}", why, n) for n, why in self.old.items()),
            ),
            lock=self.lock,
            outdated_years=frozenset(self.outdated_years),
            versions={"carbon_reports 2025": "5f0c1a9be2d34d71", "units 2025": "91ab20c4e7710f3d"},
        )

    def _results(self) -> list[dict[str, Any]]:
        kinds: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self.sums:
            key = row["data_entry_type"], row["emission_type"]
            names = {"data_entry_type": key[0], "emission_type": key[1]}
            sums = kinds.setdefault(key, {**names, "mg": 0, "entries": 0, "unmatched": 0, "overridden": 0})
            sums["mg"] += row["mg_co2e"]
            for what in ("entries", "unmatched", "overridden"):
                sums[what] += row[what]
        return list(kinds.values())

    def page(self, unit: str | None = None) -> str:
        return render(self.view(unit))

    def shown(self, unit: str | None = None) -> Element:
        """The page as a strict reader sees it."""
        return fromstring(self.page(unit))


def words(element: Element) -> str:
    """The text of an element, one space between any two words."""
    return " ".join(" ".join(element.itertext()).split())


def part(shown: Element, name: str) -> Element:
    """A section of the page."""
    (found,) = (s for s in shown.iter("section") if s.get("id") == name)
    return found


def cells(table: Element) -> dict[str, list[str]]:
    """The cells of a table by the head of their row."""
    rows = [[words(cell) for cell in row] for row in table.iter("tr")]
    return {row[0]: row[1:] for row in rows}


_LEVELS = ("University", "Faculty", "Department", "Institute", "Group", "Laboratory")
_SUBJECTS = ("Physics", "Earth System Research and Applied Geochemistry", "Public Health", "Law")


def university(units: int = 300, levels: int = 6) -> World:
    """A tree of that many units, with entries of nearly every module, two years before, and a few defects."""
    world, luck = World(), Random(7)
    world.add("EU", None, "Example University")
    parents: dict[int, list[str]] = {0: ["EU"], **{level: [] for level in range(1, levels)}}
    for n in range(1, units):
        level = min(n, levels - 1) if n < levels else luck.choice(range(1, levels))
        parent = luck.choice(parents[level - 1])
        unit = f"EU-{n:03}"
        name = f"{_LEVELS[level]} of {_SUBJECTS[n % len(_SUBJECTS)]} {n}"
        parents[level].append(unit)
        world.add(unit, parent, name)
    types = [t for m in CATALOGUE.modules if m.name != "processes" for t in m.types]
    often = [CATALOGUE.type("electricity"), CATALOGUE.type("plane"), CATALOGUE.type("heating")]
    heavy = {"electricity": 9.0, "heating": 7.0, "combustion": 6.0, "plane": 4.0, "goods": 6.0}
    for unit in world.units:
        for kind in {t.name: t for t in (*often, *luck.sample(types, 5))}.values():
            entries = 1 + luck.randrange(30)
            unmatched = int(kind.name in ("goods", "hotel", "plane") and luck.random() < 0.1)
            overridden = int(kind.name == "combustion" and luck.random() < 0.2)
            for n, emission in enumerate(kind.emissions):
                mg = int(luck.expovariate(1.0) * heavy.get(kind.name, 1.0) * 10**9) >> n
                world.emit(
                    unit,
                    emission.name,
                    mg,
                    entries=entries,
                    unmatched=unmatched,
                    overridden=overridden * (n == 0),
                )
    total = [sum(r["mg"] for r in world.report().rows if r["scope"] == s) for s in (1, 2, 3)]
    world.before = {2023: [m * 117 // 100 for m in total], 2024: [m * 108 // 100 for m in total]}
    world.old = {"waste": "a new file of waste 2025 came on 1 March 2026"}
    world.notes = ("data_entry_emissions waste|2025 is not up to date: data_entries changed",)
    world.fallbacks = (
        Fallback("electricity", '{"mix":"campus plant"}', '{"mix":"grid"}', 3, 6, 7 * 10**9),
        Fallback(
            "goods", '{"category":"Café & apéro, éditions spéciales"}', '{"category":"other"}', 9, 9, 10**8
        ),
    )
    origins = (
        ("electricity", "National grid operator, residual mix 2024, location based"),
        ("plane", "Defra/DESNZ greenhouse gas reporting: conversion factors 2025, business travel – air"),
        ("goods", "EXIOBASE 3.8.2, https://doi.org/10.5281/zenodo.5589597"),
        ("catering", ""),
    )
    world.factors = [
        {"data_entry_type": t, "source": s, "factors": 1 + n, "stale": n // 4, "mg": (n + 2) * 77 * 10**9}
        for n, (t, s) in enumerate(origins)
    ]
    return world
