"""Findings: the worst first, and readable by machines."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from domain.shared.health import Finding, Health


def finding(health: Health, subject: str = "normalized_daily:2026-11-17") -> Finding:
    moment = datetime(2026, 11, 17, 10, 31, tzinfo=UTC)
    return Finding("market", subject, health, "missing", "never fetched", moment, None, "nothing", 7)


def test_the_worst_comes_first_and_then_the_alphabet() -> None:
    told: list[tuple[Health, str]] = [
        ("explained", "a"), ("healing", "a"), ("stale", "a"), ("broken", "b"), ("broken", "a"),
    ]  # fmt: skip
    ranked = sorted((finding(*each) for each in told), key=lambda f: f.rank)
    assert [(f.health, f.subject) for f in ranked] == [
        ("broken", "a"), ("broken", "b"), ("stale", "a"), ("healing", "a"), ("explained", "a"),
    ]  # fmt: skip


def test_json_has_every_field_and_moments_as_text() -> None:
    told = finding("healing").as_json()
    assert (
        json.loads(json.dumps(told))
        == told
        == {
            "domain": "market",
            "subject": "normalized_daily:2026-11-17",
            "health": "healing",
            "reason_code": "missing",
            "reason": "never fetched",
            "since": "2026-11-17T10:31:00+00:00",
            "next_attempt": None,
            "action": "nothing",
            "work_id": 7,
        }
    )
