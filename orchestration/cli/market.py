"""Market commands: what sensors and schedules do, by hand and without a daemon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Annotated

import typer

from domain.shared.error import InvalidInput
from orchestration.cli.output import Json, answer, document, say, table
from orchestration.dates import DAY
from orchestration.domains.market import market_settings, open_market
from orchestration.environments import load_settings
from orchestration.settings import empty_home

if TYPE_CHECKING:
    from orchestration.settings import Settings
    from services.market.backfill import Backfilled, BackfillRequest
    from services.market.service import MarketService

app = typer.Typer(name="market", no_args_is_help=True, help="Fetch, heal and backfill the market warehouse.")


@app.command()
def daily(json: Json = False) -> None:
    """Today's run: calendar and stock list if due, then today (from 18:30 Shanghai) and every gap."""
    _drive(json)


@app.command()
def heal(json: Json = False) -> None:
    """Fill every gap now, also what waits for its next attempt, unless the source named the moment."""
    _drive(json)


def _drive(json: bool) -> None:
    from domain.shared.finding_groups import lines
    from orchestration.cli.runner import runner
    from services.market.findings import find_problems
    from services.market.reconcile import MarketReconciler
    from services.run_until_idle import run_until_idle

    settings = load_settings()
    market = open_market(settings, write=True)
    with runner(settings) as run:
        run_until_idle(MarketReconciler(market, ranges=True), run)
    found = find_problems(market)
    note = _today(market)
    open_ends = [f for f in found if f.health in ("broken", "stale", "healing")]
    if json:
        document({"ok": not open_ends, "today": note, "findings": [f.as_json() for f in found]})
    else:
        answer(note)
        for line in lines(open_ends):
            answer(line)
    raise typer.Exit(1 if open_ends else 0)


def _today(market: MarketService) -> str:
    """What today is, in a sentence: a person who ran this on a Saturday wants to know why nothing came."""
    from domain.market.trading import newest_published, shanghai

    now = market.clock()
    today, calendar = shanghai(now).date(), market.calendar()
    newest = newest_published(calendar, now, market.rules.daily_at)
    if not calendar.knows(today):
        return f"{today}: the trading calendar of {today.year} is not there"
    if not calendar.is_open(today):
        return f"{today} ({today:%A}) is closed; the newest trading day is {newest}"
    if newest != today:
        return (
            f"{today} is due from {market.rules.daily_at:%H:%M} Asia/Shanghai; the newest due day is {newest}"
        )
    return f"{today} is a trading day and due"


@app.command()
def backfill(
    first: Annotated[date | None, typer.Option("--from", **DAY, help="First day.")] = None,
    last: Annotated[date | None, typer.Option("--to", **DAY, help="Last day; else today.")] = None,
    tables: Annotated[
        list[str] | None, typer.Option("--table", help="Only this table; may be given several times.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Fetch days again that are whole.")] = False,
    accept_thinner: Annotated[
        bool,
        typer.Option("--accept-thinner", help="With --force: also where the source now has fewer rows."),
    ] = False,
    gaps: Annotated[
        bool,
        typer.Option(
            "--gaps",
            help="Instead of a range: days before the gap window that are wrong or were never fetched.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say which days, why and how many calls; change nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Fetch a range of days in one run: by default only what is not whole."""
    from domain.market.catalogue import catalogue
    from domain.market.trading import shanghai
    from services.market.backfill import BackfillRequest

    settings = load_settings()
    if gaps and force:
        raise InvalidInput(
            "--force would fetch every day between the gaps again",
            remedy="--gaps alone, or a range with --force",
        )
    if accept_thinner and not force:
        raise InvalidInput("--accept-thinner is about days that are whole", remedy="add --force")
    if gaps == (first is not None or last is not None):
        raise InvalidInput("give a range or the gaps", remedy="--from DAY --to DAY, or --gaps")
    if not gaps:
        first, last = _range(first, last, shanghai(settings.business_clock()()).date())
    names = tuple(name.removeprefix("market.") for name in tables or ())
    for name in names:
        catalogue().by_name(name)
    request = BackfillRequest(first, last, names, force)
    if dry_run:
        _preview(settings, request, json)
        return
    market = open_market(settings, write=True)
    done = fill(settings, market, request, accept_thinner=accept_thinner)
    if json:
        document(done.as_json())
    else:
        answer(done.line)
        if done.pieces:
            table(["table", "day", "why"], done.pieces[:50])
    raise typer.Exit(0 if done.ok else 1)


def _range(first: date | None, last: date | None, today: date) -> tuple[date, date]:
    if first is None:
        raise InvalidInput("the range has no first day", remedy=f"--from DAY --to {last}")
    if first > (last := last or today):
        raise InvalidInput(f"the range ends before it begins: {first} > {last}")
    return first, last


def _preview(settings: Settings, request: BackfillRequest, json: bool) -> None:
    from services.market.backfill_preview import preview_backfill
    from services.market.opening import allowed_calls

    group = market_settings(settings)
    with _readable(settings) as market:
        found = preview_backfill(market, request, None if group.source_is_unlimited else allowed_calls(group))
    if json:
        document(found.as_json())
        return
    if ranges := list(found.ranges()):
        table(["from", "to", "days", "tables", "why"], ranges)
    answer("\n".join([*found.lines, "nothing was fetched or changed"]))


@contextmanager
def _readable(settings: Settings) -> Iterator[MarketService]:
    """The market of this home; of one in which nothing was ever started, that of an empty home."""
    from resources.database.errors import NoLedger

    try:
        market = open_market(settings)
    except NoLedger:
        with empty_home(settings) as elsewhere:
            yield open_market(elsewhere, write=True)
        return
    yield market


def fill(
    settings: Settings, market: MarketService, request: BackfillRequest, *, accept_thinner: bool = False
) -> Backfilled:
    """Backfill in this process."""
    from assets.market.jobs import BACKFILL_TAGS
    from assets.policies.tags import ACCEPT, ACCEPT_THINNER, ONLY, ONLY_NEEDED
    from orchestration.cli.runner import report_run, runner
    from services.market.backfill import run_backfill

    tags = {**BACKFILL_TAGS, **({} if request.force else {ONLY: ONLY_NEEDED})}
    if accept_thinner:
        tags[ACCEPT] = ACCEPT_THINNER
    with runner(settings) as run:
        run.sweep(market.ledger)

        def run_tables(
            tables: Sequence[str], *, partition: str = "", days: tuple[date, date] | None = None
        ) -> bool:
            span = (str(days[0]), str(days[1])) if days else None
            if span:
                say(f"backfilling {span[0]} to {span[1]}")
            end = run.run(tables, namespace="market", partition=partition or None, days=span, tags=tags)
            report_run(" … ".join(span) if span else partition or "ALL", tables, end)
            return end.success

        return run_backfill(market, request, run_tables)
