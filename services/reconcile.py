"""One reconcile pass, the same in every domain: observe, plan, enqueue, dispatch.

The sensor, the schedule and the command run this pass; they differ only in how they start its runs. A domain
brings a `Reconciler`: what is observed, the plan, and which due work shares a run. Runs of named keys are
dispatched; of a pulled kind one run is started that leases whatever is due (`Pull`).

During a run the lake differs from what was recorded. So work that a run has before, while or after the pass
observes is left to the next pass: the difference is gone then, or real.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from domain.shared.partition_words import reasons_in_words
from domain.shared.table import ALL
from domain.shared.work import RUNNING

if TYPE_CHECKING:
    from domain.shared.verdict import Plan, Verdict
    from domain.shared.work import Work
    from resources.ledger.client import Ledger
    from resources.ledger.model import Dispatch

AT_ONCE = 100
"""The most runs of a pass: far more than the change of a day or a year needs."""


@dataclass(frozen=True)
class Unfinished:
    """The dispatched runs that have not ended: their dispatches, the keys of all that they write, and the
    kinds of work that they pull. `runs` are the ids of all runs that have not ended, of any origin."""

    dispatches: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    runs: frozenset[str] = frozenset()
    pulling: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Pull:
    """A pulled kind of work, and the asset whose runs lease what is due of it."""

    kind: str
    table: str
    partitions: Collection[str] | None = None
    """The tenants of the kind, where each is a partition of the asset; None if the asset has none."""


@dataclass(frozen=True)
class RunStart:
    """A run to be started: some partitions of some tables, under the id of their dispatch."""

    dispatch_id: str
    namespace: str
    """Of the assets, as of their tables."""
    tables: tuple[str, ...]
    partitions: tuple[str, ...]
    priority: int
    reason: str
    """In a few words, which partitions are made for which reason."""
    pipelines: tuple[str, ...] = ()
    pulls: str = ""
    """The pulled kind whose due work the run leases; the dispatch has no rows then."""

    @property
    def span(self) -> tuple[str, str]:
        """The first and last partition of the smallest range that holds them all."""
        names = sorted({p.rpartition("|")[0] for p in self.partitions})
        ends = sorted({p.rpartition("|")[2] for p in self.partitions})
        first, last = (f"{n}|{e}".lstrip("|") for n, e in ((names[0], ends[0]), (names[-1], ends[-1])))
        return first, last


class Reconciler(Protocol):
    """What a domain brings to a pass. It inherits from this class what it has no rules of its own for."""

    @property
    def name(self) -> str: ...

    @property
    def namespace(self) -> str:
        """Of its tables and assets."""
        return self.name

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of work that its plan decides about."""

    @property
    def pulls(self) -> Sequence[Pull]:
        """The pulled kinds that runs are started for. They may have any number of rows."""
        return ()

    def missing(self, seen: Any) -> Mapping[str, Collection[str]]:  # noqa: ARG002
        """By pulled kind, the tenants of which work may be missing: a run of the kind is to look for it."""
        return {}

    @property
    def ledger(self) -> Ledger: ...

    def observe(self) -> Any: ...

    def plan_of(self, seen: Any, refused: Collection[str]) -> Plan:
        """The plan. The work of `refused` keys failed or was cancelled as the plan wants it now."""

    def wanted(self, plan: Plan, known: Collection[str]) -> Sequence[Verdict]:  # noqa: ARG002
        """The verdicts to be enqueued. Of `known` keys the ledger has work, or a refusal, already."""
        return plan.due

    def withdraw(self, plan: Plan, rows: Sequence[Work], unfinished: Unfinished) -> None:  # noqa: ARG002
        """Cancel waiting work that must not be done any more. No run has these rows."""
        return  # not abstract

    def dispatch(self, plan: Plan, unfinished: Unfinished, at_once: int) -> list[Dispatch]:  # noqa: ARG002
        """The due rows to start runs for; here each row is a run."""
        found: list[Dispatch] = []
        for kind in self.kinds:
            found += self.ledger.dispatch(kind, limit=at_once - len(found), busy=unfinished.dispatches)
        return found

    def starts(self, plan: Plan, dispatches: Sequence[Dispatch]) -> list[RunStart]:  # noqa: ARG002
        """The runs of these dispatches; here each writes the tables of its rows."""
        return [start_of(self.namespace, one, {row.table: None for row in one.rows}) for one in dispatches]


