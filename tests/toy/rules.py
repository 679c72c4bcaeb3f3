"""The toy's rules: one table with one greeting, one kind of work, a plan of one verdict."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pyarrow as pa

from domain.shared.backoff import Backoff
from domain.shared.health import Finding
from domain.shared.state import PartitionState
from domain.shared.table import ALL, Column, Table
from domain.shared.work import Kind, WorkRequest

GREET = "toy.greet"
KINDS = (Kind(GREET, transient=Backoff(base=timedelta(seconds=5), factor=2, cap=timedelta(minutes=1))),)

GREETINGS = Table(
    name="toy.greetings",
    description="What the toy says.",
    columns=(
        Column("name", pa.string(), "Who is greeted.", nullable=False),
        Column("greeting", pa.string(), "The words."),
    ),
    key=("name",),
)
LOUD = {"toy.loud": "SELECT name, upper(greeting) AS greeting FROM toy.greetings"}


@dataclass(frozen=True)
class Verdict:
    state: str
    reason_code: str
    why: str
    fingerprint: str
    table: str = GREETINGS.table
    partition: str = ALL

    @property
    def due(self) -> bool:
        return self.state != "healthy"

    @property
    def key(self) -> str:
        return f"{self.table}:{self.partition}"

    def item(self) -> WorkRequest:
        return WorkRequest(GREET, self.key, self.fingerprint, self.reason_code)


@dataclass(frozen=True)
class Plan:
    verdicts: tuple[Verdict, ...]

    @property
    def due(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if verdict.due)


def judge(state: PartitionState, greeting: str) -> Verdict:
    if state.inputs.get("greeting") == greeting and state.version.rows:
        return Verdict("healthy", "", "greets as set", greeting)
    return Verdict("missing", "never_greeted", f"nobody was greeted with {greeting!r}", greeting)


def finding(verdict: Verdict) -> Finding:
    return Finding(
        domain="toy",
        subject=verdict.key,
        health="healing",
        reason_code=verdict.reason_code,
        reason=verdict.why,
        since=None,
        next_attempt=None,
        action="nothing with a running daemon",
    )
