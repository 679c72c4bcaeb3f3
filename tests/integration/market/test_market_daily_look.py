"""A look at a fresh house fills it; a look at a whole one does nothing."""

from __future__ import annotations

from tests.integration.market.house import FETCHED, House, expected_rows


def test_first_look_makes_everything_healthy(empty_house: House) -> None:
    empty_house.set(PERENNIAL_GAP_WINDOW_DAYS="3", PERENNIAL_GAP_LIMIT="1")
    said = empty_house.run("market", "daily")
    assert said.code == 0, said.err
    assert said.out == "2024-09-30 is a trading day and due\n"
    assert empty_house.run("status").out.startswith("healthy")
    for day in ("2024-09-27", "2024-09-30"):
        assert {t: empty_house.rows(t, day) for t in FETCHED} == expected_rows(empty_house.exchange, day)
    assert empty_house.run("check", "market").code == 0


def test_second_look_does_nothing(house: House) -> None:
    content, snapshots, work = house.content(), house.snapshots(), house.work()
    said = house.run("market", "daily")
    assert said.code == 0
    assert house.calls() == 0
    assert (house.content(), house.snapshots(), house.work()) == (content, snapshots, work)
