"""Files as people and their programs make them, and what must become of each: its values, or its problems."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from domain.carbon.catalogue import catalogue
from domain.carbon.intake.entries_file import Scope, read_entries
from domain.carbon.intake.factors_file import read_factors
from domain.carbon.intake.units_file import read_units
from domain.shared.tabular.numbers import Mark
from domain.shared.tabular.problems import FileRefused
from domain.shared.tabular.sheet import Parsed

UNITS = {2024: {"A"}, 2025: {"A", "B", "Zürich"}}

Kind = Literal["units", "factors", "data"]


@dataclass(frozen=True)
class Beside:
    """How a file is read: what it is, and what is said beside it."""

    kind: Kind
    data_entry_type: str | None = None
    year: int | None = 2025
    mark: Mark | None = None

    def __call__(self, content: bytes) -> Parsed:
        if self.kind == "units":
            return units(content, year=self.year)
        if self.kind == "factors":
            return factors(content, year=self.year, mark=self.mark, data_entry_type=self.data_entry_type)
        return entries(content, self.data_entry_type, year=self.year, mark=self.mark)


Place = tuple[int, str, str]
"""Line, column and code of a problem."""


@dataclass(frozen=True)
class Taken:
    """The columns that matter of a file that is accepted, and words that its warnings hold."""

    columns: Mapping[str, Sequence[Any]]
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class Refused:
    """The problems of a file that is not, in their order; `words` stand in their messages."""

    problems: Sequence[Place]
    words: Sequence[str] = ()
    total: int | None = None


@dataclass(frozen=True)
class Case:
    name: str
    content: bytes
    expected: Taken | Refused
    read: Beside = field(repr=False)


def parameters(*cases: Case) -> pytest.MarkDecorator:
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    return pytest.mark.parametrize("case", cases, ids=names)


def check(case: Case) -> None:
    """A file becomes what it should; a refused one becomes nothing at all."""
    if isinstance(case.expected, Refused):
        with pytest.raises(FileRefused) as refused:
            case.read(case.content).or_refused("it.csv", accept_valid=False)
        check_refusal(refused.value, case.expected)
        return
    parsed = case.read(case.content).or_refused("it.csv", accept_valid=False)
    assert parsed.problems == ()
    for name, values in case.expected.columns.items():
        assert parsed.frame.column(name).to_pylist() == list(values), name
    assert len(parsed.warnings) == len(case.expected.warnings), parsed.warnings
    for words, warning in zip(case.expected.warnings, parsed.warnings, strict=True):
        assert words in warning


def check_refusal(error: FileRefused, expected: Refused) -> None:
    assert places(error.problems) == list(expected.problems), str(error)
    assert error.total == (len(expected.problems) if expected.total is None else expected.total)
    assert error.reason_code == expected.problems[0][2]
    text = "\n".join(map(str, error.problems))
    for words in expected.words:
        assert words in text, text
    assert text.isprintable() or "\n" in text
    assert "Error" not in text
    assert "Traceback" not in text


def places(problems: Sequence[Any]) -> list[Place]:
    return [(p.line, p.column, p.code) for p in problems]


def lines(*rows: str, end: str = "\n") -> str:
    return "".join(row + end for row in rows)


def csv(*rows: str, end: str = "\n") -> bytes:
    return lines(*rows, end=end).encode()


def parquet(**columns: Any) -> bytes:
    return parquet_of(pa.table(columns))


def parquet_of(frame: pa.Table) -> bytes:
    target = io.BytesIO()
    pq.write_table(frame, target)
    return target.getvalue()


def units(content: bytes, *, year: int | None = 2025) -> Parsed:
    return read_units(io.BytesIO(content), year=year)


def factors(
    content: bytes, *, year: int | None = 2025, mark: Mark | None = None, data_entry_type: str | None = None
) -> Parsed:
    return read_factors(
        io.BytesIO(content), catalogue(), year=year, mark=mark, data_entry_type=data_entry_type
    )


def entries(
    content: bytes, kind: str | None = "train", *, year: int | None = 2025, mark: Mark | None = None
) -> Parsed:
    scope = Scope("main", year=year, data_entry_type=kind, mark=mark)
    return read_entries(io.BytesIO(content), catalogue(), lambda year: UNITS.get(year, ()), scope)


def of_type(kind: str | None, *, year: int | None = 2025, mark: Mark | None = None) -> Beside:
    return Beside("data", kind, year, mark)


TRAIN = of_type("train")


def unit_file(name: str, content: bytes | str, expected: Taken | Refused) -> Case:
    return Case(name, content.encode() if isinstance(content, str) else content, expected, Beside("units"))


def factor_file(name: str, content: bytes | str, expected: Taken | Refused) -> Case:
    return Case(name, content.encode() if isinstance(content, str) else content, expected, Beside("factors"))


def entry_file(name: str, content: bytes | str, expected: Taken | Refused, read: Beside = TRAIN) -> Case:
    return Case(name, content.encode() if isinstance(content, str) else content, expected, read)
