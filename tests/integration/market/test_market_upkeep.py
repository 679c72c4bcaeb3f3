"""What happens once a week and every night: the look over the whole history, and the care of the lake."""

from __future__ import annotations

import dagster as dg

from tests.integration.market.house import PREPARED, House, quiet

OLD = PREPARED[1]


def test_a_gap_outside_the_window_is_reported_and_filled_on_request(house: House) -> None:
    content = house.content()
    house.set(PERENNIAL_GAP_WINDOW_DAYS="1", PERENNIAL_GAP_LIMIT="1")
    house.drop("normalized_daily", OLD)
    house.drop("suspensions", PREPARED[2])
    assert house.run("market", "heal").code == 1, "two days are gone, and a person has to ask for them"
    assert house.calls() == 0, "they are outside the window that heals itself"
    assert {s: f["reason_code"] for s, f in house.status().items()} == {
        "normalized_daily": "history_lost",
        "suspensions": "history_lost",
    }

    looked = house.run("market", "look-back", "--json")
    assert looked.code == 0
    assert [(g["trade_date"], g["table_name"], g["reason"]) for g in looked.json["gaps"]] == [
        (PREPARED[2], "suspensions", "missing"),
        (OLD, "normalized_daily", "missing"),
    ]
    finding = house.status()["history"]
    assert (finding["health"], finding["action"]) == ("stale", "run `perennial market backfill --gaps`")

    filled = house.run("market", "backfill", "--gaps")
    assert filled.code == 0, filled.err
    assert house.calls() == 2
    assert house.status() == {}
    assert house.run("market", "look-back").out == "no older gaps\n"
    assert house.content() == content


def test_a_nights_care_changes_no_content(house: House) -> None:
    content = house.content()
    with house.instance() as instance, quiet():
        job = house.definitions.resolve_implicit_global_asset_job_def()
        ended = job.execute_in_process(
            instance=instance, asset_selection=[dg.AssetKey(["ops", "lake_maintenance"])]
        )
    assert ended.success
    told = ended.asset_materializations_for_node("ops__lake_maintenance")[0].metadata
    assert "market.normalized_daily" in str(told["tables"].value)
    assert house.content() == content
    assert house.status() == {}
