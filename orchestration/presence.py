"""Which commands of this home live: each has locked a file, and the kernel frees it when the command dies.

The last part of a run's id names the command that executes it. So another process of this machine sees at
once that a run is dead. A name without a file says nothing: a daemon's run, or one of another machine; these
are judged by their lease (ADR 0041).
"""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Collection
from pathlib import Path
from typing import IO
from uuid import uuid4

DIGITS = 12
"""Of a run id, those that name its command."""


class Presence:
    """A command of this home, from its start to its end."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = secrets.token_hex(DIGITS // 2)
        self._path = folder / self.name
        # Locked before it has its name: nobody sees it free.
        hidden = folder / f".{self.name}"
        self._file = hidden.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        hidden.rename(self._path)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()

    def new_run_id(self) -> str:
        return f"{uuid4()}"[:-DIGITS] + self.name

    def dead(self) -> frozenset[str]:
        """The names of commands that were killed."""
        return frozenset(path.name for path in self._others() if _is_free(path))

    def alone(self) -> bool:
        """Whether no other command of this machine lives."""
        return all(_is_free(path) for path in self._others())

    def forget(self, names: Collection[str]) -> None:
        """Remove the files of dead commands, when nothing of theirs is left."""
        for name in names:
            (self._path.parent / name).unlink(missing_ok=True)

    def _others(self) -> list[Path]:
        return [path for path in self._path.parent.glob("[!.]*") if path != self._path]


def commands_folder(home: Path) -> Path:
    return home / "commands"


def living_commands(folder: Path) -> frozenset[str]:
    return frozenset(path.name for path in folder.glob("[!.]*") if not _is_free(path))


def dead_commands(folder: Path) -> frozenset[str]:
    """Return the names of commands that were killed, and of which something may be left."""
    return frozenset(path.name for path in folder.glob("[!.]*") if _is_free(path))


def command_of(run_id: str) -> str:
    return run_id[-DIGITS:]


def _is_free(path: Path) -> bool:
    try:
        with path.open() as file:
            return _locks(file)
    except FileNotFoundError:
        return False


def _locks(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
