"""Carbon accounting in memory: uploads, tables and their records.

`World.work` does what the asset of a due verdict would do. Equal contents have equal versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from domain.carbon.catalogue import Catalogue, parse
from domain.carbon.feeds import FeedRead
from domain.carbon.observed import CurrentUpload, Observed
from domain.carbon.patience import UNSUMMED_SINCE, unsummed_since
from domain.carbon.plan import (
    emissions_inputs,
    entries_inputs,
    factors_inputs,
    module_inputs,
    plan,
    report_inputs,
    units_inputs,
)
from domain.carbon.report_state import ReportState, report_state
from domain.carbon.tables import (
    DATA_ENTRIES,
    EMISSIONS,
    FACTOR_VERSIONS,
    FACTORS,
    REPORT_MODULES,
    REPORTS,
    UNITS,
    name_of,
    year_of,
)
from domain.shared.hashing import digest
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT, Version
from domain.shared.verdict import Plan, Verdict

TREE, VALUES, PAST = UNITS.table, FACTORS.table, FACTOR_VERSIONS.table
ENTRIES, MASSES = DATA_ENTRIES.table, EMISSIONS.table
MODULES, REPORT = REPORT_MODULES.table, REPORTS.table
TYPES = ("plane", "train", "power")
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
BROKEN = Version(0, "", corrupt=True)
UNAVAILABLE = Version(0, "", unavailable="file:///lake/x.parquet cannot be read now: Input/output error")

_TYPE = """
      {name}:
        title: {name}
        description: {name}
        method: by hand
        unit: km
        plus: {plus}
        emissions: {{{name}: {{scope: 3, category: other}}}}
        columns: {{amount: {{role: amount, description: how much, example: 1}}}}"""
_MODULES = {"travel": ("plane", "train"), "buildings": ("power",)}


@cache
def a_catalogue(changed: frozenset[str] = frozenset(), lost: frozenset[str] = frozenset()) -> Catalogue:
    """Two modules with three types; of the `changed` ones with another formula, without the `lost` ones."""
    text = "modules:"
    for module, names in _MODULES.items():
        kept = [name for name in names if name not in lost]
        if kept:
            text += f"\n  {module}:\n    title: {module}\n    description: {module}\n    types:"
        for name in kept:
            text += _TYPE.format(name=name, plus=int(name in changed))
    return parse(text)


def holding(words: Any) -> Version:
    """The version of a partition that holds this; nothing at all is no partition."""
    return Version(len(str(words)), digest(words)) if words else ABSENT


@dataclass(frozen=True)
class Made:
    """By table what shall lie in a partition, of what it was made, and who changed the factors of a type."""

    contents: Mapping[str, Any]
    inputs: Mapping[str, str]
    by_type: Mapping[str, list[str]] = field(default_factory=dict)
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class World:
    """`contents` is what the lake holds, `states` what the plan observes."""

    catalogue: Catalogue = field(default_factory=a_catalogue)
    uploads: list[CurrentUpload] = field(default_factory=list)
    says: dict[int, Any] = field(default_factory=dict)
    """By upload: of factors the value of each type, of others any words."""
    states: dict[tuple[str, str], PartitionState] = field(default_factory=dict)
    contents: dict[tuple[str, str], Any] = field(default_factory=dict)
    locked: dict[int, str] = field(default_factory=dict)
    statuses: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    feed_reads: dict[str, FeedRead] = field(default_factory=dict)
    silent: dict[str, datetime | None] = field(default_factory=dict)
    now: datetime = NOON

    @classmethod
    def reported(cls, *years: int) -> World:
        """Units, factors and entries of each type were uploaded, and all that follows was done."""
        world = cls()
        for year in years or (2025,):
            world.upload("units", year, says=f"tree of {year}")
            world.upload("factors", year, says=dict.fromkeys(TYPES, 1))
            for name in TYPES:
                world.upload(name, year, says=f"{name} of {year}")
        world.settle()
        return world

    # What people and accidents do

    def upload(
        self,
        what: str,
        *years: int,
        says: Any = "rows",
        institution: str = "main",
        source: str = "csv",
        left_out: int = 0,
    ) -> CurrentUpload:
        """`what` is units, factors, or a type, in a file of ten rows. The chain it begins is named after its
        number."""
        kind, topic = (what, "") if what in ("units", "factors") else ("data", what)
        number = 1 + max(self.says, default=0)
        chain, name = f"chain {number}", f"{what}-{number}.csv"
        one = CurrentUpload(
            number, kind, topic, institution, source, years or (2025,), chain, name, 10, 10 - left_out
        )
        self.uploads.append(one)
        self.says[number] = says
        return one

    def wait(self, **for_: float) -> None:
        self.now += timedelta(**for_)

    def forget_upload(self, *gone: CurrentUpload) -> None:
        self.uploads = [u for u in self.uploads if u not in gone]

    def put(self, table: str, partition: object, content: Any) -> None:
        """Rows that nobody of us put there, or that nobody came to record."""
        place = table, str(partition)
        self.contents[place] = content
        self.states[place] = replace(self.states.get(place, PartitionState()), version=holding(content))
        if self.states[place].recorded is None and not content:
            del self.states[place]  # neither there nor ever there

    def lose(self, table: str, partition: object = 2025) -> None:
        self.put(table, partition, None)

    def edit(self, table: str, partition: object = 2025, words: Any = "by hand") -> None:
        self.put(table, partition, {"plane": words} if table in (VALUES, PAST) else words)

    def corrupt(self, table: str, partition: object = 2025) -> None:
        place = table, str(partition)
        self.contents[place] = None
        self.states[place] = replace(self.states[place], version=BROKEN)

    def withhold(self, table: str, partition: object = 2025) -> None:
        """Make its file unavailable; its content stays."""
        self.states[table, str(partition)] = replace(self.states[table, str(partition)], version=UNAVAILABLE)

    def give_back(self, table: str, partition: object = 2025) -> None:
        place = table, str(partition)
        self.states[place] = replace(self.states[place], version=holding(self.contents[place]))

    def record(
        self,
        table: str,
        partition: object,
        inputs: Mapping[str, str],
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep that what lies there is ours, and of what it was made."""
        place = table, str(partition)
        old = self.states.get(place, PartitionState())
        held = old.version
        first = old.committed_at if old.recorded == held else self.now
        self.states[place] = PartitionState(
            version=held,
            recorded=held,
            committed_at=first,
            checked_at=self.now,
            inputs=dict(inputs),
            detail=dict(detail or {}),
        )

    # Observation

    @property
    def observed(self) -> Observed:
        return Observed(
            states=dict(self.states),
            uploads=tuple(self.uploads),
            factor_digests=self._digests(),
            locked=dict(self.locked),
            work=dict(self.statuses),
            refused=frozenset(self.refused),
            feed_reads=dict(self.feed_reads),
            silent=dict(self.silent),
            now=self.now,
        )

    def _digests(self) -> dict[int, dict[str, str]]:
        """Of each year whose factors can be read, a digest of each type that has any."""
        found = {}
        for year in {year_of(partition) for _, partition in self.states}:
            state = self.states.get((VALUES, str(year)), PartitionState())
            if state.version.readable and (state.recorded is None or state.untouched):
                values = self.contents.get((VALUES, str(year))) or {}
                found[year] = {name: digest([name, value]) for name, value in values.items()}
        return found

    @property
    def plan(self) -> Plan:
        return plan(self.catalogue, self.observed)

    def report_state(self, year: int = 2025) -> ReportState:
        return report_state(self.catalogue, self.observed, self.plan.verdicts, year)

    def verdict(self, table: str, partition: object = 2025) -> Verdict:
        [verdict] = [v for v in self.plan.verdicts if (v.table, v.partition) == (table, str(partition))]
        return verdict

    def due(self) -> set[str]:
        return {v.key for v in self.plan.due}

    def judged(self) -> dict[str, str]:
        """What is not healthy, and what it is instead."""
        return {v.key: "due" if v.due else v.state for v in self.plan.verdicts if v.state != "healthy"}

    # What the assets do

    def settle(self) -> int:
        """Work until nothing is due and return the number of passes."""
        for passes in range(10):
            due = self.plan.due
            if not due:
                return passes
            for verdict in due:
                self.work(verdict)
        raise AssertionError(f"the plan never ends: {self.due()}")

    def work(self, verdict: Verdict, *, dies: bool = False) -> None:
        """What the asset of this table does with this partition; it may die before it records what it did."""
        made = self.build(verdict.table, verdict.partition)
        if made is not None:
            self.commit(verdict, made, dies=dies)

    def build(self, table: str, partition: str) -> Made | None:
        """What shall lie there, and of what it is made, noted before that is read."""
        seen = self.observed
        if table == TREE:
            inputs = units_inputs(seen, int(partition))
            content = self._said(seen.newest_uploads("units", "", int(partition)))
            return Made({TREE: content}, inputs) if inputs else None
        if table == VALUES:
            return self._merged(partition)
        if table == ENTRIES:
            name = name_of(partition)
            content = self._said(seen.newest_uploads("data", name, year_of(partition)))
            inputs = entries_inputs(self.catalogue, seen, partition)
            return Made({ENTRIES: content}, inputs) if content else None
        if table == MASSES:
            found = emissions_inputs(self.catalogue, seen, partition)
            since = unsummed_since(seen, partition) or self.now
            detail = {UNSUMMED_SINCE: since.isoformat()}
            content = {MASSES: self._calculated(partition)}
            return None if found is None else Made(content, found, detail=detail)
        if table == REPORT:
            inputs = report_inputs(self.catalogue, seen, partition)
            return Made({REPORT: self._summed(self.catalogue.types, partition)}, inputs)
        names = [t.name for t in self.catalogue.module(name_of(partition)).types]
        inputs = module_inputs(self.catalogue, seen, partition)
        return Made({MODULES: self._summed(names, str(year_of(partition)))}, inputs)

    def commit(self, verdict: Verdict, made: Made, *, dies: bool = False) -> None:
        for table, content in made.contents.items():
            self.put(table, verdict.partition, content)
        if not dies:
            chains = {"pipelines": list(verdict.pipelines), "pipelines_by_type": made.by_type}
            detail = chains | dict(made.detail)
            for table in made.contents:
                self.record(table, verdict.partition, made.inputs, detail)

    def _said(self, uploads: Iterable[CurrentUpload]) -> list[Any]:
        return [self.says[u.id] for u in uploads]

    def _merged(self, year: str) -> Made | None:
        """As the asset: what the tables hold with the newer files added, or all files from the first on."""
        inputs = factors_inputs(self.observed, int(year))
        if not inputs:
            return None
        wanted = [int(n) for n in inputs["uploads"].split(",")]
        states = [self.states.get((t, year), PartitionState()) for t in (VALUES, PAST)]
        done = [int(n) for n in states[0].inputs.get("uploads", "").split(",") if n]
        adds = all(c.untouched for c in states) and wanted[: len(done)] == done
        values = dict(self.contents.get((VALUES, year)) or {}) if adds else {}
        by_type = dict(states[0].detail.get("pipelines_by_type", {})) if adds else {}
        chains = {u.id: u.pipeline_id for u in self.uploads}
        for number in wanted[len(done) :] if adds else wanted:
            changed = {t: v for t, v in self.says[number].items() if values.get(t) != v}
            values |= changed
            by_type |= {t: [chains[number]] for t in changed}
        return Made({PAST: {"of": values}, VALUES: values}, inputs, by_type)

    def _calculated(self, partition: str) -> Any:
        entries = self.contents.get((ENTRIES, partition))
        factor = (self.contents.get((VALUES, str(year_of(partition)))) or {}).get(name_of(partition))
        return [entries, factor] if entries else None

    def _summed(self, types: Iterable[str], year: str) -> Any:
        masses = {t: self.contents.get((MASSES, f"{t}|{year}")) for t in types}
        return {t: mass for t, mass in masses.items() if mass} or None
