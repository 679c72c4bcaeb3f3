"""Real processes on one database: exactly one winner for each thing, nothing lost, nothing stuck."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from domain.shared.backoff import Backoff
from domain.shared.clock import machine_clock
from domain.shared.work import Kind
from resources.ledger.client import Ledger
from resources.ledger.schema import work, work_event

PROCESSES = 8
ITEMS = 800
ROUNDS = 25
NAMES = ("race.claimed", "race.dispatched", "race.leased")
SCRIPT = Path(__file__).with_name("contender.py")
ROOT = Path(__file__).parents[4]


@pytest.fixture
def race(ledger_url):
    kinds = [Kind(name, transient=Backoff(base=timedelta(seconds=1))) for name in NAMES]
    ledger = Ledger.open(ledger_url, kinds=kinds, clock=machine_clock)
    yield ledger
    ledger.close()


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def event_counts(ledger: Ledger, kind: str) -> Counter[tuple[int, str]]:
    query = select(work_event.c.work_id, work_event.c.event).join(work).where(work.c.kind == kind)
    with ledger.engine.connect() as connection:
        return Counter((number, event) for number, event in connection.execute(query))


@pytest.mark.chaos
def test_ledger__eight_processes_at_once__have_one_winner_for_each_row(race, ledger_url):
    contenders = [start("fight", ledger_url, f"p{n}", str(ITEMS)) for n in range(PROCESSES)]
    answers = []
    for contender in contenders:
        out, err = contender.communicate(timeout=240)
        assert contender.returncode == 0, err
        answers.append(json.loads(out))

    assert sum(answer["created"] for answer in answers) == 2 * ITEMS, "of equal requests one creates"
    for what in ("claimed", "dispatched"):
        won = [number for answer in answers for number in answer[what]]
        assert len(won) == ITEMS, what
        assert len(set(won)) == ITEMS, what
        rows = race.find(kind=f"race.{what}", limit=None)
        assert {row.id for row in rows} == set(won)
        assert {(row.status, row.attempts) for row in rows} == {("completed", 1)}
        events = event_counts(race, f"race.{what}")
        assert set(events.values()) == {1}, "each transition of each row happened once"

    leased = [number for answer in answers for number in answer["leased"]]
    assert len(leased) == len(set(leased)) > 0, "a generation is leased once"
    assert race.running() == []
    claims = {k: n for k, n in event_counts(race, "race.leased").items() if k[1] in ("claimed", "completed")}
    assert set(claims.values()) == {1}

    (record,) = race.provenance.records(["race.table"]).values()
    assert record.seen_count == PROCESSES * ROUNDS, "no count was lost"


def test_sweep__holder_was_killed__queues_its_work_when_the_lease_ends(race, ledger_url):
    race.migrate()
    holder = start("cling", ledger_url)
    assert holder.stdout.readline() == "leased\n"
    assert race.sweep(finished_runs=()) == [], "a live holder is left alone"
    holder.kill()
    holder.communicate()
    assert race.sweep(finished_runs=()) == [], "its lease has not ended"
    swept = race.sweep(finished_runs=(), now=machine_clock() + timedelta(seconds=61))
    assert [(one.run_id, one.reason_code, one.key, one.status) for one in swept] == [
        ("doomed", "lease_expired", "a", "queued"),
        ("doomed", "lease_expired", "b", "queued"),
    ]
    with race.lease("race.leased", ["a", "b"], "next", heartbeat=False) as lease:
        assert [row.attempts for row in lease.work.values()] == [2, 2]
    assert race.counts() == {"race.leased": {"completed": 2}}
