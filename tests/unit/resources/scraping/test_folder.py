"""A folder of files as a source: complete files only, the newest counts, mistakes name file and line."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from resources.scraping.errors import BadScrape, DoubledIds, ScrapeFolderUnreadable
from resources.scraping.folder import SETTLED_NS, FolderReader
from resources.scraping.reference import NOTHING_READ, Checkpoint
from resources.scraping.source import Source


def reader(folder: Path, seconds: float = 60) -> FolderReader:
    """A reader whose clock is so many seconds ahead: files just written are complete."""
    return FolderReader(Source("inbox", "folder", str(folder)), lambda: time.time_ns() + int(seconds * 1e9))


def read(folder: Path, since: Checkpoint = NOTHING_READ) -> tuple[dict[str, str], Checkpoint]:
    scrape = reader(folder).fetch(since)
    return {one.id: one.title for one in scrape}, scrape.checkpoint()


def failure(folder: Path) -> str:
    with pytest.raises(BadScrape) as error:
        list(reader(folder).fetch(NOTHING_READ))
    assert error.value.reason_code == "scrape_bad_answer"
    assert str(folder) in error.value.remedy
    return error.value.message


def test_fetch__json_jsonl_and_csv__are_read(tmp_path: Path):
    (tmp_path / "a.json").write_text('[{"id": 1, "title": "One"}]')
    (tmp_path / "b.jsonl").write_text('{"id": 2, "title": "Two"}\n\n{"id": 3, "title": "Three"}\n')
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.CSV").write_bytes(b'\xef\xbb\xbfid,title\n4,"Four, and\nmore"\n')
    (tmp_path / ".hidden.json").write_text("{")
    (tmp_path / "README.md").write_text("for people")
    (tmp_path / "link.json").symlink_to(tmp_path / "a.json")
    found, _ = read(tmp_path)
    assert found == {"1": "One", "2": "Two", "3": "Three", "4": "Four, and\nmore"}


def test_fetch__nothing_new__is_unchanged(tmp_path: Path):
    (tmp_path / "a.json").write_text('[{"id": 1, "title": "One"}]')
    _, checkpoint = read(tmp_path)
    assert reader(tmp_path).fetch(checkpoint).unchanged
    assert reader(tmp_path).fetch(checkpoint).checkpoint() == checkpoint


def test_fetch__one_more_file__reads_only_that(tmp_path: Path):
    (tmp_path / "a.json").write_text('[{"id": 1, "title": "One"}]')
    _, checkpoint = read(tmp_path)
    (tmp_path / "b.json").write_text('[{"id": 2, "title": "Two"}]')
    assert read(tmp_path, checkpoint)[0] == {"2": "Two"}


def test_fetch__id_in_two_files__the_file_that_came_last_counts(tmp_path: Path):
    (tmp_path / "z.json").write_text('[{"id": 1, "title": "Old"}]')
    (tmp_path / "a.json").write_text('[{"id": 1, "title": "New"}]')
    assert read(tmp_path)[0] == {"1": "New"}


def test_fetch__file_that_is_still_written__waits(tmp_path: Path):
    (tmp_path / "a.json").write_text('[{"id": 1,')
    assert reader(tmp_path, seconds=1).fetch(NOTHING_READ).unchanged


def test_fetch__file_that_is_written_while_another_was_renamed__is_read_later(tmp_path: Path):
    (tmp_path / "slow.json").write_text('[{"id": 1, "title": "Slow"}]')
    (tmp_path / "done.json").write_text('[{"id": 2, "title": "Done"}]')
    old = time.time_ns() - 2 * SETTLED_NS
    os.utime(tmp_path / "done.json", ns=(old, old))
    scrape = reader(tmp_path, seconds=0).fetch(NOTHING_READ)
    assert [one.id for one in scrape] == ["2"]
    assert scrape.notes == ["1 file still written to: read later"]
    assert "1" in read(tmp_path, scrape.checkpoint())[0]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", b"[{]", "a.json: "),
        ("a.json", b'{"items": []}', "a.json: the file is no list"),
        ("a.json", b'[{"id": 1}, {"title": "x"}]', "a.json: item 2: a reference has no id in id"),
        ("a.jsonl", b'{"id": 1}\n{"id": \n', "a.jsonl: line 2 is no JSON"),
        ("a.csv", b"id,title\n1,One\n2\n", "a.csv: line 3 has another number of columns"),
        ("a.csv", b"id,title\n1,\xff\xfe\n", "a.csv: it is not in UTF-8"),
        ("a.csv", b"name,title\n1,One\n", "a.csv: line 2: a reference has no id in id"),
    ],
)
def test_fetch__file_with_a_mistake__is_named_with_its_line(
    tmp_path: Path, name: str, content: bytes, said: str
):
    (tmp_path / name).write_bytes(content)
    assert said in failure(tmp_path)


def test_fetch__one_bad_file__stops_no_other(tmp_path: Path):
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "good.json").write_text('[{"id": 1, "title": "One"}]')
    scrape = reader(tmp_path).fetch(NOTHING_READ)
    found = []
    with pytest.raises(BadScrape):
        found.extend(one.id for one in scrape)
    (tmp_path / "bad.json").unlink()
    assert read(tmp_path)[0] == {"1": "One"}


def test_fetch__one_id_twice_in_a_file__is_an_error(tmp_path: Path):
    (tmp_path / "a.json").write_text('[{"id": 1, "title": "One"}, {"id": 1, "title": "Other"}]')
    with pytest.raises(DoubledIds):
        list(reader(tmp_path).fetch(NOTHING_READ))


def test_fetch__folder_is_gone__is_an_error_not_an_empty_source(tmp_path: Path):
    with pytest.raises(ScrapeFolderUnreadable) as error:
        reader(tmp_path / "gone").fetch(NOTHING_READ)
    assert error.value.reason_code == "scrape_folder"
