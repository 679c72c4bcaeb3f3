"""Rows as findings read them: of the ledger, and of a source. And the file of a domain's sentences."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from domain.shared.health import Finding, SourceFreshness
from domain.shared.verdict import Verdict
from domain.shared.work import Work

CREATED = datetime(2026, 11, 17, 10, 31, tzinfo=UTC)


def row(status: str, key: str, kind: str = "kind", **values: Any) -> Work:
    """A row of the ledger."""
    new = {"id": 7, "reason_code": "", "fingerprint": "", "created_at": CREATED, "not_before": CREATED}
    rest = {"params": {}, "tenant": "default", "priority": 0, "once": False, "parent_id": None}
    more = {"max_attempts": None, "updated_at": CREATED, "attempts": 1}
    return Work(kind=kind, key=key, status=status, **(new | rest | more | values))


def source(
    success: datetime | None = None, failure: datetime | None = None, error: str | None = None
) -> SourceFreshness:
    return SourceFreshness("tushare.daily", success, failure, error)


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
