"""A demonstrator's hand in the lake: take days away, halve them, falsify them, or let their files rot.

    python tests/tools/break_lake.py --home .perennial --drop-day 2026-11-16 --drop-day 2026-11-17
    python tests/tools/break_lake.py --home .perennial --drop-half ... | --corrupt-day ... | --rot-file ...

It goes past every check and every ledger, straight into the embedded catalog, as a person with a SQL engine
or a disk error would. It needs no definition of the table: the key of a partition is read in the type its
column has (a day, a year, a category).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", type=Path, default=Path(".perennial"))
    parser.add_argument("--table", default="market.normalized_daily")
    deeds: dict[str, Callable[[Any, str], str]] = {
        "drop_day": drop,
        "drop_half": half,
        "corrupt_day": corrupt,
        "rot_file": rot,
    }
    for deed in deeds:
        parser.add_argument(f"--{deed.replace('_', '-')}", action="append", default=[], metavar="DAY")
    options = parser.parse_args(arguments)
    wanted = [(deeds[deed], day) for deed in deeds for day in getattr(options, deed)]
    if not wanted:
        parser.error("nothing to break")
    for deed, day in wanted:
        table = load(options.home.resolve(), options.table)
        print(f"{options.table} {day}: {deed(table, day)}")
    return 0


def load(home: Path, name: str) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import NoSuchTableError

    catalog_file = home / "lake" / "catalog.db"
    if not catalog_file.exists():
        raise SystemExit(f"there is no lake in {home}")
    catalog = SqlCatalog(
        "perennial", uri=f"sqlite:///{catalog_file}?timeout=60", warehouse=f"file://{home}/lake/warehouse"
    )
    try:
        return catalog.load_table(name)
    except NoSuchTableError:
        raise SystemExit(f"the lake has no table {name}") from None


def drop(table: Any, day: str) -> str:
    rows = rows_of(table, day).num_rows
    table.delete(belonging_to(table, day))
    return f"{rows} rows dropped"


def half(table: Any, day: str) -> str:
    rows = rows_of(table, day)
    kept = rows.slice(0, rows.num_rows // 2)
    table.overwrite(kept, belonging_to(table, day))
    return f"{kept.num_rows} of {rows.num_rows} rows kept"


def corrupt(table: Any, day: str) -> str:
    """Change every floating point value a little, or if there is none the last text or whole number."""
    rows = rows_of(table, day)
    names = [f.name for f in rows.schema if pa.types.is_floating(f.type)]
    partition = partition_column(table)
    for name in names or [f.name for f in rows.schema if f.name != partition][-1:]:
        place = rows.schema.get_field_index(name)
        rows = rows.set_column(place, rows.schema.field(name), _falsified(rows.column(name)))
    table.overwrite(rows, belonging_to(table, day))
    return f"{rows.num_rows} rows falsified"


def _falsified(values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_floating(values.type):
        return pc.add(pc.multiply(values, 1.01), 0.01).cast(values.type)
    if pa.types.is_integer(values.type):
        return pc.add(values, 1)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return pc.binary_join_element_wise(values, "!", "").cast(values.type)
    raise SystemExit(f"nothing to falsify in a column of {values.type}")


def rot(table: Any, day: str) -> str:
    """Cut the end off every data file that holds the day, as a full disk or a power cut does."""
    paths = [task.file.file_path for task in table.scan(row_filter=belonging_to(table, day)).plan_files()]
    if not paths:
        raise SystemExit(f"no data file holds {day}")
    for path in paths:
        with Path(path.removeprefix("file://")).open("r+b") as file:
            file.truncate(file.seek(0, 2) // 3)
    return f"{len(paths)} file(s) rotted"


def rows_of(table: Any, day: str) -> pa.Table:
    rows = table.scan(row_filter=belonging_to(table, day)).to_arrow()
    if rows.num_rows == 0:
        raise SystemExit(f"there is nothing of {day} to break")
    return rows


def partition_column(table: Any) -> str | None:
    fields = table.spec().fields
    return table.schema().find_column_name(fields[0].source_id) if fields else None


def belonging_to(table: Any, key: str) -> Any:
    from pyiceberg.expressions import AlwaysTrue, EqualTo
    from pyiceberg.types import DateType, IntegerType, LongType

    column = partition_column(table)
    if column is None:
        return AlwaysTrue()
    kind = table.schema().find_field(column).field_type
    if isinstance(kind, DateType):
        return EqualTo(column, date.fromisoformat(key).isoformat())
    return EqualTo(column, int(key) if isinstance(kind, IntegerType | LongType) else key)


if __name__ == "__main__":
    sys.exit(main())
