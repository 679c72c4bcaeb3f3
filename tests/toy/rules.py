"""The toy's rules: one table with one greeting, one kind of work, a plan of one verdict."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pyarrow as pa

from domain.shared.backoff import Backoff
from domain.shared.health import Finding
from domain.shared.state import PartitionState
from domain.shared.table import ALL, Column, Table
from domain.shared.verdict import Verdict
from domain.shared.work import Kind, WorkRequest

GREET = "toy.greet"
KINDS = (Kind(GREET, transient=Backoff(base=timedelta(seconds=5), factor=2, cap=timedelta(minutes=1))),)

GREETINGS = Table(
    name="toy.greetings",
    description="What the toy says.",
    columns=(
        Column("name", pa.string(), "Who is greeted.", nullable=False),
        Column("greeting", pa.string(), "The greeting."),
    ),
    key=("name",),
)
LOUD = {"toy.loud": "SELECT name, upper(greeting) AS greeting FROM toy.greetings"}


def judge(state: PartitionState, greeting: str) -> Verdict:
    verdict = Verdict(GREETINGS.table, ALL, "healthy", reason="greets as set")
    if state.inputs.get("greeting") == greeting and state.version.rows:
        return verdict
    request = WorkRequest(GREET, verdict.key, greeting, "never_greeted")
    reason = f"nobody was greeted with {greeting!r}"
    return replace(verdict, state="missing", reason_code="never_greeted", reason=reason, request=request)


def finding(verdict: Verdict) -> Finding:
    action = "nothing with a running daemon"
    return Finding("toy", verdict.key, "healing", verdict.reason_code, verdict.reason, action=action)
