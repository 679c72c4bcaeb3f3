"""The whole sample university, calculated by the product and once more by somebody else."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from domain.carbon import catalogue as catalogue_module
from domain.carbon.catalogue import GIVEN, catalogue
from domain.shared.compute import THREADS, connection
from sandbox.carbon.institution import YEARS, write
from sandbox.carbon.types import types
from tests.oracles.carbon import Book, Line, Result, factors_of, report, results, rows
from tests.unit.domain.carbon.calculated import Calculated, Files, Taken, calculated, read, taken

CATALOGUE = Path(catalogue_module.__file__).with_name("catalogue.yaml").read_text(encoding="utf-8")
BOOK = Book.of(CATALOGUE)
SCALE = 0.05
MG = ("own_mg", "total_mg")


@dataclass
class Year:
    """One year, by the product and by the other."""

    files: Files
    taken: Taken
    product: Calculated
    masses: dict[tuple[str, str, str], tuple[str, int | None]]
    results: list[Result]
    parents: dict[str, str]


def files_of(folder: Path, year: int) -> Files:
    data = {name: (folder / f"{name}-{year}.csv").read_bytes() for name in types()}
    units, factors = ((folder / f"{kind}-{year}.csv").read_bytes() for kind in ("units", "factors"))
    return Files(year, units, factors, data)


def calculated_year(folder: Path, year: int) -> Year:
    files = files_of(folder, year)
    known = taken(files, catalogue())
    product = calculated(catalogue(), year, known)
    factors = factors_of(rows(files.factors))
    others = [r for name, content in files.data.items() for r in results(BOOK, name, rows(content), factors)]
    parents = {row["unit_id"]: row["parent_id"] for row in rows(files.units)}
    return Year(files, known, product, product.masses(known.entries), others, parents)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    write(folder, SCALE)
    return folder


@pytest.fixture(scope="module")
def year(sample: Path) -> Year:
    return calculated_year(sample, YEARS[-1])


# What the sample is


def test_every_type_and_column_of_the_catalogue_is_in_the_sample(sample: Path) -> None:
    assert set(types()) == set(catalogue().types)
    for name, kind in catalogue().types.items():
        with (sample / f"{name}-{YEARS[0]}.csv").open(encoding="utf-8") as file:
            header = next(csv.reader(file))
        assert set(header) == {*GIVEN, *(c.name for c in kind.read_columns)}, name


def test_every_sample_file_is_accepted_without_a_problem(sample: Path) -> None:
    for year in YEARS:
        for name, parsed in read(files_of(sample, year), catalogue()).items():
            problems = [str(p) for p in parsed.problems[:3]]
            assert (parsed.problem_count, parsed.bad_rows, list(parsed.warnings)) == (0, 0, []), (
                name,
                problems,
            )


def test_the_sample_holds_what_is_rare(year: Year) -> None:
    """Overrides, rows without a factor, fallbacks, units of every kind: else it would prove little."""
    seen = {(r.kind, r.status) for r in year.results}
    assert len([kind for kind, status in seen if status == "overridden"]) > 2
    assert {kind for kind, status in seen if status == "unmatched"} >= {"combustion", "waste"}
    used = {unit for e in year.taken.entries.values() for unit in e.column("unit").to_pylist()}
    assert used >= {"MWh", "GJ", "MJ", "mi", "m", "t", "lb", "kCHF", "Mtoken", "dozen", "min"}
    asked = set(year.taken.entries["train"].column("classification").to_pylist())
    offered = set(year.taken.factors.column("classification").to_pylist())
    assert asked - offered, "no row needs a fallback"


# What it proves


def check_masses(year: Year) -> None:
    """Each result within a milligram; which have none and which were measured, exactly."""
    expected = {(r.kind, r.entry_id, r.emission): r for r in year.results}
    assert year.masses.keys() == expected.keys()
    for place, (status, mg) in year.masses.items():
        other = expected[place]
        assert status == other.status, place
        if status == "matched":
            assert abs(mg - other.mg) <= 1, (place, mg, other.mg)
        else:
            assert mg == other.mg, place


def check_sums(year: Year) -> None:
    """Modules and report are the sums of the product's own results, to the milligram."""
    check_modules(year)
    lines = report_lines(year.product.report)
    assert lines == report(BOOK, as_results(year.product.emissions), year.parents)


