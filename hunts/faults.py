"""Rounds against a source that misbehaves: each kind of fault by itself, then all of them together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from domain.market.catalogue import catalogue
from hunts.house import House
from hunts.rounds import Found, Ground, Round
from hunts.yardstick import explained
from sandbox.calls import Call
from sandbox.faults import KINDS, Fault

ROUNDS_OF_TROUBLE = 4
ROUNDS_OF_HEALING = 4
SHARE = 0.2
TIMEOUT = 1.0
AN_HOUR_ON = timedelta(minutes=61)
A_DAY_ON = timedelta(hours=30)

WAITED_OUT = ("http_429", "rate_limit", "rate_limit_by_name")
"""A range waits for the source's next minute, in real time: they strike a few times only."""
LIES = ("revised_day", "nearly_whole_day")
"""Answers that are kept although they are not the truth: the same day in other words, or almost all of it.
The newest days are asked for again, older ones not; a person who knows better uses --force."""
THIN = ("partial_day", "empty_day")
NO_YARDSTICK = "suspend_d"
"""No reference tells how many suspensions a day has: of them any answer is believed."""


@dataclass(frozen=True)
class Trouble:
    """One kind of fault as it is set: the share of calls comes from the round."""

    name: str
    kind: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def rules(self, rate: float, luck: random.Random, *, lists: bool) -> Iterator[Fault]:
        """Thin and untrue answers are for days with a yardstick only, unless `lists`: nothing tells how long
        the first stock list should be, and by a short one half a day looks whole."""
        everywhere = lists or self.name not in (*THIN, *LIES)
        judged = [e.endpoint for e in catalogue().daily if e.endpoint != NO_YARDSTICK]
        for api in ("*",) if everywhere else judged:
            yield Fault(api, self.kind, rate=rate, seed=luck.randrange(2**31), **self.details)


def troubles() -> list[Trouble]:
    """Every kind the sandbox knows; a partial answer both far from whole and nearly whole."""
    special: dict[str, dict[str, Any]] = {
        "stall": {"seconds": 5 * TIMEOUT},
        "partial_day": {"keep": 0.5},
        **{kind: {"times": 3} for kind in WAITED_OUT},
    }
    every = [Trouble(kind, kind, special.get(kind, {})) for kind in KINDS]
    return [*every, Trouble("nearly_whole_day", "partial_day", {"keep": 0.95})]


def rounds(ground: Ground, mixed: int, *, one_by_one: bool = True) -> dict[str, Round]:
    """`one_by_one` False leaves out what takes long: single kinds, and those that wait in real time."""
    every = troubles()

    def alone(trouble: Trouble) -> Round:
        return lambda luck: play(ground, [trouble], 0.6, luck)

    def together(*, lies: bool) -> Round:
        def round_(luck: random.Random) -> Found:
            slow = () if one_by_one else (*WAITED_OUT, "stall")
            chosen = [t for t in every if t.name not in slow and (lies or t.name not in LIES)]
            luck.shuffle(chosen)
            tries = ROUNDS_OF_TROUBLE if one_by_one else 1
            return play(ground, chosen, SHARE / len(chosen), luck, tries=tries)

        return round_

    def thin_lists(luck: random.Random) -> Found:
        return play(ground, [t for t in every if t.kind in THIN], 0.3, luck, lists=True)

    single = {trouble.name: alone(trouble) for trouble in every} if one_by_one else {}
    if one_by_one:
        single["thin_lists"] = thin_lists
    return single | {f"mixed-{n}": together(lies=n % 2 == 0) for n in range(1, mixed + 1)}


def play(
    ground: Ground,
    chosen: list[Trouble],
    rate: float,
    luck: random.Random,
    *,
    lists: bool = False,
    tries: int = ROUNDS_OF_TROUBLE,
) -> Found:
    names = {trouble.name for trouble in chosen}
    found = Found()
    with ground.house(timeout=TIMEOUT if "stall" in names else 30.0) as house:
        at = _Field(ground, house, found, revised="revised_day" in names)
        house.server.faults.add(*(rule for t in chosen for rule in t.rules(rate, luck, lists=lists)))
        for _ in range(tries):
            if at.all_well():
                break
            house.later(AN_HOUR_ON)
        house.server.faults.clear()
        house.other_account()
        house.later(A_DAY_ON)
        if lists or names & {*LIES}:
            at.command(*ground.backfill, "--force")
        if not any(at.all_well() for _ in range(ROUNDS_OF_HEALING)):
            found.complaints.append(f"not healthy {ROUNDS_OF_HEALING} rounds after the source was well again")
        found.complaints += ground.yardstick.complaints(house.market, revised=lists or bool(names & {*LIES}))
    return found


@dataclass(frozen=True)
class _Field:
    """One home under trouble; whatever a command leaves behind is looked at before the next."""

    ground: Ground
    house: House
    found: Found
    revised: bool

    def all_well(self) -> bool:
        """A backfill and a heal, as a person or cron would; whether nothing is left to do then."""
        for command in (self.ground.backfill, ("market", "heal")):
            self.command(*command)
            if whole(self.house, self.ground.days):
                return True
        return False

    def command(self, *arguments: str) -> None:
        house, complain = self.house, self.found.complaints.append
        house.next_minute()
        house.server.calls.clear()
        said = house.run(*arguments)
        words = " ".join(arguments[:2])
        self.found.count(commands=1, failed=int(said.code != 0), faults=_struck(house))
        if said.code not in (0, 1):
            complain(f"{words} ended with {said.code}: {said.text[-300:]}")
        if "Traceback" in said.text:
            complain(f"{words} showed a traceback: {said.text[-600:]}")
        market = house.market
        for complaint in self.ground.yardstick.half_done(market, revised=self.revised):
            complain(f"{words}: {complaint}")
        known = explained(market)
        for key, kind in sorted(set(_refused(house.server.calls.recent()))):
            if not known.get(key):
                complain(f"{words}: {kind} struck {key}, and the ledger says nothing of it")


def whole(house: House, days: list[date]) -> bool:
    """Nothing is left to do, of these days or at all."""
    market = house.market
    tables = [*(e.name for e in market.catalogue.daily), "adjusted_daily", "coverage", "revisions"]
    return not market.needed(days, tables) and house.healthy()


def _struck(house: House) -> int:
    counters = house.server.calls.to_json()["counters"]
    return sum(c["faulted"] for c in counters.values())


def _refused(calls: list[Call]) -> Iterator[tuple[str, str]]:
    """The work a fault must have been noticed by, and the kind of the fault."""
    by_api = {e.endpoint: e for e in catalogue().endpoints}
    for call in calls:
        kinds = [k for k in call.faults if k not in (*WAITED_OUT, *LIES, *THIN)]
        if not kinds:
            continue
        name = by_api[call.api].name
        if day := call.params.get("trade_date"):
            yield f"{name}:{day[:4]}-{day[4:6]}-{day[6:]}", kinds[-1]
        elif year := call.params.get("start_date"):
            yield f"{name}:{year[:4]}", kinds[-1]
        else:
            yield f"{name}:ALL", kinds[-1]
