"""The same trouble for `perennial up`: sensors and schedules alone have to get through, in real time."""

from __future__ import annotations

import random
import time

from hunts.faults import LIES, SHARE, WAITED_OUT, troubles
from hunts.house import House
from hunts.rounds import Found, Ground, Round
from hunts.yardstick import Yardstick
from orchestration.cli.up import free_port
from tests.e2e.running import Running
from tests.settings import make_settings

TROUBLE = 150.0
HEALING = 900.0
LOOK_EVERY = 5.0
NEEDS_A_PERSON_OR_HOURS = (
    *("bad_token", "no_permission", "no_permission_by_name"),
    *("hour_quota", "day_quota", "stall"),
)


def rounds(ground: Ground) -> dict[str, Round]:
    return {"daemon": lambda luck: _daemon(ground, luck)}


def _daemon(ground: Ground, luck: random.Random) -> Found:
    found = Found()
    house = House.build(ground.folder / "up", now=None)
    clean = House.build(ground.folder / "up-clean", now=None)
    house.settings = make_settings(house.settings, ui_port=free_port(), sandbox_port=free_port(), gap_limit=6)
    clean.settings = make_settings(clean.settings, gap_limit=6)
    left_out = {*NEEDS_A_PERSON_OR_HOURS, *WAITED_OUT, *LIES}
    chosen = [t for t in troubles() if t.name not in left_out]
    luck.shuffle(chosen)
    running = Running(house.settings)
    try:
        if clean.run("market", "heal").code != 0:
            raise RuntimeError("not even without trouble")
        yardstick = Yardstick(clean.market)
        house.server.faults.add(
            *(rule for t in chosen for rule in t.rules(SHARE / len(chosen), luck, lists=False))
        )
        running.start()
        _watch(house, yardstick, found, TROUBLE, until_healthy=False)
        found.count(faults=sum(bool(c.faults) for c in house.server.calls.recent()))
        house.server.faults.clear()
        if not _watch(house, yardstick, found, HEALING, until_healthy=True):
            found.complaints.append(f"not healthy {HEALING:.0f} s after the source was well again")
        found.complaints += yardstick.complaints(house.market)
    finally:
        if hasattr(running, "process"):
            running.stop()
        house.close()
        clean.close()
    return found


def _watch(house: House, yardstick: Yardstick, found: Found, seconds: float, *, until_healthy: bool) -> bool:
    """Look again and again that nothing half done becomes data; whether all got well."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(LOOK_EVERY)
        found.complaints += yardstick.half_done(house.market)
        found.count(looks=1)
        if until_healthy and house.healthy() and not house.market.ledger.running():
            return True
    return False
