"""What a person requests of applications: units, factors or entries read now, whether they changed or not."""

from __future__ import annotations

from domain.carbon.feeds import FEED_TABLES, FeedKind
from domain.carbon.jobs import KIND_OF, PRIORITY
from domain.shared.error import InvalidInput
from domain.shared.work import RUNNING, WorkRequest
from resources.ledger.model import REQUESTED
from services.carbon.feed_uploads import MAY_SHRINK
from services.carbon.requests import Requested, pipeline_of
from services.carbon.service import CarbonService


def request_pull(
    carbon: CarbonService,
    kind: FeedKind,
    year: int | None = None,
    data_entry_type: str | None = None,
    *,
    may_shrink: bool = False,
) -> Requested:
    """Request that units, factors or entries of applications are read. No application is called here.

    A year or type that is not given stands for those that the applications listed when they were polled last.
    What waits or runs already is not requested twice: its work item is returned. `may_shrink`: units and
    factors of which more than half are gone are taken all the same; what runs without that is read again.
    """
    if not carbon.feeds:
        raise InvalidInput(
            "no application is set",
            reason_code="no_application",
            remedy="set PERENNIAL_CARBON_APP_URL or PERENNIAL_CARBON_API_URL",
        )
    keys = _keys(carbon, kind, year, data_entry_type)
    name, now = KIND_OF[FEED_TABLES[kind]], carbon.clock().isoformat()
    pipeline, known, active = pipeline_of(carbon, keys)
    params = {MAY_SHRINK: True} if may_shrink else {}
    busy = {
        key: row
        for key, row in active.items()
        if row.status == RUNNING and params.items() <= row.params.items()
    }
    wanted = {
        "reason_code": REQUESTED,
        "params": params,
        "priority": PRIORITY[name],
        "pipelines": (pipeline,),
    }
    report = carbon.ledger.enqueue(
        [WorkRequest(name, key, " ".join([now, *params]), **wanted) for key in keys if key not in busy]  # type: ignore[arg-type]
    )
    # A backoff ends now; a run that is on its way and a moment that the source named are left alone.
    slow = [row for row in report.updated if row.dispatch_id is None and not row.not_before_fixed]
    carbon.ledger.hurry(slow)
    rows = [*busy.values(), *report.created, *report.updated, *report.absorbed]
    return Requested(pipeline, tuple(sorted(rows, key=lambda row: row.id)), known and not report.created)


def _keys(carbon: CarbonService, kind: FeedKind, year: int | None, data_entry_type: str | None) -> list[str]:
    table, name = FEED_TABLES[kind], carbon.catalogue.type(data_entry_type).name if data_entry_type else ""
    if name and kind == "units":
        raise InvalidInput("units have no type", reason_code="bad_name", remedy="leave the type out")
    if year is not None:
        carbon.refuse_outside([year])
        carbon.refuse_locked([year])
        if name or kind == "units":
            return [f"{table}:{name}|{year}" if name else f"{table}:{year}"]
    listed = {
        one.key
        for one in carbon.store.feed_contents.all()
        if (one.source in carbon.feeds and one.kind == kind and year in (None, one.year))
        and name in ("", one.data_entry_type)
        and one.data_entry_type in ("", *carbon.catalogue.types)
    }
    if not listed:
        of_type, of_year = (f" of {word}" if word else "" for word in (name, year))
        raise InvalidInput(
            f"no application has listed {kind}{of_type}{of_year}",
            reason_code="not_in_feed",
            remedy="name the year and the type; or poll the applications: `perennial carbon fetch`",
        )
    return sorted(listed)