@dataclass(frozen=True)
class Reconciliation:
    """What a pass observed, planned and starts. `left`: due keys left to the next pass, as a run has them."""

    seen: Any
    plan: Plan
    left: frozenset[str]
    starts: tuple[RunStart, ...] = ()


NONE = Unfinished()


def reconcile(domain: Reconciler, unfinished: Unfinished = NONE, at_once: int = AT_ONCE) -> Reconciliation:
    """Do one pass. Work of `unfinished` runs is neither enqueued nor dispatched again."""
    found = observe_and_enqueue(domain, unfinished)
    starts = [*dispatch(domain, found.plan, unfinished, at_once), *pull(domain, unfinished, found.seen)]
    return replace(found, starts=tuple(starts))


def observe_and_enqueue(domain: Reconciler, unfinished: Unfinished = NONE) -> Reconciliation:
    """Observe, and enqueue what the plan wants now."""
    before = _rows(domain)
    seen = domain.observe()
    after = _rows(domain)
    quiet = [row for key, row in after.items() if row == before.get(key) and row.status != RUNNING]
    in_hand = {*before, *after, *unfinished.keys}.difference(row.key for row in quiet) | unfinished.keys
    plan = _enqueue(domain, seen, after.keys(), in_hand)
    domain.withdraw(plan, quiet, unfinished)
    return Reconciliation(seen, plan, frozenset(v.key for v in plan.due).intersection(in_hand))


def dispatch(domain: Reconciler, plan: Plan, unfinished: Unfinished, at_once: int) -> list[RunStart]:
    """Return the runs to start for due work. Nothing is observed anew: ended work is not due."""
    found = domain.dispatch(plan, unfinished, at_once)
    return domain.starts(plan, found) if found else []


def pull(domain: Reconciler, unfinished: Unfinished, seen: Any) -> Iterator[RunStart]:
    """One run for each pulled kind that has due work, or misses some, and that no unfinished run pulls. No
    row is marked."""
    missing = domain.missing(seen)
    for one in domain.pulls:
        if one.kind in unfinished.pulling:
            continue
        backlog = domain.ledger.backlog(one.kind)
        due = {
            tenant: found.due
            for tenant, found in backlog.items()
            if found.due and (one.partitions is None or tenant in one.partitions)
        }
        lacking = missing.get(one.kind, ())
        if due or lacking:
            tenants = dict.fromkeys([*due, *lacking])
            yield RunStart(
                dispatch_id=secrets.token_hex(8),
                namespace=domain.namespace,
                tables=(one.table,),
                partitions=(ALL,) if one.partitions is None else tuple(tenants),
                priority=0,
                reason=f"{sum(due.values()):,} due" if due else "some may be missing",
                pulls=one.kind,
            )


def start_of(
    namespace: str,
    dispatch: Dispatch,
    tables: Iterable[str],
    pipelines: Mapping[int, Sequence[str]] | None = None,
) -> RunStart:
    """The run that does all rows of a dispatch."""
    of = pipelines or {}
    return RunStart(
        dispatch_id=dispatch.id,
        namespace=namespace,
        tables=tuple(tables),
        partitions=tuple(sorted({row.partition for row in dispatch.rows})),
        priority=max(row.priority for row in dispatch.rows),
        reason=reasons_in_words((row.reason_code, row.partition) for row in dispatch.rows),
        pipelines=tuple(sorted({p for row in dispatch.rows for p in of.get(row.id, ())})),
    )


def _rows(domain: Reconciler) -> dict[str, Work]:
    """By key, the work that is not done; of several rows the newest."""
    return {row.key: row for row in domain.ledger.current(domain.kinds)}


def _enqueue(domain: Reconciler, seen: Any, known: Collection[str], in_hand: Collection[str]) -> Plan:
    """The plan, enqueued. What the ledger refuses will not be done: the plan may not wait for it."""
    refused: set[str] = set()
    plan = domain.plan_of(seen, refused)
    while True:
        wanted = domain.wanted(plan, {*known, *in_hand})
        requests = [v.request for v in wanted if v.request and v.key not in in_hand]
        fresh = {row.key for row in domain.ledger.enqueue(requests).refused} - refused
        if not fresh:
            return plan
        refused |= fresh
        again = domain.plan_of(seen, frozenset(refused))
        if again == plan:
            return plan
        plan = again
