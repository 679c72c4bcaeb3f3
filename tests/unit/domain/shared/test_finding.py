"""Findings: the worst first, and readable by machines."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from domain.shared.health import Finding, Health, summary


def finding(health: Health, subject: str = "normalized_daily:2026-11-17") -> Finding:
    moment = datetime(2026, 11, 17, 10, 31, tzinfo=UTC)
    return Finding("market", subject, health, "missing", "never fetched", moment, None, "nothing", 7)


def test_findings__sorted_by_rank__begin_with_the_worst() -> None:
    reported: list[tuple[Health, str]] = [
        ("explained", "a"), ("healing", "a"), ("stale", "a"), ("broken", "b"), ("broken", "a"),
    ]  # fmt: skip
    ranked = sorted((finding(*each) for each in reported), key=lambda f: f.rank)
    assert [(f.health, f.subject) for f in ranked] == [
        ("broken", "a"), ("broken", "b"), ("stale", "a"), ("healing", "a"), ("explained", "a"),
    ]  # fmt: skip


def test_as_json__finding__has_every_field_and_moments_as_text() -> None:
    reported = finding("healing").as_json()
    assert (
        json.loads(json.dumps(reported))
        == reported
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
            "attempts": None,
            "caused_by": None,
            "run_id": None,
        }
    )


def test_status__consequences__come_after_their_cause() -> None:
    cause, effect = finding("healing", "z:2026-11-17"), finding("healing", "a:2026-11-17")
    effect = replace(effect, caused_by=cause.subject)
    assert sorted([effect, cause], key=lambda f: f.rank) == [cause, effect]


def test_summary__any_findings__says_whether_a_person_is_needed() -> None:
    soon = replace(finding("healing"), next_attempt=datetime(2026, 11, 17, 10, 32, tzinfo=UTC))
    later = replace(soon, next_attempt=soon.next_attempt and soon.next_attempt + timedelta(hours=1))
    assert summary([]).startswith("healthy: ")
    assert summary([later, soon]) == "2 healing: no action needed, next attempt 2026-11-17 10:32 UTC"
    assert summary([finding("explained")]) == "1 explained: no action needed"
    assert summary([finding("broken"), soon]) == "1 broken, 1 healing: a person is needed"
