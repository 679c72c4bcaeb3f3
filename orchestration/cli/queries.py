"""`perennial sql`: queries of the lake and of the ledger. Imports no Dagster."""

from __future__ import annotations

import re
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.cli.dates import MOMENT
from orchestration.cli.output import Json, document, say, table
from orchestration.domain import constant
from orchestration.environments import load_settings
from orchestration.registry import enabled
from orchestration.services import open_lake, open_ledger

if TYPE_CHECKING:
    import pyarrow as pa

    from orchestration.settings import Settings

LEDGER_TABLES = {
    f"ops.{name}": constant(f"resources.ledger.schema:{name}")
    for name in ("work", "work_event", "partition_record", "pipeline_member")
}
"""The ledger's tables that SQL sees, by name."""


def _ledger_tables(settings: Settings, query: str) -> dict[str, pa.Table]:
    """Return the ledger's tables that the query names; opening the ledger costs as much as a query."""
    tables = dict(LEDGER_TABLES)
    for domain in enabled(settings):
        tables |= domain.ledger_tables
    named = [name for name in tables if re.search(rf"\b{re.escape(name)}\b", query, re.IGNORECASE)]
    if not named:
        return {}
    from resources.database.arrow import read_arrow

    engine = open_ledger(settings).engine
    return {name: read_arrow(engine, tables[name]()) for name in named}


def sql(
    query: Annotated[
        str,
        typer.Argument(
            help="One reading statement. SHOW ALL TABLES lists the lake's; the ledger has "
            "ops.work, ops.work_event, ops.partition_record and the tables of the domains."
        ),
    ],
    as_of: Annotated[
        datetime | None,
        typer.Option("--as-of", **MOMENT, help="Read the lake as it was then (UTC)."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="CSV on stdout.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows shown in a table.")] = 100,
    json: Json = False,
) -> None:
    """Query the tables of the lake and of the ledger in SQL."""
    settings = load_settings()
    result = open_lake(settings).sql(query, as_of=as_of, extra=_ledger_tables(settings, query))
    if json:
        document(result.to_pylist())
    elif csv:
        from pyarrow.csv import write_csv

        write_csv(result, sys.stdout.buffer)
    else:
        first = result.slice(0, limit).to_pylist()
        table(result.column_names, [list(row.values()) for row in first], exact=True)
        if result.num_rows > limit:
            say(f"{limit} of {result.num_rows:,} rows; --limit, --csv or --json show more")
