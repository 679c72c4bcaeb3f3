"""A folder of files as a source: complete files only, the newest counts, mistakes name file and line."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from resources.scraping.errors import BadScrape, DoubledIds, ScrapeFolderUnreadable
from resources.scraping.folder import SETTLED_NS, FolderReader
from resources.scraping.reference import NOTHING_READ, Checkpoint
from resources.scraping.source import Source

HOUR = 3_600 * 10**9


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


def test_fetch__file_of_another_kind__is_noted(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("for people")
    (tmp_path / ".hidden.txt").write_text("a copy in progress")
    scrape = reader(tmp_path).fetch(NOTHING_READ)
    assert scrape.unchanged
    assert scrape.notes == ["1 file not read, as neither JSON, JSONL nor CSV (first: notes.txt)"]


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


def put(path: Path, title: str, written_ns: int) -> None:
    path.write_text(f'[{{"id": 1, "title": "{title}"}}]')
    os.utime(path, ns=(written_ns, written_ns))


def test_fetch__id_in_two_files__the_file_that_was_written_last_counts(tmp_path: Path):
    now = time.time_ns()
    put(tmp_path / "a.json", "New", now - HOUR)
    put(tmp_path / "z.json", "Old", now - 2 * HOUR)
    assert read(tmp_path)[0] == {"1": "New"}


def test_fetch__id_in_two_files_of_one_time__the_last_name_counts(tmp_path: Path):
    now = time.time_ns()
    put(tmp_path / "z.json", "Last name", now)
    put(tmp_path / "a.json", "First name", now)
    assert read(tmp_path)[0] == {"1": "Last name"}


def test_fetch__older_file_is_touched_by_chmod_or_comes_late__newer_content_stays(tmp_path: Path):
    now = time.time_ns()
    put(tmp_path / "older.json", "Old", now - 2 * HOUR)
    put(tmp_path / "newer.json", "New", now - HOUR)
    found, checkpoint = read(tmp_path)
    assert found == {"1": "New"}
    (tmp_path / "older.json").chmod(0o600)
    found, checkpoint = read(tmp_path, checkpoint)
    assert found == {"1": "New"}
    put(tmp_path / "late.json", "Older still", now - 3 * HOUR)
    found, checkpoint = read(tmp_path, checkpoint)
    assert found == {"1": "New"}
    assert reader(tmp_path).fetch(checkpoint).unchanged


def test_fetch__files_renamed_into_place_while_the_folder_is_read__none_is_lost(tmp_path: Path):
    stage, folder, number = tmp_path / "stage", tmp_path / "folder", 1_000
    stage.mkdir()
    folder.mkdir()
    for one in range(number):
        (stage / f"{one}.json").write_text(f'[{{"id": {one}}}]')

    def move() -> None:
        for one in range(number):
            (stage / f"{one}.json").rename(folder / f"{one}.json")

    found, checkpoint, more = set[str](), NOTHING_READ, True
    mover = threading.Thread(target=move)
    mover.start()
    while more:
        more = mover.is_alive()
        titles, checkpoint = read(folder, checkpoint)
        found |= titles.keys()
    assert len(found) == number


def test_fetch__folder_with_old_files_is_renamed_into_place__is_read(tmp_path: Path):
    (tmp_path / ".copying").mkdir()
    (tmp_path / ".copying" / "a.json").write_text('[{"id": 1, "title": "One"}]')
    earlier = (tmp_path / ".copying" / "a.json").stat().st_ctime_ns
    newer = tmp_path / "b.json"
    newer.touch()
    while newer.stat().st_ctime_ns == earlier:  # till the next tick of the file system's clock
        newer.write_text('[{"id": 2, "title": "Two"}]')
    _, checkpoint = read(tmp_path)
    (tmp_path / ".copying").rename(tmp_path / "copied")
    assert "1" in read(tmp_path, checkpoint)[0]


def test_fetch__time_in_the_future__is_read_once(tmp_path: Path):
    put(tmp_path / "a.json", "From tomorrow", time.time_ns() + 24 * HOUR)
    found, checkpoint = read(tmp_path)
    assert found == {"1": "From tomorrow"}
    assert reader(tmp_path).fetch(checkpoint).unchanged


def test_fetch__clock_of_the_file_server_is_an_hour_ahead__is_read(tmp_path: Path):
    (tmp_path / "a.json").write_text('[{"id": 1}]')
    assert not reader(tmp_path, seconds=-3_600).fetch(NOTHING_READ).unchanged


def test_fetch__file_vanishes_before_it_is_read__the_others_are_read(tmp_path: Path):
    (tmp_path / "a.json").write_text('[{"id": 1, "title": "One"}]')
    (tmp_path / "b.json").write_text('[{"id": 2, "title": "Two"}]')
    scrape = reader(tmp_path).fetch(NOTHING_READ)
    (tmp_path / "b.json").rename(tmp_path / "c.json")
    assert [one.id for one in scrape] == ["1"]
    assert "2" in read(tmp_path, scrape.checkpoint())[0]


def test_fetch__mistake_in_a_file_whose_name_is_no_utf8__can_be_shown(tmp_path: Path):
    Path(os.fsdecode(os.fsencode(tmp_path / "b") + b"\xff.json")).write_text("{")
    assert failure(tmp_path).isprintable()


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
        (
            "a.json",
            b'[{"id": 1, "a": %b}]' % (b"[" * 300 + b"]" * 300),
            "a.json: item 1: the reference 1 cannot be kept",
        ),
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
