"""Problems of a file, cell by cell, for the person who corrects it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from domain.shared.error import InvalidInput

SHOWN = 100
"""Problems a report lists; the others are counted."""
_LONGEST = 60
_LONGEST_REASON = 400


@dataclass(frozen=True, order=True)
class Problem:
    line: int
    column: str
    value: str
    code: str
    reason: str

    def __str__(self) -> str:
        place = f"line {self.line}" if self.line else "the file"
        if self.column:
            place += f", column {self.column}"
        shown = f" {self.value!r}" if self.value else ""
        return f"{place}:{shown} {self.reason}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def count_of_problems(count: int) -> str:
    return f"{count:,} problem{'' if count == 1 else 's'}"


class FileRefused(InvalidInput):
    """The file was refused whole. `problems` are the first of `total`."""

    def __init__(self, name: str, problems: Sequence[Problem], total: int) -> None:
        first = problems[0]
        more = f" (and {total - 1:,} more)" if total > 1 else ""
        super().__init__(
            f"{name}: {first}{more}" if name else f"{first}{more}",
            reason_code=first.code,
            remedy="correct the file and upload it again; nothing of it was stored",
        )
        self.problems = tuple(problems)
        self.total = total


def refused(code: str, reason: str, *, line: int = 0, column: str = "", value: str = "") -> FileRefused:
    """A file that cannot be read as a table at all. Its name is set where it is known."""
    return FileRefused("", [Problem(line, short(column), short(value), code, reason)], 1)


def short(value: str, longest: int = _LONGEST) -> str:
    """Return the text with control characters spelled out."""
    cut = value if len(value) <= longest else value[: longest - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def reason_of(error: InvalidInput, value: str) -> str:
    """Return another module's error on a value as a reason, with its remedy."""
    reason = error.message.removeprefix(f"{value!r} ")
    return short(f"{reason}: {error.remedy}" if error.remedy else reason, _LONGEST_REASON)


@dataclass
class Problems:
    """Collects the problems of a frame's rows: the first `SHOWN` in full, all in number, and which rows."""

    lines: pa.Array
    found: list[Problem] = field(default_factory=list)
    total: int = 0

    def __post_init__(self) -> None:
        self.bad = np.zeros(len(self.lines), dtype=bool)

    def rows(self, where: Any, column: str, values: pa.Array, code: str, reason: str) -> None:
        """One reason for all rows `where` it is so."""
        self.each(where, column, values, lambda _: (code, reason))

    def each(
        self, where: Any, column: str, values: pa.Array, describe: Callable[[int], tuple[str, str]]
    ) -> None:
        """A code and a reason for each row, made only for rows that can be shown: rows are in the order of
        their lines."""
        mask = np.asarray(where, dtype=bool)
        places = np.flatnonzero(mask)
        if not len(places):
            return
        self.bad |= mask
        self.total += len(places)
        for place in places[:SHOWN].tolist():
            code, reason = describe(place)
            value = short(str(values[place].as_py()))
            self.found.append(Problem(self.lines[place].as_py(), column, value, code, reason))

    @property
    def first(self) -> list[Problem]:
        return sorted(self.found)[:SHOWN]

    @property
    def bad_rows(self) -> int:
        return int(self.bad.sum())
