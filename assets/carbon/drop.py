"""The drop folder: files that somebody put there are taken in as if they had been uploaded. No Dagster here.

    drop/factors/…   drop/units/…   drop/data/…

A folder between may name the year and the type: `drop/data/plane/2025/flights.csv`. A file is moved before it
is read, so two who look at once never take it twice; afterwards it lies in `taken` or `refused`, a refused
one with its problems beside it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from assets.carbon.carbon import Carbon
from assets.carbon.upload import LARGEST, File, FileKind, upload
from domain.carbon.reading.problems import FileRefused
from domain.shared.error import InvalidInput

log = logging.getLogger("perennial.carbon")

SETTLED = 3.0
"""Seconds without a change before a file is taken: somebody may still be copying it."""
LEFT_BEHIND = 600.0
"""Seconds after which a file whose taker died is put back."""
AT_MOST = 20.0
"""Seconds one look may spend on taking."""
_TAKING, _TAKEN, _REFUSED = "taking", "taken", "refused"


@dataclass(frozen=True)
class Dropped:
    path: Path
    outcome: str
    why: str = ""


def take_dropped(carbon: Carbon, folder: Path, now: float | None = None) -> list[Dropped]:
    """Take in what lies there, and say what became of each file."""
    if not folder.is_dir():
        return []
    moment = time.time() if now is None else now
    _put_back(folder, moment)
    until = time.monotonic() + AT_MOST
    found: list[Dropped] = []
    for kind in get_args(FileKind):
        for path in _settled(folder / kind, moment):
            if time.monotonic() > until:
                return found
            if (mine := _claimed(folder, kind, path)) is not None:
                found.append(_take(carbon, folder, kind, path, mine))
    return found


def _settled(folder: Path, moment: float) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        with suppress(FileNotFoundError):
            hidden = any(part.startswith((".", "~")) for part in path.relative_to(folder).parts)
            if path.is_file() and not hidden and moment - path.stat().st_mtime >= SETTLED:
                yield path


def _claimed(folder: Path, kind: str, path: Path) -> Path | None:
    """The file where only we see it; None if somebody else was first."""
    mine = folder / _TAKING / kind / path.relative_to(folder / kind)
    mine.parent.mkdir(parents=True, exist_ok=True)
    try:
        return path.rename(mine)
    except FileNotFoundError:
        return None


def _take(carbon: Carbon, folder: Path, kind: FileKind, was: Path, mine: Path) -> Dropped:
    within = mine.relative_to(folder / _TAKING)
    try:
        if mine.stat().st_size > LARGEST:
            raise InvalidInput(f"{mine.name} is larger than {LARGEST >> 20} MiB")
        words = within.parts[1:-1]
        file = File(
            kind=kind,
            name=mine.name,
            content=mine.read_bytes(),
            by=f"drop folder, owner {mine.stat().st_uid}",
            year=next((int(w) for w in words if w.isdigit() and len(w) == 4), None),
            data_entry_type=next((w for w in words if w in carbon.catalogue.types), None),
        )
        upload(carbon, file)
    except InvalidInput as error:
        kept = _moved(mine, folder / _REFUSED / within)
        told = [str(p) for p in error.problems] if isinstance(error, FileRefused) else [error.message]
        kept.with_name(f"{kept.name}.problems.txt").write_text("\n".join(told) + "\n", encoding="utf-8")
        log.warning("refused: %s: %s", was.name, error.message)
        return Dropped(was, "refused", error.message)
    _moved(mine, folder / _TAKEN / within)
    return Dropped(was, "taken")


def _moved(path: Path, target: Path) -> Path:
    """Beside what lies there already under that name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    number = 1
    free = target
    while free.exists():
        number += 1
        free = target.with_name(f"{target.stem}-{number}{target.suffix}")
    return path.rename(free)


def _put_back(folder: Path, moment: float) -> None:
    """Whoever took these died over it; to take a file twice changes nothing."""
    left = folder / _TAKING
    for path in sorted(left.rglob("*")) if left.is_dir() else ():
        with suppress(FileNotFoundError):
            if path.is_file() and moment - path.stat().st_ctime >= LEFT_BEHIND:
                _moved(path, folder / path.relative_to(left))
