"""The pipelines of every domain: what follows from their work in the ledger, with each domain's own view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from domain.shared.pipeline import ENDED, Status, created_at, status_of
from orchestration.registry import enabled
from orchestration.services import open_ledger

if TYPE_CHECKING:
    from domain.shared.work import Work
    from orchestration.domain import Domain
    from orchestration.settings import Settings
    from resources.ledger.client import Ledger
    from resources.ledger.pipelines import StatusCount

BATCH = 100
"""Pipelines that are read at once where a status is looked for."""
MOST_BATCHES = 10
"""Batches that one search reads; the answer says where the next one goes on."""

Counts = Mapping[str, "Sequence[StatusCount]"]
Views = Mapping[str, tuple[str, Mapping[str, Any]]]
"""By pipeline, the domain that knows it and that domain's view."""


@dataclass(frozen=True)
class PipelineState:
    """One pipeline. `work` is how many of its work items have which status, by kind, each key's newest only.
    `view` is that of its domain."""

    pipeline_id: str
    status: Status
    domains: tuple[str, ...]
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    work: Mapping[str, Mapping[str, int]]
    view: Mapping[str, Any] | None
    total: int
    """Work items, older ones of a key too."""

    @property
    def ended(self) -> bool:
        return self.status in ENDED


@dataclass(frozen=True)
class PipelinePage:
    pipelines: Sequence[PipelineState]
    more_before: str | None
    """The id before which the next page begins; None after the last."""


@dataclass
class PipelineReader:
    """Reads pipelines over one open ledger, and over the services of domains that have a view of them."""

    settings: Settings
    _ledger: Ledger | None = None
    _services: dict[str, Any] = field(default_factory=dict)

    @property
    def ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = open_ledger(self.settings)
        return self._ledger

    def rest(self) -> None:
        """Close all connections; what is compiled and opened stays for the next use."""
        for service in self._services.values():
            service.ledger.close()
        if self._ledger is not None:
            self._ledger.close()

    def close(self) -> None:
        self.rest()
        self._services.clear()
        self._ledger = None

    def counts(self, ids: Collection[str]) -> Counts:
        """How many work items of each pipeline have which status: one query."""
        return self.ledger.pipelines.status_counts(ids)

    def states(self, ids: Collection[str], counts: Counts | None = None) -> dict[str, PipelineState]:
        """Return what is known of these pipelines; those that nobody knows are not among them."""
        counts = self.counts(ids) if counts is None else counts
        views = self._views(lambda domain: domain.pipelines(self._service(domain), ids))
        return {name: state_of(name, counts[name], views) for name in ids if counts[name] or name in views}

    def find(
        self,
        *,
        domain: str | None = None,
        status: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> PipelinePage:
        """Return the newest pipelines of one domain or of all, newest first."""
        found: list[PipelineState] = []
        for _ in range(MOST_BATCHES):
            size = limit + 1 if status is None else BATCH
            batch = self._newest(domain, before, size)
            found += [one for one in batch if status in (None, one.status)]
            if len(found) > limit:
                return PipelinePage(found[:limit], found[limit - 1].pipeline_id)
            if len(batch) < size:
                return PipelinePage(found, None)
            before = batch[-1].pipeline_id
        return PipelinePage(found, before)

    def work(self, pipeline_id: str, limit: int, offset: int) -> list[Work]:
        return self.ledger.pipelines.page(pipeline_id, limit, offset)

    def _newest(self, domain: str | None, before: str | None, limit: int) -> list[PipelineState]:
        prefix = f"{domain}." if domain else ""
        views = self._views(
            lambda one: one.pipelines(self._service(one), before=before, limit=limit), only=domain
        )
        names = {*views, *self.ledger.pipelines.newest(limit, before=before, kind_prefix=prefix)}
        ids = sorted(names, reverse=True)[:limit]
        missing = [name for name in ids if name not in views]
        if missing:  # a domain's newest may lie further back than its pipelines among these
            views |= self._views(lambda one: one.pipelines(self._service(one), missing))
        counts = self.counts(ids)
        return [state_of(name, counts[name], views) for name in ids]

    def _views(
        self, read: Callable[[Any], Mapping[str, Mapping[str, Any]]], only: str | None = None
    ) -> dict[str, tuple[str, Mapping[str, Any]]]:
        return {
            name: (domain.name, view)
            for domain in self._domains()
            if only in (None, domain.name)
            for name, view in read(domain).items()
        }

    def _domains(self) -> Iterator[Domain]:
        return (domain for domain in enabled(self.settings) if domain.pipelines is not None)

    def _service(self, domain: Domain) -> Any:
        if domain.name not in self._services:
            self._services[domain.name] = domain.open(self.settings)
        return self._services[domain.name]


def state_of(pipeline_id: str, counts: Sequence[StatusCount], views: Views) -> PipelineState:
    domain, view = views.get(pipeline_id, ("", None))
    counting: Counter[str] = Counter()
    work: dict[str, dict[str, int]] = {}
    for one in counts:
        if one.counting:
            counting[one.status] += one.counting
            work.setdefault(one.kind, {})[one.status] = one.counting
    started = min((one.started_at for one in counts if one.started_at), default=None)
    status: Status = status_of(counting, begun=started is not None)
    if view is not None:  # what its domain began and left without work is done
        status = view.get("status") or (status if counts else "SUCCESS")
    finished = max((one.finished_at for one in counts if one.finished_at), default=None)
    return PipelineState(
        pipeline_id,
        status,
        tuple(sorted({domain} - {""} | {kind.partition(".")[0] for kind in work})),
        created_at(pipeline_id),
        started,
        finished if status in ENDED else None,
        work,
        view,
        sum(one.number for one in counts),
    )
