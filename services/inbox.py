"""Inboxes: folders in which people put files; each file is imported once, then moved out of the way.

A file is imported once it is complete: two passes found the same size and modification time, or it got its
name well after its last write (renamed into place, or copied with its times). Then it is moved to `taken` or
`refused`, with a report beside it. Each file is a work item: its key is the path, its fingerprint the size
and modification time. A crash between import and move is healed by the next attempt, so the function that
imports a file must recognize one that it has imported.

No domain is named here: a domain brings the folder, the kind of work and the function that imports one file.
"""

from __future__ import annotations

import logging
import os
import secrets
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePath, PurePosixPath
from urllib.parse import quote, unquote_to_bytes

from domain.shared.error import InvalidInput, TransientResourceError
from domain.shared.work import FAILED, RUNNING, WAITING, Work, WorkRequest, split_key
from resources.ledger.client import Ledger
from resources.ledger.model import WORKER, Dispatch

log = logging.getLogger("perennial.inbox")

TAKEN, REFUSED = "taken", "refused"
CAME_AS = "its name in the inbox: "
"""Begins the last line of the report of a file that was given another name, as its own was there."""
REPORT = ".report.txt"
PASS_SECONDS = 10.0
"""Seconds between two passes; also between the last write and the naming of a file that is complete."""
LONGEST_NAME = 200
"""Bytes of a moved file's name: a number and the report's suffix fit behind it."""


@dataclass(frozen=True)
class FoundFile:
    """A file in the inbox, as a pass found it."""

    path: str
    size: int
    modified_ns: int
    named_ns: int
    """When its name or its attributes changed last."""

    @property
    def stamp(self) -> str:
        return f"{self.size}:{self.modified_ns}"

    @property
    def was_renamed(self) -> bool:
        return self.named_ns - self.modified_ns >= PASS_SECONDS * 1e9


@dataclass(frozen=True)
class InboxFile:
    """A complete file, read whole."""

    path: PurePosixPath
    content: bytes
    owner: int
    modified_at: datetime


@dataclass(frozen=True)
class FileOutcome:
    """What became of a file, and the text of the report beside it."""

    accepted: bool
    reason_code: str
    report: str = ""


@dataclass(frozen=True)
class InboxPoll:
    """What a pass found: the stamps that the next pass compares, and the run to start."""

    stamps: Mapping[str, str]
    complete: int
    dispatches: tuple[Dispatch, ...]


