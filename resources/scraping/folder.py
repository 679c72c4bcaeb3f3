"""Scrapes a folder in which people put JSON, JSONL and CSV files.

Files stay where they are: the folder is the source. A file is read once it is complete: 10 seconds after its
last change, or at once if it came with an older time, as a file does that was renamed into place; a hidden
file is a copy in progress. Of an id in several files the file that was written last counts, of files of one
time that of the last name. A file that cannot be read as references is an error that names the line, after
the others were read.

The checkpoint holds a stamp of each file that was read. A time would not do: a listing is no snapshot, clocks
of file servers differ, and a file in a folder that is renamed keeps its times.
"""

from __future__ import annotations

import csv
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from domain.shared.printable import printable
from resources.scraping.errors import BadScrape, ScrapeFolderUnreadable
from resources.scraping.fields import lookup, parse_reference
from resources.scraping.options import MOST_BYTES, FolderOptions
from resources.scraping.reference import Checkpoint, Read, Scrape, ScrapedReference
from resources.scraping.source import Source

SETTLED_NS = 10 * 10**9
"""Nanoseconds after its last write in which a file may still be written."""
STAMP_BYTES = 8
SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv")


@dataclass(frozen=True)
class _File:
    path: Path
    size: int
    written_ns: int
    """Also what a person or a copy set it to."""
    changed_ns: int
    """When its content, its name or its times changed last; nobody can set it."""

    @property
    def age(self) -> tuple[int, Path]:
        return self.written_ns, self.path

    @property
    def stamp(self) -> str:
        """Return what changes with the file, and stays if nobody touches it."""
        about = f"{self.size} {self.written_ns} {self.changed_ns} ".encode() + os.fsencode(self.path)
        return hashlib.blake2b(about, digest_size=STAMP_BYTES).hexdigest()

    def is_complete(self, now_ns: int) -> bool:
        # A write sets both times to one moment; where the clock of a server is wrong, to none of ours.
        times_were_set = abs(self.changed_ns - self.written_ns) >= SETTLED_NS
        return times_were_set or abs(now_ns - self.changed_ns) >= SETTLED_NS


class FolderReader:
    """A source that is a folder of files."""

    def __init__(self, source: Source, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.source = source.name
        self._options = FolderOptions.model_validate(source.options)
        self._root = Path(source.url.removeprefix("file://")).expanduser()
        self._now_ns = now_ns

    def fetch(self, since: Checkpoint) -> Scrape:
        known, now_ns = set(_stamps(since.cursor)), self._now_ns()
        others: list[str] = []
        files = self._files(others)
        complete = sorted((file for file in files if file.is_complete(now_ns)), key=lambda file: file.age)
        stamps = [file.stamp for file in complete]
        first = next((at for at, stamp in enumerate(stamps) if stamp not in known), None)
        waiting = len(files) - len(complete)
        notes = [f"{_counted(waiting, 'file')} still written to: read later"] if waiting else []
        if others:
            notes.append(
                f"{_counted(len(others), 'file')} not read, as neither JSON, JSONL nor CSV "
                f"(first: {printable(min(others))})"
            )
        if first is None:
            return Scrape(None, since, notes=notes)
        # Newer files too, which may hold newer content of the same ids; the newest first.
        read = self._read(complete[first:][::-1], Checkpoint(cursor="".join(stamps)))
        return Scrape(read, notes=notes, source=self.source)

    def _files(self, others: list[str]) -> list[_File]:
        try:
            return list(_below(self._root, others))
        except OSError as error:
            raise self._unreadable(self._root, error) from None

    def _read(self, files: list[_File], checkpoint: Checkpoint) -> Read:
        seen: set[int] = set()
        refused: list[str] = []
        for file in files:
            own: set[int] = set()
            try:
                for reference in self._references(file.path):
                    key = hash(reference.id)
                    own.add(key)
                    if key not in seen:
                        yield reference
            except FileNotFoundError:
                continue  # removed, or renamed: under its new name it is read by the next scrape
            except ValueError as error:
                refused.append(f"{printable(str(file.path.relative_to(self._root)))}: {error}")
            seen |= own
        if refused:
            raise BadScrape(
                f"{_counted(len(refused), 'file')} of {self.source} cannot be used: {'; '.join(refused[:3])}",
                remedy=f"correct or remove them in {self._root}",
            )
        return checkpoint

    def _references(self, path: Path) -> Iterator[ScrapedReference]:
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                for place, item in self._items(path.suffix.lower(), file):
                    try:
                        yield parse_reference(item, self._options)
                    except ValueError as error:
                        raise ValueError(f"{place}: {error}") from None
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._unreadable(path, error) from None

    def _items(self, suffix: str, file: BinaryIO) -> Iterator[tuple[str, Any]]:
        if suffix == ".csv":
            yield from _csv_rows(file)
        elif suffix == ".json":
            for number, item in enumerate(self._json_list(file), start=1):
                yield f"item {number}", item
        else:
            yield from _json_lines(file)

    def _json_list(self, file: BinaryIO) -> list[Any]:
        content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB; write JSONL")
        found = lookup(orjson.loads(content), self._options.items)
        if not isinstance(found, list):
            raise ValueError(f"{self._options.items or 'the file'} is no list")
        return found

    def _unreadable(self, path: Path, error: OSError) -> ScrapeFolderUnreadable:
        shown = printable(str(path))
        return ScrapeFolderUnreadable(f"{shown} of {self.source} cannot be read: {error.strerror or error}")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _stamps(cursor: str) -> Iterator[str]:
    length = 2 * STAMP_BYTES
    return (cursor[at : at + length] for at in range(0, len(cursor), length))


def _below(root: Path, others: list[str]) -> Iterator[_File]:
    # The names of files of other kinds are added to `others`.
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.name.startswith((".", "~")):
                continue
            with suppress(FileNotFoundError):  # removed or renamed meanwhile
                about = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(about.st_mode):
                    yield from _below(root / entry.name, others)
                elif not stat.S_ISREG(about.st_mode):
                    continue
                elif entry.name.lower().endswith(SUFFIXES):
                    yield _File(root / entry.name, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
                else:
                    others.append(entry.name)


def _json_lines(file: BinaryIO) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(_lines(file), start=1):
        if line.strip():
            try:
                yield f"line {number}", orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise ValueError(f"line {number} is no JSON: {error}") from None


def _csv_rows(file: BinaryIO) -> Iterator[tuple[str, Any]]:
    try:
        rows = csv.DictReader((line.decode("utf-8-sig") for line in _lines(file)), strict=True)
        for row in rows:
            if None in row or None in row.values():
                raise ValueError(f"line {rows.line_num} has another number of columns than the first line")
            yield f"line {rows.line_num}", {name: value for name, value in row.items() if value}
    except UnicodeDecodeError:
        raise ValueError("it is not in UTF-8") from None
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from None


def _lines(file: BinaryIO) -> Iterable[bytes]:
    while line := file.readline(MOST_BYTES + 1):
        if len(line) > MOST_BYTES:
            raise ValueError(f"a line is larger than {MOST_BYTES >> 20} MiB")
        yield line
