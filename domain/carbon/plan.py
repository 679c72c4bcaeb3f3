"""The carbon plan: from what was observed, what should be done and why.

A pure function of what was observed. A partition is due when its inputs are not those it was made from, so
an upload, a lost file, a changed rule and a missed event all lead to the same work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from domain.carbon.catalogue import Catalogue
from domain.carbon.emissions import FORMULA
from domain.carbon.feeds import FEED_TABLES, FeedChange, changes_to_read
from domain.carbon.jobs import AGGREGATION, KIND_OF, PRIORITY
from domain.carbon.observed import Observed
from domain.carbon.patience import is_spent
from domain.carbon.reports import scopes
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
from domain.shared.table import ABSENT
from domain.shared.verdict import (
    INPUT_MISSING,
    Plan,
    Verdict,
    Wrong,
    changed_inputs,
    due,
    fault,
    outdated,
    waiting,
    waits_for,
)
from domain.shared.work import split_key

NO_FILES = "no_files"
"""The reason code of lost partitions of which no upload is known."""
NOT_INDEXED = "not_indexed"
"""The reason code of partitions that wait for `perennial carbon reindex`."""
YEAR_LOCKED = "year_locked"
"""The reason code of partitions that would be due, or wait, if their year were not locked."""
UNKNOWN_TYPE = "unknown_type"
YEAR_OUTSIDE = "year_outside"
"""The reason code of what an application has of a type that the catalogue does not have."""
UNCOUNTED = "uncounted"
"""The reason code of entries whose type was removed from the catalogue."""
RULES_CHANGED: Wrong = "stale", "rules_changed", "the rules of its type changed since it was made"


def plan(catalogue: Catalogue, seen: Observed) -> Plan:
    """Return the verdicts, upstream first."""
    verdicts = [*_feeds(catalogue, seen), *_intake(catalogue, seen), *_uncounted(catalogue, seen)]
    verdicts += _emissions(catalogue, seen)
    verdicts += _reports(catalogue, seen, verdicts)
    return Plan(tuple(verdicts))


# Feeds: the units, factors and entries that an application has are those that were read from it.


def _feeds(catalogue: Catalogue, seen: Observed) -> Iterator[Verdict]:
    for kind in FEED_TABLES:
        by_partition: dict[str, list[FeedChange]] = defaultdict(list)
        for one in seen.feed_changes:
            if one.kind == kind:
                by_partition[one.partition].append(one)
        for _, changes in sorted(by_partition.items()):
            yield _judge_feed(catalogue, seen, changes)


def _judge_feed(catalogue: Catalogue, seen: Observed, changes: Sequence[FeedChange]) -> Verdict:
    one = changes[0]
    name = one.data_entry_type
    if name and name not in catalogue.types:
        reason = (
            f"an application has {one.kind} of {name!r} for {one.year}, and the catalogue has no such type"
        )
        return Verdict(one.table, one.partition, "waiting", UNKNOWN_TYPE, reason)
    units = units_of_feed(seen, one)
    wanted = changes_to_read(changes, seen.feed_read_of(one.key), units)
    if not wanted:
        return Verdict(one.table, one.partition, "healthy", reason=f"read from {len(changes)} scopes")
    scopes_of = ", ".join(one.scope for one in wanted)
    wrong: Wrong = "stale", "feed_changed", f"not read since it changed: {scopes_of}"
    found = (seen.feeds, units, *(f"{one.scope} {one.version}" for one in wanted))
    return _due(seen, one.table, one.partition, wrong, found)


def units_of_feed(seen: Observed, change: FeedChange) -> str:
    """Return the version of the units that entries are checked against; nothing else is."""
    # That they cannot be read now is no reason to read all entries again.
    return str(seen.state(UNITS.table, str(change.year)).last_known) if change.kind == "entries" else ""


# Intake: a partition is made from the newest uploads of its scopes.


def units_inputs(seen: Observed, year: int) -> dict[str, str]:
    return _made_of(u.id for u in seen.newest_uploads("units", "", year))


def factors_inputs(seen: Observed, year: int) -> dict[str, str]:
    """Return all uploads of factors, as each adds to those before; also those deleted from the ledger since
    they were imported."""
    numbers = {u.id for u in seen.uploads if u.kind == "factors" and year in u.years}
    states = [seen.state(t.table, str(year)) for t in (FACTORS, FACTOR_VERSIONS)]
    if all(state.untouched for state in states):
        numbers |= {int(n) for n in _numbers(states[0].inputs)}
    return _made_of(numbers)


def entries_inputs(catalogue: Catalogue, seen: Observed, partition: str) -> dict[str, str]:
    name = name_of(partition)
    newest = seen.newest_uploads("data", name, year_of(partition))
    return _made_of(u.id for u in newest) | {"rules": digest(catalogue.type(name).rules)}


def _made_of(numbers: Iterable[int]) -> dict[str, str]:
    joined = ",".join(map(str, sorted(numbers)))
    return {"uploads": joined} if joined else {}


def _intake(catalogue: Catalogue, seen: Observed) -> Iterator[Verdict]:
    for year in seen.years_of("units"):
        yield _judge_intake(seen, [UNITS.table], str(year), units_inputs(seen, year))
    for year in seen.years_of("factors"):
        tables = [FACTORS.table, FACTOR_VERSIONS.table]
        yield _judge_intake(seen, tables, str(year), factors_inputs(seen, year))
    for partition in seen.entry_partitions(catalogue):
        inputs = entries_inputs(catalogue, seen, partition)
        yield _judge_intake(seen, [DATA_ENTRIES.table], partition, inputs)


def needs_uploads(catalogue: Catalogue, seen: Observed) -> bool:
    """Return whether any partition is about to be made from uploads, or lacks them."""
    return any(verdict.due or verdict.reason_code == NO_FILES for verdict in _intake(catalogue, seen))


def _uncounted(catalogue: Catalogue, seen: Observed) -> Iterator[Verdict]:
    """Yield verdicts on entries of removed types: the next report would be smaller without a reason."""
    for partition in seen.partitions(DATA_ENTRIES.table):
        name, rows = name_of(partition), seen.state(DATA_ENTRIES.table, partition).version.rows
        if name not in catalogue.types and rows:
            reason = f"its {rows:,} entries are in no new report: the catalogue has no type {name!r}"
            yield Verdict(DATA_ENTRIES.table, partition, "waiting", UNCOUNTED, reason)


def _judge_intake(seen: Observed, tables: list[str], partition: str, inputs: Mapping[str, str]) -> Verdict:
    """Return the verdict on a partition made from uploads, of all tables that are written together."""
    states = [seen.state(t, partition) for t in tables]
    fresh = _numbers(inputs) - _numbers(states[0].inputs)
    arrived = seen.known_uploads
    pipelines = tuple(sorted({arrived[int(n)].pipeline_id for n in fresh if int(n) in arrived}))
    if blocked := waits_for(states, {}):
        return Verdict(tables[0], partition, *blocked, pipelines=pipelines)
    wrong = _intake_fault(seen, states, inputs, fresh)
    if wrong is None:
        return _healthy(tables[0], partition, states[0])
    reason = wrong[2]
    if seen.not_indexed:
        reason = f"{reason}; {seen.not_indexed:,} staged uploads are not indexed"
        verdict = Verdict(tables[0], partition, "waiting", NOT_INDEXED, reason, pipelines=pipelines)
        return _unless_locked(seen, verdict)
    if not _numbers(inputs):
        reason = f"{reason}, and no upload of it is known: upload it again"
        return Verdict(tables[0], partition, "waiting", NO_FILES, reason)
    records = (*(str(c.version) for c in states), *(str(c.recorded) for c in states), digest(inputs))
    return _due(seen, tables[0], partition, wrong, records, pipelines)


def _intake_fault(
    seen: Observed, states: list[PartitionState], inputs: Mapping[str, str], fresh: Collection[str]
) -> Wrong | None:
    not_imported = f"uploads not imported yet: {len(fresh)}"
    for state in states:
        if state.never_made and fresh:
            return "missing", "uploaded", not_imported
        if wrong := fault(state):
            return wrong
    if states[0].inputs == inputs or _without_forgotten(seen, states[0].inputs) == inputs:
        return None
    return ("stale", "uploaded", not_imported) if fresh else RULES_CHANGED


def _numbers(inputs: Mapping[str, str]) -> set[str]:
    return set(inputs.get("uploads", "").split(",")) - {""}


def _without_forgotten(seen: Observed, inputs: Mapping[str, str]) -> dict[str, str]:
    """Return inputs without the uploads that the ledger knows no more: their rows stay."""
    kept = _made_of(int(n) for n in _numbers(inputs) if int(n) in seen.known_uploads)
    return {name: value for name, value in inputs.items() if name != "uploads"} | kept


# Emissions: from the entries, the factors of their type, and the type's formula.


def emissions_inputs(catalogue: Catalogue, seen: Observed, partition: str) -> dict[str, str] | None:
    """Return the inputs of emissions; None while the entries or the factors are not what was imported."""
    entries = seen.state(DATA_ENTRIES.table, partition)
    year = year_of(partition)
    factors, recorded = seen.factor_digests.get(year), seen.state(FACTORS.table, str(year))
    if not entries.untouched or factors is None or not (recorded.untouched or recorded.never_made):
        return None
    name = name_of(partition)
    return {
        "entries": str(entries.version),
        "factors": factors.get(name, "none"),
        # An edited formula calculates emissions anew, and imports no entries again.
        "rules": digest([*catalogue.type(name).rules, FORMULA]),
    }


def _emissions(catalogue: Catalogue, seen: Observed) -> Iterator[Verdict]:
    for partition in seen.entry_partitions(catalogue):
        if blocked := waits_for([seen.state(EMISSIONS.table, partition)], {}):
            yield Verdict(EMISSIONS.table, partition, *blocked)
            continue
        inputs = emissions_inputs(catalogue, seen, partition)
        if inputs is None:
            yield from _not_yet_calculated(seen, partition)
            continue
        name, year = name_of(partition), str(year_of(partition))
        causes = {
            "entries": seen.state(DATA_ENTRIES.table, partition).pipelines,
            "factors": seen.state(FACTORS.table, year).detail.get("pipelines_by_type", {}).get(name, ()),
        }
        yield _judge_derived(seen, EMISSIONS.table, partition, inputs, causes)


def _not_yet_calculated(seen: Observed, partition: str) -> Iterator[Verdict]:
    """Yield a verdict if entries were imported, never calculated, and then they or the factors were lost or
    altered: the pipelines of their uploads still wait for emissions."""
    entries = seen.state(DATA_ENTRIES.table, partition)
    made_from = seen.state(EMISSIONS.table, partition).inputs.get("entries")
    if entries.recorded is not None and made_from != str(entries.recorded):
        blocked: Wrong = "waiting", INPUT_MISSING, "its entries and factors are not what was imported"
        pipelines = tuple(sorted(entries.pipelines))
        yield _unless_locked(seen, Verdict(EMISSIONS.table, partition, *blocked, pipelines=pipelines))


# Reports: from all emissions of the year, once nothing of them is about to change.


def module_inputs(catalogue: Catalogue, seen: Observed, partition: str) -> dict[str, str]:
    name, year = partition.split("|", 1)
    types = [t.name for t in catalogue.module(name).types]
    return _of_types(seen, types, year) | {"scopes": digest(dict(scopes(catalogue)))}


def report_inputs(catalogue: Catalogue, seen: Observed, year: str) -> dict[str, str]:
    units = seen.state(UNITS.table, year)
    return _of_types(seen, catalogue.types, year) | {
        "scopes": digest(dict(scopes(catalogue))),
        "units": str(units.version),
    }


def _of_types(seen: Observed, types: Iterable[str], year: str) -> dict[str, str]:
    states = {t: seen.state(EMISSIONS.table, f"{t}|{year}") for t in types}
    return {t: str(state.version) for t, state in states.items() if state.version != ABSENT}


def _reports(catalogue: Catalogue, seen: Observed, upstream: Collection[Verdict]) -> Iterator[Verdict]:
    moving = _moving(catalogue, seen, upstream)
    for year in seen.report_years():
        for module in catalogue.modules:
            partition = f"{module.name}|{year}"
            inputs = module_inputs(catalogue, seen, partition)
            if len(inputs) > 1 or seen.state(REPORT_MODULES.table, partition).version != ABSENT:
                types = [t.name for t in module.types]
                yield _judge_sums(seen, REPORT_MODULES.table, partition, types, inputs, moving)
        inputs = report_inputs(catalogue, seen, str(year))
        yield _judge_sums(seen, REPORTS.table, str(year), list(catalogue.types), inputs, moving)


def _moving(catalogue: Catalogue, seen: Observed, upstream: Iterable[Verdict]) -> set[int]:
    """Return the years that are not summed yet, as work of them is due or under way.

    Deferred, failed and cancelled work delays no report: it names the types that are old.
    """
    soon = {
        year_of(v.partition)
        for v in upstream
        if v.due and seen.work.get(v.key) != "deferred" and v.key not in seen.refused
    }
    for key, status in seen.work.items():
        table, partition = split_key(key)
        known = "|" not in partition or name_of(partition) in catalogue.types
        if status in ("queued", "running") and KIND_OF.get(table, AGGREGATION) != AGGREGATION and known:
            soon.add(year_of(partition))
    return soon


def _judge_sums(
    seen: Observed,
    table: str,
    partition: str,
    types: Iterable[str],
    inputs: Mapping[str, str],
    moving: Collection[int],
) -> Verdict:
    """Return the verdict on sums, which wait while an input is lost, or within patience while one changes."""
    year = year_of(partition)
    made_from = {t: seen.state(EMISSIONS.table, f"{t}|{year}") for t in types}
    if table == REPORTS.table:
        made_from["units"] = seen.state(UNITS.table, str(year))
    # A change made by another program belongs to no pipeline.
    causes = {n: c.pipelines for n, c in made_from.items() if c.untouched}
    verdict = _judge_derived(seen, table, partition, inputs, causes)
    if not verdict.due:
        return verdict
    broken = any(state.lost for state in made_from.values())
    if year in moving and not broken and is_spent(seen.now, seen.state(table, partition), inputs, made_from):
        return replace(verdict, reason=f"{verdict.reason}; {year} keeps changing, and it waits no longer")
    if blocked := waits_for([], made_from):
        return waiting(verdict, blocked[2], blocked[1])
    if year in moving or broken:
        return waiting(verdict, f"{verdict.reason}; it waits for the calculations of {year}")
    return verdict


# What all have in common


def _judge_derived(
    seen: Observed,
    table: str,
    partition: str,
    inputs: Mapping[str, str],
    causes: Mapping[str, Iterable[str]],
) -> Verdict:
    state = seen.state(table, partition)
    if blocked := waits_for([state], {}):
        return Verdict(table, partition, *blocked)
    changed = changed_inputs(state, inputs)
    wrong = _wrong(state, changed)
    if wrong is None:
        return _healthy(table, partition, state)
    pipelines = tuple(sorted({p for k in changed for p in causes.get(k, ())}))
    found = (str(state.version), str(state.recorded), digest(dict(inputs)))
    return _due(seen, table, partition, wrong, found, pipelines)


def _wrong(state: PartitionState, changed: list[str]) -> Wrong | None:
    wrong = fault(state)
    # Rules also say how a version is counted: after an upgrade the content differs from its record.
    if "rules" in changed and state.recorded is not None and (wrong is None or wrong[0] == "changed"):
        return RULES_CHANGED
    return wrong or (outdated(changed) if changed else None)


def _healthy(table: str, partition: str, state: PartitionState) -> Verdict:
    return Verdict(table, partition, "healthy", reason=f"{state.version.rows:,} rows")


def _due(
    seen: Observed,
    table: str,
    partition: str,
    wrong: Wrong,
    found: tuple[str, ...],
    pipelines: tuple[str, ...] = (),
) -> Verdict:
    verdict, kind = Verdict(table, partition, *wrong, pipelines=pipelines), KIND_OF[table]
    return _unless_locked(seen, due(verdict, kind, PRIORITY[kind], *found))


def _unless_locked(seen: Observed, verdict: Verdict) -> Verdict:
    year = year_of(verdict.partition)
    if (reason := seen.locked.get(year)) is None:
        return verdict
    return waiting(verdict, f"{verdict.reason}, but {year} is locked: {reason}", YEAR_LOCKED)
