"""A file's cells being checked column by column: what is fine becomes a typed column, what is not a problem.

Everything works on whole columns; only what differs is looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.reading.numbers import MOST, Mark, ambiguous, mark_of, parsed, trimmed
from domain.carbon.reading.problems import FileRefused, Problem, Problems
from domain.carbon.reading.rows import Cells, read_cells
from domain.shared.error import InvalidInput

YEARS = range(1990, 2101)
_LONGEST = 2_000
_CONTROL = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
_YES = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Parsed:
    """What a file says. `frame` has only its good rows; `problems` are the first of `problem_count`."""

    frame: pa.Table
    rows: int
    bad_rows: int
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def years(self) -> list[int]:
        return sorted(pc.unique(self.frame.column("year")).to_pylist())

    def or_refused(self, name: str, *, accept_valid: bool) -> Parsed:
        """Itself if it may be taken. `accept_valid` takes the good rows of a file that has others."""
        if self.problem_count and not (accept_valid and self.frame.num_rows):
            raise FileRefused(name, self.problems, self.problem_count)
        return self


@dataclass
class Sheet:
    cells: Cells
    problems: Problems
    mark: Mark | None = None
    warnings: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, source: BinaryIO, known: Collection[str]) -> Sheet:
        cells = read_cells(source, known)
        return cls(cells, Problems(cells.lines))

    def __len__(self) -> int:
        return len(self.cells.lines)

    def has(self, name: str) -> bool:
        return name in self.cells.columns

    def texts(self, name: str) -> pa.Array:
        """A column's cells; all empty if the file has no such column."""
        if not self.has(name):
            return pa.array([""], pa.string()).take(pa.array(np.zeros(len(self), dtype=np.int64)))
        return self.cells.texts.column(name).combine_chunks()

    # The header

    def check_header(self, needed: Iterable[str], allowed: Collection[str]) -> None:
        """Refuse a file whose columns are not those of its kind: nothing else it says can be trusted."""
        wrong = [
            Problem(0, name, "", "missing_column", "is missing in the header")
            for name in needed
            if not self.has(name)
        ]
        for name in self.cells.columns:
            if name not in allowed:
                near = get_close_matches(name, list(allowed), 1, 0.7)
                reason = f"is no column of this kind{f': do you mean {near[0]}?' if near else ''}"
                wrong.append(Problem(0, name, "", "unknown_column", reason))
        if wrong:
            raise FileRefused("", wrong, len(wrong))

    # Columns

    def flag(self, where: Any, column: str, code: str, reason: str) -> None:
        self.problems.rows(where, column, self.texts(column), code, reason)

    def required(self, column: str) -> None:
        self.flag(pc.equal(self.texts(column), ""), column, "missing", "is empty")

    def words(self, column: str, *, required: bool = False) -> pa.Array:
        """Texts fit to be shown anywhere: a spreadsheet would run what begins with `=`."""
        texts = self.texts(column)
        if required:
            self.required(column)
        self.flag(pc.starts_with(texts, "="), column, "formula", "begins with =: a formula, not its result")
        self.flag(
            pc.match_substring_regex(texts, _CONTROL), column, "control_character", "holds control characters"
        )
        self.flag(
            pc.greater(pc.utf8_length(texts), _LONGEST),
            column,
            "too_long",
            f"is longer than {_LONGEST} characters",
        )
        return texts

    def years(self, given: int | None) -> pa.Array:
        """The year of each row: the column's, or the one given for the whole file."""
        if not self.has("year"):
            if given is None:
                raise FileRefused(
                    "",
                    [
                        Problem(
                            0,
                            "year",
                            "",
                            "missing_column",
                            "is missing, and no year was given beside the file",
                        )
                    ],
                    1,
                )
            return pa.array(np.full(len(self), given), pa.int32())
        texts = self.texts("year")
        fits = pc.match_substring_regex(texts, r"^\d{4}$")
        found = pc.cast(pc.if_else(fits, texts, "0"), pa.int32())
        within = pc.and_(pc.greater_equal(found, YEARS[0]), pc.less_equal(found, YEARS[-1]))
        self.flag(pc.invert(within), "year", "year", f"is no year from {YEARS[0]} to {YEARS[-1]}")
        if given is not None:
            other = pc.and_(within, pc.not_equal(found, given))
            self.flag(
                other, "year", "other_year", f"is another year than {given}, which was given for the file"
            )
        return found

    def choose_mark(self, columns: Sequence[str], given: Mark | None) -> None:
        """Settle the decimal mark of the file, by all its number columns."""
        texts = {c: trimmed(self.texts(c)) for c in columns}
        self.mark = given or mark_of(list(texts.values()))
        if self.mark is None:
            for column, values in texts.items():
                self.problems.rows(
                    ambiguous(values),
                    column,
                    values,
                    "ambiguous_number",
                    "may be {value} thousandths or thousands: say --decimal comma or --decimal point",
                )
            self.mark = "point"

    def numbers(
        self, column: str, *, default: float | None = None, most: float = MOST
    ) -> npt.NDArray[np.float64]:
        """Numbers from 0 on. An empty cell is `default`, or NaN: whether it may be empty is the caller's."""
        texts = trimmed(self.texts(column))
        numbers, wrong = parsed(texts, self.mark or "point")
        self.flag(wrong, column, "not_a_number", self._no_number())
        values = np.asarray(pc.fill_null(numbers, np.nan), dtype=np.float64).copy()
        if default is not None:
            values[np.asarray(pc.equal(texts, ""))] = default
        self.flag(values < 0, column, "negative", "is negative")
        self.flag(values > most, column, "too_large", f"is larger than {most:g}: is the decimal mark right?")
        return values

    def _no_number(self) -> str:
        return f"is no number (the file's decimal mark is a {self.mark})"

    def booleans(self, column: str, default: bool) -> Booleans:
        texts = pc.utf8_lower(self.texts(column))
        found = _looked_up(texts, {**{k: int(v) for k, v in _YES.items()}, "": int(default)})
        self.flag(found < 0, column, "not_yes_or_no", "is neither yes nor no")
        return found == 1

    def choice(
        self, column: str, values: Sequence[str], *, default: str = "", required: bool = False
    ) -> pa.Array:
        """One of some words, however its case is; in the catalogue's spelling."""
        texts = self.texts(column)
        by_folded = {v.casefold(): v for v in values}
        spelled = _mapped(texts, lambda word: by_folded.get(word.casefold(), "") if word else default)
        if required:
            self.required(column)
        unknown = pc.and_(pc.equal(spelled, ""), pc.not_equal(texts, ""))
        near = f"is none of {', '.join(values)}"
        self.flag(unknown, column, "unknown_value", near)
        return spelled

    def converted(self, column: str, convert: Callable[[str], str], code: str) -> pa.Array:
        """Each distinct text through `convert`; what it refuses is a problem in its words."""
        reasons: dict[str, str] = {}

        def one(text: str) -> str:
            try:
                return convert(text)
            except InvalidInput as error:
                reasons[text] = error.message
                return ""

        texts = self.texts(column)
        made = _mapped(texts, one)
        for text, reason in reasons.items():
            self.flag(pc.equal(texts, text), column, code, reason)
        return made

    def unique(self, names: Sequence[str], columns: Mapping[str, Any], told: str) -> None:
        """Each combination once: a repeated one is a problem that names the line it stood on first."""
        frame = pa.table({n: columns[n] for n in names} | {"line": self.cells.lines})
        counted = frame.group_by(list(names)).aggregate([("line", "count"), ("line", "min")])
        doubled = counted.filter(pc.greater(counted.column("line_count"), 1))
        if not doubled.num_rows:
            return
        joined = frame.append_column("place", pa.array(range(len(frame)), pa.int64())).join(
            doubled, list(names), join_type="inner"
        )
        for row in joined.sort_by("place").to_pylist():
            if row["line"] != row["line_min"]:
                where = np.zeros(len(self), dtype=bool)
                where[row["place"]] = True
                self.flag(where, names[-1], "duplicate", f"{told} stands on line {row['line_min']} already")

    def finish(self, columns: Mapping[str, Any]) -> Parsed:
        """The good rows as a frame."""
        frame = pa.table(dict(columns) | {"line": self.cells.lines})
        good = frame.filter(pa.array(~self.problems.bad))
        return Parsed(
            good,
            rows=len(self),
            bad_rows=self.problems.bad_rows,
            problems=tuple(self.problems.first),
            problem_count=self.problems.total,
            warnings=tuple(self.warnings),
        )


def _mapped(texts: pa.Array, convert: Callable[[str], str]) -> pa.Array:
    encoded = texts.dictionary_encode()
    words = pa.array([convert(word) for word in encoded.dictionary.to_pylist()], pa.string())
    return words.take(encoded.indices)


def _looked_up(texts: pa.Array, values: Mapping[str, int]) -> npt.NDArray[np.int64]:
    encoded = texts.dictionary_encode()
    found = np.array([values.get(word, -1) for word in encoded.dictionary.to_pylist()], dtype=np.int64)
    return found[np.asarray(encoded.indices)]
