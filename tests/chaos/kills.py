"""Rounds in which a worker dies: kill -9 of its whole process group at random moments."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

import dagster as dg

from domain.shared.error import PerennialError
from domain.shared.table import Version
from orchestration.instance import open_instance
from tests.chaos.home import Home, after, commits
from tests.chaos.market_checks import Baseline
from tests.chaos.rounds import Findings, Round

DAILY = ("market", "daily")
SHARE_DAILY = 0.25
GAP_LIMIT = 3
"""Days of one daily run, by default."""


def rounds(base: Baseline, kills: int, seed: int) -> dict[str, Round]:
    """Series of one to three kills on one home, `kills` kills in all; each series is healed in the end."""
    luck = random.Random(f"{seed} series")
    made: dict[str, Round] = {}
    while kills > 0:
        length = min(kills, luck.choice((1, 1, 2, 3)))
        kills -= length
        made[f"kill-{len(made) + 1}x{length}"] = partial(series, base, length)
    return made


def series(base: Baseline, length: int, luck: random.Random) -> Findings:
    with base.home() as home:
        checks = Acknowledged(base, home, Findings())
        found = checks.found
        for _ in range(length):
            daily = luck.random() < SHARE_DAILY
            moment, when = _moment(base, home, luck, daily=daily)
            ended = home.run_killed(*(DAILY if daily else base.backfill), when=when)
            killed = ended.code < 0
            found.count(daily=int(daily), kills=int(killed), too_late=int(not killed), **{moment: 1})
            checks.check()
            if luck.random() < 0.3:  # somebody is impatient while the dead worker's lease lasts
                impatient = home.run(*base.backfill)
                found.count(impatient=1)
                if impatient.failed_badly:
                    found.complaints.append(f"while a dead worker's lease lasts: {impatient.text[-600:]}")
                checks.check()
            if luck.random() < 0.7:
                home.expire_leases()
        finish(base, home, found, checks)
    return found


def finish(base: Baseline, home: Home, found: Findings, checks: Acknowledged | None = None) -> None:
    """The undisturbed run after everything that happened, and all that must hold then.

    A worker that died between its commit and its last write to the ledger leaves work behind whose partition
    is whole: the backfill has nothing to do there, and healing takes the rest off the ledger.
    """
    home.expire_leases()
    ended = home.run(*base.backfill)
    if ended.code != 0:
        found.complaints.append(f"the last run ended with {ended.code}: {ended.text[-600:]}")
    if checks:
        checks.check()
    if not home.healthy():
        healed = home.run("market", "heal")
        if healed.code != 0:
            found.complaints.append(f"healing ended with {healed.code}: {healed.text[-600:]}")
    found.complaints += base.checks.complaints(home.market)
    if not home.healthy():
        found.complaints.append("status is not healthy after the last run")
    found.complaints += _without_event(home)


def _moment(
    base: Baseline, home: Home, luck: random.Random, *, daily: bool
) -> tuple[str, Callable[[], bool]]:
    """When to kill: after some time, after some call, or after some commit of the lake."""
    days = min(len(base.days), GAP_LIMIT) if daily else len(base.days)
    kind = luck.choice(("at_time", "at_call", "at_commit"))
    grace = luck.choice((0.0, luck.uniform(0, 0.05), luck.uniform(0, 0.5)))
    if kind == "at_time":
        return kind, after(luck.uniform(0, 1.1 * base.seconds * days / len(base.days) + 2), lambda: True)
    if kind == "at_call":
        call = home.server.calls.count() + luck.randint(1, 16 + 4 * days)
        return kind, after(grace, lambda: home.server.calls.count() >= call)
    commit = commits(home, "market") + luck.randint(1, 12)
    return kind, after(grace, lambda: commits(home, "market") >= commit)


class Acknowledged:
    """What the ledger called committed on one home, and whether the lake still has it."""

    def __init__(self, base: Baseline, home: Home, found: Findings) -> None:
        self.base, self.home, self.found = base, home, found
        self.known: dict[tuple[str, str], Version] = {}

    def check(self) -> None:
        """Right after a death nothing is half done, and nothing acknowledged is gone."""
        try:
            market = self.home.market
            finished = market.ledger.find(status="completed", limit=None)
        except PerennialError:
            return  # killed before there was a ledger
        names = [e.table.name for e in market.catalogue.daily] + ["market.adjusted_daily", "market.coverage"]
        for (table, partition), record in market.provenance.records(names).items():
            self.known[table, partition] = Version(record.rows, record.digest)
        done = {(f"market.{t}", p) for t, p in (row.key.split(":", 1) for row in finished)}
        complaints = self.found.complaints
        complaints += [
            f"{t} {p} is completed, but not recorded" for t, p in done - self.known.keys() if t in names
        ]
        for table in names:
            held = market.lake.versions(table, [p for t, p in self.known if t == table])
            complaints += [
                f"{table} {partition}: {self.known[table, partition]} was acknowledged, {version} is there"
                for partition, version in held.items()
                if version != self.known[table, partition]
            ]
        complaints += self.base.checks.half_done(market)
        self.found.counts["acknowledged"] = len(self.known)


def _without_event(home: Home) -> Iterator[str]:
    """Days that the lake holds and that Dagster's UI would not show."""
    lake = home.market.lake
    days = [n for n, t in lake.tables.items() if t.partition_kind == "day" and n.startswith("market.")]
    with open_instance(home.settings) as instance:
        for name in days:
            shown = instance.get_materialized_partitions(dg.AssetKey(name.split(".")))
            if missing := sorted(set(lake.partitions(name)) - shown):
                yield f"{name}: {len(missing)} days are in the lake and not in the UI: {missing[:3]}"
