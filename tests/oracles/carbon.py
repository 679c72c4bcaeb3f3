"""The carbon calculation written a second time, in another way: the oracle for the product's numbers.

Row by row, from the files and the catalogue's text to milligrams and reports, in decimals, with its own table
of units and its own readers. Slow and plain on purpose; imports nothing of `domain.carbon`.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import yaml

EXACT = Context(prec=80)
ONE = Decimal(1)
MG_PER_KG = Decimal(1_000_000)


_UNITS = """
    kg 1        g 1/1000    mg 1/1000000    t 1000          lb 0.45359237
    km 1        m 1/1000    mi 1.609344     nmi 1.852
    kWh 1       Wh 1/1000   MWh 1000        GWh 1000000     MJ 1/3.6    GJ 1000/3.6     TJ 1000000/3.6
    l 1         ml 1/1000   hl 100          m3 1000
    h 1         min 1/60    day 24          night 1
    piece 1     dozen 12    meal 1          token 1         ktoken 1000     Mtoken 1000000
    CHF 1       kCHF 1000
"""


def _size(text: str) -> Decimal:
    over, _, under = text.partition("/")
    return EXACT.divide(Decimal(over), Decimal(under or "1"))


UNIT_SIZES: Mapping[str, Decimal] = {
    name: _size(text) for name, text in zip(_UNITS.split()[::2], _UNITS.split()[1::2], strict=True)
}
"""What one of each is, in the smallest common measure of its kind."""

Words = dict[str, Any]


@dataclass(frozen=True)
class Factor:
    words: Words
    mg: Decimal
    """Milligrams for one unit of UNIT_SIZES' measure."""


@dataclass(frozen=True)
class Result:
    """One entry and kind of emissions. `mg` is None where nothing matched."""

    entry_id: str
    unit_id: str
    kind: str
    emission: str
    status: str
    mg: int | None


@dataclass
class Line:
    """A line of the report."""

    own_mg: int = 0
    total_mg: int = 0
    own_results: int = 0
    total_results: int = 0
    own_unmatched: int = 0
    total_unmatched: int = 0


@dataclass
class Book:
    """The catalogue's text, read here."""

    types: dict[str, Any] = field(default_factory=dict)
    module_of: dict[str, str] = field(default_factory=dict)
    scope_of: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Book:
        book = cls()
        for module, content in yaml.safe_load(text)["modules"].items():
            for name, row in content["types"].items():
                book.types[name] = row
                book.module_of[name] = module
                for emission, reported in row["emissions"].items():
                    book.scope_of[name, emission] = reported["scope"]
        return book


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8"))))