@dataclass(frozen=True)
class Inbox:
    root: Path
    folders: tuple[str, ...]
    """Where people put files, in the order in which the files are imported."""
    kind: str
    prefix: str
    """The first word of the keys."""
    priority: int
    largest: int
    """Bytes one file may have."""

    def key(self, path: str) -> str:
        """Return a printable key: a path may hold bytes that are no text."""
        return f"{self.prefix}:{quoted(path)}"

    def prepare(self) -> None:
        """Make the folders, so that nobody has to guess their names."""
        for folder in self.folders:
            (self.root / folder).mkdir(parents=True, exist_ok=True)

    def scan(self) -> dict[str, FoundFile]:
        """Return every file in the folders by path; a hidden file is a copy in progress."""
        return {file.path: file for folder in self.folders for file in _below(self.root, Path(folder))}

    def unknown_entries(self) -> list[str]:
        """Return the names beside the folders, where no file is imported; a README is for people."""
        known = {*self.folders, TAKEN, REFUSED}
        names = sorted(path.name for path in self.root.iterdir()) if self.root.is_dir() else []
        return [n for n in names if n not in known and not n.lower().startswith((".", "~", "readme"))]

    def refused_since(self, moment: datetime) -> Iterator[tuple[str, str, datetime]]:
        """Yield the refused files that nobody has removed or put right: path, begin of the report, time."""
        for report in sorted((self.root / REFUSED).rglob(f"*{REPORT}")):
            file = report.with_name(report.name.removesuffix(REPORT))
            path = file.relative_to(self.root / REFUSED)
            at = datetime.fromtimestamp(report.stat().st_mtime, UTC)
            if at >= moment and os.path.lexists(file) and not self._taken_later(path, report):
                text = report.read_text("utf-8", "replace").splitlines()
                yield quoted(str(path)), "; ".join(text[:2]), at

    def _taken_later(self, path: PurePath, refused: Path) -> bool:
        """Whether a file of the name that the refused one came by was taken after it."""
        folder, at = self.root / TAKEN / path.parent, refused.stat().st_mtime
        newer = (report for report in folder.glob(f"*{REPORT}") if report.stat().st_mtime > at)
        return any(_came_as(report) == _came_as(refused) for report in newer)

    def order(self, path: str, stamp: str) -> tuple[int, int, str]:
        """Sort by folder, then by the last write: of two files of one scope the newer is to count."""
        return self.folders.index(PurePosixPath(path).parts[0]), int(stamp.split(":")[1]), path

    def read(self, path: str, stamp: str) -> InboxFile | None:
        """Return the file, or None if it is not the one that a pass found."""
        source = self.root.resolve() / path
        if not self.holds(path, stamp):
            return None
        if source.resolve() != source or not stat.S_ISREG(source.lstat().st_mode):
            raise _refused("it is a link or a device", "put the file itself there")
        with os.fdopen(os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            about = os.fstat(file.fileno())
            if about.st_size > self.largest:
                raise _refused(f"it is larger than {self.largest >> 20} MiB", "split it")
            content = file.read()
        modified_at = datetime.fromtimestamp(about.st_mtime_ns // 1_000 / 1e6, UTC)
        found = InboxFile(PurePosixPath(path), content, about.st_uid, modified_at)
        return found if self.holds(path, stamp) else None

    def move(self, path: str, folder: str, report: str) -> None:
        """Move a file out of the way, its report beside it."""
        target = self._free(PurePosixPath(folder, path))
        if target.name != PurePosixPath(path).name:
            report += f"\n{CAME_AS}{quoted(PurePosixPath(path).name)}"
        target.with_name(target.name + REPORT).write_text(f"{report}\n", "utf-8", "backslashreplace")
        (self.root / path).rename(target)

    def holds(self, path: str, stamp: str) -> bool:
        with suppress(FileNotFoundError):
            return _found(path, (self.root / path).lstat()).stamp == stamp
        return False

    def _free(self, wanted: PurePosixPath) -> Path:
        """Return a path that neither a file nor a report has, in a folder that is no link."""
        folder = self.root.resolve() / wanted.parent
        folder.mkdir(parents=True, exist_ok=True)
        if folder.resolve() != folder:
            raise NotADirectoryError(None, "a folder on the way is a link", str(folder))
        name = os.fsdecode(os.fsencode(wanted.name)[-LONGEST_NAME:])
        free = PurePosixPath(name)
        number = 1
        while os.path.lexists(folder / free) or os.path.lexists(folder / f"{free}{REPORT}"):
            number += 1
            free = PurePosixPath(name).with_stem(f"{PurePosixPath(name).stem}-{number}")
        return folder / free


ImportFile = Callable[[InboxFile], FileOutcome]


def poll(
    inbox: Inbox, ledger: Ledger, before: Mapping[str, str], unfinished: Collection[str] = ()
) -> InboxPoll:
    """Enqueue complete files and dispatch them; `before` holds the stamps of the pass before.

    `unfinished` names dispatches whose run is queued or running: no second run begins beside it, as it could
    import a newer file before an older one.
    """
    found = inbox.scan()
    complete = [file for file in found.values() if file.was_renamed or before.get(file.path) == file.stamp]
    rows = ledger.current((inbox.kind,))
    known = {(row.key, row.fingerprint) for row in rows}
    requests = [
        WorkRequest(inbox.kind, inbox.key(f.path), f.stamp, reason_code="in_inbox", priority=inbox.priority)
        for f in complete
    ]
    ledger.enqueue([one for one in requests if (one.key, one.fingerprint) not in known])
    _skip_removed(inbox, ledger, rows, found)
    at_work = any(
        row.status == RUNNING or (row.status in WAITING and row.dispatch_id in unfinished) for row in rows
    )
    stamps = {path: file.stamp for path, file in found.items()}
    if at_work:
        return InboxPoll(stamps, len(complete), ())
    # One run, which imports its files one after another.
    due = ledger.dispatch(inbox.kind, limit=1, group=lambda _: inbox.prefix, busy=unfinished)
    return InboxPoll(stamps, len(complete), tuple(due))


def import_files(
    inbox: Inbox,
    ledger: Ledger,
    rows: Sequence[Work],
    run_id: str,
    import_file: ImportFile,
    report: Callable[[str, FileOutcome], None],
) -> None:
    """Import the files of these rows, one after another. A file that fails stops no other."""
    failures: list[Exception] = []
    for row in sorted(rows, key=lambda row: inbox.order(path_of(row.key), row.fingerprint)):
        try:
            with ledger.lease(
                inbox.kind, [row.key], run_id, fingerprints={row.key: row.fingerprint}
            ) as lease:
                for key in lease.keys:
                    outcome = _import(inbox, path_of(key), lease.work[key].fingerprint, import_file)
                    settle = lease.complete if outcome.accepted else lease.skip
                    settle(key, outcome.reason_code)
                    report(path_of(key), outcome)
        except Exception as error:
            log.exception("%s could not be imported", row.key)
            failures.append(error)
    if failures:
        raise failures[0]


def _import(inbox: Inbox, path: str, stamp: str, import_file: ImportFile) -> FileOutcome:
    try:
        with _on_disk(path):
            file = inbox.read(path, stamp)
        if file is None:
            return FileOutcome(False, "file_changed", "it was changed or removed since a pass found it")
        outcome = import_file(file)
    except InvalidInput as error:
        text = f"{error.message}\n{error.remedy}" if error.remedy else error.message
        outcome = FileOutcome(False, error.reason_code, text)
    with _on_disk(path):
        if inbox.holds(path, stamp):  # otherwise it is a newer file by now, which the next pass finds
            inbox.move(path, TAKEN if outcome.accepted else REFUSED, outcome.report)
    return outcome


@contextmanager
def _on_disk(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TransientResourceError(
            f"{quoted(path)} cannot be read or moved: {error.strerror or error}",
            reason_code="inbox_folder",
            remedy="make the inbox, its `taken` and its `refused` readable and writable",
        ) from error


def quoted(path: str) -> str:
    return "".join(c if c.isprintable() and c != "%" else quote(os.fsencode(c), safe="") for c in path)


def path_of(key: str) -> str:
    return os.fsdecode(unquote_to_bytes(split_key(key)[1]))


def _came_as(report: Path) -> str:
    """Return the name by which the file of a report came."""
    last = report.read_text("utf-8", "replace").splitlines()[-1:]
    named = last and last[0].startswith(CAME_AS)
    return last[0].removeprefix(CAME_AS) if named else quoted(report.name.removesuffix(REPORT))


def _below(root: Path, folder: Path) -> Iterator[FoundFile]:
    try:
        if (root / folder).is_symlink():
            raise NotADirectoryError(None, "it is a link")
        with os.scandir(root / folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("the folder %s of the inbox cannot be read: %s", folder, error.strerror)
        return
    for entry in entries:
        if entry.name.startswith((".", "~")):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _below(root, folder / entry.name)
            continue
        with suppress(FileNotFoundError):
            yield _found(str(folder / entry.name), entry.stat(follow_symlinks=False))


def _refused(message: str, remedy: str) -> InvalidInput:
    return InvalidInput(message, reason_code="file_refused", remedy=remedy)


def _found(path: str, about: os.stat_result) -> FoundFile:
    return FoundFile(path, about.st_size, about.st_mtime_ns, about.st_ctime_ns)


def _skip_removed(inbox: Inbox, ledger: Ledger, rows: Sequence[Work], found: Collection[str]) -> None:
    """End the failures of files that somebody removed."""
    failed = {row.key for row in rows if row.status == FAILED and path_of(row.key) not in found}
    gone = failed.difference(row.key for row in rows if row.status != FAILED)
    if not gone:
        return
    holder = f"{WORKER}inbox-{secrets.token_hex(4)}"  # a new name each time: a holder gets a key only once
    with ledger.lease(inbox.kind, sorted(gone), holder, heartbeat=False) as lease:
        for key in lease.keys:
            lease.skip(key, "file_removed")
