"""Of dropped files that say the same, the newer counts, whatever happens between."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from domain.carbon.dropped import SETTLED
from domain.carbon.jobs import DROPPED, FILE_INGEST
from domain.shared.error import TransientResourceError
from services.carbon.drop_folder import Content, DropFolder
from services.carbon.upload import File, upload
from tests.integration.carbon.drops import Drop, reuse_inodes
from tests.integration.carbon.office import FACTORS, PAPER, TRAIN, YEAR, Office

DATA = f"data/paper/{YEAR}"
OLDER = PAPER.replace("100", "150")
NEWER = PAPER.replace("100", "200")


@pytest.fixture
def drop(office: Office, monkeypatch: pytest.MonkeyPatch) -> Drop:
    reuse_inodes(monkeypatch, office.home / "drop")
    return Drop(office.carbon, office.home / "drop")


def newest(office: Office) -> str:
    return office.carbon.store.uploads.find(accepted=True)[0].name


def test_files_dropped_together_are_taken_as_they_were_written(office: Office, drop: Drop) -> None:
    final, draft = drop.put(f"{DATA}/paper-final.csv", NEWER), drop.put(f"{DATA}/paper.csv", PAPER)
    os.utime(final, (2_000, 2_000))
    os.utime(draft, (1_000, 1_000))
    assert drop.taken() == [("paper.csv", "taken"), ("paper-final.csv", "taken")]
    assert newest(office) == "paper-final.csv"


def test_of_more_files_than_a_look_passes_on_the_older_go_first(
    drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.carbon.drop_look.AT_ONCE", 1)
    for number, name in enumerate("zyx"):
        os.utime(drop.put(f"{DATA}/{name}.csv", PAPER), (number, number))
    drop.reconcile()
    sent = [[name for name, _ in drop.run(drop.reconcile(SETTLED))] for _ in range(3)]
    assert sent == [["z.csv"], ["y.csv"], ["x.csv"]]


def test_nothing_is_sent_for_beside_a_run_that_is_taking_files_in(office: Office, drop: Drop) -> None:
    drop.put(f"{DATA}/old.csv", PAPER)
    drop.reconcile()
    sent = drop.reconcile(SETTLED)
    [start] = sent.starts
    drop.put(f"{DATA}/fix.csv", NEWER)
    drop.reconcile(0.0, {start.id})
    assert drop.reconcile(SETTLED, {start.id}).starts == ()
    assert drop.run(sent) == [("old.csv", "taken")]
    assert drop.run(drop.reconcile(0.0, {start.id})) == [("fix.csv", "taken")]
    assert newest(office) == "fix.csv"


def test_a_run_that_died_keeps_nothing_from_being_sent_for(drop: Drop) -> None:
    drop.put(f"{DATA}/old.csv", PAPER)
    drop.reconcile()
    [start] = drop.reconcile(SETTLED).starts
    lease = drop.carbon.ledger.lease(FILE_INGEST, start.keys, "a run that dies", heartbeat=False)
    lease.__enter__()
    drop.put(f"{DATA}/fix.csv", NEWER)
    drop.reconcile()
    assert drop.reconcile(SETTLED).starts == ()
    drop.carbon.ledger.sweep(finished_runs=["a run that dies"])
    assert drop.run(drop.reconcile(3600.0)) == [("old.csv", "taken"), ("fix.csv", "taken")]


def unmovable(drop: Drop) -> Path:
    """What keeps files of a type from being moved to `taken`."""
    stone = drop.folder / "taken" / "data" / "paper"
    stone.parent.mkdir(parents=True)
    stone.write_text("no folder")
    return stone


def by_hand(drop: Drop, name: str, text: str) -> None:
    upload(drop.carbon, File("data", name, text.encode(), "ada", year=2025, data_entry_type="paper"))


def test_a_file_that_could_not_be_moved_is_moved_later_and_not_uploaded_again(
    office: Office, drop: Drop
) -> None:
    drop.put(f"{DATA}/old.csv", OLDER)
    stone = unmovable(drop)
    with pytest.raises(TransientResourceError, match="cannot be read or moved"):
        drop.taken()
    drop.moment += timedelta(seconds=60)
    by_hand(drop, "fix.csv", NEWER)
    stone.unlink()
    assert drop.run(drop.reconcile(3600.0)) == [("old.csv", "taken")]
    assert newest(office) == "fix.csv"
    drop.put(f"{DATA}/old.csv", OLDER)
    assert drop.taken() == [("old.csv", "taken")]
    assert newest(office) == "old.csv", "somebody wants it back"


def test_work_that_was_given_up_after_its_upload_only_moves_when_it_is_retried(
    office: Office, drop: Drop
) -> None:
    drop.put(f"{DATA}/old.csv", OLDER)
    stone = unmovable(drop)
    with pytest.raises(TransientResourceError):
        drop.taken()
    [row] = drop.carbon.ledger.find(FILE_INGEST)
    drop.carbon.ledger.cancel(row.id)
    by_hand(drop, "fix.csv", NEWER)
    drop.reconcile(60.0)
    stone.unlink()
    drop.carbon.ledger.retry(row.id)
    assert drop.run(drop.reconcile(60.0)) == [("old.csv", "taken")]
    assert newest(office) == "fix.csv"


def test_a_file_that_was_in_already_and_could_not_be_moved_does_not_come_after_a_correction(
    office: Office, drop: Drop
) -> None:
    by_hand(drop, "old.csv", OLDER)
    drop.put(f"{DATA}/old.csv", OLDER)
    stone = unmovable(drop)
    with pytest.raises(TransientResourceError):
        drop.taken()
    drop.moment += timedelta(seconds=60)
    by_hand(drop, "fix.csv", NEWER)
    stone.unlink()
    assert drop.run(drop.reconcile(3600.0)) == [("old.csv", "taken")]
    assert newest(office) == "fix.csv"


def unreadable_once(patch: pytest.MonkeyPatch, name: str) -> None:
    """The disk does not give the bytes of a file, the first time it is asked."""
    reading, asked = DropFolder.read, []

    def read(folder: DropFolder, place: str, stamp: str) -> Content:
        if place.endswith(name) and not asked:
            asked.append(place)
            raise OSError(5, "Input/output error")
        return reading(folder, place, stamp)

    patch.setattr(DropFolder, "read", read)


def written(drop: Drop, place: str, text: str, at: int) -> None:
    os.utime(drop.put(place, text), (at, at))


def put_off(drop: Drop) -> list[tuple[str, str]]:
    """What became of the others, and then of the one that was put off."""
    with pytest.raises(TransientResourceError):
        drop.taken()
    return [(Path(one.place).name, one.outcome) for one in drop.told] + drop.run(drop.reconcile(3600.0))


def beside(drop: Drop, place: str) -> str:
    return (drop.folder / f"{place}.problems.txt").read_text()


def test_an_older_file_that_was_put_off_does_not_come_after_the_newer(
    office: Office, drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable_once(monkeypatch, "a.csv")
    written(drop, f"{DATA}/a.csv", OLDER, 1_000)
    written(drop, f"{DATA}/b.csv", NEWER, 2_000)
    assert put_off(drop) == [("b.csv", "taken"), ("a.csv", "older")]
    assert newest(office) == "b.csv"
    assert (drop.folder / "taken" / DATA / "a.csv").is_file()
    assert beside(drop, f"taken/{DATA}/a.csv").startswith("b.csv, upload ")
    [row] = drop.carbon.ledger.find(FILE_INGEST, f"{DROPPED}:{DATA}/a.csv")
    assert (row.status, row.reason_code) == ("skipped", "file_older")


def test_a_newer_file_that_was_put_off_comes_after_the_older(
    office: Office, drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable_once(monkeypatch, "b.csv")
    written(drop, f"{DATA}/a.csv", OLDER, 1_000)
    written(drop, f"{DATA}/b.csv", NEWER, 2_000)
    assert put_off(drop) == [("a.csv", "taken"), ("b.csv", "taken")]
    assert newest(office) == "b.csv"


def test_a_newer_file_that_says_what_is_in_already_counts_all_the_same(
    office: Office, drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand(drop, "now.csv", NEWER)
    unreadable_once(monkeypatch, "a.csv")
    written(drop, f"{DATA}/a.csv", OLDER, 1_000)
    written(drop, f"{DATA}/b.csv", NEWER, 2_000)
    assert put_off(drop) == [("b.csv", "taken"), ("a.csv", "older")]
    assert newest(office) == "now.csv"


def test_an_older_file_that_is_dropped_after_the_newer_was_taken_is_wanted_back(
    office: Office, drop: Drop
) -> None:
    written(drop, f"{DATA}/b.csv", NEWER, 2_000)
    assert drop.taken() == [("b.csv", "taken")]
    written(drop, f"{DATA}/a.csv", OLDER, 1_000)
    assert drop.taken() == [("a.csv", "taken")]
    (drop.folder / "taken" / DATA / "b.csv").rename(drop.folder / DATA / "b.csv")
    assert drop.taken() == [("b.csv", "taken")]
    assert newest(office) == "b.csv", "the very same file, as it was"


def test_what_people_upload_while_a_file_is_put_off_is_newer(
    office: Office, drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable_once(monkeypatch, "a.csv")
    drop.put(f"{DATA}/a.csv", OLDER)
    with pytest.raises(TransientResourceError):
        drop.taken()
    by_hand(drop, "fix.csv", NEWER)
    assert drop.run(drop.reconcile(3600.0)) == [("a.csv", "older")]
    assert newest(office) == "fix.csv"


def test_a_newer_file_of_another_place_holds_nothing_back(
    drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable_once(monkeypatch, "a.csv")
    written(drop, f"{DATA}/a.csv", OLDER, 1_000)
    written(drop, f"data/train/{YEAR}/b.csv", TRAIN, 2_000)
    assert put_off(drop) == [("b.csv", "taken"), ("a.csv", "taken")]


HEAD, *ROWS = FACTORS.splitlines(keepends=True)


def factors_of(*types: str) -> str:
    return HEAD + "".join(row for row in ROWS if row.startswith(types))


@pytest.mark.parametrize(
    ("older", "newer", "outcome"),
    [
        (("train",), ("paper",), "taken"),
        (("paper",), ("train", "paper"), "older"),
        (("train", "paper"), ("paper",), "refused"),
    ],
)
def test_an_older_file_of_factors_gives_way_to_the_types_of_the_newer(
    drop: Drop,
    monkeypatch: pytest.MonkeyPatch,
    older: tuple[str, ...],
    newer: tuple[str, ...],
    outcome: str,
) -> None:
    unreadable_once(monkeypatch, "a.csv")
    written(drop, f"factors/{YEAR}/a.csv", factors_of(*older).replace("0.7", "0.8"), 1_000)
    written(drop, f"factors/{YEAR}/b.csv", factors_of(*newer).replace("0.7", "0.9"), 2_000)
    assert put_off(drop) == [("b.csv", "taken"), ("a.csv", outcome)]
    if outcome == "refused":
        assert f"speaks of some of the same: paper {YEAR}" in beside(drop, f"refused/factors/{YEAR}/a.csv")


def test_a_file_that_was_put_there_anew_is_uploaded_though_its_like_could_not_be_moved(
    office: Office, drop: Drop
) -> None:
    path = drop.put(f"{DATA}/old.csv", OLDER)
    stone = unmovable(drop)
    with pytest.raises(TransientResourceError):
        drop.taken()
    by_hand(drop, "fix.csv", NEWER)
    os.utime(path)
    drop.reconcile(60.0)
    stone.unlink()
    assert drop.run(drop.reconcile(3600.0)) == [("old.csv", "taken")]
    assert newest(office) == "old.csv"


def test_heal_takes_a_file_that_was_put_off_once_its_wait_is_over(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first look at what lies there sends for nothing, as nobody begins what that sends for."""
    monkeypatch.setattr("domain.carbon.dropped.SETTLED", 0.3)
    monkeypatch.setattr("orchestration.cli.carbon_drive.SETTLED", 0.4)
    drop = Drop(office.carbon, office.home / "drop")
    drop.put(f"{DATA}/old.csv", OLDER)
    stone = unmovable(drop)
    assert office.run("heal").code == 1
    stone.unlink()
    [row] = drop.carbon.ledger.find(FILE_INGEST)
    assert row.status == "deferred"
    drop.carbon.ledger.retry(row.id)
    healed = office.run("heal")
    [row] = drop.carbon.ledger.find(FILE_INGEST)
    assert (healed.code, row.status) == (0, "completed"), healed.err
    assert (drop.folder / "taken" / DATA / "old.csv").is_file()
