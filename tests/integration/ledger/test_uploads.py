"""Uploaded files as the ledger remembers them, and years that are locked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.shared.clock import machine_clock
from domain.shared.error import InvalidInput
from domain.shared.work import WorkRequest
from resources.ledger.uploads import Upload, Uploads


def a_file(**more: object) -> Upload:
    values: dict[str, object] = {
        "kind": "data", "topic": "plane", "institution": "main", "source": "csv", "name": "flights.csv",
        "sha256": "ab" * 32, "bytes": 2**40, "rows": 3, "taken": 2, "years": (2024, 2025),
        "uploaded_by": "ada", "pipeline_id": "P1", "problems": [], "warnings": [],
    }  # fmt: skip
    return Upload(**(values | more))


def test_a_file_is_remembered_as_it_was_told_with_its_number_and_moment(ledger, clock):
    problems = [{"line": 3, "column": "distance", "value": "zwölf", "reason": "no number"}]
    told = a_file(problem_count=1, problems=problems, warnings=["a warning"])
    kept = ledger.uploads.record(told)
    assert (kept.id, kept.uploaded_at, kept.moment) == (1, clock(), clock())
    assert replace(kept, id=0, uploaded_at=None) == told
    assert ledger.uploads.find() == [kept]


def test_a_file_that_was_not_recorded_has_no_moment():
    with pytest.raises(ValueError, match=r"flights\.csv was not recorded"):
        _ = a_file().moment


def test_a_refused_file_is_remembered_too_and_has_no_years_if_nobody_named_them(ledger):
    kept = ledger.uploads.record(a_file(accepted=False, years=(), taken=0))
    assert ledger.uploads.find(accepted=False) == [kept]
    assert ledger.uploads.find(accepted=True) == []
    assert kept.years == ()


def test_files_are_found_newest_first_by_kind_by_chain_and_so_many_of_them(ledger):
    first = ledger.uploads.record(a_file())
    second = ledger.uploads.record(a_file(kind="factors", topic="", years=(2023,), pipeline_id="P2"))
    third = ledger.uploads.record(a_file(pipeline_id="P3", years=(2022,)))
    assert ledger.uploads.find() == [third, second, first]
    assert ledger.uploads.find(kind="data") == [third, first]
    assert ledger.uploads.find(pipeline_ids=["P1", "P2"]) == [second, first]
    assert ledger.uploads.find(pipeline_ids=[]) == []
    assert ledger.uploads.find(limit=1) == [third]
    assert ledger.uploads.find(kind="factors", accepted=True, limit=5) == [second]


def test_an_upload_that_was_forgotten_is_kept_again_with_its_moment_and_once(ledger, clock):
    first = ledger.uploads.record(a_file())
    ledger.uploads.forget([first.id])
    assert ledger.uploads.known_pipelines() == set()
    clock.advance(hours=1)
    again = ledger.uploads.record_again(first)
    assert again is not None
    assert (again.uploaded_at, ledger.uploads.find()) == (first.uploaded_at, [again])
    assert ledger.uploads.record_again(first) is None
    assert ledger.uploads.known_pipelines() == {first.pipeline_id}


def test_years_are_told_in_their_order(ledger):
    kept = ledger.uploads.record(a_file(years=(2025, 2023, 2024)))
    assert ledger.uploads.find()[0].years == (2023, 2024, 2025)
    assert ledger.uploads.find(pipeline_ids=[kept.pipeline_id])[0].years == (2023, 2024, 2025)


def test_a_place_is_what_a_newer_file_takes_the_place_of():
    assert a_file().place == ("data", "plane", "main", "csv")
    assert a_file().place == a_file(years=(2020,), sha256="cd" * 32).place
    assert len({a_file(**{name: "other"}).place for name in ("kind", "topic", "institution", "source")}) == 4


def test_a_file_has_a_short_name_for_the_rows_it_brought():
    assert a_file().file == "ab" * 8


def test_files_that_come_at_the_same_time_get_numbers_of_their_own(ledger, open_ledger):
    ledgers = [open_ledger() for _ in range(6)]

    def record(number: int) -> int:
        return ledgers[number].uploads.record(a_file(pipeline_id=f"P{number}")).id

    with ThreadPoolExecutor(6) as pool:
        numbers = list(pool.map(record, range(6)))
    assert sorted(numbers) == [1, 2, 3, 4, 5, 6]
    assert {u.pipeline_id for u in ledger.uploads.find()} == {f"P{n}" for n in range(6)}
    assert all(u.years == (2024, 2025) for u in ledger.uploads.find())


# Which work took a file in


def test_the_first_work_that_takes_a_file_s_year_in_is_remembered_for_ever(ledger):
    kept = ledger.uploads.record(a_file())
    assert ledger.uploads.taken_by(7, [kept.id], 2025) == {kept.id: 7}
    assert ledger.uploads.taken_by(8, [kept.id], 2025) == {kept.id: 7}


def test_each_year_of_a_file_is_taken_in_for_itself(ledger):
    kept = ledger.uploads.record(a_file())
    ledger.uploads.taken_by(7, [kept.id], 2024)
    assert ledger.uploads.taken_by(8, [kept.id], 2025) == {kept.id: 8}


def test_of_several_files_only_those_are_taken_that_nobody_took(ledger):
    old, new, other_year = [ledger.uploads.record(a_file(years=years)).id for years in ((1,), (1,), (2,))]
    ledger.uploads.taken_by(7, [old], 1)
    assert ledger.uploads.taken_by(8, [old, new, other_year], 1) == {old: 7, new: 8}
    assert ledger.uploads.taken_by(9, [], 1) == {}


def test_of_two_that_take_a_file_at_the_same_time_both_are_told_the_same(ledger, open_ledger):
    kept = ledger.uploads.record(a_file())
    ledgers = [open_ledger() for _ in range(6)]

    def take(number: int) -> int:
        return ledgers[number].uploads.taken_by(number, [kept.id], 2025)[kept.id]

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(take, range(6)))) == 1


def test_chains_of_files_that_were_overtaken_before_anybody_looked_are_found_and_no_others(ledger):
    def came(chain: str, **more: object) -> int:
        return ledger.uploads.record(a_file(pipeline_id=chain, **({"years": (1,)} | more))).id

    came("overtaken")
    came("of two years", years=(1, 2))
    came("of another year", years=(2,))
    came("of another type", topic="train")
    came("of somebody else", institution="other")
    came("refused", accepted=False)
    ledger.uploads.taken_by(7, [came("taken in before")], 1)
    came("begun")
    begun, later = ledger.enqueue([WorkRequest("market.fill", key, "f") for key in "ab"]).created
    ledger.pipelines.add(begun.id, ["begun"])
    newest = came("newest")
    came("later")
    assert ledger.uploads.overtaken([newest], 1) == {"overtaken", "of two years"}
    assert ledger.uploads.overtaken([newest], 3) == set()
    assert ledger.uploads.overtaken([], 1) == set()
    ledger.pipelines.add(later.id, ["overtaken", "of two years"])
    assert ledger.uploads.overtaken([newest], 1) == set()


# Locks


def test_a_locked_year_says_who_locked_it_when_and_why(ledger, clock):
    lock = ledger.year_locks.lock(2024, "ada", "published")
    assert (lock.year, lock.locked_by, lock.reason, lock.locked_at) == (2024, "ada", "published", clock())
    assert (lock.unlocked_at, lock.unlocked_by, lock.unlock_reason) == (None, None, None)
    assert ledger.year_locks.held() == {2024: lock}


def test_an_unlocked_year_is_free_and_its_lock_is_history(ledger, clock):
    ledger.year_locks.lock(2024, "ada", "published")
    clock.advance(days=3)
    ledger.year_locks.unlock(2024, "bob", "a late invoice")
    assert ledger.year_locks.held() == {}
    [lock] = ledger.year_locks.history()
    assert (lock.unlocked_at, lock.unlocked_by, lock.unlock_reason) == (clock(), "bob", "a late invoice")
    assert clock() - lock.locked_at == timedelta(days=3)


def test_a_year_may_be_locked_again_and_all_its_locks_are_remembered(ledger):
    for reason in ("published", "published again"):
        ledger.year_locks.lock(2024, "ada", reason)
        ledger.year_locks.unlock(2024, "ada", "a mistake")
    last = ledger.year_locks.lock(2024, "ada", "at last")
    assert [lock.reason for lock in ledger.year_locks.history()] == [
        "published",
        "published again",
        "at last",
    ]
    assert ledger.year_locks.held() == {2024: last}


def test_unlocking_one_year_leaves_the_others_locked(ledger):
    for year in (2023, 2024):
        ledger.year_locks.lock(year, "ada", "published")
    ledger.year_locks.unlock(2023, "ada", "a mistake")
    assert list(ledger.year_locks.held()) == [2024]


def test_what_is_locked_is_not_locked_twice_and_what_is_free_is_not_unlocked(ledger):
    with pytest.raises(InvalidInput, match="2024 is not locked") as refusal:
        ledger.year_locks.unlock(2024, "ada", "a mistake")
    assert refusal.value.reason_code == "not_locked"
    first = ledger.year_locks.lock(2024, "ada", "published")
    with pytest.raises(InvalidInput, match="2024 is locked already") as refusal:
        ledger.year_locks.lock(2024, "bob", "published too")
    assert refusal.value.reason_code == "already_locked"
    assert ledger.year_locks.held() == {2024: first}


@pytest.mark.parametrize("reason", ["", "  \n"])
def test_nothing_is_locked_or_unlocked_without_a_reason(ledger, reason):
    with pytest.raises(InvalidInput, match="a reason is needed"):
        ledger.year_locks.lock(2024, "ada", reason)
    ledger.year_locks.lock(2024, "ada", "published")
    with pytest.raises(InvalidInput, match="a reason is needed") as refusal:
        ledger.year_locks.unlock(2024, "ada", reason)
    assert refusal.value.remedy == "--reason TEXT"
    assert 2024 in ledger.year_locks.held()


def test_of_many_that_lock_a_year_at_once_one_does(ledger, open_ledger):
    ledgers = [open_ledger() for _ in range(6)]

    def lock(number: int) -> str | None:
        try:
            return ledgers[number].year_locks.lock(2024, f"person {number}", "published").locked_by
        except InvalidInput:
            return None

    with ThreadPoolExecutor(6) as pool:
        winners = [name for name in pool.map(lock, range(6)) if name]
    assert winners == [ledger.year_locks.held()[2024].locked_by]


def test_of_each_place_and_year_the_newest_stands_and_of_factors_all(ledger):
    first = ledger.uploads.record(a_file(years=(2024, 2025)))
    second = ledger.uploads.record(a_file(years=(2025,)))
    beside = [ledger.uploads.record(a_file(**other)) for other in (
        {"source": "manual"}, {"institution": "other"}, {"topic": "train"}, {"kind": "units", "topic": ""},
    )]  # fmt: skip
    factors = [ledger.uploads.record(a_file(kind="factors", topic="")) for _ in range(2)]
    ledger.uploads.record(a_file(accepted=False))
    found = {one.id: one for one in ledger.uploads.standing()}
    assert list(found) == [first.id, second.id, *(u.id for u in beside), *(u.id for u in factors)]
    assert found[first.id].years == (2024,), "of 2025 it says nothing any more"
    one = found[second.id]
    assert (one.kind, one.topic, one.institution, one.source) == second.place
    assert (one.pipeline_id, one.years) == ("P1", (2025,))


def test_the_newest_of_a_place_is_found_whatever_came_elsewhere(ledger):
    ledger.uploads.record(a_file())
    newest = ledger.uploads.record(a_file(years=(2025,)))
    ledger.uploads.record(a_file(institution="other"))
    ledger.uploads.record(a_file(years=(2023,)))
    ledger.uploads.record(a_file(accepted=False))
    assert ledger.uploads.newest_of(a_file()) == newest
    assert ledger.uploads.newest_of(a_file(topic="train")) is None
    assert ledger.uploads.newest_of(a_file(years=(2020,))) is None


def test_what_came_after_an_upload_for_its_place_and_years_is_found(ledger):
    first = ledger.uploads.record(a_file(years=(2024, 2025)))
    second, third = (ledger.uploads.record(a_file(years=(year,))) for year in (2025, 2024))
    for other in ({"topic": "train"}, {"institution": "other"}, {"accepted": False}, {"years": (2023,)}):
        ledger.uploads.record(a_file(**{"years": (2025,)} | other))
    assert ledger.uploads.since(first, first.id) == [third, second]
    assert ledger.uploads.since(a_file(years=(2025,)), 0) == [second, first]
    assert ledger.uploads.since(first, third.id) == []


def test_factors_are_the_years_whoever_brings_them(ledger):
    mine, theirs = a_file(kind="factors", topic=""), a_file(kind="factors", topic="", institution="other")
    ledger.uploads.record(mine)
    newest = ledger.uploads.record(theirs)
    assert ledger.uploads.newest_of(mine) == newest
    assert mine.place == theirs.place


def test_what_newer_ones_replaced_is_outdated_and_can_be_forgotten(ledger, clock):
    old = ledger.uploads.record(a_file(source="manual", years=(2025,)))
    partly = ledger.uploads.record(a_file(source="manual", topic="train", years=(2024, 2025)))
    ledger.uploads.record(a_file(years=(2025,)))
    clock.advance(days=1)
    new = ledger.uploads.record(a_file(source="manual", years=(2025,)))
    ledger.uploads.record(a_file(source="manual", topic="train", years=(2025,)))
    assert ledger.uploads.outdated(["manual"], old.moment) == []
    assert ledger.uploads.outdated(["manual"], clock()) == [old], "the other still speaks of 2024"
    assert ledger.uploads.outdated(["api"], clock()) == []
    ledger.uploads.forget([old.id])
    assert {u.id for u in ledger.uploads.find()} >= {partly.id, new.id}
    assert ledger.uploads.find(ids=[old.id]) == []


def test_what_is_refused_afterwards_stands_no_more(ledger):
    one = ledger.uploads.record(a_file())
    ledger.uploads.refuse(one.id)
    assert ledger.uploads.standing() == []
    assert [u.id for u in ledger.uploads.find(accepted=False)] == [one.id]


def test_moments_are_in_the_order_of_numbers(ledger):
    """Of two at once the later number is the later moment: a factor's past must not run backwards."""
    uploads = Uploads(ledger.engine, machine_clock)
    with ThreadPoolExecutor(6) as pool:
        kept = list(pool.map(lambda _: uploads.record(a_file()), range(48)))
    kept.sort(key=lambda u: u.id)
    assert [u.moment for u in kept] == sorted(u.moment for u in kept)
