"""The sentences of the references' verdicts and findings, each once; other tests assert codes and values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.references.health import Pulled, findings
from domain.references.jobs import HANDOFF, HANDOFFS, INGEST, SCRAPE, handoff_key, ingest_key, scrape_key
from domain.references.plan import Observed, SourceSeen, plan
from domain.references.tables import DOCUMENTS
from domain.shared.state import PartitionState
from domain.shared.table import ABSENT, Version
from domain.shared.verdict import Plan
from domain.shared.work import Refusals, Work
from tests.unit.domain.rows import CREATED, assert_sentences, of_finding, of_verdict, row

NOON = CREATED + timedelta(hours=2)
THREE = Version(3, "abc")
WHOLE = PartitionState(version=THREE, recorded=THREE)
SOUND = SourceSeen(
    references=WHOLE, documents=WHOLE, scraped_at=NOON - timedelta(minutes=5), handed_version=str(THREE)
)

SET = Observed({"atlas": SOUND, "herald": SOUND}, now=NOON)


@dataclass(frozen=True)
class Held:
    due: int = 0
    waiting: int = 0
    running: int = 0
    oldest: datetime | None = None


def plans() -> Iterator[Plan]:
    """Each of a source with something else that a plan may find."""
    lost, edited = replace(WHOLE, version=ABSENT), replace(WHOLE, version=Version(4, "x"))
    corrupt = replace(WHOLE, version=Version(0, "", corrupt=True))
    away = replace(WHOLE, version=Version(0, "", unavailable="refs.references cannot be read: no route"))
    for one in (
        SOUND,
        SourceSeen(),
        replace(SOUND, scraped_at=NOON - timedelta(hours=3)),
        *(replace(SOUND, references=state) for state in (lost, edited, corrupt, away)),
        *(replace(SOUND, documents=state) for state in (lost, edited, corrupt, away)),
        replace(SOUND, handed_version=""),
    ):
        yield plan(Observed({"atlas": one}, now=NOON))
    yield plan(Observed({"atlas": SOUND}, handoffs_available=False, now=NOON))


def lines() -> Iterator[str]:
    for each in plans():
        yield from map(of_verdict, each.verdicts)
        yield from map(of_finding, findings(each, (), NOON, NOON))
    scrape = row("deferred", scrape_key("atlas"), SCRAPE, reason_code="scrape_down", error="no answer")
    late = plan(Observed({"atlas": replace(SOUND, scraped_at=NOON - timedelta(hours=3))}, now=NOON))
    yield from map(of_finding, findings(late, [scrape], NOON, NOON))
    pulled = [
        Pulled(
            HANDOFFS,
            {"atlas": Held(5, 7, 2, CREATED)},
            [Refusals(_failed(HANDOFF, handoff_key(3), "retry_exhausted"))],
        ),
        Pulled(
            DOCUMENTS.table,
            {},
            [
                Refusals(_failed(INGEST, ingest_key("atlas:0"), "unreadable"), 1200),
                Refusals(replace(_failed(INGEST, ingest_key("atlas:1"), ""), status="cancelled", error=None)),
            ],
        ),
    ]
    yield from map(of_finding, findings(plan(SET), (), NOON, NOON, pulled))
    yield from map(of_finding, findings(plan(Observed()), (), NOON, NOON, pulled))


def _failed(kind: str, key: str, code: str) -> Work:
    return row("failed", key, kind, tenant="atlas", reason_code=code, error="no text to parse\nsee there")


def test_sentences__of_every_state__are_those_of_the_file(write_sentences: bool):
    assert_sentences(__file__, lines(), write=write_sentences)


def test_findings__work_of_pulled_kinds__is_one_for_each_reason():
    held = {"atlas": Held(5, 7, 2, CREATED), "herald": Held(0, 1, 0, CREATED)}
    failed = [Refusals(_failed(INGEST, ingest_key("atlas:1"), "unreadable"), 3)]
    failed += [Refusals(_failed(INGEST, ingest_key("atlas:9"), "permanent_error"))]
    found = findings(plan(SET), (), NOON, NOON, [Pulled(DOCUMENTS.table, held, failed)])
    assert [(f.subject, f.health, f.reason_code, f.next_attempt) for f in found] == [
        ("documents:atlas", "broken", "unreadable", None),
        ("documents:atlas", "broken", "permanent_error", None),
        ("documents:atlas", "healing", "work_waits", NOON),
        ("documents:herald", "healing", "work_waits", None),
    ]
    assert found[0].work_id == 7


def test_findings__source_is_not_set_any_more__only_say_what_waits():
    held = {"atlas": Held(5, 7, 2, CREATED)}
    failed = [Refusals(_failed(INGEST, ingest_key("atlas:1"), "unreadable"))]
    scrape = row("failed", scrape_key("atlas"), SCRAPE, reason_code="scrape_token")
    found = findings(plan(Observed()), [scrape], NOON, NOON, [Pulled(DOCUMENTS.table, held, failed)])
    assert [(f.subject, f.health, f.reason_code) for f in found] == [
        ("documents:atlas", "explained", "source_removed")
    ]