def check_modules(year: Year) -> None:
    expected: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for one in as_results(year.product.emissions):
        line = expected[BOOK.module_of[one.kind], one.unit_id, one.kind, one.emission]
        line[0] += one.mg or 0
        line[1] += 1
        line[2] += one.status == "unmatched"
        line[3] += one.status == "overridden"
    found: dict[tuple[str, ...], list[int]] = {}
    for name, module in year.product.modules.items():
        for row in module.to_pylist():
            place = name, row["unit_id"], row["data_entry_type"], row["emission_type"]
            assert place not in found
            found[place] = [row[c] for c in ("mg_co2e", "entries", "unmatched", "overridden")]
            assert (row["module"], row["year"], row["scope"]) == (
                name,
                year.files.year,
                BOOK.scope_of[place[2:]],
            )
    assert found == expected


def check_report(year: Year) -> None:
    """Against the other's report: at most a milligram for each result that is in a line; counts exactly."""
    lines = report_lines(year.product.report)
    others = report(BOOK, year.results, year.parents)
    assert lines.keys() == others.keys()
    for place, line in lines.items():
        other = others[place]
        assert abs(line.own_mg - other.own_mg) <= line.own_results, place
        assert abs(line.total_mg - other.total_mg) <= line.total_results, place
        counts = [{k: v for k, v in asdict(one).items() if k not in MG} for one in (line, other)]
        assert counts[0] == counts[1], place


def report_lines(frame: pa.Table) -> dict[tuple[str, str, int], Line]:
    lines = {}
    for row in frame.to_pylist():
        place = row["unit_id"], row["module"], row["scope"]
        assert place not in lines
        lines[place] = Line(**{name: row[name] for name in asdict(Line())})
    return lines


def as_results(emissions: pa.Table) -> Iterator[Result]:
    names = ("entry_key", "unit_id", "data_entry_type", "emission_type", "status", "mg_co2e")
    for row in zip(*(emissions.column(n).to_pylist() for n in names), strict=True):
        yield Result(*row)


def test_every_mass_is_the_other_s_within_a_milligram(year: Year) -> None:
    check_masses(year)


def test_modules_and_report_are_the_sums_of_the_masses_exactly(year: Year) -> None:
    check_sums(year)


def test_the_report_is_the_other_s_within_a_milligram_per_entry(year: Year) -> None:
    check_report(year)


@pytest.mark.slow
@pytest.mark.parametrize("number", YEARS[-1:])
def test_the_sample_at_full_scale(number: int, tmp_path: Path) -> None:
    write(tmp_path, 1.0, years=[number])
    year = calculated_year(tmp_path, number)
    assert len(year.results) > 60_000
    check_masses(year)
    check_sums(year)
    check_report(year)


# The same numbers every time


def in_order(frame: pa.Table) -> pa.Table:
    return frame.sort_by([(name, "ascending") for name in frame.column_names])


def shuffled(frame: pa.Table, seed: int) -> pa.Table:
    return frame.take(pa.array(np.random.default_rng(seed).permutation(len(frame))))


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    with connection() as con:
        con.execute(f"SET threads TO {request.param}")
    yield request.param
    with connection() as con:
        con.execute(f"SET threads TO {THREADS}")


def test_the_same_numbers_by_any_number_of_threads_and_in_any_order(year: Year, threads: int) -> None:
    for seed in range(2):
        mixed = Taken(
            shuffled(year.taken.units, seed),
            shuffled(year.taken.factors, seed),
            {name: shuffled(e, seed) for name, e in reversed(year.taken.entries.items())},
        )
        again = calculated(catalogue(), year.files.year, mixed)
        assert in_order(again.emissions) == in_order(year.product.emissions)
        assert again.report == year.product.report
        assert again.modules == dict(year.product.modules)
