"""Findings as few groups: one trouble of many partitions is one group, with its effects below it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from domain.shared.health import ORDER, Finding, Health
from domain.shared.partition_words import unit_of
from domain.shared.table import ALL
from domain.shared.work import split_key

NAMED = 3
"""So many tables, partitions or work items are named one by one."""
_WORK_COMMAND = re.compile(r"(perennial work (?:retry|show|cancel)) \d+")


@dataclass(frozen=True)
class Span:
    """The same partitions of some tables, or things that have no partitions."""

    subjects: tuple[str, ...]
    partitions: tuple[str, ...] = ()

    def __str__(self) -> str:
        subjects, more = self.subjects[:NAMED], len(self.subjects) - NAMED
        named = ", ".join(subjects)
        if more == 1:
            named = ", ".join(self.subjects)
        elif more > 1:
            named += f" and {more} more"
        shown = _partitions(self.partitions)
        return f"{named}: {shown}" if shown else named


@dataclass(frozen=True)
class Group:
    """Findings of one domain with the same health, reason code and remedy; `effects` are those they cause."""

    domain: str
    health: Health
    reason_code: str
    reason: str
    action: str
    count: int
    spans: tuple[Span, ...]
    since: datetime | None
    next_attempt: datetime | None
    attempts: int | None
    effects: tuple[Group, ...] = ()

    @property
    def rank(self) -> tuple[int, int, str]:
        return ORDER[self.health], -self.size, self.reason_code

    @property
    def size(self) -> int:
        """How many findings there are in it and among its effects."""
        return self.count + sum(effect.size for effect in self.effects)

    def as_json(self) -> dict[str, Any]:
        document = asdict(self)
        document["spans"] = [{**asdict(span), "text": str(span)} for span in self.spans]
        document["effects"] = [effect.as_json() for effect in self.effects]
        return document


def group(found: Sequence[Finding]) -> list[Group]:
    """Return the groups, the worst and then the largest first. The cause comes before its effects."""
    worst: dict[str, Finding] = {}
    for finding in sorted(found, key=lambda f: f.rank):
        worst.setdefault(finding.subject, finding)
    causes: dict[_Key, dict[_Key, list[Finding]]] = {}
    for finding in found:
        root = _root(finding, worst)
        causes.setdefault(_key(root), {}).setdefault(_key(finding), []).append(finding)
    groups = []
    for key, members in causes.items():
        effects = [_group(each) for own, each in members.items() if own != key]
        groups.append(_group(members[key], sorted(effects, key=lambda g: g.rank)))
    return sorted(groups, key=lambda g: g.rank)


def lines(found: Sequence[Finding]) -> list[str]:
    """Return one line per group, for the end of a command: health, what, why. Effects follow their cause."""
    groups = [each for cause in group(found) for each in (cause, *cause.effects)]
    return [f"{each.health}: {_what(each)}: {each.reason}" for each in groups]


def _what(one: Group) -> str:
    if one.count == 1:
        [span] = one.spans
        return ":".join((*span.subjects, *span.partitions))
    return "; ".join(map(str, one.spans))


_Key = tuple[str, str, str, str]


def _key(finding: Finding) -> _Key:
    return finding.domain, finding.health, finding.reason_code, _remedy(finding.action)


def _remedy(action: str) -> str:
    return _WORK_COMMAND.sub(r"\1 ID", action)


def _root(finding: Finding, worst: Mapping[str, Finding]) -> Finding:
    """Return the first cause of a finding that is itself a finding; of a circle the worst."""
    passed = {finding.subject: finding}
    while (cause := worst.get(finding.caused_by or "")) is not None:
        if cause.subject in passed:
            return min(passed.values(), key=lambda f: f.rank)
        finding = passed[cause.subject] = cause
    return finding


def _group(found: Sequence[Finding], effects: Iterable[Group] = ()) -> Group:
    first = found[0]
    reasons = dict.fromkeys(map(_reason, found))
    attempts = [f.attempts for f in found if f.attempts is not None]
    return Group(
        domain=first.domain,
        health=first.health,
        reason_code=first.reason_code,
        reason=next(iter(reasons)) if len(reasons) == 1 else f"e.g. {next(iter(reasons))}",
        action=_action(found),
        count=len(found),
        spans=_spans(found),
        since=min((f.since for f in found if f.since), default=None),
        next_attempt=min((f.next_attempt for f in found if f.next_attempt), default=None),
        attempts=max(attempts, default=None),
        effects=tuple(effects),
    )


def _reason(finding: Finding) -> str:
    """Return the first line; all of them where that announces a list."""
    first, *others = finding.reason.splitlines()
    return " ".join([first, *map(str.strip, others)]) if first.endswith(":") else first


def _action(found: Sequence[Finding]) -> str:
    """Return the remedy, with the numbers of the work items it is about."""
    if len({f.action for f in found}) == 1:
        return found[0].action
    ids = [str(f.work_id) for f in found if f.work_id is not None]
    first = found[0]
    failed = first.health == "broken"  # only what failed has a reason by which it can be retried
    all_of_them = f"--reason {first.reason_code} --domain {first.domain}"
    retried = all_of_them if failed and len(ids) > NAMED else " ".join(ids)
    shown = f"`perennial work show {ids[0]}` (the first of {len(ids)})" if ids else ""
    remedy = _remedy(first.action).replace("work retry ID", f"work retry {retried}")
    return remedy.replace("`perennial work show ID`", shown)


def _spans(found: Iterable[Finding]) -> tuple[Span, ...]:
    """Return one span for all tables that have the same partitions."""
    by_table: dict[str, list[str]] = {}
    for finding in found:
        table, partition = split_key(finding.subject)
        partitions = by_table.setdefault(table, [])
        if partition and partition != ALL:
            partitions.append(partition)
    tables: dict[tuple[str, ...], list[str]] = {}
    for table, partitions in by_table.items():
        tables.setdefault(tuple(sorted(set(partitions))), []).append(table)
    spans = [Span(tuple(names), partitions) for partitions, names in tables.items()]
    return tuple(sorted(spans, key=lambda s: -len(s.partitions)))


def _partitions(partitions: Sequence[str]) -> str:
    if len(partitions) <= 1:
        return "".join(partitions)
    if (unit := unit_of(partitions)) != "partitions":
        return f"{len(partitions)} {unit} {partitions[0]}…{partitions[-1]}"
    if len(partitions) <= NAMED:
        return ", ".join(partitions)
    return f"{len(partitions)} partitions {partitions[0]} … {partitions[-1]}"
