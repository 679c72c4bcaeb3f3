"""Rounds against a source that misbehaves: each kind of fault by itself, then all of them together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from typing import Any

from domain.market.catalogue import catalogue
from sandbox.calls import Call
from sandbox.faults import KINDS, REFERENCE_KINDS, Fault
from tests.chaos.home import Home
from tests.chaos.market_checks import Baseline, failed_keys
from tests.chaos.rounds import Findings, Round

TRIES = 4
"""Backfills and heals while the source misbehaves, and after it is well again."""
SHARE = 0.2
TIMEOUT = 1.0
AN_HOUR = timedelta(minutes=61)
A_DAY = timedelta(hours=30)

WAITED_OUT = ("http_429", "rate_limit", "rate_limit_by_name")
"""A range waits for the source's next minute, in real time: these strike a few times only."""
LEFT_OUT = ("revised_day", "any")
"""Answers that nothing distinguishes from true ones; and all ways at once, which `unsteady.py` plays."""
THIN = ("partial_day", "empty_day")
ANY_COUNT = "suspend_d"
"""No reference says how many suspensions a day has: the same answer some times in a row is believed."""


@dataclass(frozen=True)
class FaultKind:
    """One kind of fault; the share of calls it strikes comes from the round."""

    kind: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def rules(self, rate: float, luck: random.Random) -> Iterator[Fault]:
        """Thin answers strike only days whose rows are counted: of the others, and of the first stock list,
        the same half is believed when it comes again."""
        counted = [e.endpoint for e in catalogue().daily if e.endpoint != ANY_COUNT]
        for api in counted if self.kind in THIN else ("*",):
            yield Fault(api, self.kind, rate=rate, seed=luck.randrange(2**31), **self.details)


def fault_kinds() -> list[FaultKind]:
    """Every kind of the sandbox whose answers can be refused; a partial one is half of a day."""
    details: dict[str, dict[str, Any]] = {
        "stall": {"seconds": 5 * TIMEOUT},
        "partial_day": {"keep": 0.5},
        **{kind: {"times": 3} for kind in WAITED_OUT},
    }
    left_out = {*LEFT_OUT, *REFERENCE_KINDS}
    return [FaultKind(kind, details.get(kind, {})) for kind in KINDS if kind not in left_out]


def rounds(base: Baseline, mixed: int) -> dict[str, Round]:
    """Each kind alone, then `mixed` rounds with all kinds."""
    made: dict[str, Round] = {k.kind: partial(play, base, [k], 0.6) for k in fault_kinds()}
    return made | {f"mixed-{n}": mixed_round(base) for n in range(1, mixed + 1)}


def mixed_round(base: Baseline, *, quick: bool = False) -> Round:
    """All kinds at once. `quick` leaves out those that are waited for in real time."""
    left_out = (*WAITED_OUT, "stall") if quick else ()

    def play_mixed(luck: random.Random) -> Findings:
        chosen = [k for k in fault_kinds() if k.kind not in left_out]
        luck.shuffle(chosen)
        return play(base, chosen, SHARE / len(chosen), luck, tries=1 if quick else TRIES)

    return play_mixed


def play(
    base: Baseline, chosen: list[FaultKind], rate: float, luck: random.Random, *, tries: int = TRIES
) -> Findings:
    found, stalls = Findings(), any(kind.kind == "stall" for kind in chosen)
    with base.home(timeout=TIMEOUT if stalls else 30.0) as home:
        user = _User(base, home, found)
        home.server.faults.add(*(rule for k in chosen for rule in k.rules(rate, luck)))
        for _ in range(tries):
            if user.fills():
                break
            home.move_clock(AN_HOUR)
        home.server.faults.clear()
        home.change_account()
        home.move_clock(A_DAY)
        if not any(user.fills() for _ in range(TRIES)):
            found.complaints.append(f"not healthy after {TRIES} backfills from a source that is well again")
        found.complaints += base.checks.complaints(home.market)
    return found


@dataclass(frozen=True)
class _User:
    """Runs commands on one home and checks what each leaves behind."""

    base: Baseline
    home: Home
    found: Findings

    def fills(self) -> bool:
        """Backfill and heal, as a person or cron would; whether nothing is left to do then."""
        for command in (self.base.backfill, ("market", "heal")):
            self.run(*command)
            if filled(self.home, self.base.days):
                return True
        return False

    def run(self, *arguments: str) -> None:
        home, complain = self.home, self.found.complaints.append
        home.end_minute()
        home.server.calls.clear()
        ended = home.run(*arguments)
        name = " ".join(arguments[:2])
        struck = sum(c["faulted"] for c in home.server.calls.to_json()["counters"].values())
        self.found.count(commands=1, failed=int(ended.code != 0), faults=struck)
        if ended.failed_badly:
            complain(f"{name} ended with {ended.code}: {ended.text[-600:]}")
        market = home.market
        for complaint in self.base.checks.half_done(market):
            complain(f"{name}: {complaint}")
        known = failed_keys(market.ledger)
        for key, kind in sorted(set(_refused(home.server.calls.recent()))):
            if key not in known:
                complain(f"{name}: {kind} struck {key}, and the ledger has no reason for it")


def filled(home: Home, days: list[date]) -> bool:
    """Whether nothing is left to do, for these days or at all."""
    market = home.market
    tables = [*(e.name for e in market.catalogue.daily), "adjusted_daily", "coverage", "revisions"]
    return not market.needed(days, tables) and home.healthy()


def _refused(calls: list[Call]) -> Iterator[tuple[str, str]]:
    """The work a fault must have been noticed by, and the kind of the fault."""
    by_api = {e.endpoint: e for e in catalogue().endpoints}
    for call in calls:
        kinds = [k for k in call.faults if k not in (*WAITED_OUT, *THIN)]
        if not kinds:
            continue
        name = by_api[call.api].name
        if day := call.params.get("trade_date"):
            yield f"{name}:{day[:4]}-{day[4:6]}-{day[6:]}", kinds[-1]
        elif call.api == ANY_COUNT:
            continue  # a call for many days, of which any has the reason
        elif year := call.params.get("start_date"):
            yield f"{name}:{year[:4]}", kinds[-1]
        else:
            yield f"{name}:ALL", kinds[-1]
