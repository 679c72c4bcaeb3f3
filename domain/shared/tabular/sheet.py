"""A file's cells being checked column by column: what is fine becomes a typed column, what is not a problem.

Everything works on whole columns; only distinct values are handled one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from domain.shared.error import InvalidInput
from domain.shared.tabular.combinations import distinct
from domain.shared.tabular.header import near
from domain.shared.tabular.numbers import MOST, Mark, Marks, marks_of, parsed, trimmed
from domain.shared.tabular.problems import SHOWN, FileRefused, Problem, Problems, reason_of, short
from domain.shared.tabular.rows import Cells, read_cells
from domain.shared.years import YEARS

LONGEST = 2_000
"""Characters a text may have."""
UNSEEN = "[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u2060\u202a-\u202e\u2066-\u2069\ufeff]|\\x00"
"""Control and other invisible characters: with one of them a name is not what it seems to be."""
_FORMULA = r"^=|^#(N/A|NV|REF!|BEZUG!|DIV/0!|VALUE!|WERT!|NAME\?|NUM!|ZAHL!|NULL!)$"
_BY_YEAR = {str(year): year for year in YEARS}
_YES = {"yes": True, "y": True, "true": True, "1": True, "no": False, "n": False, "false": False, "0": False}
Booleans = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Parsed:
    """The content of a file. `frame` has only its good rows; `problems` are the first of `problem_count`."""

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
        """Return itself if it may be stored. `accept_valid` stores the good rows of a file with bad ones."""
        if self.problem_count and not (accept_valid and self.frame.num_rows):
            raise FileRefused(name, self.problems, self.problem_count)
        return self


@dataclass
class Sheet:
    cells: Cells
    problems: Problems
    marks: Marks = field(default_factory=lambda: Marks("point"))
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.merged = np.zeros(len(self), dtype=bool)

    @classmethod
    def of(cls, source: BinaryIO, known: Collection[str]) -> Sheet:
        cells = read_cells(source, known)
        return cls(cells, Problems(cells.lines, list(cells.misfits), cells.misfit_count))

    def __len__(self) -> int:
        return len(self.cells.lines)

    def has(self, name: str) -> bool:
        return name in self.cells.columns

    def texts(self, name: str) -> pa.Array:
        """A column's cells; all empty if the file has no such column."""
        if not self.has(name):
            return pa.repeat(pa.scalar("", pa.string()), len(self))
        return self.cells.texts.column(name).chunk(0)

    # The header

    def check_header(self, needed: Iterable[str], allowed: Collection[str]) -> None:
        """Refuse a file whose columns are not those of its kind."""
        line = self.cells.header
        wrong = [
            Problem(line, name, "", "missing_column", "is missing in the header")
            for name in needed
            if not self.has(name)
        ]
        for name in self.cells.columns:
            if name not in allowed:
                meant = near(name, allowed)
                reason = f"is no column of this kind{f': do you mean {meant}?' if meant else ''}"
                wrong.append(Problem(line, short(name), "", "unknown_column", reason))
        if wrong:
            raise FileRefused("", wrong[:SHOWN], len(wrong))

    def lacking(self, column: str, what: str) -> FileRefused:
        """Refuse a file that lacks a column whose value was not given either."""
        meant = near(column, self.cells.columns)
        hint = f": is it the column {meant}?" if meant else ""
        reason = f"is missing: add the column or give --{what}; in the inbox, a folder named so{hint}"
        return self.refusal(column, "missing_column", reason)

    def refusal(self, column: str, code: str, reason: str, value: str = "") -> FileRefused:
        return FileRefused("", [Problem(self.cells.header, column, short(value), code, reason)], 1)

    # Columns

    def flag(self, where: Any, column: str, code: str, reason: str) -> None:
        self.problems.rows(where, column, self.texts(column), code, reason)

    def required(self, column: str) -> None:
        self.flag(pc.equal(self.texts(column), ""), column, "missing", "is empty")

    def words(self, column: str, *, required: bool = False) -> pa.Array:
        """Return printable texts: a spreadsheet would execute what starts with `=`."""
        texts = self.texts(column)
        if required:
            self.required(column)
        if self.has(column):
            formula = pc.match_substring_regex(texts, _FORMULA)
            self.flag(formula, column, "formula", "is a formula or its error, not its result")
            unseen = pc.match_substring_regex(texts, UNSEEN)
            self.flag(unseen, column, "control_character", "has invisible characters")
            long = pc.greater(pc.utf8_length(texts), LONGEST)
            self.flag(long, column, "too_long", f"is longer than {LONGEST:,} characters")
        return texts

    def years(self, given: int | None) -> pa.Array:
        """The year of each row: the column's, or the one given for the whole file. -1 where it is neither."""
        within = f"is no year from {YEARS[0]} to {YEARS[-1]}"
        if given is not None and given not in YEARS:
            raise self.refusal("year", "year", f"was given with the file and {within}", str(given))
        if not self.has("year"):
            if given is None:
                raise self.lacking("year", "year")
            return pa.repeat(pa.scalar(given, pa.int32()), len(self))
        found = _looked_up(self.texts("year"), _BY_YEAR)
        self.flag(found < 0, "year", "year", within)
        if given is not None:
            other = (found >= 0) & (found != given)
            self.flag(other, "year", "other_year", f"is not {given}, the year that was given for the file")
            found[other] = -1
        return pa.array(found, pa.int32())

    def choose_mark(self, columns: Iterable[str], given: Mark | None) -> None:
        """Settle the decimal mark of the file, by all its number columns."""
        written = [c for c in columns if self.has(c) and c not in self.cells.numeric]
        texts = {c: trimmed(self.texts(c)) for c in written}
        # Spreadsheets write semicolons where the comma is decimal, and tabs wherever they are.
        spreadsheet = self.cells.delimiter not in ("", ",")
        self.marks = Marks(given) if given else marks_of(list(texts.values()), points_in_doubt=spreadsheet)
        for column, values in texts.items():
            reason = "may mean thousands or decimals: say which, with --decimal point or --decimal comma"
            self.flag(self.marks.in_doubt(values), column, "ambiguous_number", reason)

    def numbers(self, column: str, *, default: float = np.nan, most: float = MOST) -> npt.NDArray[np.float64]:
        """Numbers from 0 on. An empty cell is `default`, or NaN: whether it may be empty is the caller's.

        What is refused is NaN as well: nothing is calculated from it.
        """
        if not self.has(column):
            return np.full(len(self), default)
        texts = trimmed(self.texts(column))
        mark = "point" if column in self.cells.numeric else self.marks.decimal
        numbers, wrong = parsed(texts, mark)
        self.flag(wrong, column, "not_a_number", f"is no number (the decimal mark here is a {mark})")
        values = np.asarray(pc.fill_null(numbers, np.nan)) + 0.0  # no minus zero
        self.flag(values < 0, column, "negative", "is negative")
        self.flag(
            values > most, column, "too_large", f"is larger than {most:,.0f}: is the decimal mark right?"
        )
        values[(values < 0) | (values > most)] = np.nan
        values[np.asarray(pc.equal(texts, ""))] = default
        return values

    def booleans(self, column: str, default: bool) -> Booleans:
        texts = pc.utf8_lower(self.texts(column))
        found = _looked_up(texts, {**_YES, "": default})
        self.flag(found < 0, column, "not_yes_or_no", "is neither yes nor no")
        yes: Booleans = found == 1
        return yes

    def choice(
        self, column: str, values: Sequence[str], *, default: str = "", required: bool = False
    ) -> pa.Array:
        """Return one of the known words in the catalogue's spelling, whatever its case."""
        by_folded = {v.casefold(): v for v in values}

        wanted = f"is none of {', '.join(values)}"

        def spelled(word: str) -> str:
            if not word:
                return default
            if (found := by_folded.get(word.casefold())) is None:
                raise InvalidInput(wanted, reason_code="unknown_value")
            return found

        if required:
            self.required(column)
        return self.made(column, [self.texts(column)], spelled)

    def made(self, column: str, cells: Sequence[pa.Array], make: Callable[..., str]) -> pa.Array:
        """`make` once for every distinct combination of cells. What it refuses is a problem of
        each row of `column` that has it."""
        numbers, firsts = distinct(cells)
        combinations = zip(*(each.take(pa.array(firsts)).to_pylist() for each in cells), strict=True)
        texts = self.texts(column)
        made: list[str] = []
        refused = np.zeros(len(firsts), dtype=bool)
        refusals: dict[int, tuple[str, str]] = {}
        for number, combination in enumerate(combinations):
            try:
                made.append(make(*combination))
            except InvalidInput as error:
                made.append("")
                refused[number] = True
                if len(refusals) < SHOWN:  # counted in the order of their lines: no other will be shown
                    reason = reason_of(error, texts[int(firsts[number])].as_py())
                    refusals[number] = (error.reason_code, reason)
        self.problems.each(refused[numbers], column, texts, lambda place: refusals[int(numbers[place])])
        return pa.array(made, pa.string()).take(pa.array(numbers))

    # The rows

    def merge(
        self, keys: Sequence[str], values: Sequence[str], columns: Mapping[str, Any], place: str, what: str
    ) -> None:
        """Good rows with the same keys are one, with a warning, if they say the same.

        If not, each is a problem that names the line of another.
        """
        good = np.flatnonzero(~self.problems.bad)
        chosen = pa.array(good)
        identities = [columns[name].take(chosen) for name in keys]
        numbers, firsts = distinct(identities)
        if len(firsts) == len(good):
            return
        contents, _ = distinct([pa.array(numbers), *(columns[name].take(chosen) for name in values)])
        first = firsts[numbers]
        differs = np.zeros(len(firsts), dtype=bool)
        differs[numbers[contents != contents[first]]] = True
        again = first != np.arange(len(good))
        lines = np.asarray(self.cells.lines)[good]
        self._warn_of(lines, first, np.flatnonzero(again & ~differs[numbers]))
        self.merged[good[again & ~differs[numbers]]] = True
        where = np.zeros(len(self), dtype=bool)
        where[good[differs[numbers]]] = True

        def describe(row: int) -> tuple[str, str]:
            own = int(np.searchsorted(good, row))
            others = (numbers == numbers[own]) & (contents != contents[own])
            return "duplicate", f"{what} is also on line {lines[others][0]}, with other values"

        self.problems.each(where, place, self.texts(place), describe)

    def _warn_of(self, lines: Any, first: Any, again: Any) -> None:
        for place in again[:SHOWN].tolist():
            self.warnings.append(
                f"line {lines[place]} is the same as line {lines[first[place]]}: stored once"
            )
        if len(again) > SHOWN:
            self.warnings.append(f"{len(again) - SHOWN:,} more lines say the same as others")

    def finish(self, columns: Mapping[str, Any]) -> Parsed:
        """The good rows as a frame."""
        frame = pa.table(dict(columns) | {"line": self.cells.lines})
        left_out = self.problems.bad | self.merged
        return Parsed(
            frame.filter(pa.array(~left_out)) if left_out.any() else frame,
            rows=len(self) + self.cells.misfit_count,
            bad_rows=self.problems.bad_rows + self.cells.misfit_count,
            problems=tuple(self.problems.first),
            problem_count=self.problems.total,
            warnings=tuple(self.warnings),
        )


def _looked_up(texts: pa.Array, values: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """The value of each text; -1 where it has none."""
    encoded = texts.dictionary_encode()
    found = np.array([values.get(word, -1) for word in encoded.dictionary.to_pylist()], dtype=np.int64)
    values_of_rows: npt.NDArray[np.int64] = found[np.asarray(encoded.indices)]
    return values_of_rows
