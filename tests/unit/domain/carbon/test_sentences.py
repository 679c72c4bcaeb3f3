"""The sentences of carbon's verdicts and findings, each once; other tests assert codes and values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from domain.carbon.feeds import FeedChange, FeedRead
from domain.carbon.health import (
    findings,
    not_indexed_uploads,
    replaced_file,
    unknown_inbox_entries,
    without_factor,
)
from domain.carbon.plan import plan
from domain.shared.verdict import Plan
from tests.unit.domain.carbon.test_plan_verdicts import PARTITIONS, PLANE
from tests.unit.domain.carbon.world import (
    ENTRIES,
    MASSES,
    NOON,
    REPORT,
    TREE,
    VALUES,
    World,
    a_catalogue,
)
from tests.unit.domain.rows import assert_sentences, of_finding, of_verdict, row, source

CHANGE = FeedChange("manual", "main", "plane", 2025, "1")
REFUSED = {
    "manual|main": {
        "entries": 1,
        "of": 2,
        "first": [{"line": "e1", "column": "amount", "value": "x", "reason": "is no number"}],
        "units": "1",
    }
}


def plans() -> Iterator[Plan]:
    """Each of a world with something else that a plan may find."""
    for table, partition in PARTITIONS.items():
        for how in ("lose", "corrupt", "edit", "withhold"):
            world = World.reported()
            getattr(world, how)(table, partition)
            yield world.plan
    world = World.reported()
    for what in ("units", "factors", "plane"):
        world.upload(what, says={"plane": 2})
    yield world.plan
    yield plan(world.catalogue, replace(world.observed, not_indexed=3))
    world.work(world.verdict(ENTRIES, PLANE))
    world.work(world.verdict(VALUES))
    world.corrupt(ENTRIES, PLANE)
    yield world.plan
    world.settle()
    world.catalogue = a_catalogue(changed=frozenset({"plane"}), lost=frozenset({"train"}))
    yield world.plan
    world.locked[2025] = "published"
    yield world.plan
    world = World.reported()
    world.forget_upload(*world.uploads)
    world.lose(ENTRIES, PLANE)
    yield world.plan
    world = World.reported()
    world.upload("plane", says="more")
    world.work(world.verdict(ENTRIES, PLANE))
    world.work(world.verdict(MASSES, PLANE))
    world.upload("train", says="more")
    world.wait(minutes=11)
    yield world.plan
    world = World()
    world.upload("plane")
    world.work(world.verdict(ENTRIES, PLANE))
    yield world.plan
    unknown = replace(CHANGE, data_entry_type="zeppelin")
    others = (replace(CHANGE, kind="factors"), replace(CHANGE, kind="units", data_entry_type=""))
    yield plan(world.catalogue, replace(World.reported().observed, feed_changes=(CHANGE, unknown, *others)))
    unknown = replace(unknown, kind="factors")
    yield plan(world.catalogue, replace(World.reported().observed, feed_changes=(unknown,)))
    reads = {CHANGE.key: FeedRead({"manual|main": "1"}, {})}
    yield plan(world.catalogue, replace(World.reported().observed, feed_changes=(CHANGE,), feed_reads=reads))


def test_sentences__of_plan_and_findings__are_those_of_the_file(write_sentences: bool) -> None:
    found = list(plans())
    lines = [of_verdict(v) for one in found for v in one.verdicts]
    waiting = [v for one in found for v in one.verdicts if v.reason_code and not v.due]
    lines += map(of_finding, findings(Plan(tuple({v.key: v for v in waiting}.values())), (), NOON, NOON))
    world = World.reported()
    world.edit(REPORT)
    key, wanted = f"{REPORT}:2025", world.verdict(REPORT).fingerprint
    for work in (
        row("deferred", key, reason_code="lake_busy", error="locked", not_before=NOON + timedelta(minutes=1)),
        row("failed", key, reason_code="unclassified", error="KeyError: 'x'"),
        row("cancelled", key, fingerprint=wanted, finished_at=NOON),
    ):
        lines += map(of_finding, findings(world.plan, [work], NOON, NOON))
    feeds = [source(NOON - timedelta(days=1), NOON, "HTTP 502\nremedy")]
    reads = {CHANGE.key: FeedRead({}, REFUSED)}
    lines += map(of_finding, findings(World.reported().plan, (), NOON, NOON, feeds, reads))
    lines += map(of_finding, (unknown_inbox_entries(["a", "b", "c", "d"]), not_indexed_uploads(2)))
    lines += map(
        of_finding,
        (
            without_factor(2025, {"travel": {"plane": 2, "train": 1}, "cloud": {"ai_usage": 1}}),
            replaced_file("data_entries:plane|2025", "old.csv", "new.csv", (10, 9), NOON),
        ),
    )
    assert TREE in str(lines)
    assert_sentences(__file__, lines, write=write_sentences)
