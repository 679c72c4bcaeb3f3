"""The order in which partitions are written, and what becomes of those that cannot be built."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from domain.shared.backoff import Backoff
from domain.shared.error import InvalidInput, PermanentRunnerError, TransientResourceError
from domain.shared.table import Column, Table
from domain.shared.work import Kind, Work
from resources.lake.client import Lake
from resources.ledger.client import Ledger
from resources.ledger.model import LeasedElsewhere, LeaseLost
from services.materialize import Materialization, PartlyDone
from services.partitions import Attempt, Batch, Built, NotBuilt, PartitionReport, Request, one_at_a_time

TABLE = Table(
    name="toy.things",
    description="Things by year.",
    columns=(Column("year", pa.int32(), "year"), Column("name", pa.string(), "name")),
    key=("year", "name"),
    partition_kind="year",
    partition_columns=("year",),
)
KIND = Kind("toy.make", transient=Backoff(base=timedelta(seconds=60), factor=2, cap=timedelta(hours=1)))
NOW = datetime(2026, 11, 18, tzinfo=UTC)


@dataclass
class Toy:
    lake: Lake
    ledger: Ledger
    reports: list[PartitionReport] = field(default_factory=list)

    def work(self, this: Attempt = Attempt("run"), source: str = "", **how: object) -> Materialization:  # noqa: B008
        report = self.reports.extend
        return Materialization(
            self.lake, self.ledger, self.ledger.provenance, KIND.name, [TABLE], this, report, source, **how
        )

    def row(self, year: str) -> Work:
        return self.ledger.find(key_prefix=f"things:{year}", limit=1)[0]

    def rows(self, year: str) -> int:
        return self.lake.version(TABLE.name, year).rows


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Toy]:
    lake = Lake(
        catalog_url=f"sqlite:///{tmp_path}/lake/catalog.db",
        warehouse=f"file://{tmp_path}/lake/warehouse",
        home=tmp_path,
        tables=[TABLE],
    )
    ledger = Ledger.open(f"sqlite:///{tmp_path}/ledger.db", kinds=[KIND], clock=lambda: NOW)
    ledger.migrate()
    yield Toy(lake, ledger)
    ledger.close()


def built(request: Request, names: Sequence[str] = ("a", "b")) -> Built:
    year = int(request.partition)
    rows = pa.table({"year": pa.array([year] * len(names), pa.int32()), "name": list(names)})
    return Built(request.partition, {TABLE.name: rows.cast(TABLE.schema)}, inputs={"of": "somewhere"})


def each(
    build: Callable[[Request], Built | NotBuilt] = built,
) -> Callable[[Sequence[Request]], Generator[Batch, None, None]]:
    return lambda requests: one_at_a_time(requests, build)


def failing(error: Exception, year: str) -> Callable[[Request], Built]:
    def build(request: Request) -> Built:
        if request.partition == year:
            raise error
        return built(request)

    return build


def test_materialize__several_partitions__are_one_commit_with_a_report_and_a_record_each(toy: Toy) -> None:
    toy.work().run(["2024", "2025"], each())
    assert [(one.partition, one.outcome, one.version.rows) for one in toy.reports] == [
        ("2024", "committed", 2),
        ("2025", "committed", 2),
    ]
    assert len({one.snapshot_id for one in toy.reports}) == 1
    assert {one.reason for one in toy.reports} == {"requested"}
    records = toy.ledger.provenance.records([TABLE.name])
    assert {p for _, p in records} == {"2024", "2025"}
    assert all(record.inputs == {"of": "somewhere"} for record in records.values())
    assert {toy.row(year).status for year in ("2024", "2025")} == {"completed"}


def test_materialize__between_commit_and_record__reports(toy: Toy) -> None:
    """A run that is killed right after a report has shown exactly what it committed."""

    def dies(_: Sequence[PartitionReport]) -> None:
        assert toy.rows("2025") == 2
        assert toy.ledger.provenance.records([TABLE.name]) == {}
        raise KeyboardInterrupt

    work = toy.work()
    work.report = dies
    with pytest.raises(KeyboardInterrupt):
        work.run(["2025"], each())
    assert (toy.rows("2025"), toy.row("2025").status) == (2, "queued")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (TransientResourceError("busy"), "deferred"),
        (PermanentRunnerError("forbidden"), "failed"),
        (InvalidInput("wrong"), "failed"),
        (RuntimeError("unforeseen"), "deferred"),
    ],
)
def test_materialize__one_partition_cannot_be_built__the_others_are_written(
    toy: Toy, error: Exception, status: str
) -> None:
    with pytest.raises(PartlyDone, match=r"things: 1 of 3 partitions not committed; .*"):
        toy.work().run(["2023", "2024", "2025"], each(failing(error, "2024")))
    assert [toy.rows(year) for year in ("2023", "2024", "2025")] == [2, 0, 2]
    assert [toy.row(year).status for year in ("2023", "2024", "2025")] == ["completed", status, "completed"]


def test_materialize__source_is_busy_in_a_pass__another_pass_writes_only_what_is_missing(toy: Toy) -> None:
    busy = TransientResourceError("HTTP 502")
    with pytest.raises(TransientResourceError, match="again in 10 s"):
        toy.work(Attempt("run", 0, [10]), "api").run(["2024", "2025"], each(failing(busy, "2025")))
    assert toy.row("2025").status == "queued"
    toy.reports.clear()
    toy.work(Attempt("run", 1, [10]), "api").run(["2024", "2025"], each())
    assert [(one.partition, one.outcome) for one in toy.reports] == [
        ("2024", "earlier"),
        ("2025", "committed"),
    ]


def test_materialize__source_is_busy_in_the_last_pass__is_deferred_with_the_number_of_retries(
    toy: Toy,
) -> None:
    busy = TransientResourceError("HTTP 502", reason_code="source_fails")
    with pytest.raises(TransientResourceError, match="api failed after 1 retries: HTTP 502"):
        toy.work(Attempt("run", 1, [10]), "api").run(["2025"], each(failing(busy, "2025")))
    assert (toy.row("2025").status, toy.row("2025").reason_code) == ("deferred", "source_fails")


def test_materialize__bytes_are_unavailable__waits_and_keeps_no_other_back(toy: Toy, tmp_path: Path) -> None:
    toy.work().run(["2024", "2025"], each())
    path = next(p for p in (tmp_path / "lake").rglob("*.parquet") if "year=2024" in str(p))
    path.rename(path.with_suffix(".away"))
    path.symlink_to(path)
    with pytest.raises(PartlyDone):
        toy.work(Attempt("second")).run(["2024", "2025"], each(lambda r: built(r, ("c",))))
    assert (toy.row("2024").status, toy.row("2024").reason_code) == ("deferred", "lake_unavailable")
    assert toy.rows("2025") == 1


def test_materialize__another_run_has_the_lease__writes_nothing(toy: Toy) -> None:
    with (
        toy.ledger.lease(KIND.name, ["things:2025"], "another", heartbeat=False),
        pytest.raises(LeasedElsewhere, match="another"),
    ):
        toy.work().run(["2025"], each())
    assert toy.rows("2025") == 0


def test_materialize__lease_is_lost_before_the_commit__writes_nothing(toy: Toy) -> None:
    def cancelled(request: Request) -> Built:
        toy.ledger.cancel(request.work.id)
        return built(request)

    with pytest.raises(LeaseLost):
        toy.work().run(["2025"], each(cancelled))
    assert toy.rows("2025") == 0
    assert toy.reports == []


def test_materialize__content_of_a_source_changed__notes_a_revision(toy: Toy) -> None:
    for number, names in enumerate((("a",), ("a", "b"))):
        work = toy.work(Attempt(f"run {number}"), "api", revisions=True)
        work.run(["2025"], each(lambda r, names=names: built(r, names)))
    [revision] = toy.ledger.provenance.pending_revisions()
    assert (revision.table_name, revision.partition) == ("toy.things", "2025")
    assert [one.seen_count for one in toy.reports] == [1, 1]
