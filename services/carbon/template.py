"""Templates of files to upload: the header and an example row, from the catalogue."""

from __future__ import annotations

import csv
import io
import json

from domain.carbon.catalogue import Catalogue, EntryType

UNITS = ["year", "unit_id", "name", "parent_id"]
FACTORS = ["year", "data_entry_type", "emission_type", "classification", "value", "unit", "source"]


def template(catalogue: Catalogue, name: str, year: int, factors_of: str | None = None) -> str:
    """The CSV template of `units`, of `factors` (of one type, if it is given), or of a data entry type."""
    if name == "units":
        rows = [["UNI", "University", ""], ["PHYS", "Physics", "UNI"]]
        return _csv(UNITS, [[str(year), *row] for row in rows])
    if name == "factors":
        types = [catalogue.type(factors_of)] if factors_of else catalogue.types.values()
        kinds = [(t, e.name) for t in types for e in t.emissions if not e.optional]
        return _csv(FACTORS, [_factor(kind, emission, year) for kind, emission in kinds])
    kind = catalogue.type(name)
    columns = kind.read_columns
    header = ["year", "data_entry_type", "unit_id", *(c.name for c in columns), "unit", "kg_co2eq", "note"]
    return _csv(header, [[str(year), kind.name, "UNI", *(c.example for c in columns), kind.unit, "", ""]])


def _factor(kind: EntryType, emission: str, year: int) -> list[str]:
    keys = {column.name: column.steps[0].name if column.steps else column.example for column in kind.keys}
    classification = json.dumps(keys, ensure_ascii=False)
    return [str(year), kind.name, emission, classification, "0.123", f"kg/{kind.unit}", "name your source"]


def _csv(header: list[str], rows: list[list[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()