def word(text: Any) -> Any:
    """Two cells that mean the same are the same here; of numbers their value counts."""
    if isinstance(text, bool):
        return "true" if text else "false"
    plain = re.sub(r"\s+", " ", unicodedata.normalize("NFC", str(text))).strip()
    if re.fullmatch(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", plain):
        return Decimal(plain)
    return plain


# Factors


def factors_of(lines: Iterable[Mapping[str, str]]) -> dict[tuple[str, str], list[Factor]]:
    """By type and kind of emissions."""
    found: dict[tuple[str, str], list[Factor]] = defaultdict(list)
    for line in lines:
        mass, per = line["unit"].split("/")
        words = {key: word(text) for key, text in json.loads(line["classification"]).items()}
        mg = EXACT.multiply(Decimal(line["value"]), UNIT_SIZES[mass] * MG_PER_KG)
        found[line["data_entry_type"], line["emission_type"]].append(
            Factor(words, EXACT.divide(mg, UNIT_SIZES[per]))
        )
    return found


def best(columns: Mapping[str, Any], words: Words, factors: Iterable[Factor]) -> Factor | None:
    """Of the factors that fit the words the one that bends the fewest, and of these the last columns."""
    fitting = []
    for factor in factors:
        bent = [_bends(columns[key], words.get(key), factor.words.get(key)) for key in columns]
        if None not in bent:
            fitting.append((sum(map(bool, bent)), bent, factor))
    return min(fitting, key=lambda fit: fit[:2])[2] if fitting else None


def _bends(column: Mapping[str, Any], wanted: Any, offered: Any) -> bool | None:
    """Whether a factor's word is only the fallback of the entry's; None if it does not fit at all."""
    if _folded(wanted) == _folded(offered):
        return False
    fallback = column.get("fallback")
    return True if fallback is not None and _folded(word(fallback)) == _folded(offered) else None


def _folded(text: Any) -> Any:
    """Case does not count."""
    return text.casefold() if isinstance(text, str) else text


# Entries


def results(
    book: Book, kind: str, lines: Iterable[Mapping[str, str]], factors: Mapping[tuple[str, str], list[Factor]]
) -> Iterator[Result]:
    row = book.types[kind]
    emissions = list(row["emissions"])
    choosing = {name: spec for name, spec in row["columns"].items() if spec["role"] in ("key", "class")}
    reported = [
        e for e, spec in row["emissions"].items() if factors.get((kind, e)) or not spec.get("optional")
    ]
    known: dict[tuple[Any, ...], Factor | None] = {}
    for line in lines:
        entry = line["entry_id"], line["unit_id"], kind
        if measured := line.get("kg_co2eq", "").strip():
            mg = _whole(EXACT.multiply(Decimal(measured), MG_PER_KG))
            yield Result(*entry, emissions[0], "overridden", mg)
            continue
        quantity, words = _quantity(row, line), _words(row, line)
        for emission in reported:
            place = emission, *words.items()
            if place not in known:
                known[place] = best(choosing, words, factors.get((kind, emission), ()))
            factor = known[place]
            if factor is None:
                yield Result(*entry, emission, "unmatched", None)
            else:
                yield Result(*entry, emission, "matched", _whole(EXACT.multiply(quantity, factor.mg)))


def _whole(mg: Decimal) -> int:
    return int(mg.quantize(ONE, rounding=ROUND_HALF_UP, context=EXACT))


def _amount(row: Mapping[str, Any], line: Mapping[str, str]) -> Decimal:
    """In UNIT_SIZES' measure."""
    name = next(n for n, spec in row["columns"].items() if spec["role"] == "amount")
    given = line.get("unit", "").strip() or row["unit"]
    return EXACT.multiply(Decimal(line[name].strip() or "0"), UNIT_SIZES[given])


def _quantity(row: Mapping[str, Any], line: Mapping[str, str]) -> Decimal:
    plus = EXACT.multiply(Decimal(str(row.get("plus", 0))), UNIT_SIZES[row["unit"]])
    quantity = EXACT.add(_amount(row, line), plus)
    for name, spec in row["columns"].items():
        cell = line.get(name, "").strip()
        if spec["role"] in ("times", "share"):
            quantity = EXACT.multiply(quantity, Decimal(cell or str(spec.get("default", 1))))
        elif spec["role"] == "flag":
            yes = cell.lower() == "yes" if cell else _is_yes(spec.get("default"))
            quantity = EXACT.multiply(quantity, Decimal(str(spec["times"]))) if yes else quantity
    return quantity


def _is_yes(value: Any) -> bool:
    return value is True or value == "yes"


def _words(row: Mapping[str, Any], line: Mapping[str, str]) -> Words:
    """The words of an entry that choose its factor. One that is empty and has no default is none."""
    found: Words = {}
    for name, spec in row["columns"].items():
        if spec["role"] == "key":
            text = line.get(name, "").strip() or spec.get("default", "")
            if word(text) != "":
                found[name] = word(text)
        elif spec["role"] == "class":
            amount = EXACT.divide(_amount(row, line), UNIT_SIZES[row["unit"]])
            steps = (s["is"] for s in spec["steps"] if "below" not in s or amount < Decimal(str(s["below"])))
            found[name] = word(next(steps))
    return found


# Reports


def report(
    book: Book, all_results: Iterable[Result], parents: Mapping[str, str]
) -> dict[tuple[str, str, int], Line]:
    """By unit, module and scope. `parents` names the unit above each; what is no unit stands on top."""
    lines: dict[tuple[str, str, int], Line] = defaultdict(Line)
    lineages = {}
    for one in all_results:
        place = book.module_of[one.kind], book.scope_of[one.kind, one.emission]
        if one.unit_id not in lineages:
            lineages[one.unit_id] = lineage(one.unit_id, parents)
        mg, unmatched = one.mg or 0, one.status == "unmatched"
        for unit in lineages[one.unit_id]:
            line = lines[unit, *place]
            line.total_mg += mg
            line.total_results += 1
            line.total_unmatched += unmatched
        own = lines[one.unit_id, *place]
        own.own_mg += mg
        own.own_results += 1
        own.own_unmatched += unmatched
    return dict(lines)


def lineage(unit: str, parents: Mapping[str, str]) -> list[str]:
    """A unit and all above it, each once."""
    found = [unit]
    while (above := parents.get(found[-1], "")) in parents and above not in found:
        found.append(above)
    return found
