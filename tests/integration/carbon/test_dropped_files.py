"""Notes of dropped files: one of each that lies somewhere, and what became of it, on every database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from tests.integration.carbon.test_upload_store import a_file

KEY, OTHER = "dropped_files:data/a.csv", "dropped_files:data/b.csv"
STAMP, TOUCHED = "10:1000:7", "10:2000:7"


def test_a_file_that_is_as_it_was_has_one_note_however_often_it_is_tried(store, machine):
    first = store.dropped_files.note({KEY: STAMP})[KEY]
    kept = store.uploads.record(a_file(), dropped=first.id)
    machine.advance(hours=1)
    again = store.dropped_files.note({KEY: STAMP, OTHER: STAMP})
    assert (again[KEY].id, again[KEY].noted_at, again[KEY].upload_id) == (first.id, first.noted_at, kept.id)
    assert (again[OTHER].uploads_before, again[OTHER].upload_id) == (kept.id, None)


def test_a_file_that_is_another_by_now_begins_anew(store):
    first = store.dropped_files.note({KEY: STAMP})[KEY]
    store.dropped_files.became(first.id, 7)
    second = store.dropped_files.note({KEY: TOUCHED})[KEY]
    assert (second.stamp, second.upload_id) == (TOUCHED, None)
    [was] = store.dropped_files.of_uploads([7])
    assert (was.id, was.finished_at is None) == (first.id, False)


def test_a_file_that_was_done_with_and_comes_back_begins_anew(store):
    first = store.dropped_files.note({KEY: STAMP})[KEY]
    store.dropped_files.finish(first.id)
    second = store.dropped_files.note({KEY: STAMP})[KEY]
    store.dropped_files.leave([KEY, OTHER])
    assert len({first.id, second.id, store.dropped_files.note({KEY: STAMP})[KEY].id}) == 3


def test_many_who_note_the_same_file_at_once_get_one_note(ledger, open_store):
    stores = [open_store() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        notes = list(pool.map(lambda one: one.dropped_files.note({KEY: STAMP})[KEY], stores))
    assert len({note.id for note in notes}) == 1


def test_an_upload_and_the_note_of_its_file_are_written_together(store):
    note = store.dropped_files.note({KEY: STAMP})[KEY]
    kept = store.uploads.record(a_file(), dropped=note.id)
    assert [one.id for one in store.dropped_files.of_uploads([kept.id])] == [note.id]
    assert store.dropped_files.of_uploads([kept.id + 1]) == []


def test_what_was_moved_is_known_until_it_is_put_back(store, machine):
    note = store.dropped_files.note({KEY: STAMP})[KEY]
    start = machine()
    assert store.dropped_files.moved_since(start) == []
    store.dropped_files.moves(note.id, "taken/data/a.csv")
    assert [one.moved_to for one in store.dropped_files.moved_since(start)] == ["taken/data/a.csv"]
    store.dropped_files.finish(note.id)
    assert [one.id for one in store.dropped_files.moved_since(start)] == [note.id]
    assert store.dropped_files.moved_since(start + timedelta(seconds=1)) == []
    store.dropped_files.put_back(note.id)
    assert store.dropped_files.moved_since(start) == []


def test_the_last_that_was_moved_somewhere_lies_there(store, machine):
    start = machine()
    for key in (KEY, OTHER):
        note = store.dropped_files.note({key: STAMP})[key]
        store.dropped_files.moves(note.id, "taken/data/a-2.csv")
        store.dropped_files.finish(note.id)
        machine.advance(seconds=1)
    assert [one.key for one in store.dropped_files.moved_since(start)] == [OTHER]


def test_what_was_moved_is_nobodys_concern_once_another_lies_in_its_place(store, machine):
    note = store.dropped_files.note({KEY: STAMP})[KEY]
    store.dropped_files.moves(note.id, "taken/data/a.csv")
    store.dropped_files.finish(note.id)
    store.dropped_files.note({KEY: TOUCHED})
    assert store.dropped_files.moved_since(machine()) == []


def test_only_what_was_done_with_long_ago_is_forgotten(store, machine):
    notes = store.dropped_files.note({KEY: STAMP, OTHER: STAMP})
    for note in notes.values():
        store.dropped_files.became(note.id, note.id)
    store.dropped_files.finish(notes[KEY].id)
    machine.advance(days=1)
    store.dropped_files.forget(machine())
    left = store.dropped_files.of_uploads([note.id for note in notes.values()])
    assert [one.key for one in left] == [OTHER]
