"""`market daily` and `market heal`: the market's passes and runs in this process, until nothing is due."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from domain.market.plan import FILL, REFRESH
from domain.shared.error import PerennialError
from domain.shared.table import ALL
from orchestration.cli.runner import RunEnd, Runner, take_back, tell
from services.market.reconcile import Reconciliation, Start, reconcile, request

if TYPE_CHECKING:
    from resources.ledger.model import Work
    from services.market.service import MarketService

ROUNDS = 10_000
"""A bound no honest drive reaches: each round starts days that were not started before."""


def drive(
    market: MarketService, runner: Runner, hurry: Callable[[Work], bool] | None = None
) -> Reconciliation:
    """Look and run until a look finds nothing that is due: what the daemon does, without one.

    `hurry` chooses waiting work that is not to wait for its next attempt: a person asks now.
    """
    from sensors.unfinished import keys_under_way, unfinished_dispatches

    take_back(market.ledger, runner)
    if hurry is not None:
        _make_due(market, unfinished_dispatches(runner.instance), hurry)
    for _ in range(ROUNDS):
        at_work = keys_under_way(runner.instance)
        seen = reconcile(market, unfinished_dispatches(runner.instance), under_way=at_work)
        if not seen.starts:
            return seen
        for start in seen.starts:
            tell(start.partition, start.tables, _run(runner, start))
    raise PerennialError(f"{ROUNDS} rounds of healing and still more to do", reason_code="no_end")


def _run(runner: Runner, start: Start) -> RunEnd:
    from assets.policies.tags import DISPATCH

    return runner.run(
        start.tables,
        domain="market",
        partition=None if start.partition == ALL else start.partition,
        tags={DISPATCH: start.dispatch_id},
    )


def _make_due(market: MarketService, unfinished: Collection[str], hurry: Callable[[Work], bool]) -> None:
    request(market)
    now = market.clock()
    for kind in (REFRESH, FILL):
        for row in market.ledger.find(kind, status=("queued", "deferred"), limit=None):
            # A run is on its way for what was dispatched.
            if row.not_before > now and row.dispatch_id not in unfinished and hurry(row):
                market.ledger.retry(row.id)
