"""The drop folder: whole files are taken once, refused ones say why, and nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg
import pytest

from domain.carbon.dropped import LATE, SETTLED
from domain.carbon.jobs import DROPPED, FILE_INGEST
from domain.shared.error import TransientResourceError
from orchestration.build import build_definitions
from orchestration.cli.runner import runner
from orchestration.domains.carbon import DOMAIN as CARBON
from orchestration.environments import load_settings
from sensors.carbon.drop import drop_sensor, run_tags
from services.carbon.drop_folder import Changed, DropFolder
from services.carbon.drop_look import observe_drop
from services.carbon.dropped_files import DroppedFiles
from tests.integration.carbon.drops import Drop, reuse_inodes
from tests.integration.carbon.office import FACTORS, PAPER, YEAR, Office
from tests.integration.market.house import quiet

SECRET = "the secret of another file"


@pytest.fixture
def drop(office: Office, monkeypatch: pytest.MonkeyPatch) -> Drop:
    reuse_inodes(monkeypatch, office.home / "drop")
    return Drop(office.carbon, office.home / "drop")


def problems(drop: Drop, place: str) -> str:
    return (drop.folder / "refused" / f"{place}.problems.txt").read_text()


def test_a_file_is_taken_by_what_its_folders_say(office: Office, drop: Drop) -> None:
    drop.put(f"data/paper/{YEAR}/more.csv", PAPER.replace("100", "200"))
    assert drop.taken() == [("more.csv", "taken")]
    assert office.run("heal").code == 0
    assert office.sql(
        "SELECT sum(quantity) AS kg FROM carbon.data_entries WHERE data_entry_type = 'paper'"
    ) == [{"kg": 200.0}]
    assert (drop.folder / "taken" / "data" / "paper" / YEAR / "more.csv").is_file()
    assert drop.taken() == []


def test_heal_takes_files_too_where_no_daemon_runs(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not before it has seen them lie still."""
    monkeypatch.setattr("domain.carbon.dropped.SETTLED", 0.3)
    monkeypatch.setattr("orchestration.cli.carbon_drive.SETTLED", 0.3)
    folder = DropFolder(office.home / "drop")
    folder.prepare()
    before = office.milligrams()
    place = f"data/paper/{YEAR}/more.csv"
    (folder.root / place).parent.mkdir(parents=True)
    (folder.root / place).write_text(PAPER.replace("100", "200"))
    (folder.root / "units/bad.csv").write_text("rubbish")
    healed = office.run("heal")
    assert healed.code == 0, healed.err
    assert "files in the drop folder: 2;" in healed.err
    assert office.milligrams() == before + 70_000_000
    assert (folder.root / "taken" / place).is_file()
    assert "no column of a file" in (folder.root / "refused/units/bad.csv.problems.txt").read_text()


def test_what_lies_where_nobody_looks_is_told(office: Office) -> None:
    folder = DropFolder(office.home / "drop")
    assert folder.strays() == []
    folder.prepare()
    (folder.root / "plane.csv").write_text("lost")
    (folder.root / "factor").mkdir()
    (folder.root / ".part").write_text("on its way")
    (folder.root / "README.md").write_text("what goes where")
    [finding] = CARBON.findings(load_settings())
    assert (finding.reason_code, finding.health) == ("drop_stray", "broken")
    assert finding.reason.startswith("factor, plane.csv: not in units, factors or data")


def test_a_file_that_is_still_being_copied_is_left_alone(drop: Drop) -> None:
    path = drop.put(f"factors/{YEAR}/f.csv", FACTORS[:40])
    assert drop.run(drop.reconcile()) == []
    path.write_text(FACTORS[:80])
    assert drop.run(drop.reconcile(SETTLED)) == []
    assert path.exists()


def test_the_clock_of_a_file_server_settles_nothing(drop: Drop) -> None:
    path = drop.put(f"factors/{YEAR}/f.csv", FACTORS)
    os.utime(path, (0, 0))
    assert drop.run(drop.reconcile()) == [], "it may be half a file of long ago"
    assert drop.run(drop.reconcile(SETTLED)) == [("f.csv", "taken")]


