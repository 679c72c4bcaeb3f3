"""The index of uploads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from domain.shared.clock import machine_clock
from services.carbon.upload_store import Upload, Uploads


def a_file(**more: object) -> Upload:
    values: dict[str, object] = {
        "kind": "data", "topic": "plane", "institution": "main", "source": "csv", "name": "flights.csv",
        "sha256": "ab" * 32, "bytes": 2**40, "rows": 3, "taken": 2, "years": (2024, 2025),
        "uploaded_by": "ada", "pipeline_id": "P1", "problems": [], "warnings": [],
    }  # fmt: skip
    return Upload(**(values | more))


def test_record__upload__returns_number_and_moment(store, clock):
    problems = [{"line": 3, "column": "distance", "value": "zwölf", "reason": "no number"}]
    reported = a_file(problem_count=1, problems=problems, warnings=["a warning"])
    kept = store.uploads.record(reported)
    assert (kept.id, kept.uploaded_at, kept.moment) == (1, clock(), clock())
    assert replace(kept, id=0, uploaded_at=None) == reported
    assert store.uploads.find() == [kept]


def test_find__filters__newest_first(store):
    first = store.uploads.record(a_file())
    second = store.uploads.record(a_file(kind="factors", topic="", years=(2023,), pipeline_id="P2"))
    third = store.uploads.record(a_file(pipeline_id="P3", years=(2022,)))
    assert store.uploads.find() == [third, second, first]
    assert store.uploads.find(pipeline_ids=["P1", "P2"]) == [second, first]
    assert store.uploads.find(pipeline_ids=[]) == []
    assert store.uploads.find(limit=1) == [third]
    assert store.uploads.find(accepted=True, limit=2) == [third, second]


def test_page__filters_and_offset__returns_the_total_and_newest_first(store):
    first = store.uploads.record(a_file())
    second = store.uploads.record(a_file(kind="factors", topic="", years=(2023,), pipeline_id="P2"))
    third = store.uploads.record(a_file(pipeline_id="P3", years=(2025,), accepted=False))
    everything = {"kind": None, "year": None, "accepted": None, "limit": 10, "offset": 0}
    assert store.uploads.page(**everything) == (3, [third, second, first])
    assert store.uploads.page(**everything | {"limit": 1, "offset": 1}) == (3, [second])
    assert store.uploads.page(**everything | {"offset": 3}) == (3, [])
    assert store.uploads.page(**everything | {"kind": "factors"}) == (1, [second])
    assert store.uploads.page(**everything | {"year": 2025}) == (2, [third, first])
    assert store.uploads.page(**everything | {"year": 2025, "accepted": True}) == (1, [first])


def test_current__units_of_a_file_and_an_application__the_newest_counts(store):
    """An institution has one tree; entries of both are added."""
    units = {"kind": "units", "topic": "", "years": (2025,)}
    for number, source in enumerate(("csv", "api", "manual")):
        store.uploads.record(a_file(**units, source=source, pipeline_id=f"U{number}"))
        store.uploads.record(a_file(source=source, years=(2025,), pipeline_id=f"E{number}"))
    store.uploads.record(a_file(**units, institution="other", pipeline_id="U3"))
    assert [one.pipeline_id for one in store.uploads.current()] == ["E0", "E1", "U2", "E2", "U3"]
    newest = store.uploads.newest_of(a_file(**units))
    assert newest is not None
    assert newest.pipeline_id == "U2"


def test_of_scope__factors_of_one_type__are_those_of_files_and_of_the_type(store):
    for number, (topic, source) in enumerate((("", "csv"), ("train", "api"), ("plane", "api"))):
        store.uploads.record(a_file(kind="factors", topic=topic, source=source, pipeline_id=f"P{number}"))
    wanted = a_file(kind="factors", topic="train", source="api")
    assert [one.pipeline_id for one in store.uploads.of_scope(wanted)] == ["P1", "P0"]
    assert [one.pipeline_id for one in store.uploads.of_scope(replace(wanted, topic=""))] == [
        "P2",
        "P1",
        "P0",
    ]
    reading = store.uploads.newest_reading(replace(wanted, topic="plane"))
    assert reading is not None
    assert reading.pipeline_id == "P2"
    assert store.uploads.newest_reading(replace(wanted, source="manual")) is None


def test_record_after__newer_upload_of_the_scope__adds_nothing(store):
    first = store.uploads.record_after(a_file(), None)
    assert first is not None
    assert store.uploads.record_after(a_file(pipeline_id="P2"), None) is None
    other = store.uploads.record_after(a_file(topic="train", pipeline_id="P3"), None)
    second = store.uploads.record_after(a_file(pipeline_id="P4"), first)
    assert store.uploads.find() == [second, other, first]


def test_record_after__many_at_once__one_is_added(store, open_store):
    stores = [open_store() for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda one: one.uploads.record_after(a_file(), None), stores))
    assert len([one for one in found if one is not None]) == 1
    assert len(store.uploads.find()) == 1


def test_record_again__deleted_upload__keeps_its_moment_and_is_added_once(store, clock):
    first = store.uploads.record(a_file())
    store.uploads.delete([first.id])
    assert store.uploads.pipelines() == set()
    clock.advance(hours=1)
    again = store.uploads.record_again(first)
    assert again is not None
    assert (again.uploaded_at, store.uploads.find()) == (first.uploaded_at, [again])
    assert store.uploads.record_again(first) is None
    assert store.uploads.pipelines() == {first.pipeline_id}


def test_ingested_by__second_work__returns_the_first(store):
    kept = store.uploads.record(a_file())
    assert store.uploads.ingested_by(7, [kept.id], 2025) == {kept.id: 7}
    assert store.uploads.ingested_by(8, [kept.id], 2025) == {kept.id: 7}


def test_ingested_by__several_uploads__claims_the_free_ones(store):
    old, new, other_year = [store.uploads.record(a_file(years=years)).id for years in ((1,), (1,), (2,))]
    store.uploads.ingested_by(7, [old], 1)
    assert store.uploads.ingested_by(8, [old, new, other_year], 1) == {old: 7, new: 8}
    assert store.uploads.ingested_by(9, [], 1) == {}


def test_ingested_by__several_at_once__agree(store, open_store):
    kept = store.uploads.record(a_file())
    stores = [open_store() for _ in range(6)]

    def take(number: int) -> int:
        return stores[number].uploads.ingested_by(number, [kept.id], 2025)[kept.id]

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(take, range(6)))) == 1


def test_current__each_scope_and_year__newest_counts_and_of_factors_all(store):
    first = store.uploads.record(a_file(years=(2024, 2025)))
    second = store.uploads.record(a_file(years=(2025,)))
    beside = [store.uploads.record(a_file(**other)) for other in (
        {"source": "manual"}, {"institution": "other"}, {"topic": "train"}, {"kind": "units", "topic": ""},
    )]  # fmt: skip
    factors = [store.uploads.record(a_file(kind="factors", topic="")) for _ in range(2)]
    store.uploads.record(a_file(accepted=False))
    found = {one.id: one for one in store.uploads.current()}
    assert list(found) == [first.id, second.id, *(u.id for u in beside), *(u.id for u in factors)]
    assert found[first.id].years == (2024,), "of 2025 it says nothing any more"
    one = found[second.id]
    assert (one.kind, one.topic, one.institution, one.source) == second.scope
    assert (one.pipeline_id, one.years) == ("P1", (2025,))


def test_newest_of__other_scopes__are_ignored(store):
    store.uploads.record(a_file())
    newest = store.uploads.record(a_file(years=(2025,)))
    store.uploads.record(a_file(institution="other"))
    store.uploads.record(a_file(years=(2023,)))
    store.uploads.record(a_file(accepted=False))
    assert store.uploads.newest_of(a_file()) == newest
    assert store.uploads.newest_of(a_file(topic="train")) is None
    assert store.uploads.newest_of(a_file(years=(2020,))) is None


def test_of_scope__same_scope_and_years__newest_first(store):
    first = store.uploads.record(a_file(years=(2024, 2025)))
    second, third = (store.uploads.record(a_file(years=(year,))) for year in (2025, 2024))
    for other in ({"topic": "train"}, {"institution": "other"}, {"accepted": False}, {"years": (2023,)}):
        store.uploads.record(a_file(**{"years": (2025,)} | other))
    assert store.uploads.of_scope(first) == [third, second, first]
    assert store.uploads.of_scope(a_file(years=(2025,))) == [second, first]


def test_replaced_since__files_of_the_same_scope__newest_with_the_one_before(store, clock):
    first = store.uploads.record(a_file(years=(2024, 2025)))
    second = store.uploads.record(a_file(years=(2025,)))
    clock.advance(hours=1)
    third = store.uploads.record(a_file(years=(2024, 2025)))
    for other in ({"source": "manual"}, {"kind": "factors"}):
        for _ in range(2):
            store.uploads.record(a_file(**other))
    assert store.uploads.replaced_since(clock()) == [(2024, first, third), (2025, second, third)]
    clock.advance(hours=1)
    assert store.uploads.replaced_since(clock()) == []


def test_newest_of__factors__of_any_institution(store):
    mine, theirs = a_file(kind="factors", topic=""), a_file(kind="factors", topic="", institution="other")
    store.uploads.record(mine)
    newest = store.uploads.record(theirs)
    assert store.uploads.newest_of(mine) == newest
    assert mine.scope == theirs.scope


def test_superseded_before__sources__are_found_and_deleted(store, clock):
    old = store.uploads.record(a_file(source="manual", years=(2025,)))
    partly = store.uploads.record(a_file(source="manual", topic="train", years=(2024, 2025)))
    store.uploads.record(a_file(years=(2025,)))
    clock.advance(days=1)
    new = store.uploads.record(a_file(source="manual", years=(2025,)))
    store.uploads.record(a_file(source="manual", topic="train", years=(2025,)))
    assert store.uploads.superseded_before(["manual"], old.moment) == []
    assert store.uploads.superseded_before(["manual"], clock()) == [old], "the other still speaks of 2024"
    assert store.uploads.superseded_before(["api"], clock()) == []
    store.uploads.delete([old.id])
    assert {u.id for u in store.uploads.find()} >= {partly.id, new.id}
    assert store.uploads.find(ids=[old.id]) == []


def test_record__several_at_once__moments_in_order_of_numbers(store):
    """Of two at once the later number is the later moment: a factor's past must not run backwards."""
    uploads = Uploads(store.uploads.engine, machine_clock)
    with ThreadPoolExecutor(6) as pool:
        kept = list(pool.map(lambda _: uploads.record(a_file()), range(48)))
    kept.sort(key=lambda u: u.id)
    assert [u.moment for u in kept] == sorted(u.moment for u in kept)
