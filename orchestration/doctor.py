"""The doctor: everything that has to be right before work can be, asked one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from domain.shared.error import PerennialError, TransientResourceError
from orchestration.house import house_findings
from orchestration.services import open_carbon, open_lake, open_ledger, open_market
from orchestration.settings import Settings
from orchestration.trouble import trouble

PATIENCE = 10.0
"""Seconds for what an application lists."""


@dataclass(frozen=True)
class Examined:
    part: str
    ok: bool
    said: str


def examine(settings: Settings) -> list[Examined]:
    """Every part, also after one failed: a person mends all of it at once."""
    parts: dict[str, Callable[[Settings], str]] = {
        "folders": _folders,
        "ledger": _ledger,
        "lake": _lake,
        "dagster": _dagster,
    }
    if "market" in settings.domains:
        parts["source"] = _source
    if "carbon" in settings.domains:
        parts["uploads"] = _uploads
    if "carbon" in settings.domains and (settings.carbon_app_url or settings.carbon_api_url):
        parts["applications"] = applications
    return list(_examined(settings, parts))


def _examined(settings: Settings, parts: dict[str, Callable[[Settings], str]]) -> Iterator[Examined]:
    kept = ", ".join(settings.domains)
    said = f"{settings.env}, keeps {kept}, source {settings.source}, home {settings.home}"
    yield Examined("settings", True, said)
    for part, reconcile in parts.items():
        try:
            yield Examined(part, True, reconcile(settings))
        except PerennialError as error:
            yield _wrong(part, error)
        except Exception as error:
            found = trouble(error)
            if found is None:
                raise
            yield _wrong(part, found)


def _wrong(part: str, error: PerennialError) -> Examined:
    remedy = f" ({error.remedy})" if error.remedy else ""
    return Examined(part, False, f"{error.message}{remedy}")


def _folders(settings: Settings) -> str:
    wrong = list(house_findings(settings))
    if wrong:
        raise PerennialError("; ".join(f.reason for f in wrong), remedy=wrong[0].action)
    return "writable"


def _ledger(settings: Settings) -> str:
    ledger = open_ledger(settings)
    ledger.check_source(settings.source)
    counts: Counter[str] = Counter()
    for kind in ledger.counts().values():
        counts.update(kind)
    told = ", ".join(f"{number:,} {status}" for status, number in sorted(counts.items()))
    return f"schema is current; work: {told or 'none yet'}"


def _lake(settings: Settings) -> str:
    lake = open_lake(settings)
    tables = [t for t in lake.tables if lake.partitions(t)]
    return f"{len(tables)} of {len(lake.tables)} tables have data"


def _dagster(settings: Settings) -> str:
    from assets.policies.pools import LIMITS
    from orchestration.instance import open_instance
    from orchestration.pools import drift

    if settings.env == "production":
        open_ledger(settings).reach()  # the same database, for which Dagster would wait long
    with open_instance(settings) as instance:
        found = drift(instance, LIMITS)
    if found:
        raise PerennialError("; ".join(map(str, found)), remedy="perennial pools apply")
    return "instance opens, pools have their limits"


def _uploads(settings: Settings) -> str:
    """What carbon is made of again, if it is ever lost."""
    from services.carbon.lost_rows import lost_uploads

    carbon = open_carbon(settings)
    count, lost = len(carbon.ledger.uploads.standing()), lost_uploads(carbon)
    if lost:
        named = "; ".join(map(str, lost[:5])) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
        raise PerennialError(
            f"the kept rows of {len(lost)} of {count} uploads are gone: {named}",
            remedy="upload these files again, or put the staged files back",
        )
    return f"the rows of {count} uploads are there"


def applications(settings: Settings) -> str:
    """Each is asked what it holds; the answer is not kept."""
    found = []
    for origin, feed in open_carbon(settings).feeds.items():
        try:
            found.append(f"{origin} answers ({len(feed.changes(patience=PATIENCE).changes)} places)")
        except TransientResourceError as error:
            remedy = f"see that {feed.setting}_URL is right and the application runs"
            raise PerennialError(error.message, remedy=remedy) from error
    return ", ".join(found)


def _source(settings: Settings) -> str:
    """One small call, which also proves the token."""
    from domain.market.trading import shanghai
    from resources.tushare.request import Request

    market = open_market(settings)
    year = shanghai(market.clock()).year
    schema = market.catalogue.calendar.source_schema
    params = {"exchange": "SSE", "start_date": f"{year}0101", "end_date": f"{year}0131"}
    try:
        rows = market.source.fetch(Request("trade_cal", params, schema=schema)).num_rows
    except TransientResourceError as error:
        remedy = error.remedy or "see that TUSHARE_URL is right and the source runs"
        raise PerennialError(error.message, remedy=remedy) from error
    return f"{settings.source} answers ({rows} calendar days of January {year})"
