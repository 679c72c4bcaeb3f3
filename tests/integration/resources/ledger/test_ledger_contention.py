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

from domain.shared.clock import machine_clock
from resources.ledger.client import Ledger
from resources.ledger.schema import work, work_event
from tests.integration.resources.ledger import contender

PROCESSES = 8
ROOT = Path(__file__).parents[4]


@pytest.fixture
def race(ledger_url):
    ledger = contender.open_ledger(ledger_url)
    yield ledger
    ledger.close()


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, contender.__file__, *arguments],
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
    contenders = [start(ledger_url, f"p{n}") for n in range(PROCESSES)]
    answers = []
    for process in contenders:
        out, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
        answers.append(json.loads(out))

    assert sum(answer["created"] for answer in answers) == 2 * contender.ITEMS, (
        "of equal requests one creates"
    )
    for kind in (contender.CLAIMED, contender.DISPATCHED):
        won = [number for answer in answers for number in answer[kind]]
        rows = race.find(kind=kind, limit=None)
        assert len(won) == len(set(won)) == contender.ITEMS, kind
        assert {row.id for row in rows} == set(won)
        assert {(row.status, row.attempts) for row in rows} == {("completed", 1)}
        assert set(event_counts(race, kind).values()) == {1}, "each transition of each row happened once"

    leased = [number for answer in answers for number in answer[contender.LEASED]]
    assert len(leased) == len(set(leased)) > 0, "a generation is leased once"
    assert race.running() == []
    events = event_counts(race, contender.LEASED)
    assert {n for (_, event), n in events.items() if event in ("claimed", "completed")} == {1}

    (record,) = race.provenance.records(["race.table"]).values()
    assert record.seen_count == PROCESSES * contender.ROUNDS, "no count was lost"


def test_sweep__holder_was_killed__queues_its_work_when_the_lease_ends(race, ledger_url):
    race.migrate()
    holder = start(ledger_url)
    assert holder.stdout.readline() == "leased\n"
    assert race.sweep(finished_runs=()) == [], "a live holder is left alone"
    holder.kill()
    holder.communicate()
    assert race.sweep(finished_runs=()) == [], "its lease has not ended"
    swept = race.sweep(finished_runs=(), now=machine_clock() + timedelta(seconds=61))
    assert [(row.run_id, row.reason_code, row.key, row.status) for row in swept] == [
        ("doomed", "lease_expired", "a", "queued"),
        ("doomed", "lease_expired", "b", "queued"),
    ]
    with race.lease(contender.LEASED, ["a", "b"], "next", heartbeat=False) as lease:
        assert [(row.attempts, row.deaths) for row in lease.work.values()] == [(1, 1), (1, 1)]
