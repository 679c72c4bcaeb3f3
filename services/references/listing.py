"""Hand-offs of a source for people and programs: filtered, in pages of stable order."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from domain.references.handoffs import STATUSES, Handoff
from domain.shared.error import InvalidInput
from services.references.service import ReferencesService

LARGEST_PAGE = 1_000


@dataclass(frozen=True)
class HandoffItem:
    """A hand-off, with the scrape runs that met it."""

    handoff: Handoff
    scrape_run_ids: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self.handoff) | {"scrape_run_ids": list(self.scrape_run_ids)}


@dataclass(frozen=True)
class HandoffPage:
    total: int
    """How many hand-offs match the filters, shown or not."""
    items: tuple[HandoffItem, ...]

    def as_json(self) -> dict[str, Any]:
        return {"total": self.total, "items": [item.as_json() for item in self.items]}


def list_handoffs(
    service: ReferencesService,
    source: str,
    *,
    status: str | None = None,
    scrape_run_id: str | None = None,
    limit: int = 100,
    offset: int = 0,
) -> HandoffPage:
    """The hand-offs of a source in the order of their ids; `scrape_run_id` keeps those that a scrape met.

    A source that is scraped no more keeps its history; one that never was is an error.
    """
    if status is not None and status not in STATUSES:
        raise _invalid("status", status, f"use one of {', '.join(STATUSES)}")
    if not 1 <= limit <= LARGEST_PAGE:
        raise _invalid("limit", limit, f"use 1 to {LARGEST_PAGE:,}")
    if not 0 <= offset < 2**63:
        raise _invalid("offset", offset, "use 0 or more")
    store = service.store.handoffs
    total, found = store.page(source, status, scrape_run_id, limit, offset)
    if not total and source not in service.store.states():
        service.require(source)
    met = store.scrapes([one.id for one in found])
    return HandoffPage(total, tuple(HandoffItem(one, tuple(met[one.id])) for one in found))


def _invalid(name: str, value: object, remedy: str) -> InvalidInput:
    return InvalidInput(f"{name} cannot be {str(value)[:40]!r}", reason_code="invalid_filter", remedy=remedy)
