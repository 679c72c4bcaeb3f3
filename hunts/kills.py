"""Rounds in which workers die: kill -9 of the whole process group, at moments nobody chose."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import dagster as dg

from domain.shared.error import PerennialError
from domain.shared.table import Version
from hunts.house import House
from hunts.rounds import Found, Ground, Round
from orchestration.domains.market import market_settings
from orchestration.instance import open_instance

Acknowledged = dict[tuple[str, str], Version]
"""What the ledger called committed, by table and partition."""


DAILY = ("market", "daily")
SHARE_DAILY = 0.25


def rounds(ground: Ground, kills: int, seed: int) -> dict[str, Round]:
    """Chains of one to three kills on one home, `kills` kills in all, each chain healed at its end."""
    luck = random.Random(f"{seed} chains")  # noqa: S311 - luck, not secrets
    made: dict[str, Round] = {}
    left = kills
    while left > 0:
        length = min(left, luck.choice((1, 1, 2, 3)))
        left -= length
        made[f"kill-{len(made) + 1}x{length}"] = chain(ground, length)
    return made


def chain(ground: Ground, length: int) -> Round:
    def round_(luck: random.Random) -> Found:
        found = Found()
        with ground.house() as house:
            known: Acknowledged = {}
            for _ in range(length):
                daily = luck.random() < SHARE_DAILY
                moment, when = _moment(ground, house, luck, daily=daily)
                said = house.run_killed(*(DAILY if daily else ground.backfill), when=when)
                found.count(daily=int(daily))
                found.count(kills=int(said.code < 0), too_late=int(said.code >= 0), **{moment: 1})
                _look(ground, house, known, found)
                if luck.random() < 0.3:
                    # Somebody is impatient: the dead worker is still believed.
                    impatient = house.run(*ground.backfill)
                    found.count(impatient=1)
                    if "Traceback" in impatient.text or impatient.code not in (0, 1):
                        found.complaints.append(f"beside a dead worker: {impatient.text[-600:]}")
                    _look(ground, house, known, found)
                if luck.random() < 0.7:
                    house.lease_runs_out()
            house.lease_runs_out()
            last(ground, house, known, found)
        return found

    return round_


def last(ground: Ground, house: House, known: Acknowledged, found: Found) -> None:
    """The undisturbed run after all that happened, and everything that must hold then.

    A worker that died between its commit and its answer leaves work behind that is whole: the backfill has
    nothing to do there, the look that follows takes the rest off the ledger.
    """
    said = house.run(*ground.backfill)
    if said.code != 0 or "Traceback" in said.text:
        found.complaints.append(f"the last run ended with {said.code}: {said.text[-600:]}")
    _look(ground, house, known, found)
    found.count(left_over=len(house.market.ledger.find(status="queued", limit=None)))
    said = said if house.healthy() else house.run("market", "heal")
    if said.code != 0 or "Traceback" in said.text:
        found.complaints.append(f"healing ended with {said.code}: {said.text[-600:]}")
    found.complaints += ground.yardstick.complaints(house.market)
    if not house.healthy():
        found.complaints.append("status is not healthy after the last run")
    found.complaints += _unshown(house)


def _moment(
    ground: Ground, house: House, luck: random.Random, *, daily: bool
) -> tuple[str, Callable[[], bool]]:
    """When to kill: after some time, after some call, or after some commit of the lake."""
    days = min(len(ground.days), market_settings(house.settings).gap_limit) if daily else len(ground.days)
    kind = luck.choice(("at_time", "at_call", "at_commit"))
    grace = luck.choice((0.0, luck.uniform(0, 0.05), luck.uniform(0, 0.5)))
    if kind == "at_time":
        return kind, _after(luck.uniform(0, 1.1 * ground.seconds * days / len(ground.days) + 2), lambda: True)
    if kind == "at_call":
        before = house.server.calls.count()
        wanted = before + luck.randint(1, 16 + 4 * days)
        return kind, _after(grace, lambda: house.server.calls.count() >= wanted)
    folder = house.home / "lake" / "warehouse"
    wanted = _snapshots(folder) + luck.randint(1, 12)
    return kind, _after(grace, lambda: _snapshots(folder) >= wanted)


def _after(seconds: float, seen: Callable[[], bool]) -> Callable[[], bool]:
    """True from `seconds` after `seen` was true for the first time."""
    since: list[float] = []

    def when() -> bool:
        if not since and seen():
            since.append(time.monotonic())
        return bool(since) and time.monotonic() - since[0] >= seconds

    return when


def _snapshots(warehouse: Path) -> int:
    return sum(1 for _ in warehouse.glob("*/*/metadata/*.metadata.json"))


def _look(ground: Ground, house: House, known: Acknowledged, found: Found) -> None:
    """Right after a death: nothing half done is there, and nothing acknowledged has gone."""
    try:
        market = house.market
        finished = market.ledger.find(status="completed", limit=None)
    except PerennialError:
        return  # killed before there was a ledger
    names = [e.table.name for e in market.catalogue.daily] + ["market.adjusted_daily", "market.coverage"]
    for (table, partition), record in market.provenance.records(names).items():
        known[table, partition] = Version(record.rows, record.digest)
    completed = {
        (f"market.{table}", partition)
        for table, partition in (row.key.split(":", 1) for row in finished)
        if f"market.{table}" in names
    }
    found.complaints += [f"{t} {p} is completed, but nothing recorded" for t, p in completed - known.keys()]
    for table in names:
        held = market.lake.versions(table, [p for t, p in known if t == table])
        for partition, version in held.items():
            if version != known[table, partition]:
                acknowledged = known[table, partition]
                found.complaints.append(
                    f"{table} {partition}: {acknowledged} was acknowledged, {version} is there"
                )
    found.complaints += ground.yardstick.half_done(market)
    found.told["acknowledged"] = len(known)


def _unshown(house: House) -> list[str]:
    """What the lake holds and Dagster's UI would not show."""
    lake = house.market.lake
    days = [name for name, table in lake.tables.items() if table.partition_kind == "day"]
    with open_instance(house.settings) as instance:
        shown = {n: instance.get_materialized_partitions(dg.AssetKey(n.split("."))) for n in days}
    gone = {name: sorted(set(lake.partitions(name)) - shown[name]) for name in days}
    return [f"{n}: {len(d)} days are in the lake and not in the UI: {d[:3]}" for n, d in gone.items() if d]
