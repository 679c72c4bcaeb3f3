"""From environment variables to Settings: defaults, what is derived, everything that is refused and how."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, time
from pathlib import Path

import pytest

from domain.shared.clock import machine_clock, stopped_at
from domain.shared.error import InvalidInput
from orchestration.domains.carbon import carbon_settings
from orchestration.domains.market import market_settings
from orchestration.domains.references import references_settings
from orchestration.environments import child_environment, load_settings
from orchestration.settings import PROJECT_ROOT, Settings, default_home
from services.market.settings import MarketSettings
from services.references.settings import ReferencesSettings

POSTGRES = "postgresql://perennial:s3cret@db:5432/perennial"
TODAY = stopped_at(datetime(2026, 11, 18, 4, tzinfo=UTC))


def refused(**environ: str) -> str:
    with pytest.raises(InvalidInput) as caught:
        load_settings(environ, clock=TODAY)
    assert caught.value.reason_code == "invalid_settings"
    assert caught.value.remedy
    return caught.value.message


def market(**environ: str) -> MarketSettings:
    return market_settings(load_settings(environ, clock=TODAY))


def test_load__empty_environment__is_the_embedded_sandbox_in_one_folder():
    settings, home = load_settings({}), PROJECT_ROOT / ".perennial"
    assert (settings.home, settings.env) == (home, "embedded")
    assert settings.database_url == f"sqlite:///{home}/ledger.db"
    assert settings.catalog_url == f"sqlite:///{home}/lake/catalog.db"
    assert settings.warehouse == f"file://{home}/lake/warehouse"
    assert settings.dagster_home == home / "dagster"
    assert carbon_settings(settings).uploads == f"file://{home}/uploads"
    found = market()
    assert (found.source, found.tushare_points) == ("sandbox", 15000)
    assert found.daily_at == time(18, 30)
    assert found.tushare_retry_delays == (10, 20, 40)


def test_load__token__makes_tushare_the_source():
    found = market(TUSHARE_TOKEN="t0ken")
    assert (found.source, found.tushare_url) == ("tushare", "https://api.tushare.pro")
    assert found.tushare_points == 2000


def test_default_home__checkout__does_not_follow_the_working_folder(tmp_path: Path):
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    assert default_home(project, elsewhere) == elsewhere / ".perennial"
    (project / "workspace.yaml").touch()
    assert default_home(project, elsewhere) == project / ".perennial"


def test_load__relative_paths__start_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    settings = load_settings(
        {
            "PERENNIAL_HOME": "state",
            "PERENNIAL_WAREHOUSE": "tables",
            "PERENNIAL_DATABASE_URL": "sqlite:///own.db",
        }
    )
    assert settings.home == tmp_path / "state"
    assert settings.warehouse == f"file://{tmp_path}/tables"
    assert settings.database_url == f"sqlite:///{tmp_path}/own.db"
    assert settings.catalog_url == f"sqlite:///{tmp_path}/state/lake/catalog.db"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2", "postgresql+psycopg"])
def test_load__postgres_url__has_the_driver_that_is_installed(scheme: str):
    settings = load_settings({"PERENNIAL_DATABASE_URL": f"{scheme}://u:p@h:5432/d?host=/tmp/socket"})
    assert settings.database_url == "postgresql+psycopg2://u:p@h:5432/d?host=/tmp/socket"


def test_load__production__shares_one_postgres_unless_another_is_named():
    production = {
        "PERENNIAL_ENV": "production",
        "PERENNIAL_DATABASE_URL": POSTGRES,
        "PERENNIAL_MARKET_START": "2015-01-01",
    }
    settings = load_settings(production)
    assert settings.catalog_url == settings.database_url
    other = load_settings(production | {"PERENNIAL_CATALOG_URL": "postgresql://u@h/catalog"})
    assert other.catalog_url == "postgresql+psycopg2://u@h/catalog"
    assert "Set PERENNIAL_DATABASE_URL=postgresql://" in refused(PERENNIAL_ENV="production")
    assert "PERENNIAL_CATALOG_URL: production" in refused(
        **production, PERENNIAL_CATALOG_URL="sqlite:////tmp/c.db"
    )


@pytest.mark.parametrize(
    ("variable", "value", "wanted"),
    [
        ("PERENNIAL_ENV", "prod", "'embedded' or 'production'"),
        ("PERENNIAL_HOME", "~nobody-of-this-name/x", "home directory"),
        ("PERENNIAL_DATABASE_URL", "mysql://h/d", "sqlite:////folder/file.db"),
        ("PERENNIAL_DATABASE_URL", "sqlite:///:memory:", "sqlite:////folder/file.db"),
        ("PERENNIAL_DATABASE_URL", "postgresql://h", "host:5432/database"),
        ("PERENNIAL_WAREHOUSE", "ftp://h/x", "a folder, or a URI"),
        ("PERENNIAL_WAREHOUSE", "s3://", "a folder, or a URI"),
        ("TUSHARE_URL", "api.tushare.pro", "begins with https://"),
        ("TUSHARE_URL", "http://api.tushare.pro", "clear text"),
        ("TUSHARE_POINTS", "0", "greater than or equal to 1"),
        ("TUSHARE_POINTS", "2k", "a valid integer"),
        ("TUSHARE_RETRY_DELAYS", "10;20", "a valid number"),
        ("TUSHARE_TIMEOUT_SECONDS", "nan", "a finite number"),
        ("PERENNIAL_MARKET_START", "2026-13-01", "month must be in 1..12"),
        ("PERENNIAL_DAILY_AT", "24:00", "does not match"),
        ("PERENNIAL_NOW", "yesterday", "isoformat"),
        ("PERENNIAL_MEMORY_LIMIT", "1", "match pattern"),
        ("PERENNIAL_UI_PORT", "70000", "less than or equal to 65535"),
        ("PERENNIAL_DOMAINS", "carbon,markte", "one or more of market, carbon"),
        ("PERENNIAL_DOMAINS", ",", "one or more of market, carbon"),
    ],
)
def test_load__wrong_value__names_variable_value_and_example(variable: str, value: str, wanted: str):
    message = refused(**{variable: value})
    assert f"{variable}: " in message
    assert value.split(";", maxsplit=1)[0] in message
    assert wanted in message
    assert f"Example: {variable}=" in message


def test_load__several_problems__are_reported_at_once():
    wrong = ("PERENNIAL_ENV", "PERENNIAL_THREADS", "PERENNIAL_HOMES", "TUSHARE_POINTS", "PERENNIAL_WAREHOUSE")
    message = refused(**dict.fromkeys(wrong, "ftp://x"))
    assert [message.count(f"  {variable}") for variable in wrong] == [1] * len(wrong)


def test_load__renamed_name__is_refused_with_the_new_name():
    assert "PERENNIAL_CARBON_DROP was renamed to PERENNIAL_CARBON_INBOX" in refused(
        PERENNIAL_CARBON_DROP="/x"
    )


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("PERENNIAL_HOM", "PERENNIAL_HOME"),
        ("TUSHARE_TOKENS", "TUSHARE_TOKEN"),
        ("PERENNIAL_TUSHARE_TOKEN", "TUSHARE_TOKEN"),
        ("PERENNIAL_RETRY_DELAYS", "TUSHARE_RETRY_DELAYS"),
        ("PERENNIAL_GAP_WINDOW", "PERENNIAL_GAP_WINDOW_DAYS"),
    ],
)
def test_load__misspelt_name__is_refused_with_the_name_that_was_meant(given: str, meant: str):
    assert f"{given} is no setting; did you mean {meant}?" in refused(**{given: "x"})


def test_load__name_like_no_other__is_only_a_warning(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        load_settings({"PERENNIAL_QUUX": "hidden"})
    assert "PERENNIAL_QUUX is no setting" in caplog.text
    assert "hidden" not in caplog.text


def test_load__setting_of_a_domain_that_is_off__is_ignored(caplog: pytest.LogCaptureFixture):
    load_settings({"PERENNIAL_DOMAINS": "market", "PERENNIAL_CARBON_APP_URL": "no url"})
    assert caplog.text == ""


def test_load__empty_and_foreign_variables__are_ignored():
    found = load_settings({"PERENNIAL_API_PORT": "  ", "UI_PORT": "x"})
    assert found.environment() == load_settings({}).environment()


def test_now__without_time_zone__is_shanghais():
    local = load_settings({"PERENNIAL_NOW": "2026-11-17T18:31"}, clock=TODAY)
    absolute = load_settings({"PERENNIAL_NOW": "2026-11-17T10:31:00Z"}, clock=TODAY)
    assert (
        local.business_clock()() == absolute.business_clock()() == datetime(2026, 11, 17, 10, 31, tzinfo=UTC)
    )
    assert load_settings({}).business_clock() is machine_clock


def test_now__real_source_or_future__is_refused():
    assert "PERENNIAL_SOURCE=sandbox" in refused(PERENNIAL_NOW="2026-11-17", TUSHARE_TOKEN="t")
    assert "in the future" in refused(PERENNIAL_NOW="2026-11-18T12:01")
    assert load_settings({"PERENNIAL_NOW": "2026-11-18T12:00"}, clock=TODAY).now == TODAY()


def test_load__values_that_contradict_each_other__are_refused():
    assert "TUSHARE_TOKEN: " in refused(PERENNIAL_SOURCE="tushare")
    assert "PERENNIAL_MARKET_START: 2026-11-19 is after today" in refused(PERENNIAL_MARKET_START="2026-11-19")


def test_secrets__repr_and_messages__do_not_have_them():
    secrets = {
        "TUSHARE_TOKEN": "t0ken",
        "PERENNIAL_API_TOKEN": "t0ken",
        "PERENNIAL_DATABASE_URL": "postgresql://u:s3cret@h/d?password=s3cret",
        "PERENNIAL_CATALOG_URL": "postgresql://u:p%40s3cret@h/d",
    }
    shown = "".join(map(repr, load_settings(secrets).groups()))
    assert "t0ken" not in shown
    assert "s3cret" not in shown
    assert "postgresql+psycopg2://h/d" in shown
    wrong = refused(PERENNIAL_DATABASE_URL="mysql://u:s3cret@h/d")
    assert "mysql://h/d" in wrong
    assert "s3cret" not in wrong


def test_environment__every_kind_of_value__reads_back_the_same():
    given = {
        "PERENNIAL_HOME": "/somewhere",
        "PERENNIAL_DATABASE_URL": POSTGRES,
        "PERENNIAL_NOW": "2026-11-17T18:31:05.5",
        "PERENNIAL_WAREHOUSE": "s3://bucket/warehouse/",
        "PERENNIAL_DAILY_AT": "9:05",
        "PERENNIAL_INGEST_EXEC": "docker exec perennial",
        "PERENNIAL_LOG_LEVEL": "debug",
        "PERENNIAL_DOMAINS": " Carbon ,market,carbon",
        "PERENNIAL_SOURCE": "sandbox",
        "TUSHARE_TOKEN": "t0ken",
        "TUSHARE_RETRY_DELAYS": "0.5,1,0",
        "TUSHARE_TIMEOUT_SECONDS": "2.25",
        "TUSHARE_CALLS_PER_MINUTE": "7",
    }
    settings = load_settings(given)
    again = load_settings(settings.environment())
    assert settings.domains == ("market", "carbon")
    assert list(map(repr, again.groups())) == list(map(repr, settings.groups()))
    assert market(TUSHARE_RETRY_DELAYS="none").text()["TUSHARE_RETRY_DELAYS"] == "none"


def test_child_environment__foreign_and_left_over_variables__keeps_the_foreign(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("PERENNIAL_NOW", "2020-01-01")
    monkeypatch.setenv("TUSHARE_TOKEN", "left over")
    monkeypatch.setenv("DAGSTER_HOME", "/another")
    environment = child_environment(Settings(home=Path("/somewhere")))
    assert environment["LANG"] == "C.UTF-8"
    assert environment["DAGSTER_HOME"] == "/somewhere/dagster"
    assert {"PERENNIAL_NOW", "TUSHARE_TOKEN"}.isdisjoint(environment)


def test_load_settings__one_token_for_reading_and_operating__is_refused(tmp_path: Path):
    tokens = {"PERENNIAL_API_TOKEN": "0123456789abcdef", "PERENNIAL_API_READ_TOKEN": "0123456789abcdef"}
    with pytest.raises(InvalidInput, match="PERENNIAL_API_READ_TOKEN") as caught:
        load_settings(tokens, home=tmp_path)
    assert "0123456789abcdef" not in caught.value.message


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({}, "sandbox"),
        ({"TUSHARE_TOKEN": "t0ken"}, "none"),
        ({"TUSHARE_TOKEN": "t0ken", "PERENNIAL_SOURCE": "sandbox"}, "sandbox"),
        ({"TUSHARE_TOKEN": "t0ken", "PERENNIAL_DOMAINS": "references"}, "sandbox"),
        ({"TUSHARE_TOKEN": "t0ken", "PERENNIAL_REFERENCES_SOURCES": "sandbox"}, "sandbox"),
    ],
)
def test_references_sources__beside_real_market_data__are_none_unless_named(
    given: dict[str, str], place: str
):
    settings = load_settings(given, clock=TODAY)
    found = references_settings(settings)
    assert found.references_sources == place
    assert ReferencesSettings.read(found.text()) == found  # a run opens the same
    child = load_settings(settings.environment(), clock=TODAY)
    assert references_settings(child).references_sources == place
