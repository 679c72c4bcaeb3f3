"""Inboxes: a complete file is imported once and moved, a wrong one is refused, and nothing is lost."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from domain.shared.backoff import Backoff
from domain.shared.clock import machine_clock
from domain.shared.error import InvalidInput, TransientResourceError
from domain.shared.work import Kind
from resources.ledger.client import Ledger
from services.inbox import REPORT, FileOutcome, Inbox, InboxFile, InboxPoll, import_files, path_of, poll

KIND = Kind("toys.import", transient=Backoff(base=timedelta(seconds=60)))
SECRET = "the secret of another file"


class Toys:
    """An inbox under test: people put files there, time passes, passes dispatch and runs import."""

    def __init__(self, folder: Path, ledger: Callable[[Callable[[], object]], Ledger]) -> None:
        self.now = machine_clock()
        self.ledger = ledger(lambda: self.now)
        self.inbox = Inbox(folder, ("first", "then"), KIND.name, "toys", priority=1, largest=1_000)
        self.stamps: dict[str, str] = {}
        self.imported: list[str] = []
        """The text of every file that was imported, in order."""

    def put(self, path: str, text: str = "toy", age: float | None = None) -> Path:
        """Write a file; with an age it was written so long ago and renamed into place just now."""
        target = self.inbox.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        if age is not None:
            moment = machine_clock().timestamp() - age
            os.utime(target, (moment, moment))
        return target

    def find(self, later: float = 0.0, unfinished: Collection[str] = ()) -> InboxPoll:
        self.now += timedelta(seconds=later)
        found = poll(self.inbox, self.ledger, self.stamps, unfinished)
        self.stamps = dict(found.stamps)
        return found

    def run(self, found: InboxPoll, run_id: str = "") -> dict[str, str]:
        """Import what was dispatched; return by file name what became of it."""
        outcomes: dict[str, str] = {}

        def report(path: str, outcome: FileOutcome) -> None:
            outcomes[Path(path).name] = outcome.reason_code

        for dispatch in found.dispatches:
            import_files(self.inbox, self.ledger, dispatch.rows, run_id or dispatch.id, self._import, report)
        return outcomes

    def find_and_run(self) -> dict[str, str]:
        return self.run(self.find()) | self.run(self.find())

    def _import(self, file: InboxFile) -> FileOutcome:
        text = file.content.decode()
        if text.startswith("wrong"):
            raise InvalidInput(text, reason_code="wrong_toy", remedy="correct it")
        if text.startswith("crash"):
            raise MemoryError(text)
        self.imported.append(text)
        return FileOutcome(True, "imported", f"imported {text}")

    def report(self, path: str) -> str:
        return (self.inbox.root / f"{path}{REPORT}").read_text()

    def failed(self) -> list[str]:
        return [row.key for row in self.ledger.current((KIND.name,)) if row.status == "failed"]


@pytest.fixture
def toys(tmp_path: Path) -> Iterator[Toys]:
    def opened(clock: Callable[[], object]) -> Ledger:
        ledger = Ledger.open(
            f"sqlite:///{tmp_path}/ledger.db",
            kinds=[KIND],
            clock=clock,
            machine_clock=clock,  # type: ignore[arg-type]
        )
        ledger.migrate()
        return ledger

    toys = Toys(tmp_path / "inbox", opened)
    yield toys
    toys.ledger.close()


# When a file is complete


def test_poll__same_size_and_time_in_two_passes__is_complete(toys: Toys) -> None:
    toys.put("first/a.csv")
    assert toys.find().complete == 0
    found = toys.find()
    assert (found.complete, toys.run(found)) == (1, {"a.csv": "imported"})


def test_poll__written_between_passes__is_not_complete(toys: Toys) -> None:
    path = toys.put("first/a.csv", "half")
    toys.find()
    path.write_text("half and the rest")
    assert toys.find().dispatches == ()
    assert toys.run(toys.find()) == {"a.csv": "imported"}
    assert toys.imported == ["half and the rest"]


def test_poll__renamed_into_place__is_complete_at_once(toys: Toys) -> None:
    toys.put("first/a.csv", age=60.0)
    assert toys.run(toys.find()) == {"a.csv": "imported"}


def test_poll__hidden_files__are_left_alone(toys: Toys) -> None:
    for path in ("first/.a.csv.part", "first/.cache/a.csv", "first/~a.csv"):
        toys.put(path, age=60.0)
    assert toys.find().stamps == {}


def test_poll__run_at_work__starts_no_other(toys: Toys) -> None:
    toys.put("first/a.csv", "older", age=60.0)
    found = toys.find()
    [dispatch] = found.dispatches
    toys.put("first/b.csv", "newer", age=50.0)
    assert toys.find(unfinished={dispatch.id}).dispatches == ()
    toys.run(found)
    assert toys.run(toys.find()) == {"b.csv": "imported"}


def test_unknown_entries__beside_the_folders__are_named(toys: Toys) -> None:
    assert toys.inbox.unknown_entries() == []
    toys.inbox.prepare()
    for name in ("a.csv", ".part", "README.md", "taken", "second"):
        toys.put(name)
    assert toys.inbox.unknown_entries() == ["a.csv", "second"]


# What becomes of a file


def test_import__accepted_file__is_in_taken_with_its_report(toys: Toys) -> None:
    toys.put("first/2025/a.csv")
    toys.find_and_run()
    assert (toys.inbox.root / "taken/first/2025/a.csv").read_text() == "toy"
    assert toys.report("taken/first/2025/a.csv") == "imported toy\n"
    assert toys.find_and_run() == {}


def test_refused_since__corrected_file_of_a_name_that_was_taken_before__ends_the_finding(toys: Toys) -> None:
    for text, age in (("toy", 99.0), ("wrong wheel", 60.0), ("wrong again", 30.0)):
        toys.put("first/a.csv", text, age=age)
        toys.find_and_run()
    toys.put("first/b.csv", "wrong too", age=20.0)
    toys.find_and_run()
    long_ago = datetime.fromtimestamp(0, UTC)
    assert [path for path, *_ in toys.inbox.refused_since(long_ago)] == [
        "first/a-2.csv",
        "first/a.csv",
        "first/b.csv",
    ]
    toys.put("first/a.csv", "a better toy", age=10.0)
    assert toys.find_and_run() == {"a.csv": "imported"}
    assert toys.report("taken/first/a-2.csv").endswith("its name in the inbox: a.csv\n")
    assert [path for path, *_ in toys.inbox.refused_since(long_ago)] == ["first/b.csv"]


def test_import__wrong_file__is_in_refused_with_its_report(toys: Toys) -> None:
    toys.put("first/a.csv", "wrong wheel")
    assert toys.find_and_run() == {"a.csv": "wrong_toy"}
    assert toys.report("refused/first/a.csv") == "wrong wheel\ncorrect it\n"
    [row] = toys.ledger.find(KIND.name)
    assert (row.status, row.reason_code) == ("skipped", "wrong_toy")


def test_import__several_files__by_folder_and_then_by_time(toys: Toys) -> None:
    toys.put("then/z.csv", "data", age=90.0)
    toys.put("first/a.csv", "newer", age=60.0)
    toys.put("first/b.csv", "older", age=70.0)
    toys.find_and_run()
    assert toys.imported == ["older", "newer", "data"]


def test_import__same_name_again__keeps_both(toys: Toys) -> None:
    for text in ("one", "two"):
        toys.put("first/a.csv", text)
        toys.find_and_run()
    names = {path.name for path in (toys.inbox.root / "taken/first").iterdir()}
    assert names == {"a.csv", f"a.csv{REPORT}", "a-2.csv", f"a-2.csv{REPORT}"}


def test_import__changed_since_it_was_found__waits_for_the_next_pass(toys: Toys) -> None:
    path = toys.put("first/a.csv", "half")
    toys.find()
    found = toys.find()
    path.write_text("whole")
    assert toys.run(found) == {"a.csv": "file_changed"}
    assert toys.find_and_run() == {"a.csv": "imported"}
    assert toys.imported == ["whole"]


def test_import__cannot_be_moved__is_deferred_while_others_are_imported(toys: Toys) -> None:
    toys.put("first/a.csv")
    toys.put("then/b.csv")
    stone = toys.put("taken/first")
    toys.find()
    with pytest.raises(TransientResourceError, match=r"a\.csv cannot be read or moved") as error:
        toys.run(toys.find())
    assert error.value.reason_code == "inbox_folder"
    assert (toys.inbox.root / "taken/then/b.csv").exists()
    [row] = toys.ledger.find(KIND.name, status="deferred")
    assert (row.key, row.reason_code) == ("toys:first/a.csv", "inbox_folder")
    stone.unlink()
    assert toys.run(toys.find(later=3600.0)) == {"a.csv": "imported"}


def test_import__killed_between_import_and_move__is_healed_by_the_next(
    toys: Toys, monkeypatch: pytest.MonkeyPatch
) -> None:
    toys.put("first/a.csv")
    toys.find()
    found = toys.find()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Inbox, "move", killed)
        with pytest.raises(KeyboardInterrupt):
            toys.run(found, "a run that dies")
    toys.ledger.sweep(finished_runs=["a run that dies"])
    assert toys.run(toys.find(later=3600.0)) == {"a.csv": "imported"}
    assert toys.imported == ["toy", "toy"], "the domain recognizes what it has imported"


def test_poll__failed_file_removed_twice_at_one_path__is_no_failure(toys: Toys) -> None:
    for text in ("crash one", "crash two"):
        path = toys.put("first/a.csv", text)
        toys.find()
        for _ in range(3):
            with pytest.raises(MemoryError):
                toys.run(toys.find(later=600.0))
        assert toys.find(later=600.0).dispatches == ()
        assert toys.failed() == ["toys:first/a.csv"]
        path.unlink()
        toys.find()
        assert toys.failed() == []


def test_poll__nothing_new__writes_nothing(toys: Toys) -> None:
    toys.put("first/a.csv", "wrong", age=60.0)
    stone = toys.put("refused")
    with pytest.raises(TransientResourceError):
        toys.run(toys.find())
    before = toys.ledger.find(KIND.name)
    toys.find()
    assert toys.ledger.find(KIND.name) == before
    stone.unlink()


# An inbox trusts no link and no name


def test_import__links_and_devices__are_refused_without_reading(
    toys: Toys, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = tmp_path / "secret" / "key.csv"
    secret.parent.mkdir()
    secret.write_text(SECRET)
    toys.inbox.prepare()
    (toys.inbox.root / "first/link.csv").symlink_to(secret)
    (toys.inbox.root / "first/2025").symlink_to(secret.parent)
    os.mkfifo(toys.inbox.root / "first/pipe.csv")
    (toys.inbox.root / "then").rmdir()
    (toys.inbox.root / "then").symlink_to(secret.parent)
    with caplog.at_level(logging.WARNING):
        outcomes = toys.find_and_run()
    assert outcomes == dict.fromkeys(("link.csv", "2025", "pipe.csv"), "file_refused")
    assert "the folder then of the inbox cannot be read: it is a link" in caplog.text
    reports = [path.read_text() for path in (toys.inbox.root / "refused").rglob(f"*{REPORT}")]
    assert len(reports) == 3
    assert SECRET not in "".join(reports) + caplog.text
    assert list(secret.parent.iterdir()) == [secret]


def test_import__too_large__is_refused(toys: Toys) -> None:
    toys.put("first/a.csv", "x" * 1_001)
    assert toys.find_and_run() == {"a.csv": "file_refused"}


@pytest.mark.parametrize("name", ["flüge 100%.csv", "a%2Fb.csv", os.fsdecode(b"\xff.csv"), "日本", "x" * 250])
def test_import__any_name__has_a_printable_key(toys: Toys, name: str) -> None:
    toys.put(f"first/{name}")
    assert toys.find_and_run() == {name: "imported"}
    [row] = toys.ledger.find(KIND.name)
    assert row.key.isprintable()
    assert path_of(row.key) == f"first/{name}"
    assert len(list((toys.inbox.root / "taken/first").iterdir())) == 2
