"""Notes of dropped files: one of each that lies somewhere, and what became of it, on every database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from tests.integration.ledger.test_uploads import a_file

KEY, OTHER = "dropped_files:data/a.csv", "dropped_files:data/b.csv"
STAMP, TOUCHED = "10:1000:7", "10:2000:7"


def test_a_file_that_is_as_it_was_has_one_note_however_often_it_is_tried(ledger, machine):
    first = ledger.dropped_files.note({KEY: STAMP})[KEY]
    kept = ledger.uploads.record(a_file(), dropped=first.id)
    machine.advance(hours=1)
    again = ledger.dropped_files.note({KEY: STAMP, OTHER: STAMP})
    assert (again[KEY].id, again[KEY].noted_at, again[KEY].upload_id) == (first.id, first.noted_at, kept.id)
    assert (again[OTHER].uploads_before, again[OTHER].upload_id) == (kept.id, None)


def test_a_file_that_is_another_by_now_begins_anew(ledger):
    first = ledger.dropped_files.note({KEY: STAMP})[KEY]
    ledger.dropped_files.became(first.id, 7)
    second = ledger.dropped_files.note({KEY: TOUCHED})[KEY]
    assert (second.stamp, second.upload_id) == (TOUCHED, None)
    [was] = ledger.dropped_files.of_uploads([7])
    assert (was.id, was.finished_at is None) == (first.id, False)


def test_a_file_that_was_done_with_and_comes_back_begins_anew(ledger):
    first = ledger.dropped_files.note({KEY: STAMP})[KEY]
    ledger.dropped_files.finish(first.id)
    second = ledger.dropped_files.note({KEY: STAMP})[KEY]
    ledger.dropped_files.leave([KEY, OTHER])
    assert len({first.id, second.id, ledger.dropped_files.note({KEY: STAMP})[KEY].id}) == 3


def test_many_who_note_the_same_file_at_once_get_one_note(ledger, open_ledger):
    ledgers = [ledger, *(open_ledger() for _ in range(3))]
    with ThreadPoolExecutor(4) as pool:
        notes = list(pool.map(lambda one: one.dropped_files.note({KEY: STAMP})[KEY], ledgers))
    assert len({note.id for note in notes}) == 1


def test_an_upload_and_the_note_of_its_file_are_written_together(ledger):
    note = ledger.dropped_files.note({KEY: STAMP})[KEY]
    kept = ledger.uploads.record(a_file(), dropped=note.id)
    assert [one.id for one in ledger.dropped_files.of_uploads([kept.id])] == [note.id]
    assert ledger.dropped_files.of_uploads([kept.id + 1]) == []


def test_what_was_moved_is_known_until_it_is_put_back(ledger, machine):
    note = ledger.dropped_files.note({KEY: STAMP})[KEY]
    start = machine()
    assert ledger.dropped_files.moved_since(start) == []
    ledger.dropped_files.moves(note.id, "taken/data/a.csv")
    assert [one.moved_to for one in ledger.dropped_files.moved_since(start)] == ["taken/data/a.csv"]
    ledger.dropped_files.finish(note.id)
    assert [one.id for one in ledger.dropped_files.moved_since(start)] == [note.id]
    assert ledger.dropped_files.moved_since(start + timedelta(seconds=1)) == []
    ledger.dropped_files.put_back(note.id)
    assert ledger.dropped_files.moved_since(start) == []


def test_the_last_that_was_moved_somewhere_lies_there(ledger, machine):
    start = machine()
    for key in (KEY, OTHER):
        note = ledger.dropped_files.note({key: STAMP})[key]
        ledger.dropped_files.moves(note.id, "taken/data/a-2.csv")
        ledger.dropped_files.finish(note.id)
        machine.advance(seconds=1)
    assert [one.key for one in ledger.dropped_files.moved_since(start)] == [OTHER]


def test_what_was_moved_is_nobodys_concern_once_another_lies_in_its_place(ledger, machine):
    note = ledger.dropped_files.note({KEY: STAMP})[KEY]
    ledger.dropped_files.moves(note.id, "taken/data/a.csv")
    ledger.dropped_files.finish(note.id)
    ledger.dropped_files.note({KEY: TOUCHED})
    assert ledger.dropped_files.moved_since(machine()) == []


def test_only_what_was_done_with_long_ago_is_forgotten(ledger, machine):
    notes = ledger.dropped_files.note({KEY: STAMP, OTHER: STAMP})
    for note in notes.values():
        ledger.dropped_files.became(note.id, note.id)
    ledger.dropped_files.finish(notes[KEY].id)
    machine.advance(days=1)
    ledger.dropped_files.forget(machine())
    left = ledger.dropped_files.of_uploads([note.id for note in notes.values()])
    assert [one.key for one in left] == [OTHER]
