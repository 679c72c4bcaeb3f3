"""`perennial sql`: queries of lake and ledger, and files for other programs. Imports no Dagster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from domain.shared.error import InvalidInput
from orchestration.cli.interrupt import scratch_file
from orchestration.cli.output import Json, answer, document, say, table
from orchestration.dates import MOMENT
from orchestration.environments import load_settings
from orchestration.reading import Reader

if TYPE_CHECKING:
    import pyarrow as pa


def sql(
    query: Annotated[
        str | None,
        typer.Argument(
            help="One reading statement; `-` or none reads it from standard input. SHOW TABLES lists what "
            "there is, DESCRIBE a table's columns with their units."
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the statement from a file.")] = None,
    as_of: Annotated[
        datetime | None,
        typer.Option("--as-of", **MOMENT, help="Read the lake as it was then (UTC)."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="CSV on stdout.")] = False,
    parquet: Annotated[
        Path | None, typer.Option("--parquet", help="Write all rows to a Parquet file.")
    ] = None,
    attach: Annotated[
        Path | None,
        typer.Option("--attach", help="Write a DuckDB file with views of all tables as they are now."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows shown in a table.")] = 100,
    json: Json = False,
) -> None:
    """Query the tables of the lake and of the ledger in SQL."""
    reader = Reader(load_settings())
    if [csv, json, parquet is not None, attach is not None].count(True) > 1:
        raise InvalidInput("two answers were asked for", remedy="one of --csv, --json, --parquet, --attach")
    if attach is not None:
        _attach(reader, attach, [query, file, as_of])
        return
    statement = _statement(query, file)
    if parquet is not None:
        rows = reader.stream(statement, _parquet_writer(parquet), as_of)
        answer(f"{parquet}: {rows:,} rows, {parquet.stat().st_size / 1e6:,.1f} MB")
    elif csv:
        from pyarrow.csv import write_csv

        write_csv(reader.sql(statement, as_of), sys.stdout.buffer)
    elif json:
        document(reader.sql(statement, as_of).to_pylist())
    else:
        result = reader.sql(statement, as_of)
        first = result.slice(0, limit).to_pylist()
        table(result.column_names, [list(row.values()) for row in first], exact=True)
        if result.num_rows > limit:
            say(f"{limit} of {result.num_rows:,} rows; --limit, --csv, --json or --parquet give more")


def _statement(query: str | None, file: Path | None) -> str:
    if query is not None and file is not None:
        raise InvalidInput("two statements were given", remedy="one statement, or --file")
    if file is not None:
        try:
            return file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{file} cannot be read: {error}") from None
    if query not in (None, "-"):
        return str(query)
    text = "" if query is None and sys.stdin.isatty() else sys.stdin.read()
    if not text.strip():
        raise InvalidInput(
            "no statement was given",
            remedy='perennial sql "SHOW TABLES", perennial sql -f query.sql, or a pipe into perennial sql',
        )
    return text


def _parquet_writer(path: Path) -> Callable[[pa.RecordBatchReader], int]:
    """Writes rows to a file, which is there only when it is whole; returns how many."""

    def write(rows: pa.RecordBatchReader) -> int:
        from pyarrow.parquet import ParquetWriter

        count, scratch = 0, path.with_name(f".{path.name}.part")
        with scratch_file(scratch):
            try:
                with _writing(path):
                    writer = ParquetWriter(scratch, rows.schema, compression="zstd")
                for batch in rows:  # what reading raises is another error
                    count += batch.num_rows
                    with _writing(path):
                        writer.write_batch(batch)
                with _writing(path):
                    writer.close()
                    scratch.replace(path)
            finally:
                scratch.unlink(missing_ok=True)
        return count

    return write


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from None


def _attach(reader: Reader, path: Path, others: list[object]) -> None:
    if any(other is not None for other in others):
        raise InvalidInput("--attach has views of all tables as they are now", remedy="give it alone")
    from resources.lake.attach import scratch_of

    reader.require_lake()
    scratch = scratch_of(path.absolute())
    with scratch_file(scratch), scratch_file(f"{scratch}.wal"):
        views = reader.lake.attach(path.absolute(), reader.settings.business_clock()())
    answer(f"{path}: {views} views of the tables as they are now")
    say("next: give the same command again, for example every hour; new commits show in the views only then")
