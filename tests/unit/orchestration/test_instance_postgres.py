"""The production instance on a real Postgres."""

from pathlib import Path

import pytest

from orchestration.environments import load_settings
from orchestration.instance import open_instance
from orchestration.pools import apply_pools, drift


def test_open_instance__production__keeps_runs_and_pools_in_postgres(
    tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
):
    # As people write it: without a driver, which SQLAlchemy would take for one that is not installed.
    written = "postgresql://" + postgres_database.split("://", 1)[1]
    monkeypatch.setenv("PERENNIAL_DATABASE_URL", written)
    settings = load_settings(
        {
            "PERENNIAL_HOME": str(tmp_path),
            "PERENNIAL_ENV": "production",
            "PERENNIAL_DATABASE_URL": written,
            "PERENNIAL_MARKET_START": "2015-01-01",
        }
    )
    with open_instance(settings) as instance:
        assert instance.get_runs_count() == 0
        apply_pools(instance, {"tushare": 3})
    with open_instance(settings) as again:
        assert drift(again, {"tushare": 3}) == []
        assert not again.run_retries_enabled
    assert not list(tmp_path.rglob("*.db"))
