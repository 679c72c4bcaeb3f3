"""Rows as findings read them: of the ledger, and of a source. And the file of a domain's sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from domain.shared.health import Finding
from domain.shared.verdict import Verdict

CREATED = datetime(2026, 11, 17, 10, 31, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    """A row of the ledger."""

    status: str
    key: str
    id: int = 7
    fingerprint: str = ""
    reason_code: str | None = None
    error: str | None = None
    attempts: int = 1
    not_before: datetime | None = None
    created_at: datetime = CREATED
    finished_at: datetime | None = None
    lease_until: datetime | None = None
    run_id: str | None = None


@dataclass(frozen=True)
class Source:
    last_success: datetime | None = None
    last_failure: datetime | None = None
    last_error: str | None = None
    source: str = "tushare.daily"


def of_verdict(verdict: Verdict) -> str:
    due = "due" if verdict.due else "   "
    return f"plan    {due} {verdict.state:<11} {verdict.reason_code:<16} {verdict.table}: {verdict.reason}"


def of_finding(finding: Finding) -> str:
    return f"finding {finding.health:<15} {finding.reason_code:<22} {finding.reason} -> {finding.action}"


def assert_sentences(test_file: str, lines: Iterable[str], *, write: bool) -> None:
    """Compare with `sentences.txt` beside the test; `pytest --write-sentences` writes it anew."""
    path, text = Path(test_file).with_name("sentences.txt"), "\n".join(sorted(set(lines))) + "\n"
    if write:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "run pytest --write-sentences and read the difference"
