"""Feeds: changed entries of an application are polled, read whole, and imported."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from domain.carbon.tables import DATA_ENTRIES
from domain.shared.error import PerennialError
from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings
from resources.feeds.client import Rows
from sandbox.carbon.application import Answer, Application, Place, serving
from services.carbon.feeds import delete_superseded_readings, poll_feeds
from services.carbon.findings import check_applications, find_problems
from tests.command import said
from tests.integration.services.carbon.carbon_app import TRAIN, YEAR, CarbonApp, settle
from tests.integration.services.carbon.carbon_app import UNITS as TREE

TRAIN_2025 = Place("train", 2025)
TOKEN = "f00dfacecafe0123456789abcdef"
FILED_MG = 1000 * 2 * 8_000 + 500 * 30_000
"""What the file of train journeys causes."""


def journey(name: str, distance: float, **more: object) -> dict[str, object]:
    return {"entry_id": name, "unit_id": "PHY", "distance": distance, "country": "CH", **more}


@pytest.fixture
def application() -> Application:
    return Application(token=TOKEN)


@pytest.fixture
def beside(app: CarbonApp, application: Application, monkeypatch: pytest.MonkeyPatch) -> Iterator[CarbonApp]:
    with serving(application) as address:
        monkeypatch.setenv("PERENNIAL_CARBON_APP_URL", address)
        monkeypatch.setenv("PERENNIAL_CARBON_APP_TOKEN", TOKEN)
        yield app


def poll_and_ingest(app: CarbonApp) -> list[str]:
    """Poll, read and calculate, run by run; return the messages of what failed."""
    poll_feeds(app.carbon)
    return app.settle()


def trains(app: CarbonApp) -> int:
    rows = app.sql(
        "SELECT sum(mg_co2e)::BIGINT AS mg FROM carbon.data_entry_emissions WHERE data_entry_type = 'train'"
    )
    return int(rows[0]["mg"])


def findings() -> dict[str, tuple[str, str, str]]:
    found = find_problems(open_carbon(load_settings()))
    return {f.subject: (f.health, f.reason_code, f.reason) for f in found}


def notes(app: CarbonApp) -> list[str]:
    reported: list[str] = app.run("report", YEAR, "--json").json["notes"]
    return reported


def test_fetch__entries_beside_files__are_added(beside: CarbonApp, application: Application) -> None:
    application.save(TRAIN_2025, [journey("a", 100), journey("b", 50.5, passengers=2)])
    done = beside.run("fetch")
    assert done.code == 0, done.err
    assert done.out.startswith("manual: 1 scopes")
    assert trains(beside) == FILED_MG + (100 + 101) * 8_000
    assert beside.milligrams("PHY") == 1000 * 2 * 8_000 + 201 * 8_000
    rows = beside.sql(
        "SELECT source, count(*) AS n FROM carbon.data_entries WHERE data_entry_type = 'train' GROUP BY 1"
    )
    assert {row["source"]: row["n"] for row in rows} == {"csv": 2, "manual": 2}


def test_read__edited_entry__changes_its_partitions_only(beside: CarbonApp, application: Application) -> None:
    application.save(TRAIN_2025, [journey("a", 100)])
    poll_and_ingest(beside)
    before = beside.content()
    application.save(TRAIN_2025, [journey("a", 200)])
    poll_and_ingest(beside)
    changed = {p for p in before if before[p] != beside.content().get(p)}
    assert changed == {
        ("data_entries", f"train|{YEAR}"),
        ("data_entry_emissions", f"train|{YEAR}"),
        ("carbon_report_modules", f"travel|{YEAR}"),
        ("carbon_reports", YEAR),
    }
    assert trains(beside) == FILED_MG + 200 * 8_000


def test_upload__file_of_the_same_type__keeps_feed_entries(
    beside: CarbonApp, application: Application
) -> None:
    application.save(TRAIN_2025, [journey("a", 100)])
    poll_and_ingest(beside)
    assert beside.upload("data", TRAIN.replace("500", "600"), "--type", "train").code == 0
    assert beside.settle() == []
    assert trains(beside) == FILED_MG + 100 * 30_000 + 100 * 8_000


def test_read__all_entries_deleted__files_stay(beside: CarbonApp, application: Application) -> None:
    application.save(TRAIN_2025, [journey("a", 100)])
    poll_and_ingest(beside)
    application.save(TRAIN_2025, [])
    assert poll_and_ingest(beside) == []
    assert trains(beside) == FILED_MG
    assert not beside.due()


def test_read__wrong_entries__good_ones_are_imported(beside: CarbonApp, application: Application) -> None:
    application.save(TRAIN_2025, [journey("a", 100), journey("b", -5), journey("c", 10) | {"unit_id": "XXX"}])
    assert poll_and_ingest(beside) == []
    assert trains(beside) == FILED_MG + 100 * 8_000
    health, code, why = findings()[f"pulled_entries:train|{YEAR}"]
    assert (health, code) == ("broken", "entries_refused")
    assert "2 of 3 entries of manual|main are refused" in why
    assert notes(beside) == ["train: 2 of 3 entries of manual|main are refused"]
    application.save(TRAIN_2025, [journey("a", 100), journey("b", 5)])
    poll_and_ingest(beside)
    assert findings() == {}


def test_read__unit_uploaded_later__entries_are_read_again(
    beside: CarbonApp, application: Application
) -> None:
    application.save(TRAIN_2025, [journey("a", 100), journey("c", 10) | {"unit_id": "NEW"}])
    poll_and_ingest(beside)
    assert trains(beside) == FILED_MG + 100 * 8_000
    assert beside.upload("units", TREE + "NEW,New,SCI\n").code == 0
    assert beside.settle() == []
    assert trains(beside) == FILED_MG + 110 * 8_000


def test_read__no_good_entry__keeps_what_was_read_before(beside: CarbonApp, application: Application) -> None:
    application.save(TRAIN_2025, [journey("a", 100)])
    poll_and_ingest(beside)
    application.save(TRAIN_2025, [journey("a", 100) | {"unit_id": "XXX"}])
    assert poll_and_ingest(beside)
    assert trains(beside) == FILED_MG + 100 * 8_000
    assert findings()[f"pulled_entries:train|{YEAR}"][0] == "broken"
    application.save(TRAIN_2025, [journey("a", 300)])
    assert poll_and_ingest(beside) == []
    assert trains(beside) == FILED_MG + 300 * 8_000


def test_read__one_scope_fails__others_are_read(beside: CarbonApp, application: Application) -> None:
    assert beside.upload("units", "unit_id,name\nEPF,Other\n", "--institution", "other").code == 0
    application.save(TRAIN_2025, [journey("a", 100) | {"unit_id": "XXX"}])
    application.save(Place("train", 2025, "other"), [journey("a", 7) | {"unit_id": "EPF"}])
    assert poll_and_ingest(beside)
    assert trains(beside) == FILED_MG + 7 * 8_000


def test_read__edited_between_pages__is_deferred(beside: CarbonApp, application: Application) -> None:
    application.page_size = 2
    application.save(TRAIN_2025, [journey("a", 1), journey("b", 1), journey("c", 1)])

    def edit(page: int) -> None:
        if page == 1:
            kilometres = 5 + len(application.edits)
            application.save(TRAIN_2025, [journey(name, kilometres) for name in "abc"])

    application.on_page = edit
    poll_and_ingest(beside)
    assert trains(beside) == FILED_MG, "not a mixture of both"
    [row] = beside.carbon.ledger.find("carbon.api_ingest", limit=1)
    assert (row.status, row.reason_code) == ("deferred", "changed_meanwhile")
    application.on_page = lambda _: None
    application.save(TRAIN_2025, [journey(name, 5) for name in "abc"])
    beside.carbon.ledger.retry(row.id)
    assert poll_and_ingest(beside) == []
    assert trains(beside) == FILED_MG + 15 * 8_000


def test_read__change_polled_while_reading__is_read_too(
    beside: CarbonApp, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.save(TRAIN_2025, [journey("a", 1)])
    carbon = beside.carbon
    poll_feeds(carbon)

    read = carbon.feeds["manual"].read

    def read_and_edited(kind: str, year: int, institution: str, data_entry_type: str) -> Rows:
        found = read(kind, year, institution, data_entry_type)
        if found.version == "1":
            application.save(TRAIN_2025, [journey("a", 5)])
            poll_feeds(carbon)
        return found

    monkeypatch.setattr(carbon.feeds["manual"], "read", read_and_edited)
    assert settle(carbon) == []
    assert trains(beside) == FILED_MG + 5 * 8_000


def test_fetch__application_down__finding_and_nothing_changes(
    beside: CarbonApp, application: Application
) -> None:
    before = beside.content()
    application.fault = lambda _: Answer(503, b"busy")
    done = beside.run("fetch")
    assert done.code == 1
    assert "HTTP 503" in done.out
    assert beside.content() == before
    assert findings()["carbon.manual"][:2] == ("broken", "feed_error")
    assert notes(beside) == ["manual has never answered: what changed there is not known"]
    application.fault = lambda _: None
    assert beside.run("fetch").code == 0
    assert findings() == {}
    assert notes(beside) == []
    application.fault = lambda _: Answer(503, b"busy")
    assert beside.run("fetch").code == 1
    [note] = notes(beside)
    assert note.startswith("manual has not answered since 20")
    assert findings()["carbon.manual"][:2] == ("healing", "feed_error"), (
        "it answered just now, and is asked again"
    )


def test_report__application_never_polled__is_noted(beside: CarbonApp) -> None:
    assert notes(beside) == ["manual has never answered: what changed there is not known"]
    assert poll_feeds(beside.carbon)
    assert notes(beside) == []


def test_fetch__wrong_token__error_without_the_token(
    beside: CarbonApp, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERENNIAL_CARBON_APP_TOKEN", "0123456789wrong-token-of-ours")
    done = beside.run("fetch")
    assert done.code == 1
    assert "HTTP 401" in done.out
    assert "wrong-token-of-ours" not in done.out + done.err + said("status", "--json").out


def test_read__application_fails__is_deferred_and_read_later(
    beside: CarbonApp, application: Application
) -> None:
    application.save(TRAIN_2025, [journey("a", 100)])
    application.fault = lambda path: Answer(500, b"oops") if path == "/entries" else None
    assert poll_and_ingest(beside)
    [row] = beside.carbon.ledger.find("carbon.api_ingest", limit=1)
    assert (row.status, row.reason_code, row.attempts) == ("deferred", "feed_down", 1)
    application.fault = lambda _: None
    beside.carbon.ledger.retry(row.id)
    assert poll_and_ingest(beside) == []
    assert trains(beside) == FILED_MG + 100 * 8_000


def test_delete_superseded_readings__old_ones__are_deleted(
    beside: CarbonApp, application: Application
) -> None:
    for distance in (1, 2, 3):
        application.save(TRAIN_2025, [journey("a", distance)])
        assert poll_and_ingest(beside) == []
    carbon, before = beside.carbon, beside.content()
    readings = [u for u in carbon.store.uploads.find() if u.source == "manual"]
    assert len(readings) == 3
    assert delete_superseded_readings(carbon, readings[-1].moment) == 0, "they are too young"
    assert delete_superseded_readings(carbon, carbon.clock() + timedelta(days=1)) == 2
    assert [u.id for u in carbon.store.uploads.find() if u.source == "manual"] == [readings[0].id]
    assert not carbon.staging.holds(readings[1].pipeline_id, carbon.staging.rows(readings[0].pipeline_id))
    assert not beside.due()
    beside.carbon.lake.replace(
        DATA_ENTRIES.name, f"train|{YEAR}", DATA_ENTRIES.schema.empty_table(), allow_empty=True
    )
    assert beside.settle() == []
    assert beside.content() == before, "it is made of what is left"


def test_read__locked_year__waits_for_unlock(beside: CarbonApp, application: Application) -> None:
    beside.run("lock", YEAR, "--reason", "published")
    application.save(TRAIN_2025, [journey("a", 100)])
    poll_and_ingest(beside)
    assert trains(beside) == FILED_MG
    assert findings()[f"pulled_entries:train|{YEAR}"][0] == "explained"
    beside.run("unlock", YEAR, "--reason", "a mistake")
    assert poll_and_ingest(beside) == []
    assert trains(beside) == FILED_MG + 100 * 8_000


def test_poll__unknown_type__is_a_finding(beside: CarbonApp, application: Application) -> None:
    application.save(Place("zeppelin", 2025), [journey("a", 100)])
    assert poll_and_ingest(beside) == []
    assert findings()[f"pulled_entries:zeppelin|{YEAR}"][:2] == ("broken", "unknown_type")
    application.edits.clear()
    assert poll_and_ingest(beside) == []
    assert findings() == {}, "the application left it out"


def test_doctor__applications__asks_each(beside: CarbonApp, application: Application) -> None:
    application.save(TRAIN_2025, [])
    assert check_applications(open_carbon(load_settings())) == "manual answers (1 scopes)"
    application.fault = lambda _: Answer(503, b"")
    with pytest.raises(PerennialError, match="HTTP 503") as reported:
        check_applications(open_carbon(load_settings()))
    assert "PERENNIAL_CARBON_APP_URL" in reported.value.remedy


def test_fetch__no_application__names_the_setting(app: CarbonApp) -> None:
    done = app.run("fetch")
    assert done.code == 2
    assert "PERENNIAL_CARBON_APP_URL" in done.err
