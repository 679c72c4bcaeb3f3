"""The carbon plan: from what was observed, what should be done and why.

A pure function of state. Each partition is due when what it was made from is not what is there now, so an
upload, a lost file, a changed rule and a missed event all lead to the same work.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from domain.carbon.catalogue import Catalogue
from domain.carbon.emissions import FORMULA
from domain.carbon.feeds import changes_to_read
from domain.carbon.jobs import AGGREGATION, FEED_ENTRIES, KIND_OF
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
)
from domain.carbon.verdict import Plan, Verdict, year_of
from domain.shared.hashing import digest
from domain.shared.state import PartitionState, fault, waits_for
from domain.shared.table import ABSENT

__all__ = [
    "Plan",
    "Verdict",
    "emissions_inputs",
    "entries_inputs",
    "factors_inputs",
    "module_inputs",
    "needs_uploads",
    "plan",
    "report_inputs",
    "units_inputs",
    "year_of",
]


NO_FILES = "no_files"
"""The reason code of lost partitions of which no upload is known."""
NOT_INDEXED = "not_indexed"
"""The reason code of partitions that wait for `perennial carbon reindex`."""


def plan(catalogue: Catalogue, seen: Observed) -> Plan:
    """Everything a look has an opinion on, upstream first."""
    verdicts = [*_pulls(catalogue, seen), *_intake(catalogue, seen), *_uncounted(catalogue, seen)]
    verdicts += _emissions(catalogue, seen)
    verdicts += _reports(catalogue, seen, verdicts)
    return Plan(tuple(verdicts))


# Feeds: what applications have is what was read of them.


def _pulls(catalogue: Catalogue, seen: Observed) -> Iterator[Verdict]:
    for partition in sorted({one.partition for one in seen.feed_changes}):
        name, year = partition.split("|", 1)[0], year_of(partition)
        if name not in catalogue.types:
            why = f"an application has entries of {name!r} for {year}, and the catalogue has no such type"
            yield Verdict(FEED_ENTRIES, partition, "waits", "unknown_type", why)
            continue
        # That they cannot be read now is no reason to read all entries again.
        units = str(seen.state(UNITS.table, str(year)).last_known)
        changes = [one for one in seen.feed_changes if one.partition == partition]
        wanted = changes_to_read(changes, seen.feed_read_of(partition), units)
        if not wanted:
            yield Verdict(FEED_ENTRIES, partition, "healthy", "", f"read from {len(changes)} scopes")
            continue
        why = f"not read since it changed: {', '.join(one.scope for one in wanted)}"
        found = (seen.feeds, units, *(f"{one.scope} {one.version}" for one in wanted))
        yield _wanted(seen, FEED_ENTRIES, partition, "feed_changed", why, found)


# Intake: a partition is what the newest uploads of its places say.


def units_inputs(seen: Observed, year: int) -> dict[str, str]:
    return _made_of(u.id for u in seen.newest_uploads("units", "", year))


def factors_inputs(seen: Observed, year: int) -> dict[str, str]:
    """All of them, in their order: an upload adds to what was there before. So do those that the ledger has
    forgotten since, while the tables still hold what they brought."""
    numbers = {u.id for u in seen.uploads if u.kind == "factors" and year in u.years}
    states = [seen.state(t.table, str(year)) for t in (FACTORS, FACTOR_VERSIONS)]
    if all(state.untouched for state in states):
        numbers |= {int(n) for n in _numbers(states[0].inputs)}
    return _made_of(numbers)


def entries_inputs(catalogue: Catalogue, seen: Observed, partition: str) -> dict[str, str]:
    name = partition.split("|", 1)[0]
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
    """Entries of types that the catalogue lost: the next report would be smaller without a word."""
    for partition in seen.partitions(DATA_ENTRIES.table):
        name, rows = partition.split("|", 1)[0], seen.state(DATA_ENTRIES.table, partition).version.rows
        if name not in catalogue.types and rows:
            why = f"its {rows:,} entries are in no new report: the catalogue has no type {name!r}"
            yield Verdict(DATA_ENTRIES.table, partition, "waits", "unknown_type", why)


def _judge_intake(seen: Observed, tables: list[str], partition: str, inputs: Mapping[str, str]) -> Verdict:
    """A partition that files fill, with those of its tables that are filled together."""
    states = [seen.state(t, partition) for t in tables]
    fresh = _numbers(inputs) - _numbers(states[0].inputs)
    arrived = seen.known_uploads
    pipelines = tuple(sorted({arrived[int(n)].pipeline_id for n in fresh if int(n) in arrived}))
    if waits := waits_for(states, {}):
        return Verdict(tables[0], partition, "waits", *waits, pipelines=pipelines)
    faults = (_fault(state, fresh) for state in states)
    wrong = next(filter(None, faults), None) or _outdated(seen, states[0], inputs, fresh)
    if wrong is None:
        return _healthy(tables[0], partition, states[0])
    if seen.not_indexed:
        why = f"{wrong[1]}; {seen.not_indexed:,} staged uploads are not indexed"
        blocked = Verdict(tables[0], partition, "waits", NOT_INDEXED, why, pipelines=pipelines)
        return _unless_locked(seen, blocked)
    if not _numbers(inputs):
        why = f"{wrong[1]}, and no file of it is known: it is to be uploaded"
        return Verdict(tables[0], partition, "waits", NO_FILES, why)
    records = (*(str(c.version) for c in states), *(str(c.recorded) for c in states), digest(inputs))
    return _wanted(seen, tables[0], partition, *wrong, records, pipelines)


def _fault(state: PartitionState, fresh: Collection[str]) -> tuple[str, str] | None:
    never = state.recorded is None and state.version == ABSENT
    return _uploaded(fresh) if never and fresh else fault(state, "taken in")


def _outdated(
    seen: Observed, state: PartitionState, inputs: Mapping[str, str], fresh: Collection[str]
) -> tuple[str, str] | None:
    if state.inputs == inputs or _without_forgotten(seen, state.inputs) == inputs:
        return None
    return _uploaded(fresh) if fresh else ("rules_changed", "the type's formula changed")


def _uploaded(fresh: Collection[str]) -> tuple[str, str]:
    return "uploaded", f"{len(fresh)} uploaded files wait to be taken in"


def _numbers(inputs: Mapping[str, str]) -> set[str]:
    return set(inputs.get("uploads", "").split(",")) - {""}


def _without_forgotten(seen: Observed, inputs: Mapping[str, str]) -> dict[str, str]:
    """As if the files that the ledger knows no more had not been: that they are forgotten unmakes nothing."""
    kept = _made_of(int(n) for n in _numbers(inputs) if int(n) in seen.known_uploads)
    return {name: value for name, value in inputs.items() if name != "uploads"} | kept


# Emissions: from the entries, the factors of their type, and the type's formula.


def emissions_inputs(catalogue: Catalogue, seen: Observed, partition: str) -> dict[str, str] | None:
    """None while the entries or the factors are not what they should be. Entries that were emptied are what
    they should be: nothing is caused any more."""
    entries = seen.state(DATA_ENTRIES.table, partition)
    year = year_of(partition)
    factors = seen.factor_digests.get(year)
    if not entries.untouched or factors is None or not _is_settled(seen.state(FACTORS.table, str(year))):
        return None
    name = partition.split("|", 1)[0]
    return {
        "entries": str(entries.version),
        "factors": factors.get(name, "none"),
        # An edited formula calculates emissions anew, and imports no entries again.
        "rules": digest([*catalogue.type(name).rules, FORMULA]),
    }


def _is_settled(state: PartitionState) -> bool:
    """What we recorded, or nothing at all."""
    return state.untouched or (state.recorded is None and state.version == ABSENT)


def _emissions(catalogue: Catalogue, seen: Observed) -> Iterator[Verdict]:
    for partition in seen.entry_partitions(catalogue):
        if waits := waits_for([seen.state(EMISSIONS.table, partition)], {}):
            yield Verdict(EMISSIONS.table, partition, "waits", *waits)
            continue
        inputs = emissions_inputs(catalogue, seen, partition)
        if inputs is None:
            yield from _not_yet_calculated(seen, partition)
            continue
        name, year = partition.split("|", 1)[0], str(year_of(partition))
        causes = {
            "entries": seen.state(DATA_ENTRIES.table, partition).detail.get("pipelines", ()),
            "factors": seen.state(FACTORS.table, year).detail.get("pipelines_by_type", {}).get(name, ()),
        }
        yield _judge_derived(seen, EMISSIONS.table, partition, inputs, causes)


def _not_yet_calculated(seen: Observed, partition: str) -> Iterator[Verdict]:
    """Entries that were ingested before they or the factors were lost or altered: the pipelines of their
    uploads still wait for emissions."""
    entries = seen.state(DATA_ENTRIES.table, partition)
    made_from = seen.state(EMISSIONS.table, partition).inputs.get("entries")
    if entries.recorded is not None and made_from != str(entries.recorded):
        why = "it comes after its entries and factors, which are not what was taken in"
        pipelines = tuple(sorted(entries.detail.get("pipelines", ())))
        yield _unless_locked(
            seen, Verdict(EMISSIONS.table, partition, "waits", "input_missing", why, pipelines=pipelines)
        )


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
    """Years that are not to be summed yet: something of them is due or under way.

    What was put off, or will not be done because it failed or was called off, holds nothing back: the report
    then says which types are old. A failure of the past says nothing of what is wanted now.
    """
    soon = {
        v.year for v in upstream if v.due and seen.work.get(v.key) != "deferred" and v.key not in seen.refused
    }
    for key, status in seen.work.items():
        table, partition = key.split(":", 1)
        known = "|" not in partition or partition.split("|", 1)[0] in catalogue.types
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
    """What cannot be read, or is gone, is not summed either: the report as it was says more. What is about to
    change is waited for, within patience."""
    year = year_of(partition)
    made_from = {t: seen.state(EMISSIONS.table, f"{t}|{year}") for t in types}
    if table == REPORTS.table:
        made_from["units"] = seen.state(UNITS.table, str(year))
    # A change made by another program belongs to no pipeline.
    causes = {n: c.detail.get("pipelines", ()) for n, c in made_from.items() if c.untouched}
    verdict = _judge_derived(seen, table, partition, inputs, causes)
    if not verdict.due:
        return verdict
    broken = any(map(_is_broken, made_from.values()))
    if year in moving and not broken and is_spent(seen.now, seen.state(table, partition), inputs, made_from):
        return replace(verdict, why=f"{verdict.why}; {year} keeps changing, and it waits no longer")
    if waits := waits_for([], made_from):
        return replace(verdict, state="waits", reason_code=waits[0], why=waits[1], fingerprint="")
    if year in moving or broken:
        why = f"{verdict.why}; it waits for the calculations of {year}"
        return replace(verdict, state="waits", why=why, fingerprint="")
    return verdict


def _is_broken(state: PartitionState) -> bool:
    gone = state.version == ABSENT and state.recorded not in (None, ABSENT)
    return gone or not state.version.readable


# What all have in common


def _judge_derived(
    seen: Observed,
    table: str,
    partition: str,
    inputs: Mapping[str, str],
    causes: Mapping[str, Iterable[str]],
) -> Verdict:
    state = seen.state(table, partition)
    if waits := waits_for([state], {}):
        return Verdict(table, partition, "waits", *waits)
    changed = sorted(k for k in inputs.keys() | state.inputs.keys() if inputs.get(k) != state.inputs.get(k))
    pipelines = tuple(sorted({p for k in changed for p in causes.get(k, ())}))
    found = (str(state.version), str(state.recorded), digest(dict(inputs)))
    if state.recorded is None and state.version == ABSENT:
        return _wanted(seen, table, partition, "missing", "never calculated", found, pipelines)
    if wrong := fault(state, "calculated"):
        return _wanted(seen, table, partition, *wrong, found, pipelines)
    if changed:
        verb = "is" if len(changed) == 1 else "are"
        why = f"out of date: {', '.join(changed)} {verb} not what it was made from"
        return _wanted(seen, table, partition, "inputs_changed", why, found, pipelines)
    return _healthy(table, partition, state)


def _healthy(table: str, partition: str, state: PartitionState) -> Verdict:
    return Verdict(table, partition, "healthy", "", f"{state.version.rows:,} rows")


def _wanted(
    seen: Observed,
    table: str,
    partition: str,
    reason_code: str,
    why: str,
    found: tuple[str, ...],
    pipelines: tuple[str, ...] = (),
) -> Verdict:
    fingerprint = digest([reason_code, *found])
    return _unless_locked(seen, Verdict(table, partition, "due", reason_code, why, fingerprint, pipelines))


def _unless_locked(seen: Observed, verdict: Verdict) -> Verdict:
    if (reason := seen.locked.get(verdict.year)) is None:
        return verdict
    why = f"{verdict.why}, but {verdict.year} is locked: {reason}"
    return replace(verdict, state="locked", reason_code="year_locked", why=why, fingerprint="")
