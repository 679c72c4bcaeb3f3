"""From environment variables to Settings: defaults, parsing, everything that is refused and how."""

import logging
from datetime import UTC, date, datetime, time
from pathlib import Path

import pytest

from domain.shared.clock import machine_clock, stopped_at
from domain.shared.error import InvalidInput
from orchestration.environments import child_environment, load_settings
from orchestration.setting_fields import FIELDS
from orchestration.settings import PROJECT_ROOT, Settings, default_home

POSTGRES = "postgresql://perennial:s3cret@db:5432/perennial"
TODAY = stopped_at(datetime(2026, 11, 18, 4, tzinfo=UTC))


def refused(environ: dict[str, str]) -> str:
    with pytest.raises(InvalidInput) as caught:
        load_settings(environ, clock=TODAY)
    assert caught.value.remedy
    return caught.value.message


def test_an_empty_environment_is_the_embedded_sandbox_with_all_state_in_one_folder():
    settings = load_settings({})
    home = PROJECT_ROOT / ".perennial"
    assert (settings.home, settings.env, settings.source) == (home, "embedded", "sandbox")
    assert settings.database_url == f"sqlite:///{home}/ledger.db"
    assert settings.catalog_url == f"sqlite:///{home}/lake/catalog.db"
    assert settings.warehouse == f"file://{home}/lake/warehouse"
    assert settings.dagster_home == home / "dagster"
    assert settings.ingest_log == home / "logs/check_ingest.log"
    assert settings.tushare_points == 15000
    assert settings.starts_sandbox
    assert settings.market_start == date(1990, 12, 19)
    assert settings.daily_at == time(18, 30)
    assert settings.tushare_retry_delays == (10, 20, 40)


def test_a_token_makes_tushare_the_source():
    settings = load_settings({"TUSHARE_TOKEN": "t0ken"})
    assert settings.source == "tushare"
    assert settings.tushare_url == "https://api.tushare.pro"
    assert settings.tushare_points == 2000
    assert not settings.starts_sandbox


def test_a_sandbox_somebody_else_runs_is_not_started():
    assert not load_settings({"TUSHARE_URL": "http://exchange:8712/"}).starts_sandbox


def test_the_state_folder_follows_the_checkout_not_the_working_folder(tmp_path: Path):
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    assert default_home(project, elsewhere) == elsewhere / ".perennial"
    (project / "workspace.yaml").touch()
    assert default_home(project, elsewhere) == project / ".perennial"


def test_relative_places_start_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    settings = load_settings(
        {
            "PERENNIAL_HOME": "state",
            "PERENNIAL_WAREHOUSE": "tables",
            "PERENNIAL_DATABASE_URL": "sqlite:///own.db",
            "PERENNIAL_INGEST_LOG": "../check.log",
        }
    )
    assert settings.home == tmp_path / "state"
    assert settings.warehouse == f"file://{tmp_path}/tables"
    assert settings.database_url == f"sqlite:///{tmp_path}/own.db"
    assert settings.catalog_url == f"sqlite:///{tmp_path}/state/lake/catalog.db"
    assert settings.ingest_log is not None
    assert settings.ingest_log.is_absolute()


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2", "postgresql+psycopg"])
def test_every_postgres_url_gets_the_driver_that_is_installed(scheme: str):
    settings = load_settings({"PERENNIAL_DATABASE_URL": f"{scheme}://u:p@h:5432/d?host=/tmp/socket"})
    assert settings.database_url == "postgresql+psycopg2://u:p@h:5432/d?host=/tmp/socket"


def test_production_keeps_the_catalogue_in_the_same_database_unless_told_otherwise():
    production = {"PERENNIAL_ENV": "production", "PERENNIAL_DATABASE_URL": POSTGRES}
    settings = load_settings(production)
    assert settings.catalog_url == settings.database_url
    other = load_settings(production | {"PERENNIAL_CATALOG_URL": "postgresql://u@h/catalog"})
    assert other.catalog_url == "postgresql+psycopg2://u@h/catalog"


def test_production_without_postgres_is_refused():
    message = refused({"PERENNIAL_ENV": "production"})
    assert "PERENNIAL_DATABASE_URL: production needs Postgres" in message
    assert "Set PERENNIAL_DATABASE_URL=postgresql://" in message
    catalogue = {"PERENNIAL_DATABASE_URL": POSTGRES, "PERENNIAL_CATALOG_URL": "sqlite:////tmp/c.db"}
    assert "PERENNIAL_CATALOG_URL" in refused({"PERENNIAL_ENV": "production", **catalogue})