def test_a_file_that_changed_since_it_was_sent_for_is_taken_when_it_is_whole(
    office: Office, drop: Drop
) -> None:
    path = drop.put(f"data/paper/{YEAR}/p.csv", PAPER)
    drop.reconcile()
    sent = drop.reconcile(SETTLED)
    path.write_text(PAPER + "ART,11,recycled\n")
    assert drop.run(sent) == [("p.csv", "changed")]
    assert drop.taken() == [("p.csv", "taken")]
    assert office.carbon.store.uploads.find()[0].rows == 2


def test_what_is_put_in_the_place_of_a_file_while_it_is_read_is_not_moved_away(drop: Drop) -> None:
    path = drop.put(f"factors/{YEAR}/f.csv", FACTORS)
    folder = DropFolder(drop.folder)
    [(place, stamp)] = folder.lying().items()
    path.write_text("newer")
    with pytest.raises(Changed):
        folder.take_away(place, stamp)
    assert path.read_text() == "newer"
    assert not list((drop.folder / "taken").rglob("*.csv"))


def test_a_writer_that_goes_on_after_its_file_was_taken_is_heard(office: Office, drop: Drop) -> None:
    path = drop.put(f"data/paper/{YEAR}/p.csv", PAPER)
    with path.open("a") as writer:
        assert drop.taken() == [("p.csv", "taken")]
        writer.write("ART,11,recycled\n")
    drop.reconcile()
    assert drop.taken() == [("p.csv", "taken")]
    assert office.carbon.store.uploads.find()[0].rows == 2
    assert drop.run(drop.reconcile(LATE)) == []


def test_where_no_daemon_looks_the_next_who_does_hears_a_writer_that_went_on(drop: Drop) -> None:
    path = drop.put(f"data/paper/{YEAR}/p.csv", PAPER)
    with path.open("a") as writer:
        assert drop.taken() == [("p.csv", "taken")]
        writer.write("ART,11,recycled\n")
    assert observe_drop(drop.carbon, drop.folder, "").lying == 1


def test_a_folder_that_cannot_be_looked_into_keeps_no_look_from_its_end(drop: Drop) -> None:
    drop.put(f"data/paper/{YEAR}/p.csv", PAPER)
    assert drop.taken() == [("p.csv", "taken")]
    for folder in (drop.folder / "taken" / "data", drop.folder / "data"):
        folder.rename(drop.folder / f".{folder.parent.name}")
        folder.write_text("no folder")
    drop.reconcile()


