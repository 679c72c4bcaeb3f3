"""The nightly maintenance of the lake."""

from __future__ import annotations

from datetime import date

import dagster as dg
import pyarrow as pa

from tests.integration.services.market.market_app import MarketApp, quiet


def moved_to(rows: pa.Table, day: str) -> pa.Table:
    column = rows.column_names.index("trade_date")
    days = pa.array([date.fromisoformat(day)] * rows.num_rows, pa.date32())
    return rows.set_column(column, "trade_date", days)


def maintain(app: MarketApp) -> dg.ExecuteInProcessResult:
    with app.instance() as instance, quiet():
        job = app.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=instance, asset_selection=[dg.AssetKey(["ops", "lake_maintenance"])]
        )


def test_maintenance__healthy_lake__changes_no_content(app: MarketApp) -> None:
    content = app.content()
    ended = maintain(app)
    assert ended.success
    reported = ended.asset_materializations_for_node("ops__lake_maintenance")[0].metadata
    assert "market.normalized_daily" in str(reported["tables"].value)
    assert "skipped_files" not in reported
    assert app.content() == content
    assert app.status() == {}
