"""The drop folder as what it is: a place on a disk to which others write, and which we trust in nothing.

Only regular files below it are read, by no link on the way; whatever is moved stays in it.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from domain.carbon.dropped import FOLDERS, shown, turn
from domain.shared.error import InvalidInput
from services.carbon.upload import LARGEST

log = logging.getLogger("perennial.carbon")

TAKEN, REFUSED = "taken", "refused"
PROBLEMS = ".problems.txt"
LONGEST = 200
"""Bytes of a name in `refused`."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_INTO = _READ | os.O_DIRECTORY


class Changed(Exception):
    """The file is not what was seen of it: somebody is at it."""


class Gone(Exception):
    """Somebody took the file away."""


@dataclass(frozen=True)
class Content:
    data: bytes
    owner: int


class DropFolder:
    def __init__(self, path: Path) -> None:
        self.root = path.resolve()

    def lying(self) -> dict[str, str]:
        """Of everything that was put there, its place and what there is to be seen of it, in its turn."""
        found = {place: stamp for kind in FOLDERS for place, stamp in self._below(Path(kind))}
        return dict(sorted(found.items(), key=lambda one: turn(*one)))

    def prepare(self) -> None:
        """Make the folders that files are put into, so that nobody has to guess their names."""
        for kind in FOLDERS:
            (self.root / kind).mkdir(parents=True, exist_ok=True)

    def strays(self) -> list[str]:
        """What was put where nobody looks: beside the folders instead of into one. A README is for people."""
        known = {*FOLDERS, TAKEN, REFUSED}
        try:
            with os.scandir(self.root) as found:
                names = sorted(entry.name for entry in found)
        except OSError:
            return []  # not there, or told by whoever looks for files in it
        apart = (".", "~", "readme")
        return [name for name in names if name not in known and not name.lower().startswith(apart)]

    def _below(self, folder: Path) -> Iterator[tuple[str, str]]:
        try:
            if (self.root / folder).is_symlink():
                raise NotADirectoryError(None, "it is a link", str(folder))
            with os.scandir(self.root / folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("the drop folder's %s cannot be looked into: %s", folder, error.strerror)
            return
        for entry in entries:
            if entry.name.startswith((".", "~")):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(folder / entry.name)
            elif (stamp := self.stamp(folder / entry.name)) is not None:
                yield str(folder / entry.name), stamp

    def stamp(self, place: Path | str) -> str | None:
        """None if nothing is there."""
        try:
            return _stamp(os.lstat(self.root / place))
        except FileNotFoundError:
            return None

    def read(self, place: str, stamp: str) -> Content:
        """The file, whole, if it is as it was seen and stays so while it is read."""
        if (now := self.stamp(place)) is None:
            raise Gone(place)
        if now != stamp:
            raise Changed(place)
        if not stat.S_ISREG(os.lstat(self.root / place).st_mode):
            raise InvalidInput("it is a link or a device; put the file itself there")
        try:
            found = self._open(place)
        except FileNotFoundError:
            raise Gone(place) from None
        except PermissionError as error:
            raise InvalidInput(f"it cannot be read: {error.strerror}") from None
        with os.fdopen(found, "rb") as file:
            about = os.fstat(found)
            if not stat.S_ISREG(about.st_mode) or _stamp(about) != stamp:
                raise Changed(place)
            if about.st_size > LARGEST:
                raise InvalidInput(f"it is larger than {LARGEST >> 20} MiB")
            data = file.read(about.st_size + 1)
            if len(data) != about.st_size or _stamp(os.fstat(found)) != stamp:
                raise Changed(place)
        return Content(data, about.st_uid)

    def _open(self, place: str) -> int:
        """Folder by folder, so that none of them is a link."""
        *folders, name = PurePosixPath(place).parts
        at = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for folder in folders:
                inner = os.open(folder, _INTO, dir_fd=at)
                os.close(at)
                at = inner
            return os.open(name, _READ | os.O_NONBLOCK, dir_fd=at)
        finally:
            os.close(at)

    def take_away(
        self, place: str, stamp: str, tell: Callable[[str], None] = lambda _: None, *, note: str = ""
    ) -> None:
        """Into `taken`, with a note beside it if there is one. `tell` hears where to before it is moved. What
        was put there in its place meanwhile goes back."""
        target = self._free(f"{TAKEN}/{place}")
        tell(str(target.relative_to(self.root)))
        with _beside(target, note):
            (self.root / place).rename(target)
            if self.stamp(target) != stamp:
                target.rename(self._free(place))
                raise Changed(place)

    def refuse(self, place: str, problems: str) -> None:
        """Into `refused`, with what is wrong beside it."""
        target = self._free(_short(f"{REFUSED}/{place}"))
        with _beside(target, problems):
            (self.root / place).rename(target)

    def written_late(self, path: str, stamp: str) -> bool:
        """Whether the file that was moved there was written to since. What has its name by now and is another
        is nothing of ours."""
        try:
            now = self.stamp(path)
        except OSError as error:
            log.warning("%s cannot be looked at: %s", shown(path), error.strerror or error)
            return False
        return now is not None and now != stamp and _inode(now) == _inode(stamp)

    def put_back(self, path: str, place: str) -> bool:
        """Unless another lies there, which is to be taken first. By no link: what is moved stays in the
        folder."""
        source = self.root / path
        if os.path.lexists(self.root / place):
            return False
        try:
            if source.parent.resolve() != source.parent:
                raise NotADirectoryError(None, "a folder on the way is a link", str(source.parent))
            source.rename(self._free(place))
        except OSError as error:
            log.warning("%s was taken and cannot be put back: %s", shown(place), error.strerror or error)
            return False
        return True

    def _free(self, target: str) -> Path:
        """A name that nothing has yet, nor a problems file for it, in a folder that is really ours."""
        first = self.root / target
        first.parent.mkdir(parents=True, exist_ok=True)
        if first.parent.resolve() != first.parent:
            raise NotADirectoryError(None, "a folder on the way is a link", str(first.parent))
        number, free = 1, first
        while os.path.lexists(free) or os.path.lexists(f"{free}{PROBLEMS}"):
            number += 1
            free = first.with_name(f"{first.stem}-{number}{first.suffix}")
        return free


@contextmanager
def _beside(target: Path, text: str) -> Iterator[None]:
    """What is said of a file lies there before the file does, and not without it."""
    if not text:
        yield
        return
    beside = target.with_name(f"{target.name}{PROBLEMS}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(beside, flags, 0o666), "w", encoding="utf-8") as told:
        told.write(text)
    try:
        yield
    except (OSError, Changed):
        beside.unlink()
        raise


def _short(place: str) -> str:
    """So that a name has room for what is written behind it."""
    path = PurePosixPath(place)
    return str(path.with_name(os.fsdecode(os.fsencode(path.name)[-LONGEST:])))


def _stamp(about: os.stat_result) -> str:
    return f"{about.st_size}:{about.st_mtime_ns}:{about.st_ino}"


def _inode(stamp: str) -> str:
    return stamp.rsplit(":", 1)[-1]
