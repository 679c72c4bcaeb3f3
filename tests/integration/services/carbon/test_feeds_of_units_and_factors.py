"""Feeds of units and factors: read whole, checked like a file, taken only if no person is needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from orchestration.domains.carbon import open_carbon
from orchestration.environments import load_settings
from sandbox.carbon.application import Answer, Application, Place, serving
from services.carbon.feeds import poll_feeds
from services.carbon.findings import check_applications, find_problems
from tests.integration.services.carbon.carbon_app import YEAR, CarbonApp

TOKEN = "f00dfacecafe0123456789abcdef"
TREE = Place("", 2025, kind="units")
TRAIN = Place("train", 2025, kind="factors")
UNIT_ROWS = [
    {"unit_id": "UNI", "name": "University", "parent_id": None},
    {"unit_id": "SCI", "name": "Science", "parent_id": "UNI"},
    {"unit_id": "ART", "name": "Arts", "parent_id": "UNI"},
    {"unit_id": "PHY", "name": "Physics", "parent_id": "ART"},
]
FACTOR_ROWS = [
    {"classification": {"country": "CH"}, "value": 10, "unit": "g/km", "source": "api"},
    {"classification": {"country": "world"}, "value": 30, "unit": "g/km"},
]


@pytest.fixture
def application() -> Application:
    return Application(token=TOKEN)


@pytest.fixture
def beside(app: CarbonApp, application: Application, monkeypatch: pytest.MonkeyPatch) -> Iterator[CarbonApp]:
    with serving(application) as address:
        monkeypatch.setenv("PERENNIAL_CARBON_API_URL", address)
        monkeypatch.setenv("PERENNIAL_CARBON_API_TOKEN", TOKEN)
        yield app


def poll_and_ingest(app: CarbonApp) -> list[str]:
    poll_feeds(app.carbon)
    return app.settle()


def findings() -> dict[str, tuple[str, str]]:
    return {f.subject: (f.health, f.reason_code) for f in find_problems(open_carbon(load_settings()))}


def swiss_factor(app: CarbonApp) -> float:
    [row] = app.sql(
        "SELECT value FROM carbon.factors WHERE data_entry_type = 'train' AND classification LIKE '%CH%'"
    )
    return float(row["value"])


def test_poll__units_changed__are_in_the_report(beside: CarbonApp, application: Application) -> None:
    before = beside.milligrams("ART")
    application.save(TREE, UNIT_ROWS)
    assert poll_and_ingest(beside) == []
    assert beside.milligrams("ART") == before + 16_000_000, "physics belongs to the arts now"
    [row] = [w for w in beside.carbon.ledger.find("carbon.unit_sync") if w.table == "pulled_units"]
    assert (row.key, row.status, row.attempts) == (f"pulled_units:{YEAR}", "completed", 1)
    assert [event.event for event in beside.carbon.ledger.events(row.id)][-1] == "completed"
    assert not beside.due()


def test_poll__factors_changed__recalculate_their_type_only(
    beside: CarbonApp, application: Application
) -> None:
    before = beside.content()
    application.save(TRAIN, FACTOR_ROWS)
    assert poll_and_ingest(beside) == []
    assert swiss_factor(beside) == 10
    changed = {place for place, version in beside.content().items() if before[place] != version}
    assert changed == {
        ("factors", YEAR),
        ("factor_versions", YEAR),
        ("data_entry_emissions", f"train|{YEAR}"),
        ("carbon_report_modules", f"travel|{YEAR}"),
        ("carbon_reports", YEAR),
    }


def test_poll__same_factors_in_a_new_version__change_nothing(
    beside: CarbonApp, application: Application
) -> None:
    application.save(TRAIN, FACTOR_ROWS)
    application.save(Place("paper", 2025, kind="factors"), [])
    poll_and_ingest(beside)
    before, uploads = beside.content(), len(beside.carbon.store.uploads.find())
    application.save(TRAIN, FACTOR_ROWS)
    poll_and_ingest(beside)
    assert (beside.content(), len(beside.carbon.store.uploads.find())) == (before, uploads)


def test_read__factor_gone_from_the_application__is_stale_and_kept(
    beside: CarbonApp, application: Application
) -> None:
    application.save(TRAIN, FACTOR_ROWS)
    poll_and_ingest(beside)
    application.save(TRAIN, FACTOR_ROWS[:1])
    assert poll_and_ingest(beside) == []
    rows = beside.sql("SELECT value, stale FROM carbon.factors WHERE data_entry_type = 'train' ORDER BY 1")
    assert [(row["value"], row["stale"]) for row in rows] == [(10, False), (30, True)]


def test_upload__file_of_units__replaces_those_of_an_application(
    beside: CarbonApp, application: Application
) -> None:
    """An institution has one tree, wherever it came from last."""
    application.save(TREE, [*UNIT_ROWS, {"unit_id": "NEW", "name": "New", "parent_id": "SCI"}])
    assert poll_and_ingest(beside) == []
    assert beside.sql("SELECT count(*) AS n FROM carbon.units")[0]["n"] == 5
    beside.upload_and_settle("units", "unit_id,name\nUNI,University\nSCI,S\nART,A\nPHY,P\n")
    assert beside.sql("SELECT count(*) AS n FROM carbon.units")[0]["n"] == 4


@pytest.mark.parametrize(
    ("scope", "rows", "key"),
    [
        (TREE, [*UNIT_ROWS, {"unit_id": "", "name": "Nobody"}], f"pulled_units:{YEAR}"),
        (TREE, [*UNIT_ROWS, {"unit_id": "X", "nam": "misspelt"}], f"pulled_units:{YEAR}"),
        (TRAIN, [*FACTOR_ROWS, FACTOR_ROWS[0] | {"value": -1}], f"pulled_factors:train|{YEAR}"),
        (TRAIN, [FACTOR_ROWS[0] | {"data_entry_type": "paper"}], f"pulled_factors:train|{YEAR}"),
        (TRAIN, [], f"pulled_factors:train|{YEAR}"),
    ],
)
def test_read__wrong_row__nothing_is_taken_and_it_is_listed(
    beside: CarbonApp,
    application: Application,
    scope: Place,
    rows: list[dict[str, object]],
    key: str,
) -> None:
    before = beside.content()
    application.save(scope, rows)
    assert poll_and_ingest(beside)
    assert beside.content() == before
    assert findings()[key] == ("broken", "rows_refused")
    application.save(scope, UNIT_ROWS if scope == TREE else FACTOR_ROWS)
    assert poll_and_ingest(beside) == []
    assert key not in findings()


@pytest.mark.parametrize(
    ("scope", "rows", "key", "words"),
    [
        (TREE, UNIT_ROWS, f"pulled_units:{YEAR}", ["units", YEAR]),
        (TRAIN, [*FACTOR_ROWS, FACTOR_ROWS[0] | {"classification": {"country": "FR"}}],
         f"pulled_factors:train|{YEAR}", ["factors", YEAR, "train"]),
    ],
)  # fmt: skip
def test_read__most_rows_gone__waits_for_a_person(
    beside: CarbonApp,
    application: Application,
    scope: Place,
    rows: list[dict[str, object]],
    key: str,
    words: list[str],
) -> None:
    application.save(scope, rows)
    assert poll_and_ingest(beside) == []
    before = beside.content()
    application.save(scope, rows[:1])
    assert poll_and_ingest(beside)
    assert (beside.content(), findings()[key]) == (before, ("broken", "feed_shrank"))
    beside.run("pull", *words)
    assert beside.settle(), "a person's request alone accepts nothing"
    assert beside.content() == before
    assert beside.run("pull", *words, "--replace", "--wait").code == 0
    assert beside.content() != before
    assert key not in findings()


def test_read__units_gone_but_accepted__leave_none(beside: CarbonApp, application: Application) -> None:
    application.save(TREE, [])
    assert poll_and_ingest(beside)
    assert findings()[f"pulled_units:{YEAR}"] == ("broken", "feed_shrank")
    beside.run("pull", "units", YEAR, "--replace", "--wait")
    assert beside.sql("SELECT count(*) AS n FROM carbon.units")[0]["n"] == 0


def test_pull__before_any_poll__gives_a_job_and_its_pipeline(
    beside: CarbonApp, application: Application
) -> None:
    application.save(TREE, UNIT_ROWS)
    done = beside.run("pull", "units", YEAR, "--json")
    assert done.code == 0, done.err
    [job], name = done.json["jobs"], done.json["pipeline"]
    assert application.calls == [], "the run asks, not the request"
    again = beside.run("pull", "units", YEAR, "--json").json
    assert (again["jobs"], again["pipeline"]) == ([job], name)
    assert beside.settle() == []
    carbon = beside.carbon
    row = carbon.ledger.get(job)
    assert row is not None
    assert (row.status, row.key) == ("completed", f"pulled_units:{YEAR}")
    [pipeline] = [p for p in beside.run("pipelines", "--json").json["pipelines"]
                  if p["pipeline"] == name]  # fmt: skip
    assert pipeline["status"] == "SUCCESS"
    assert set(pipeline["phases"]) == {"data", "aggregation"}, "up to the report"


def test_pull__of_all_years__one_pipeline_has_all_its_jobs(
    beside: CarbonApp, application: Application
) -> None:
    for year in (2024, 2025):
        application.save(TREE._replace(year=year), UNIT_ROWS)
    assert poll_and_ingest(beside) == []
    application.save(TREE, [*UNIT_ROWS[:3], UNIT_ROWS[3] | {"parent_id": "SCI"}])
    answer = beside.run("pull", "units", "--json").json
    assert beside.settle() == []
    [rows] = beside.carbon.ledger.pipelines.members([answer["pipeline"]]).values()
    assert {row.status for row in rows} == {"completed"}
    assert {row.key for row in rows} == {
        "pulled_units:2024", "pulled_units:2025", "units:2025", "carbon_reports:2025"
    }  # fmt: skip
    assert set(answer["jobs"]) < {row.id for row in rows}


def test_pull__what_nobody_lists__is_skipped(beside: CarbonApp, application: Application) -> None:
    application.save(TREE, UNIT_ROWS)
    [job] = beside.run("pull", "factors", YEAR, "train", "--json").json["jobs"]
    assert beside.settle() == []
    row = beside.carbon.ledger.get(job)
    assert row is not None
    assert (row.status, row.reason_code) == ("skipped", "not_in_feed")
    assert f"pulled_factors:train|{YEAR}" not in findings()
    assert beside.run("pull", "factors", "2024").code == 2, "no type to ask for is known"


def test_pull__plan_requests_the_same_meanwhile__keeps_what_the_person_accepted(
    beside: CarbonApp, application: Application
) -> None:
    application.save(TREE, UNIT_ROWS)
    assert poll_and_ingest(beside) == []
    beside.run("pull", "units", YEAR, "--replace")
    application.save(TREE, UNIT_ROWS[:1])
    assert poll_and_ingest(beside) == []
    assert beside.sql("SELECT count(*) AS n FROM carbon.units")[0]["n"] == 1


def test_pull__locked_year__is_refused(beside: CarbonApp, application: Application) -> None:
    application.save(TREE, UNIT_ROWS)
    before = beside.content()
    assert beside.run("lock", YEAR, "--reason", "published").code == 0
    assert beside.run("pull", "units", YEAR).code == 2
    poll_and_ingest(beside)
    assert (beside.content(), findings()[f"pulled_units:{YEAR}"]) == (before, ("explained", "year_locked"))
    beside.run("unlock", YEAR, "--reason", "a mistake")
    assert beside.settle() == []
    assert beside.content() != before


def test_pull__units_of_two_institutions__are_both_read(beside: CarbonApp, application: Application) -> None:
    application.save(TREE, UNIT_ROWS)
    application.save(TREE._replace(institution="other"), [{"unit_id": "EPF", "name": "Other"}])
    assert poll_and_ingest(beside) == []
    rows = beside.sql("SELECT institution, count(*) AS n FROM carbon.units GROUP BY 1 ORDER BY 1")
    assert [(row["institution"], row["n"]) for row in rows] == [("main", 4), ("other", 1)]
    application.save(TREE._replace(institution="other"), [{"unit_id": "PHY", "name": "Taken"}])
    assert poll_and_ingest(beside), "a unit is of one institution"
    assert findings()[f"pulled_units:{YEAR}"] == ("broken", "unit_taken")


def test_pull__through_faults__converges(beside: CarbonApp, application: Application) -> None:
    application.page_size = 1
    application.save(TREE, UNIT_ROWS)
    application.save(TRAIN, FACTOR_ROWS)
    answers = [Answer(503, b"busy"), Answer(200, b'{"version": "1", "uni'), Answer(500, b"oops"), None] * 2
    application.fault = lambda path: None if path == "/changes" else answers.pop() if answers else None

    def edit(page: int) -> None:
        if page == 1 and application.edits.count(TREE) == 1:
            application.save(TREE, [*UNIT_ROWS[:3], UNIT_ROWS[3] | {"parent_id": "SCI"}])

    application.on_page = edit
    runs = 0
    while beside.run("fetch").code:
        runs += 1
        assert runs < 20
    assert (answers, application.edits.count(TREE)) == ([], 2)
    assert findings() == {}
    assert swiss_factor(beside) == 10
    [row] = beside.sql("SELECT parent_id FROM carbon.units WHERE unit_id = 'PHY'")
    assert row["parent_id"] == "SCI"


def test_pull__killed_while_reading__the_next_command_finishes(
    beside: CarbonApp, application: Application
) -> None:
    application.page_size = 2
    application.save(TREE, UNIT_ROWS)
    [job] = beside.run("pull", "units", YEAR, "--json").json["jobs"]
    heal = [sys.executable, "-m", "orchestration.cli", "carbon", "heal"]
    with subprocess.Popen(heal, env=dict(os.environ), stdout=subprocess.DEVNULL) as process:

        def kill(page: int) -> None:
            if page == 1:
                application.on_page = lambda _: None
                os.kill(process.pid, signal.SIGKILL)

        application.on_page = kill
        assert process.wait(60) == -signal.SIGKILL
    assert beside.run("heal").code == 0
    row = beside.carbon.ledger.get(job)
    assert row is not None
    assert (row.status, row.deaths) == ("completed", 1)
    [found] = beside.sql("SELECT parent_id FROM carbon.units WHERE unit_id = 'PHY'")
    assert found["parent_id"] == "ART"


def test_pull__wrong_token__is_in_no_answer(
    beside: CarbonApp, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    application.save(TREE, UNIT_ROWS)
    monkeypatch.setenv("PERENNIAL_CARBON_API_TOKEN", "0123456789wrong-token-of-ours")
    [job] = beside.run("pull", "units", YEAR, "--json").json["jobs"]
    done = beside.run("heal")
    row = beside.carbon.ledger.get(job)
    assert row is not None
    assert (row.status, row.reason_code) == ("failed", "feed_token")
    assert "wrong-token-of-ours" not in done.out + done.err + str(row) + str(find_problems(beside.carbon))


def test_doctor__applications__count_each_kind(beside: CarbonApp, application: Application) -> None:
    application.save(TREE, UNIT_ROWS)
    application.save(TRAIN, FACTOR_ROWS)
    assert check_applications(beside.carbon) == "api answers (2 scopes)"
