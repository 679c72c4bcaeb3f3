"""Dagster's resources open a service from the same text of settings as a command, secrets by name."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from orchestration.build import build_definitions
from orchestration.domains.market import market_settings, open_market
from orchestration.environments import load_settings
from services.market.resource import MarketResource

SECRETS = {
    "PERENNIAL_DATABASE_URL": "postgresql://perennial:hunter2@db/perennial",
    "PERENNIAL_ENV": "production",
    "PERENNIAL_MARKET_START": "2020-01-01",
    "TUSHARE_TOKEN": "t0ken-of-an-account",
    "TUSHARE_URL": "https://tushare.internal/?token=t0ken-of-a-proxy",
    "PERENNIAL_CARBON_APP_URL": "https://user:hunter2@carbon.example.org/feed",
    "PERENNIAL_CARBON_APP_TOKEN": "t0ken-of-carbon",
}


def text_of(name: str, environ: dict[str, str]) -> dict[str, str]:
    """What the UI shows of a resource; a secret as the name of its variable."""
    found = (build_definitions(load_settings(environ)).resources or {})[name]
    text: dict[str, str] = found.settings
    return text


@pytest.mark.parametrize("name", ["market_service", "carbon_service", "storage"])
def test_resource__secrets__are_named_and_not_shown(name: str, tmp_path: Path):
    text = text_of(name, {"PERENNIAL_HOME": str(tmp_path), **SECRETS})
    assert "t0ken" not in str(text)
    assert "hunter2" not in str(text)
    assert isinstance(text["PERENNIAL_DATABASE_URL"], dg.EnvVar)
    assert "PERENNIAL_CATALOG_URL" not in text, "it is derived, and no variable has it"
    assert "PERENNIAL_UI_PORT" not in text


@pytest.mark.parametrize("points", ["2000", "5000"])
def test_resource__opened_beside_a_command__has_the_same_rules(tmp_path: Path, points: str):
    """Command and sensor ask the ledger for the same work, or each would take the other's for news."""
    environ = {"PERENNIAL_HOME": str(tmp_path), "TUSHARE_POINTS": points, "TUSHARE_TOKEN": "t0ken"}
    raw = text_of("market_service", environ) | {"TUSHARE_TOKEN": " t0ken\n"}
    resource = MarketResource(settings={name: str(value) for name, value in raw.items()})
    assert resource.open().rules == open_market(load_settings(environ), write=True).rules


def test_source_fingerprint__another_address__changes_for_tushare_only():
    def fingerprint(**environ: str) -> str:
        return market_settings(load_settings(environ)).source_fingerprint

    one, other = "https://one.example", "https://two.example"
    assert fingerprint(TUSHARE_TOKEN="t", TUSHARE_URL=one) != fingerprint(
        TUSHARE_TOKEN="t", TUSHARE_URL=other
    )
    assert fingerprint(TUSHARE_URL=one) == fingerprint(TUSHARE_URL=other) == fingerprint()