def test_a_look_minds_only_what_was_taken_lately_however_much_lies_in_taken(
    drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody need ever empty `taken`, and a tick that takes a minute is killed."""
    drop.put(f"data/paper/{YEAR}/p.csv", PAPER)
    assert drop.taken() == [("p.csv", "taken")]
    for number in range(100):
        drop.put(f"taken/data/paper/{YEAR}/{number}.csv", PAPER)
    seen = []
    stamp = DropFolder.stamp

    def counted(folder: DropFolder, place: Path | str) -> str | None:
        seen.append(place)
        return stamp(folder, place)

    monkeypatch.setattr(DropFolder, "stamp", counted)
    drop.reconcile()
    assert seen == [f"taken/data/paper/{YEAR}/p.csv"]
    drop.reconcile(LATE + 1)
    assert len(seen) == 1


def test_what_nobody_took_is_not_watched(office: Office, drop: Drop) -> None:
    """Whoever takes a file back frees its number, and the disk gives that to the next that comes."""
    drop.put(f"data/paper/{YEAR}/wrong.csv", PAPER.replace("100", "150"))
    drop.reconcile(10.0)
    (drop.folder / "data" / "paper" / YEAR / "wrong.csv").unlink()
    draft = drop.put(f"data/paper/{YEAR}/draft.csv", PAPER)
    final = drop.put(f"data/paper/{YEAR}/final.csv", PAPER.replace("100", "200"))
    os.utime(draft, (1_000, 1_000))
    os.utime(final, (2_000, 2_000))
    assert drop.taken() == [("draft.csv", "taken"), ("final.csv", "taken")]
    assert drop.taken() == drop.taken() == []
    assert office.carbon.store.uploads.find()[0].name == "final.csv"


def test_what_takes_the_name_of_a_taken_file_is_not_that_file(drop: Drop) -> None:
    """Nor if it has its number."""
    taken = drop.folder / "taken" / "data" / "paper" / YEAR
    drop.put(f"data/paper/{YEAR}/p.csv", PAPER)
    assert drop.taken() == [("p.csv", "taken")]
    drop.put(f"data/paper/{YEAR}/p.csv", PAPER.replace("100", "200"))
    assert drop.taken() == [("p.csv", "taken")]
    (taken / "p.csv").unlink()
    (taken / "p-2.csv").unlink()
    drop.put(f"data/paper/{YEAR}/p-2.csv", PAPER.replace("100", "3000"))
    assert drop.taken() == [("p-2.csv", "taken")]
    assert drop.taken() == drop.taken() == []
    assert (taken / "p-2.csv").is_file()


def test_what_was_taken_before_another_of_its_name_came_is_not_put_back(office: Office, drop: Drop) -> None:
    path = drop.put(f"data/paper/{YEAR}/p.csv", PAPER)
    with path.open("a") as writer:
        assert drop.taken() == [("p.csv", "taken")]
        drop.put(f"data/paper/{YEAR}/p.csv", PAPER.replace("100", "200"))
        drop.reconcile(10.0)
        writer.write("ART,11,recycled\n")
    assert drop.taken() == [("p.csv", "taken")]
    assert drop.taken() == drop.taken() == []
    assert office.carbon.store.uploads.find()[0].rows == 1


def test_what_a_run_took_that_was_killed_then_is_watched_all_the_same(
    office: Office, drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = drop.put(f"data/paper/{YEAR}/p.csv", PAPER)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with path.open("a") as writer:
        with monkeypatch.context() as patch:
            patch.setattr(DroppedFiles, "finish", killed)
            with pytest.raises(KeyboardInterrupt):
                drop.taken()
        assert not path.exists()
        writer.write("ART,11,recycled\n")
    drop.reconcile()
    assert path.exists()


def test_a_look_that_is_killed_while_it_watches_has_sent_for_what_lies_there(
    drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop.put(f"factors/{YEAR}/f.csv", FACTORS)
    drop.reconcile()

    def killed(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(DroppedFiles, "moved_since", killed)
    with pytest.raises(KeyboardInterrupt):
        drop.reconcile(SETTLED)
    [row] = drop.carbon.ledger.find(FILE_INGEST)
    assert (row.key, row.dispatches) == (f"{DROPPED}:factors/{YEAR}/f.csv", 1)


def test_hidden_files_are_nobodys(drop: Drop) -> None:
    drop.put(f"factors/{YEAR}/.f.csv.part", FACTORS)
    drop.put(f"factors/.cache/{YEAR}/f.csv", FACTORS)
    assert drop.taken() == []


def test_a_refused_file_lies_beside_its_problems_and_changes_nothing(office: Office, drop: Drop) -> None:
    before = office.content(), office.due()
    drop.put(f"data/paper/{YEAR}/bad.csv", "unit_id,mass\nNOBODY,-1\n")
    assert drop.taken() == [("bad.csv", "refused")]
    told = problems(drop, f"data/paper/{YEAR}/bad.csv").splitlines()
    assert [line.split(":")[0] for line in told] == ["line 2, column mass", "line 2, column unit_id"]
    assert (office.content(), office.due()) == before


def test_a_folder_that_says_nothing_we_know_is_refused_and_nobodys_data_replaced(
    office: Office, drop: Drop
) -> None:
    before = office.content(), office.due()
    drop.put(f"data/ethz/paper/{YEAR}/theirs.csv", PAPER.replace("100", "200"))
    assert drop.taken() == [("theirs.csv", "refused")]
    told = problems(drop, f"data/ethz/paper/{YEAR}/theirs.csv")
    assert told.startswith("the folder 'ethz' is neither a year nor a data entry type")
    assert "institution=NAME" in told
    assert (office.content(), office.due()) == before


def test_a_file_is_for_the_institution_that_its_folder_names(office: Office, drop: Drop) -> None:
    drop.put(f"data/institution=ethz/paper/{YEAR}/theirs.csv", PAPER.replace("100", "200"))
    assert drop.taken() == [("theirs.csv", "taken")]
    assert office.carbon.store.uploads.find()[0].institution == "ethz"
    drop.put(f"data/institution=/paper/{YEAR}/nobodys.csv", PAPER)
    assert drop.taken() == [("nobodys.csv", "refused")]
    assert problems(drop, f"data/institution=/paper/{YEAR}/nobodys.csv").startswith("the institution is")


def test_two_files_of_one_name_are_both_kept(drop: Drop) -> None:
    for text in (FACTORS, FACTORS.replace("0.7", "0.8")):
        drop.put(f"factors/{YEAR}/f.csv", text)
        assert drop.taken() == [("f.csv", "taken")]
    taken = drop.folder / "taken" / "factors" / YEAR
    assert sorted(p.name for p in taken.iterdir()) == ["f-2.csv", "f.csv"]


def test_a_locked_year_refuses_and_says_why(office: Office, drop: Drop) -> None:
    office.run("lock", YEAR, "--reason", "published")
    drop.put(f"factors/{YEAR}/f.csv", FACTORS.replace("0.7", "0.8"))
    assert drop.taken() == [("f.csv", "refused")]
    assert problems(drop, f"factors/{YEAR}/f.csv").startswith(f"{YEAR} is locked by")


# Whom the folder does not trust


def test_no_link_is_followed_and_nothing_of_what_it_points_to_is_told(
    office: Office, drop: Drop, caplog: pytest.LogCaptureFixture
) -> None:
    secret = office.folder / "secret" / "key.csv"
    secret.parent.mkdir()
    secret.write_text(f"{SECRET}\n{SECRET}\n")
    (drop.folder / "data" / "paper").mkdir(parents=True)
    (drop.folder / "data" / "link.csv").symlink_to(secret)
    (drop.folder / "data" / "paper" / YEAR).symlink_to(secret.parent)
    (drop.folder / "units").symlink_to(secret.parent)
    os.mkfifo(drop.folder / "data" / "pipe.csv")
    assert sorted(drop.taken()) == [(YEAR, "refused"), ("link.csv", "refused"), ("pipe.csv", "refused")]
    assert "link" in problems(drop, "data/link.csv")
    told = [p.read_text() for p in (drop.folder / "refused").rglob("*.txt") if not p.is_symlink()]
    assert not [text for text in (*told, caplog.text) if SECRET in text]
    assert "units cannot be looked into: it is a link" in caplog.text
    assert secret.read_text().startswith(SECRET)
    assert list(secret.parent.iterdir()) == [secret]


def test_a_folder_that_becomes_a_link_is_not_read_through(office: Office, drop: Drop) -> None:
    drop.put(f"data/paper/{YEAR}/p.csv", PAPER)
    folder = DropFolder(drop.folder)
    [(place, stamp)] = folder.lying().items()
    real = (drop.folder / place).parent.rename(office.folder / "elsewhere")
    (drop.folder / place).parent.symlink_to(real)
    with pytest.raises(OSError, match=r"[Ll]ink|directory"):
        folder.read(place, stamp)


def test_what_is_moved_leaves_the_folder_by_no_link(office: Office, drop: Drop) -> None:
    outside = office.folder / "outside"
    outside.mkdir()
    path = drop.put(f"factors/{YEAR}/f.csv", FACTORS)
    (drop.folder / "taken").symlink_to(outside)
    with pytest.raises(TransientResourceError, match="link"):
        drop.taken()
    assert not list(outside.rglob("*.csv"))
    assert path.exists()


@pytest.mark.parametrize("name", [b"\xff.csv", b"a\x1b[2J.csv", b"x" * 250])
def test_a_name_that_is_none_is_refused_as_such(drop: Drop, name: bytes) -> None:
    drop.put(f"factors/{YEAR}/" + os.fsdecode(name), FACTORS)
    assert [outcome for _, outcome in drop.taken()] == ["refused"]
    [told] = (drop.folder / "refused").rglob("*.problems.txt")
    assert told.read_text().startswith("the file name is")


# One file holds no other back


def test_a_file_that_cannot_be_moved_waits_and_says_so_while_others_are_taken(
    office: Office, drop: Drop
) -> None:
    drop.put(f"factors/{YEAR}/f.csv", FACTORS)
    drop.put(f"units/{YEAR}/u.csv", "unit_id,name,parent_id\nUNI,University,\n")
    (drop.folder / "taken").mkdir()
    (drop.folder / "taken" / "units").write_text("no folder")
    with pytest.raises(TransientResourceError, match=r"u\.csv cannot be read or moved"):
        drop.taken()
    assert [(Path(one.place).name, one.outcome) for one in drop.told] == [("f.csv", "taken")]
    [row] = drop.carbon.ledger.find(FILE_INGEST, status="deferred")
    assert (row.key, row.reason_code) == (f"{DROPPED}:units/{YEAR}/u.csv", "drop_folder")
    [finding] = [f for f in CARBON.findings(load_settings()) if f.subject == row.key]
    assert "`taken`" in finding.action
    (drop.folder / "taken" / "units").unlink()
    assert drop.run(drop.reconcile(3600.0)) == [("u.csv", "taken")]


def test_a_name_taken_by_a_folder_stops_nothing(drop: Drop) -> None:
    (drop.folder / "taken" / "factors" / YEAR / "f.csv").mkdir(parents=True)
    drop.put(f"factors/{YEAR}/f.csv", FACTORS)
    assert drop.taken() == [("f.csv", "taken")]


def test_a_file_that_breaks_its_reader_is_given_up_after_some_attempts_and_forgotten_with_it(
    drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = drop.put(f"factors/{YEAR}/bad.csv", FACTORS)
    drop.put(f"factors/{YEAR}/good.csv", FACTORS)
    reading = DropFolder.read

    def read(folder: DropFolder, place: str, stamp: str) -> object:
        if "bad" in place:
            raise MemoryError(place)
        return reading(folder, place, stamp)

    monkeypatch.setattr(DropFolder, "read", read)
    with pytest.raises(MemoryError):
        drop.taken()
    assert [(Path(one.place).name, one.outcome) for one in drop.told] == [("good.csv", "taken")]
    for _ in range(2):
        with pytest.raises(MemoryError):
            drop.run(drop.reconcile(600.0))
    assert drop.reconcile(600.0).starts == ()
    [finding] = [f for f in CARBON.findings(load_settings()) if "bad.csv" in f.subject]
    assert finding.health == "broken"
    bad.unlink()
    drop.reconcile(600.0)
    assert not [f for f in CARBON.findings(load_settings()) if "bad.csv" in f.subject]


def test_a_look_passes_on_so_many_files_and_no_stuck_one_is_in_the_way(
    drop: Drop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.carbon.drop_look.AT_ONCE", 1)
    for name in "abc":
        drop.put(f"factors/{YEAR}/{name}.csv", FACTORS)
    drop.reconcile()
    sent = [[Path(row.key).name for s in drop.reconcile(SETTLED).starts for row in s.rows] for _ in range(4)]
    assert sent == [["a.csv"], ["b.csv"], ["c.csv"], []], "none of them is taken meanwhile"


def test_a_look_reads_no_file(drop: Drop, monkeypatch: pytest.MonkeyPatch) -> None:
    """However large they are: a tick that takes a minute is killed."""
    drop.put(f"data/paper/{YEAR}/p.csv", PAPER)

    def opened(*_: object) -> object:
        raise AssertionError("a look opened a file")

    monkeypatch.setattr(DropFolder, "read", opened)
    drop.reconcile()
    [start] = drop.reconcile(SETTLED).starts
    assert [row.key for row in start.rows] == [f"{DROPPED}:data/paper/{YEAR}/p.csv"]


def test_units_go_before_the_data_that_was_dropped_with_them(drop: Drop) -> None:
    drop.put(f"data/paper/{YEAR}/p.csv", "unit_id,mass,kind\nNEW,1,recycled\n")
    drop.put(f"units/{YEAR}/u.csv", "unit_id,name,parent_id\nNEW,New,\n")
    assert drop.taken() == [("u.csv", "taken"), ("p.csv", "taken")]


def test_the_sensor_sends_a_run_that_takes_the_file(office: Office, drop: Drop) -> None:
    drop.put(f"data/paper/{YEAR}/more.csv", PAPER.replace("100", "200"))
    drop.reconcile()
    definitions = build_definitions(load_settings())
    with runner(load_settings()) as run:
        with (
            quiet(),
            dg.build_sensor_context(
                run.instance,
                drop.cursor,
                repository_def=definitions.get_repository_def(),
                resources=dict(definitions.resources or {}),
            ) as context,
        ):
            tick = drop_sensor.evaluate_tick(context)
        [request] = tick.run_requests or []
        assert request.run_key is not None
        end = run.run([DROPPED], domain="carbon", tags=run_tags(request.run_key))
    assert end.success, end.errors
    assert (drop.folder / "taken" / "data" / "paper" / YEAR / "more.csv").is_file()
