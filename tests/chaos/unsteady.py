"""Rounds against a source that fails a share of all calls in eight ways: backfills until nothing is left.

Each home must end in the exact content of one that was filled undisturbed, in so many rounds of the command.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from sandbox.faults import Fault
from services.market.service import MarketService
from services.market.settings import SANDBOX_UNLIMITED
from tests.chaos.market_checks import Baseline
from tests.chaos.rounds import Findings, Round

SHARES = {0.25: 2, 0.5: 6}
"""The share of calls that fail, and in how many rounds of the command it may be healed."""


def rounds(base: Baseline, number: int) -> dict[str, Round]:
    """So many rounds of each share. The source counts no calls, or its rate messages would be waited for."""
    return {f"{share:.0%}-{n}": partial(play, base, share) for share in SHARES for n in range(1, number + 1)}


def play(base: Baseline, share: float, luck: random.Random) -> Findings:
    found = Findings()
    with base.home(tushare_token=SANDBOX_UNLIMITED) as home:
        home.server.faults.add(Fault("*", "any", rate=share, seed=luck.randrange(2**31)))
        codes: list[int] = []
        while not codes or (codes[-1] != 0 and len(codes) < SHARES[share]):
            ended = home.run(*base.backfill)
            codes.append(ended.code)
            if ended.failed_badly:
                found.complaints.append(f"the backfill ended with {ended.code}: {ended.text[-600:]}")
        calls = home.server.calls.to_json()["counters"].values()
        found.count(
            rounds=len(codes), calls=sum(c["calls"] for c in calls), faults=sum(c["faulted"] for c in calls)
        )
        if codes[-1] != 0:
            found.complaints.append(f"not whole after {len(codes)} rounds: {ended.text[-600:]}")
        found.complaints += _other_content(home.market, base.checks.clean)
    return found


def _other_content(ours: MarketService, clean: MarketService) -> Iterator[str]:
    """The partitions of every table whose content is not that of the undisturbed home."""
    for table in clean.lake.tables:
        held, whole = (lake.versions(table, lake.partitions(table)) for lake in (ours.lake, clean.lake))
        for partition in sorted(held.keys() | whole.keys()):
            if held.get(partition) != whole.get(partition):
                yield f"{table} {partition} is {held.get(partition)}, undisturbed {whole.get(partition)}"
