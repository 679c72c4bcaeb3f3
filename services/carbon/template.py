"""What a file must look like: its header and an example row, from the catalogue."""

from __future__ import annotations

import csv
import io

from domain.carbon.catalogue import Catalogue, EntryType

UNITS = (
    ["year", "unit_id", "name", "parent_id"],
    [["2025", "UNI", "University", ""], ["2025", "PHYS", "Physics", "UNI"]],
)
FACTORS = ["year", "data_entry_type", "emission_type", "classification", "value", "unit", "source"]


def template(catalogue: Catalogue, name: str, year: int) -> str:
    """Of `units`, of `factors`, or of a data entry type."""
    if name == "units":
        header, rows = UNITS
        return _csv(header, [[str(year), *row[1:]] for row in rows])
    if name == "factors":
        wanted = [(t, e.name) for t in catalogue.types.values() for e in t.emissions if not e.optional]
        return _csv(FACTORS, [_factor(kind, emission, year) for kind, emission in wanted])
    kind = catalogue.type(name)
    columns = kind.read_columns
    header = ["year", "data_entry_type", "unit_id", *(c.name for c in columns), "unit", "kg_co2eq", "note"]
    return _csv(header, [[str(year), kind.name, "UNI", *(c.example for c in columns), kind.unit, "", ""]])


def _factor(kind: EntryType, emission: str, year: int) -> list[str]:
    import json

    words = {c.name: c.steps[0].name if c.steps else c.example for c in kind.keys}
    text = json.dumps(words, ensure_ascii=False)
    return [
        str(year),
        kind.name,
        emission,
        text,
        "0.123",
        f"kg/{kind.unit}",
        "name your source",
    ]


def _csv(header: list[str], rows: list[list[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
