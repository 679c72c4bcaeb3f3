"""Problems of carbon: with only what `status` and `check` say, cause and remedy can be named."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from domain.carbon.tables import EMISSIONS
from domain.shared.clock import machine_clock
from resources.objects.staging import LOST
from tests.command import said
from tests.integration.services.carbon.carbon_app import FACTORS, FURNITURE, TRAIN, YEAR, CarbonApp
from tests.integration.services.carbon.inboxes import CarbonInbox
from tests.problems import Problem, assert_named

DEARER = FACTORS.replace(",8,g/km", ",9,g/km")
"""Other factors for the trains."""


@pytest.fixture(autouse=True)
def _carbon_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERENNIAL_DOMAINS", "carbon")


def factors_newer(app: CarbonApp) -> None:
    """Imported, and nothing is calculated with them yet."""
    assert app.upload("factors", DEARER).code == 0
    app.reconcile()


def put(app: CarbonApp, path: str, text: str) -> None:
    inbox = CarbonInbox(app.carbon, app.carbon.inbox_folder)
    inbox.put(path, text, age=60)
    assert inbox.find_and_run() == {path.rpartition("/")[2]: "file_refused"}


def year_locked(app: CarbonApp) -> None:
    """And then somebody takes emissions away, which would be made again if it were not locked."""
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    lake, partition = app.carbon.lake, f"train|{YEAR}"
    nothing = lake.tables[EMISSIONS.name].schema.empty_table()
    lake.replace(EMISSIONS.name, partition, nothing, allow_empty=True)


PROBLEMS = {
    "stale factors": Problem(
        factors_newer, "healing", "inputs_changed", "`perennial carbon heal`", f"emissions: train|{YEAR}"
    ),
    "a refused file": Problem(
        lambda app: put(app, f"data/train/{YEAR}/flights.csv", "unit_id,distance\nPHY,far\n"),
        "broken",
        "file_refused",
        "put it into the inbox again",
        f"inbox/refused/data/train/{YEAR}/flights.csv",
        code=1,
    ),
    "missing units": Problem(
        lambda app: put(app, "data/train/2024/trips.csv", TRAIN),
        "broken",
        "file_refused",
        "put it into the inbox again",
        "inbox/refused/data/train/2024/trips.csv",
        code=1,
    ),
    "a locked year": Problem(year_locked, "explained", "year_locked", f"`perennial carbon unlock {YEAR}"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_status__problem__names_cause_and_remedy_first(app: CarbonApp, name: str) -> None:
    document = assert_named(app, PROBLEMS[name])
    assert document["needs_a_person"] is (PROBLEMS[name].code != 0)
    assert document["healthy"] is (PROBLEMS[name].health == "explained")
    if name == "missing units":
        assert "no units of 2024 are known" in document["groups"][0]["reason"]


def test_status__refused_file_imported_or_removed__is_gone(app: CarbonApp) -> None:
    path = f"data/train/{YEAR}/flights.csv"
    put(app, path, "unit_id,distance\nPHY,far\n")
    (app.carbon.inbox_folder / "refused" / path).unlink()
    assert said("status").out.startswith("healthy")


def test_check__carbon__alarms_for_what_is_refused_or_waits_long(app: CarbonApp) -> None:
    fine = said("check", "carbon")
    assert (fine.code, fine.out) == (0, "OK carbon: 1 report, all current\n")
    factors_newer(app)
    soon = said("check", "carbon", "--json")
    assert (soon.code, soon.json["problems"]) == (0, [])
    assert "under way" in soon.json["line"]

    put(app, f"data/train/{YEAR}/flights.csv", "unit_id,distance\nPHY,far\n")
    refused = said("check")
    assert (refused.code, refused.out.count("\n")) == (1, 1)
    assert refused.out.startswith("ALERT carbon: inbox/refused/data/train/")
    every = said("check", "--json")
    assert (every.json["ok"], list(every.json["checks"])) == (False, ["carbon"])


def test_check__upload_waits_for_hours__alarms(app: CarbonApp) -> None:
    assert app.upload("factors", DEARER).code == 0
    assert said("check", "carbon").code == 0
    past = (machine_clock() - timedelta(hours=2)).replace(tzinfo=None)
    with app.carbon.ledger.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE work SET created_at = ? WHERE status = 'queued'", (str(past),))
    late = said("check", "carbon", "--json")
    assert late.code == 1
    assert late.json["problems"] == [f"factors: {YEAR}: uploads not imported yet: 1"]


def test_plan__filters_by_time_and_due__shows_these_partitions(app: CarbonApp) -> None:
    def keys(*options: str) -> set[str]:
        rows = said("plan", *options, "--json").json["verdicts"]
        return {f"{row['domain']} {row['table']} {row['partition']}" for row in rows}

    everything = keys("carbon")
    assert keys() == everything == keys("carbon", "--from", f"{YEAR}-12-31", "--to", f"{YEAR}-12-31")
    assert keys("--to", "2024-12-31") == keys("--from", "2026-01-01") == keys("--due") == set()
    factors_newer(app)
    assert f"carbon data_entry_emissions train|{YEAR}" in keys("--due") < everything


def fail(app: CarbonApp, *furniture: tuple[str, str, tuple[str, ...]]) -> int:
    """Upload files, and lose what was staged of them: their import fails. Return how many failed."""
    for kind, text, options in furniture:
        assert app.upload(kind, text, *options).code == 0
    for rows in (app.home / "uploads").glob("*/rows.parquet"):
        rows.unlink()
    assert app.settle()
    return len([row for row in app.carbon.ledger.find(status="failed") if row.reason_code == LOST])


def test_work_retry__for_a_reason__retries_all_that_failed_for_it(app: CarbonApp) -> None:
    assert said("work", "retry").code == 2
    assert said("work", "retry", "1", "--reason", "token").code == 2
    assert said("work", "retry", "1", "--domain", "carbon").code == 2
    assert said("work", "retry", "--reason", "token", "--domain", "market").code == 2, "it is off"
    done = said("work", "retry", "--reason", "token")
    assert (done.code, done.out) == (0, "nothing failed for the reason token\n")
    assert said("work", "retry", "--reason", "token", "--json").json == []

    failed = fail(app, *((kind, text + "\n", options) for kind, text, options in FURNITURE))
    [broken] = [g for g in said("status", "--json").json["groups"] if g["reason_code"] == LOST]
    assert broken["count"] == failed > 3
    [command] = re.findall(r"`perennial (work retry .*?)`", broken["action"])
    assert command == f"work retry --reason {LOST} --domain carbon"
    retried = said(*command.split(), "--json").json
    assert [row["status"] for row in retried] == ["queued"] * failed


def test_work_retry__json__is_an_object_for_one_id_only(app: CarbonApp) -> None:
    assert fail(app, ("factors", DEARER, ())) == 1
    one = said("work", "retry", "--reason", LOST, "--json").json
    assert [row["status"] for row in one] == ["queued"]
    first, second = (row.id for row in app.carbon.ledger.find(limit=2))
    both = said("work", "retry", str(first), str(second), "--json")
    assert [row["status"] for row in both.json] == ["queued", "queued"]
    assert said("work", "retry", str(first), "--json").json["status"] == "queued"
