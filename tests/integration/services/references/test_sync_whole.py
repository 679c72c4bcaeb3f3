"""What a sync by hand does to a partition that is not as it was recorded: it reads its source whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from domain.references.tables import REFERENCES
from services.references import sync as syncing
from services.references.service import ReferencesService
from services.references.sync import sync
from tests.integration.services.references.fake_source import FakeScraper, Incremental
from tests.integration.services.references.test_sync import codes, stored


@pytest.fixture
def five(service: ReferencesService) -> Incremental:
    """A source that gives only what is new; five references of it are stored."""
    source = Incremental(holds=[f"r{n}" for n in range(5)])
    service.scrapers = {"atlas": source}
    sync(service, "atlas", by="test")
    return source


def test_sync__corrupt_partition_of_a_source_that_gives_what_is_new__reads_it_whole(
    service: ReferencesService, five: Incremental, tmp_path: Path
):
    for file in (tmp_path / "lake").rglob("*references*/**/*.parquet"):
        file.write_bytes(b"x")
    assert service.lake.version(REFERENCES.name, "atlas").corrupt
    five.holds.append("new")
    sync(service, "atlas", by="a person")
    assert len(stored(service)) == 6
    assert codes(service)[0] == ""


def test_sync__hand_edited_partition__reads_it_whole(service: ReferencesService, five: Incremental):
    rows = service.lake.query("SELECT * FROM refs.references WHERE reference_id < 'atlas:r2'")
    service.lake.replace(REFERENCES.name, "atlas", rows.cast(REFERENCES.schema))
    five.holds.append("new")
    sync(service, "atlas", by="a person")
    assert len(stored(service)) == 6
    assert codes(service)[0] == ""


def test_sync__partition_edited_after_the_sync_began__does_not_vouch_for_it(
    service: ReferencesService, five: Incremental
):
    five.holds.append("new")

    def edit() -> None:
        rows = service.lake.query("SELECT * FROM refs.references WHERE reference_id < 'atlas:r2'")
        service.lake.replace(REFERENCES.name, "atlas", rows.cast(REFERENCES.schema))

    five.meanwhile = edit
    sync(service, "atlas", by="test")
    assert codes(service)[0] == "changed"
    five.meanwhile = lambda: None
    sync(service, "atlas", by="test")
    assert (len(stored(service)), codes(service)[0]) == (6, "")


def test_sync__another_commits_before_the_record__records_what_is_there(
    service: ReferencesService, scraper: FakeScraper, monkeypatch: pytest.MonkeyPatch
):
    scraper.put(a="1")
    scraper.etag = "e1"
    sync(service, "atlas", by="test")
    scraper.etag = "e2"
    scraper.put(b="1")
    record, inner = syncing.record_version, []

    def late(*arguments):  # type: ignore[no-untyped-def]
        if not inner:
            inner.append(1)
            scraper.put(c="1")
            sync(service, "atlas", by="other")
        record(*arguments)

    monkeypatch.setattr(syncing, "record_version", late)
    sync(service, "atlas", by="test")
    assert len(stored(service)) == 3
    assert codes(service)[0] == ""
