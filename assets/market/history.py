"""The weekly look over the whole history: older gaps are reported here, and backfilled on request."""

from collections.abc import Sequence
from datetime import date

import dagster as dg
import pyarrow as pa

from assets.market.daily import GROUP
from assets.market.market import Market
from assets.market.passes import CalendarMissing
from assets.market.warehouse import MarketWarehouse
from assets.policies.definition import asset_arguments, asset_key
from assets.policies.failure import classified
from domain.market.catalogue import Catalogue, Endpoint
from domain.market.completeness import SAYS_SO
from domain.market.derived import ADJUSTED_FROM
from domain.market.observed import Observed
from domain.market.plan import window
from domain.market.reckoning import history_gaps
from domain.market.tables import ADJUSTED_DAILY, HISTORY_GAPS
from domain.shared.table import ALL, Version
from resources.lake.error import DamagedData


def history_asset(catalogue: Catalogue) -> dg.AssetsDefinition:
    @dg.asset(
        **asset_arguments(HISTORY_GAPS, GROUP, {"duckdb", "iceberg"}),
        deps=[
            dg.AssetDep(asset_key(e.table), partition_mapping=dg.AllPartitionMapping())
            for e in catalogue.daily
        ],
    )
    def history(warehouse: MarketWarehouse) -> dg.MaterializeResult:
        with classified():
            gaps = look_back(warehouse.open())
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": gaps.num_rows,
                "days": len(set(gaps["trade_date"].to_pylist())),
                "look": dg.MetadataValue.text("perennial market backfill --gaps"),
            }
        )

    return history


def look_back(market: Market) -> pa.Table:
    """Find the gaps between the first day there ever was and the gap window; keep them in the lake."""
    gaps = find_gaps(market)
    market.lake.replace(HISTORY_GAPS.name, ALL, gaps, allow_empty=True)
    return gaps


def find_gaps(market: Market) -> pa.Table:
    calendar = market.calendar()
    near = window(Observed(calendar, {}), market.clock(), market.rules)
    had = market.days_had()
    if not had or not near:
        return HISTORY_GAPS.schema.empty_table()
    first = min(had)
    if unjudged := sorted({int(p[:4]) for p in had} - calendar.years):
        years = ", ".join(map(str, unjudged))
        raise CalendarMissing(
            f"the trading calendar of {years} is not there, so its gaps cannot be found",
            remedy=f"materialise market/{market.catalogue.calendar.name} for {years}",
        )
    days = [d for d in calendar.between(date.fromisoformat(first), near[0]) if d < near[0]]
    counted, damaged = [], set()
    for endpoint in market.catalogue.daily:
        rows, unreadable = _count(market, endpoint)
        counted.append(rows)
        damaged |= {(endpoint.name, day) for day in unreadable}
    gaps = history_gaps(
        market.catalogue,
        days,
        pa.concat_tables(counted),
        market.stocks(),
        _all_suspensions(market),
        _explained(market),
    )
    told = [
        {**row, "reason": "damaged"} if (row["table_name"], row["trade_date"]) in damaged else row
        for row in gaps.to_pylist()
    ]
    told += _lagging(market, days)
    return pa.Table.from_pylist(told, schema=HISTORY_GAPS.schema)


def _lagging(market: Market, days: Sequence[date]) -> list[dict[str, object]]:
    """Adjusted prices that were made from other prices or factors than are there now, or never."""
    inputs = [f"market.{name}" for name in ADJUSTED_FROM]
    facts = market.provenance.facts([*inputs, ADJUSTED_DAILY.name])
    rows: list[dict[str, object]] = []
    for day in days:
        sources = [facts.get((name, str(day))) for name in inputs]
        if not all(source and source.rows for source in sources):
            continue
        now = {s.table_name.split(".", 1)[1]: str(Version(s.rows, s.digest)) for s in sources if s}
        made = facts.get((ADJUSTED_DAILY.name, str(day)))
        if made is None or dict(made.inputs) != now:
            rows.append(
                {
                    "trade_date": day,
                    "table_name": ADJUSTED_DAILY.table,
                    "rows": made.rows if made else 0,
                    "expected": sources[0].rows if sources[0] else None,
                    "reason": "inputs_changed" if made else "missing",
                }
            )
    return rows


def _count(market: Market, endpoint: Endpoint) -> tuple[pa.Table, set[date]]:
    """Rows per day, and the days in files that cannot be read; these count as having none."""
    name = endpoint.table.name
    query = f"SELECT '{endpoint.name}' AS table_name, trade_date, count(*) AS n FROM {name} GROUP BY ALL"
    try:
        return market.lake.query(query), set()
    except DamagedData as error:
        rest = [p for p in market.lake.partitions(name) if p not in error.partitions]
        rows = market.lake.query(query, partitions={name: rest})
        return rows, {date.fromisoformat(p) for p in error.partitions}


def _all_suspensions(market: Market) -> pa.Table:
    """Those readable; a day whose suspensions are damaged is judged against everybody listed."""
    query = (
        "SELECT trade_date, ts_code, suspend_timing, suspend_type FROM market.suspensions "
        "WHERE suspend_type = 'S' AND suspend_timing IS NULL"
    )
    try:
        return market.lake.query(query)
    except DamagedData as error:
        rest = [p for p in market.lake.partitions("market.suspensions") if p not in error.partitions]
        return market.lake.query(query, partitions={"market.suspensions": rest})


def _explained(market: Market) -> list[tuple[str, date]]:
    """Days whose thinness the source has confirmed, and days where an empty answer was an answer."""
    facts = market.provenance.facts([e.table.name for e in market.catalogue.daily])
    empty = {e.table.name for e in market.catalogue.daily if e.may_be_empty}
    return [
        (name.split(".", 1)[1], date.fromisoformat(partition))
        for (name, partition), fact in facts.items()
        if (fact.seen_count >= SAYS_SO and fact.detail.get("status") == "partial")
        or (name in empty and fact.rows == 0)
    ]
