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

CLAIMED = Kind("race.claimed", transient=Backoff(base=timedelta(seconds=1)))
DISPATCHED = Kind("race.dispatched", transient=Backoff(base=timedelta(seconds=1)))
LEASED = Kind("race.leased", transient=Backoff(base=timedelta(seconds=1)))
KINDS = (CLAIMED, DISPATCHED, LEASED)
ROUNDS = 25


def open_ledger(url: str) -> Ledger:
    return Ledger.open(url, kinds=KINDS, clock=machine_clock)


def request(ledger: Ledger, items: int, rng: random.Random) -> int:
    """The same requests as all others, in an order of its own."""
    requests = [
        WorkRequest(kind.name, f"k{n}", "f", once=True, tenant=f"t{n % 3}" if kind is CLAIMED else "default")
        for kind in (CLAIMED, DISPATCHED)
        for n in range(items)
    ]
    rng.shuffle(requests)
    batches = [requests[start : start + 500] for start in range(0, len(requests), 500)]
    return sum(len(ledger.enqueue(batch).created) for batch in batches)


def claim(ledger: Ledger, name: str) -> list[int]:
    won: list[int] = []
    while rows := ledger.claim(CLAIMED.name, holder=f"worker:{name}", limit=20):
        for row in rows:
            ledger.complete(row)
            won.append(row.id)
    return won


def dispatch(ledger: Ledger, name: str) -> list[int]:
    won: list[int] = []
    # A dispatch that finds only rows others are just taking gives nothing; that is not the end.
    while ledger.find(kind=DISPATCHED.name, status="queued", limit=1):
        sent = ledger.dispatch(DISPATCHED.name, limit=4, group=lambda row: row.key[-2:])
        for one in sent:
            with ledger.lease(one.rows[0].kind, one.keys, f"{name}:{one.id}", heartbeat=False) as lease:
                won += [row.id for row in lease.work.values()]
        if not sent and not _undispatched(ledger):
            return won
    return won


def _undispatched(ledger: Ledger) -> bool:
    return any(
        row.dispatch_id is None for row in ledger.find(kind=DISPATCHED.name, status="queued", limit=None)
    )


def lease_all(ledger: Ledger, name: str, rng: random.Random) -> list[int]:
    """Overlapping keys in changing order: the second run is refused, and nothing deadlocks."""
    won: list[int] = []
    for number in range(ROUNDS):
        keys = [f"k{n}" for n in rng.sample(range(60), 30)]
        try:
            with ledger.lease(LEASED.name, keys, f"{name}:{number}", heartbeat=False) as lease:
                won += [row.id for row in lease.work.values()]
                lease.check()
                ledger.enqueue([WorkRequest(LEASED.name, key, f"{name}{number}") for key in keys[:10]])
        except LeasedElsewhere:
            continue
    return won


def fight(url: str, name: str, items: int) -> dict[str, object]:
    ledger = open_ledger(url)
    rng = random.Random(name)
    ledger.migrate()
    created = request(ledger, items, rng)
    claimed = claim(ledger, name)
    dispatched = dispatch(ledger, name)
    leased = lease_all(ledger, name, rng)
    for _ in range(ROUNDS):
        ledger.provenance.record([PartitionRecord("race.table", "p", 1, "same")])
    return {
        "created": created,
        "claimed": claimed,
        "dispatched": dispatched,
        "leased": leased,
    }


def cling(url: str) -> None:
    """Lease two keys until killed."""
    ledger = open_ledger(url)
    with ledger.lease(LEASED.name, ["a", "b"], "doomed"):
        print("leased", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    if sys.argv[1] == "cling":
        cling(sys.argv[2])
    else:
        print(json.dumps(fight(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