@pytest.mark.parametrize(
    ("variable", "value", "wanted"),
    [
        ("PERENNIAL_ENV", "prod", "one of embedded, production"),
        ("PERENNIAL_SOURCE", "wind", "one of sandbox, tushare"),
        ("PERENNIAL_DATABASE_URL", "mysql://h/d", "a URL of SQLite"),
        ("PERENNIAL_DATABASE_URL", "sqlite:///:memory:", "lost with its process"),
        ("PERENNIAL_DATABASE_URL", "postgresql://h", "names no database"),
        ("PERENNIAL_WAREHOUSE", "ftp://h/x", "a folder or a URI"),
        ("PERENNIAL_WAREHOUSE", "s3://", "names no bucket"),
        ("TUSHARE_URL", "api.tushare.pro", "begins with https://"),
        ("TUSHARE_URL", "http://api.tushare.pro", "clear text"),
        ("TUSHARE_POINTS", "0", "a whole number from 1"),
        ("TUSHARE_POINTS", "2k", "a whole number from 1"),
        ("TUSHARE_CALLS_PER_MINUTE", "-5", "a whole number from 1"),
        ("TUSHARE_RETRY_DELAYS", "10;20", "comma-separated"),
        ("TUSHARE_RETRY_DELAYS", "-1", "comma-separated"),
        ("TUSHARE_TIMEOUT_SECONDS", "nan", "a number of seconds"),
        ("TUSHARE_TIMEOUT_SECONDS", "0", "a number of seconds"),
        ("PERENNIAL_MARKET_START", "2026-13-01", "a day written as"),
        ("PERENNIAL_GAP_WINDOW_DAYS", "0", "a whole number"),
        ("PERENNIAL_GAP_LIMIT", "three", "a whole number"),
        ("PERENNIAL_DAILY_AT", "24:00", "a time of day"),
        ("PERENNIAL_DAILY_AT", "6pm", "a time of day"),
        ("PERENNIAL_NOW", "yesterday", "a moment written as"),
        ("PERENNIAL_MEMORY_LIMIT", "1", "a size with its unit"),
        ("PERENNIAL_THREADS", "0", "a whole number"),
        ("PERENNIAL_UI_PORT", "70000", "a whole number from 1 to 65535"),
        ("PERENNIAL_LOG_LEVEL", "verbose", "one of debug"),
    ],
)
def test_a_wrong_value_names_the_setting_the_value_and_an_example(variable: str, value: str, wanted: str):
    message = refused({variable: value})
    example = next(field.example for field in FIELDS if field.variable == variable)
    assert f"{variable}: {value} is not" in message
    assert wanted in message
    assert f"Example: {variable}={example}" in message


def test_all_problems_are_told_at_once():
    message = refused({"PERENNIAL_ENV": "x", "PERENNIAL_THREADS": "y", "PERENNIAL_HOMES": "z"})
    assert all(name in message for name in ("PERENNIAL_ENV", "PERENNIAL_THREADS", "PERENNIAL_HOMES"))


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
def test_a_misspelt_setting_is_an_error_that_names_the_one_meant(given: str, meant: str):
    assert f"{given} is no setting; did you mean {meant}?" in refused({given: "x"})


def test_an_unknown_setting_like_no_other_is_only_a_warning(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING):
        load_settings({"PERENNIAL_QUUX": "hidden"})
    assert "PERENNIAL_QUUX is no setting" in caplog.text
    assert "hidden" not in caplog.text


def test_empty_variables_are_unset_and_foreign_ones_are_nobodys_business():
    assert load_settings({"PERENNIAL_UI_PORT": "  ", "UI_PORT": "x"}) == load_settings({})


def test_service_links_that_kubernetes_injects_are_not_settings():
    links = {
        "PERENNIAL_UI_PORT": "tcp://10.0.0.1:80",
        "PERENNIAL_UI_PORT_80_TCP_ADDR": "10.0.0.1",
        "PERENNIAL_UI_SERVICE_HOST": "10.0.0.1",
        "PERENNIAL_UI_SERVICE_PORT_HTTP": "80",
    }
    assert load_settings(links).ui_port == 3000


