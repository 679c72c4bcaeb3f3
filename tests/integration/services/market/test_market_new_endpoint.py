"""A daily table more is one row more in the catalogue, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
import pytest

from domain.market import catalogue as module
from tests.integration.services.market.market_app import TODAY, MarketApp
from tests.oracles.exchange import true_rows

ROW = """\
  - endpoint: moneyflow
    table: normalized_moneyflow
    title: Money flow
    description: Who bought and sold, by size of order.
    published: "17:00"
    points: 2000
    key: [trade_date, ts_code]
    expected: listed_less_suspended
    columns:
      trade_date: [date!, "", Trading day]
      ts_code: [string!, "", Stock code]
      buy_sm_vol: [int64, lots of 100 shares, Small orders bought]
      net_mf_vol: [int64, lots of 100 shares, Net volume of large orders]
      net_mf_amount: [float64, 10 thousand CNY, Net amount of large orders]

"""
TABLE = "normalized_moneyflow"


@pytest.fixture
def one_row_more() -> Iterator[None]:
    """The packaged catalogue as if its file had one row more: every reader reads it through `catalogue()`."""
    parse = module.parse
    with pytest.MonkeyPatch.context() as patch:
        longer = lambda text: parse(text.replace("reference:\n", f"{ROW}reference:\n", 1))  # noqa: E731
        patch.setattr(module, "parse", longer)
        module.catalogue.cache_clear()
        yield
    module.catalogue.cache_clear()


def test_catalogue__one_row_more__is_a_table_an_asset_a_gap_and_filled(
    app: MarketApp, one_row_more: None
) -> None:
    app.set(PERENNIAL_GAP_WINDOW_DAYS="3", PERENNIAL_GAP_LIMIT="1")
    key = dg.AssetKey(["market", TABLE])
    graph = app.definitions.resolve_asset_graph()
    node = graph.get(key)
    assert node.description == "Who bought and sold, by size of order."
    assert node.group_name == "market"
    assert node.partitions_def == graph.get(dg.AssetKey(["market", "normalized_daily"])).partitions_def
    assert {c.name for c in graph.asset_check_keys if c.asset_key == key} == {
        "fresh",
        "unique_key",
        "whole_day",
    }
    assert key in graph.get(dg.AssetKey(["market", "coverage"])).parent_keys
    sensor = app.sensor("market_gap_fill_sensor")
    assert sensor.asset_selection is not None
    assert key in sensor.asset_selection.resolve(graph)

    gaps = [
        (v["partition"], v["reason_code"])
        for v in app.run("plan", "market", "--json").json["verdicts"]
        if v["table"] == TABLE and v["due"]
    ]
    assert gaps == [("2024-09-30", "missing"), ("2024-09-27", "missing")]

    said = app.run("market", "heal")
    assert said.code == 0, said.err
    assert app.calls() == app.calls("moneyflow") == 2
    truth = true_rows(app.exchange, "moneyflow", app.now.date()).select(["ts_code", "net_mf_vol"])
    got = app.market.lake.sql(
        f"SELECT ts_code, net_mf_vol FROM market.{TABLE} WHERE trade_date = DATE '{TODAY}' ORDER BY ts_code"
    )
    assert got.to_pylist() == truth.to_pylist()
    covered = app.sql(f"SELECT * FROM market.coverage WHERE table_name = '{TABLE}'")
    assert [(row["status"], row["ratio"]) for row in covered] == [("complete", 1.0)] * 2
    [finding] = app.status().values()
    assert (finding["subject"], finding["health"]) == ("earlier:2024-09-23…2024-09-26", "explained")
    assert app.run("sql", f"SELECT count(*) AS n FROM market.{TABLE}", "--json").json[0]["n"] > 10_000


def test_source_freshness__a_source_was_never_asked__every_reader_says_so(
    app: MarketApp, one_row_more: None
) -> None:
    assert app.status()["tushare.moneyflow"]["reason_code"] == "source_never_ingested"
    assert any(
        "tushare.moneyflow" in problem for problem in app.run("check", "market", "--json").json["problems"]
    )
    with app.instance() as instance:
        events = app.tick_sensor(instance, "market_freshness_sensor").asset_events
    reported = {event.asset_key.path[-1]: event for event in events if event.check_name == "fresh"}
    assert {name for name, event in reported.items() if not event.passed} == {TABLE}
    assert reported[TABLE].severity == dg.AssetCheckSeverity.WARN
