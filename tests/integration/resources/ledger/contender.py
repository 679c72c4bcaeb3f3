"""One of several processes that fight over a ledger. Run as a script: what it won goes to stdout as JSON."""

from __future__ import annotations

import json
import random
import sys
import time
from datetime import timedelta

from domain.shared.backoff import Backoff
from domain.shared.clock import machine_clock
from domain.shared.work import Kind, WorkRequest
from resources.ledger.client import Ledger
from resources.ledger.model import LeasedElsewhere
from resources.ledger.provenance import PartitionRecord

CLAIMED, DISPATCHED, LEASED = NAMES = ("race.claimed", "race.dispatched", "race.leased")
KINDS = [Kind(name, transient=Backoff(base=timedelta(seconds=1))) for name in NAMES]
ITEMS = 800
ROUNDS = 25


def open_ledger(url: str) -> Ledger:
    return Ledger.open(url, kinds=KINDS, clock=machine_clock)


def request(ledger: Ledger, rng: random.Random) -> int:
    """The same requests as all others, in an order of its own."""
    requests = [
        WorkRequest(name, f"k{n}", "f", once=True, tenant=f"t{n % 3}" if name == CLAIMED else "default")
        for name in (CLAIMED, DISPATCHED)
        for n in range(ITEMS)
    ]
    rng.shuffle(requests)
    batches = [requests[start : start + 500] for start in range(0, len(requests), 500)]
    return sum(len(ledger.enqueue(batch).created) for batch in batches)


def claim(ledger: Ledger, name: str) -> list[int]:
    won: list[int] = []
    while rows := ledger.claim(CLAIMED, holder=f"worker:{name}", limit=20):
        for row in rows:
            ledger.complete(row)
            won.append(row.id)
    return won


def dispatch(ledger: Ledger, name: str) -> list[int]:
    """Until all rows travel: a dispatch that finds only rows others are just taking gives nothing."""
    won: list[int] = []
    while any(row.dispatch_id is None for row in ledger.find(DISPATCHED, status="queued", limit=None)):
        for one in ledger.dispatch(DISPATCHED, limit=4, group=lambda row: row.key[-2:]):
            with ledger.lease(DISPATCHED, one.keys, f"{name}:{one.id}", heartbeat=False) as lease:
                won += [row.id for row in lease.work.values()]
    return won


def lease_all(ledger: Ledger, name: str, rng: random.Random) -> list[int]:
    """Overlapping keys in changing order: the second run is refused, and nothing deadlocks."""
    won: list[int] = []
    for number in range(ROUNDS):
        keys = [f"k{n}" for n in rng.sample(range(60), 30)]
        try:
            with ledger.lease(LEASED, keys, f"{name}:{number}", heartbeat=False) as lease:
                won += [row.id for row in lease.work.values()]
                lease.check()
                ledger.enqueue([WorkRequest(LEASED, key, f"{name}{number}") for key in keys[:10]])
        except LeasedElsewhere:
            continue
    return won


def fight(url: str, name: str) -> dict[str, object]:
    ledger, rng = open_ledger(url), random.Random(name)
    ledger.migrate()
    for _ in range(ROUNDS):
        ledger.provenance.record([PartitionRecord("race.table", "p", 1, "same")])
    return {
        "created": request(ledger, rng),
        CLAIMED: claim(ledger, name),
        DISPATCHED: dispatch(ledger, name),
        LEASED: lease_all(ledger, name, rng),
    }


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(fight(*sys.argv[1:])))
    else:
        with open_ledger(sys.argv[1]).lease(LEASED, ["a", "b"], "doomed"):
            print("leased", flush=True)
            time.sleep(600)