def test_a_moment_without_time_zone_is_shanghais():
    local = load_settings({"PERENNIAL_NOW": "2026-11-17T18:31"}, clock=TODAY)
    absolute = load_settings({"PERENNIAL_NOW": "2026-11-17T10:31:00Z"}, clock=TODAY)
    assert (
        local.business_clock()() == absolute.business_clock()() == datetime(2026, 11, 17, 10, 31, tzinfo=UTC)
    )


def test_the_business_clock_is_the_real_one_unless_stopped():
    assert load_settings({}).business_clock() is machine_clock


def test_the_clock_stops_only_in_the_sandbox_and_never_in_the_future():
    assert "PERENNIAL_SOURCE=sandbox" in refused({"PERENNIAL_NOW": "2026-11-17", "TUSHARE_TOKEN": "t"})
    assert "in the future" in refused({"PERENNIAL_NOW": "2026-11-18T12:01"})
    assert load_settings({"PERENNIAL_NOW": "2026-11-18T12:00"}, clock=TODAY).now == TODAY()


def test_tushare_without_a_token_is_refused():
    assert "TUSHARE_TOKEN" in refused({"PERENNIAL_SOURCE": "tushare"})


def test_secrets_appear_in_no_repr_and_no_message():
    secrets = {
        "TUSHARE_TOKEN": "t0ken",
        "PERENNIAL_DATABASE_URL": "postgresql://u:s3cret@h/d?password=s3cret",
        "PERENNIAL_CATALOG_URL": "postgresql://u:p%40s3cret@h/d",
    }
    shown = repr(load_settings(secrets))
    assert "t0ken" not in shown
    assert "s3cret" not in shown
    assert "postgresql+psycopg2://u:***@h/d" in shown
    wrong = refused({"PERENNIAL_DATABASE_URL": "mysql://u:s3cret@h/d"})
    assert "mysql://u:***@h/d" in wrong
    assert "s3cret" not in wrong


def test_a_child_reads_the_very_same_settings():
    given = {
        "PERENNIAL_HOME": "/somewhere",
        "PERENNIAL_DATABASE_URL": POSTGRES,
        "PERENNIAL_NOW": "2026-11-17T18:31:05.5",
        "PERENNIAL_WAREHOUSE": "s3://bucket/warehouse/",
        "PERENNIAL_DAILY_AT": "9:05",
        "PERENNIAL_INGEST_EXEC": "docker exec perennial",
        "PERENNIAL_LOG_LEVEL": "debug",
        "PERENNIAL_SOURCE": "sandbox",
        "TUSHARE_TOKEN": "t0ken",
        "TUSHARE_RETRY_DELAYS": "0.5,1,0",
        "TUSHARE_TIMEOUT_SECONDS": "2.25",
        "TUSHARE_CALLS_PER_MINUTE": "7",
    }
    settings = load_settings(given)
    child = settings.for_child()
    assert load_settings(child) == settings
    assert child["DAGSTER_HOME"] == "/somewhere/dagster"


def test_no_retry_at_all_survives_the_way_to_a_child():
    settings = load_settings({"TUSHARE_RETRY_DELAYS": "none"})
    assert settings.tushare_retry_delays == ()
    assert load_settings(settings.for_child()) == settings


def test_domains_are_kept_in_their_own_order_also_on_the_way_to_a_child():
    assert load_settings({}).domains == ("market", "carbon")
    assert load_settings({"PERENNIAL_DOMAINS": " Carbon ,market,carbon"}).domains == ("market", "carbon")
    settings = load_settings({"PERENNIAL_DOMAINS": "carbon"})
    assert settings.domains == ("carbon",)
    assert not settings.starts_sandbox
    assert load_settings(settings.for_child()) == settings


@pytest.mark.parametrize("raw", ["carbon,markte", "all", ","])
def test_a_domain_there_is_none_of_is_refused(raw: str):
    with pytest.raises(InvalidInput, match=r"PERENNIAL_DOMAINS: .* is not one or more of market, carbon"):
        load_settings({"PERENNIAL_DOMAINS": raw})


def test_a_childs_environment_keeps_what_is_foreign_and_drops_our_leftovers(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("PERENNIAL_NOW", "2020-01-01")
    monkeypatch.setenv("DAGSTER_HOME", "/another")
    environment = child_environment(Settings(home=Path("/somewhere")))
    assert environment["LANG"] == "C.UTF-8"
    assert environment["DAGSTER_HOME"] == "/somewhere/dagster"
    assert "PERENNIAL_NOW" not in environment
