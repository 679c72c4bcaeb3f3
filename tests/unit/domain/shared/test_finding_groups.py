"""Groups of findings: one per trouble, the cause before its effects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from domain.shared.finding_groups import Group, Span, group, lines
from domain.shared.health import Finding, Health

DAYS = [f"2026-11-{day:02}" for day in range(2, 14)]
MOMENT = datetime(2026, 11, 17, 10, 31, tzinfo=UTC)


def finding(
    subject: str,
    code: str = "source_down",
    health: Health = "healing",
    *,
    cause: str | None = None,
    reason: str = "no answer",
    action: str = "nothing",
    work: int | None = None,
    hours: int = 0,
) -> Finding:
    later = MOMENT + timedelta(hours=hours)
    return Finding(
        "market", subject, health, code, reason, later, later, action, work, attempts=hours, caused_by=cause
    )


def only(groups: list[Group]) -> Group:
    [one] = groups
    return one


def test_group__one_reason_for_many_days__is_one_line_with_first_and_last() -> None:
    found = [finding(f"normalized_daily:{day}", hours=n) for n, day in enumerate(reversed(DAYS))]
    one = only(group(found))
    assert [str(span) for span in one.spans] == ["normalized_daily: 12 days 2026-11-02…2026-11-13"]
    assert (one.count, one.size, one.since, one.next_attempt, one.attempts) == (12, 12, MOMENT, MOMENT, 11)


def test_group__same_days_of_several_tables__share_a_line() -> None:
    found = [finding(f"{table}:{day}") for table in ("a", "b", "c", "d", "e") for day in DAYS]
    assert str(only(group(found)).spans[0]) == "a, b, c and 2 more: 12 days 2026-11-02…2026-11-13"
    found.append(finding(f"f:{DAYS[0]}"))
    assert [str(span) for span in only(group(found)).spans][1:] == ["f: 2026-11-02"]


def test_group__other_reason_health_or_remedy__are_groups_of_their_own() -> None:
    found = [
        finding("a:1"), finding("a:2", "token"), finding("a:3", "token", "broken"),
        finding("a:4", "token", "broken", action="set TUSHARE_TOKEN"),
    ]  # fmt: skip
    assert [(g.health, g.reason_code) for g in group(found)] == [
        ("broken", "token"), ("broken", "token"), ("healing", "source_down"), ("healing", "token"),
    ]  # fmt: skip


def test_group__effects__are_below_the_first_cause() -> None:
    found = [
        finding("coverage:2026-11-02", "inputs_changed", cause="daily:2026-11-02"),
        finding("daily:2026-11-02", "input_missing", cause="stock_basic:ALL"),
        finding("stock_basic:ALL", "source_fails", "broken"),
    ]
    one = only(group(found))
    assert (one.reason_code, one.count, one.size, str(one.spans[0])) == ("source_fails", 1, 3, "stock_basic")
    assert {(e.reason_code, str(e.spans[0])) for e in one.effects} == {
        ("inputs_changed", "coverage: 2026-11-02"),
        ("input_missing", "daily: 2026-11-02"),
    }


def test_group__cause_is_healthy_or_a_circle__stands_for_itself() -> None:
    alone = finding("a:1", cause="b:1")
    assert only(group([alone])).count == 1
    circle = [finding("a:1", cause="b:1"), finding("b:1", "token", cause="a:1")]
    assert sum(g.size for g in group(circle)) == 2


def test_group__reasons_differ__gives_one_as_an_example() -> None:
    found = [finding("a:1", reason="5 of 9 rows"), finding("a:2", reason="6 of 9 rows")]
    assert only(group(found)).reason == "e.g. 5 of 9 rows"
    assert only(group(found[:1])).reason == "5 of 9 rows"
    listed = finding("settings", reason="wrong settings:\n  PORT: foo\n  HOME: bar")
    assert only(group([listed])).reason == "wrong settings: PORT: foo HOME: bar"


def test_group__commands_for_each_work_item__become_one_command() -> None:
    found = [
        finding(
            f"a:{day}", "unclassified", "broken", work=n,
            action=f"see `perennial work show {n}`, then `perennial work retry {n}`",
        )
        for n, day in enumerate(DAYS, start=41)
    ]  # fmt: skip
    assert only(group(found[:1])).action == "see `perennial work show 41`, then `perennial work retry 41`"
    shown = "see `perennial work show 41` (the first of"
    assert only(group(found[:3])).action == f"{shown} 3), then `perennial work retry 41 42 43`"
    retried = "`perennial work retry --reason unclassified --domain market`"
    assert only(group(found)).action == f"{shown} 12), then {retried}"


def test_group__work_that_a_person_cancelled__is_retried_by_its_ids() -> None:
    action = "to have it after all, `perennial work retry {}`"
    found = [
        finding(f"a:{day}", "called_off", "explained", work=n, action=action.format(n))
        for n, day in enumerate(DAYS[:4])
    ]
    assert only(group(found)).action == action.format("0 1 2 3")


def test_group__worst_and_then_largest__come_first() -> None:
    many = [finding(f"a:{day}", "corrupt") for day in DAYS]
    ranked = group([finding("b:1"), *many, finding("c:1", "token", "broken")])
    assert [g.reason_code for g in ranked] == ["token", "corrupt", "source_down"]


def test_span__partitions_of_any_kind__are_counted_or_named() -> None:
    assert str(Span(("reports",), ("2023", "2024", "2025"))) == "reports: 3 years 2023…2025"
    assert str(Span(("entries",), ("train|2025",))) == "entries: train|2025"
    assert str(Span(("entries",), ("paper|2025", "train|2025"))) == "entries: paper|2025, train|2025"
    assert str(Span(("entries",), tuple("abcd"))) == "entries: 4 partitions a … d"
    assert str(Span(("daemon",))) == "daemon"
    assert str(Span(("a", "b", "c", "d"))) == "a, b, c, d"


def test_lines__at_the_end_of_a_command__are_one_per_group() -> None:
    found = [finding(f"a:{day}", "token", "broken", reason="code 40101") for day in DAYS]
    found.append(finding("b:1", "inputs_changed", cause=f"a:{DAYS[0]}"))
    assert lines(found) == [
        "broken: a: 12 days 2026-11-02…2026-11-13: code 40101",
        "healing: b:1: no answer",
    ]
