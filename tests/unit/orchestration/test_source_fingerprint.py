"""Daemon and command ask the ledger for the same work, or each would take the other's for news."""

from pathlib import Path

import pytest

from orchestration.domains.market import market_resource, source_fingerprint
from orchestration.settings import Settings


def of_the_daemon(settings: Settings) -> str:
    return market_resource(settings).tushare.fingerprint()


@pytest.mark.parametrize("points", [2000, 5000])
def test_the_daemon_of_up_and_a_command_beside_it_ask_for_the_same(tmp_path: Path, points: int):
    beside = Settings(home=tmp_path, tushare_points=points)
    of_up = Settings(home=tmp_path, tushare_points=points, tushare_url="http://127.0.0.1:8712")
    assert of_the_daemon(of_up) == source_fingerprint(beside) == of_the_daemon(beside)


def test_another_address_of_tushare_is_worth_a_new_attempt(tmp_path: Path):
    one, other = (
        Settings(home=tmp_path, source="tushare", tushare_token="t", tushare_url=url)
        for url in ("https://one.example", "https://two.example")
    )
    assert source_fingerprint(one) != source_fingerprint(other)
