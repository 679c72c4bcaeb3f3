"""What is unhealthy in carbon: the findings of `perennial status` and the checks of `perennial doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from domain.carbon import health
from domain.carbon.health import FEED_PATIENCE
from domain.carbon.jobs import ALL_KINDS
from domain.carbon.observed import Observed
from domain.carbon.tables import DATA_ENTRIES, REPORTS, UNITS
from domain.shared.clock import machine_clock
from domain.shared.error import PerennialError, TransientResourceError
from domain.shared.freshness import SourceState, source_state
from domain.shared.health import Finding, SourceFreshness
from domain.shared.watchdog import Watch, watch
from services.carbon.inbox import open_inbox
from services.carbon.reindex import not_indexed, uploads_without_rows
from services.carbon.service import CarbonService, freshness_of
from services.carbon.without_factor import count_without_factor

SILENT_BEYOND = timedelta(days=7)
"""An application that did not answer for longer is in error; after an hour without an answer it is stale."""

SHOWN_FOR = timedelta(days=1)
"""How long `status` names a file that took the place of another."""

REFUSED_FOR = timedelta(days=7)
"""How long it names a refused file that nobody removed or put right."""


def find_problems(carbon: CarbonService, seen: Observed | None = None) -> list[Finding]:
    """The worst first. `seen`: what was observed just now, if anything was."""
    work = carbon.ledger.current(tuple(kind.name for kind in ALL_KINDS))
    seen = seen or carbon.observe()
    polled = {freshness_of(origin) for origin in carbon.feeds}
    found = health.findings(
        carbon.plan_of(seen),
        work,
        carbon.clock(),
        machine_clock(),
        [one for one in carbon.ledger.freshness.all("carbon") if one.source in polled],
        seen.feed_reads,
    )
    inbox = open_inbox(carbon.inbox_folder)
    unknown = inbox.unknown_entries()
    found += [health.unknown_inbox_entries(unknown)] if unknown else []
    found += [health.refused_file(*each) for each in inbox.refused_since(machine_clock() - REFUSED_FOR)]
    found += [health.without_factor(*each) for each in count_without_factor(carbon, seen).items()]
    found += _replaced_files(carbon)
    missing = len(not_indexed(carbon.staging, carbon.store))
    found += [health.not_indexed_uploads(missing)] if missing else []
    return sorted(found, key=lambda f: f.rank)


def _replaced_files(carbon: CarbonService) -> Iterator[Finding]:
    """Of the last day. The same file again replaced lost rows of its own."""
    for year, old, new in carbon.store.uploads.replaced_since(carbon.clock() - SHOWN_FOR):
        if old.sha256 == new.sha256:
            continue
        key = f"{DATA_ENTRIES.table}:{new.topic}|{year}" if new.kind == "data" else f"{UNITS.table}:{year}"
        before, after = (f"{one.name} (upload {one.id}, {one.uploaded_by})" for one in (old, new))
        yield health.replaced_file(key, before, after, (old.taken, new.taken), new.moment)


def watch_carbon(carbon: CarbonService) -> Watch:
    """Whether everything uploaded is in the reports, and every application answers."""
    count = len(carbon.lake.partitions(REPORTS.name))
    kept = f"{count:,} report{'' if count == 1 else 's'}"
    return watch("carbon", find_problems(carbon), kept, carbon.clock())


def source_states(carbon: CarbonService) -> list[tuple[SourceFreshness, SourceState]]:
    """When every application that is set last answered and last failed, and what that means now."""
    known, now = {row.source: row for row in carbon.ledger.freshness.all("carbon")}, carbon.clock()
    rows = [known.get(name) or SourceFreshness(name) for name in map(freshness_of, sorted(carbon.feeds))]
    ages = [now - row.last_success if row.last_success else None for row in rows]
    return [
        (row, source_state(row, age, FEED_PATIENCE, SILENT_BEYOND))
        for row, age in zip(rows, ages, strict=True)
    ]


def check_uploads(carbon: CarbonService) -> str:
    """The rows of uploads are there: carbon is made of them again, if it is ever lost."""
    count, lost = len(carbon.store.uploads.current()), uploads_without_rows(carbon.staging, carbon.store)
    if lost:
        named = "; ".join(map(str, lost[:5])) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
        raise PerennialError(
            f"the staged rows of {len(lost)} of {count} uploads are gone: {named}",
            remedy="upload these files again, or put the staged files back",
        )
    return f"the rows of {count} uploads are there"


def check_applications(carbon: CarbonService) -> str | None:
    """Each application lists its entries; the list is not kept."""
    if not carbon.feeds:
        return None
    found = []
    for origin, feed in carbon.feeds.items():
        try:
            found.append(f"{origin} answers ({len(feed.changes())} scopes)")
        except TransientResourceError as error:
            remedy = f"see that {feed.setting}_URL is right and the application runs"
            raise PerennialError(error.message, remedy=remedy) from error
    return ", ".join(found)


CHECKS = {"uploads": check_uploads, "applications": check_applications}
