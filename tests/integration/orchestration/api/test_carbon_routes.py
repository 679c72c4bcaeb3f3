"""The carbon routes over a real socket: files come in, work follows, reports are read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import requests

from assets.policies.tags import PIPELINE
from orchestration.build import build_definitions
from orchestration.cli.runner import runner
from orchestration.environments import load_settings
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from sandbox.carbon.application import Application, Place
from sandbox.carbon.application import serving as application_serving
from tests.integration.orchestration.api.conftest import TOKEN, Api, serving
from tests.integration.services.carbon.carbon_app import (
    ELECTRICITY,
    FACTORS,
    TRAIN,
    UNITS,
    YEAR,
    CarbonApp,
    furnished_once,
    running,
)
from tests.integration.services.market.market_app import quiet

NOTHING_STALE: dict[str, list[Any]] = {"types": [], "years": [], "factors": []}
READ = "fedcba9876543210"
NEWER = FACTORS.replace("8,g/km", "9,g/km")
BIOLOGY = {"unit_id": "BIO", "name": "Biology", "parent_id": "SCI"}
TRAIN_FACTORS = "country,value,unit\nCH,9,g/km\nworld,30,g/km\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("carbon_api") / "app"


@pytest.fixture(scope="module")
def furnished(place: Path) -> Path:
    return furnished_once(place, "furnished", CarbonApp.furnish)


@pytest.fixture
def app(place: Path, furnished: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CarbonApp]:
    """A year with its report; nothing is due."""
    monkeypatch.setenv("PERENNIAL_API_TOKEN", TOKEN)
    monkeypatch.setenv("PERENNIAL_API_READ_TOKEN", READ)
    with running(place, furnished):
        yield CarbonApp(place, monkeypatch)


@pytest.fixture
def api(app: CarbonApp) -> Iterator[Api]:
    with serving(load_settings()) as api:
        yield api


def job(api: Api, number: int) -> dict[str, Any]:
    found: dict[str, Any] = api.get(f"/sync/jobs/{number}").json()
    return found


def tonnes(api: Api, **given: str) -> float:
    answer = api.session.get(f"{api.address}/carbon/reports/{YEAR}", params=given, timeout=30)
    assert answer.status_code == 200, answer.text
    return float(answer.json()["total_tonnes"])


# Files


def test_dispatch__entries__become_one_pipeline_up_to_the_report(api: Api, app: CarbonApp) -> None:
    before = tonnes(api)
    more = TRAIN + "PHY,5000,1,CH\n"
    answer = api.post("/sync/dispatch", more.encode(), type="train", year=YEAR, name="more.csv", by="ada")
    assert answer.status_code == 202, answer.text
    found = answer.json()
    assert (found["kind"], found["type"], found["rows"], found["known_already"]) == (
        "data",
        "train",
        3,
        False,
    )
    assert answer.headers["location"] == f"/pipelines/{found['pipeline_id']}"
    assert found["replaced"][0]["rows_before"] == 2
    assert (job(api, found["job_id"])["kind"], job(api, found["job_id"])["status"]) == (
        "carbon.csv_ingest",
        "queued",
    )
    assert app.settle() == []
    story = api.get(f"/carbon/uploads/{found['upload_id']}").json()
    assert (story["status"], story["uploaded_by"], story["failure"]) == ("SUCCESS", "api: ada", "")
    assert story["phases"] == {"data": "SUCCESS", "emissions": "SUCCESS", "aggregation": "SUCCESS"}
    assert tonnes(api) == pytest.approx(before + 5000 * 8 / 1e6)


def test_dispatch__same_file_again__names_the_same_job_and_pipeline(api: Api, app: CarbonApp) -> None:
    content = (TRAIN + "PHY,5000,1,CH\n").encode()
    first = api.post("/sync/dispatch", content, type="train", year=YEAR).json()
    again = api.post("/sync/dispatch", content, type="train", year=YEAR)
    assert (again.status_code, again.json()["known_already"]) == (202, True)
    assert app.settle() == []
    later = api.post("/sync/dispatch", content, type="train", year=YEAR).json()
    for name in ("job_id", "pipeline_id", "upload_id", "jobs"):
        assert first[name] == again.json()[name] == later[name], name
    assert app.due() == set()


def test_dispatch__same_file_by_many_at_once__is_one_upload_and_one_job(api: Api, app: CarbonApp) -> None:
    content = (TRAIN + "PHY,5000,1,CH\n").encode()
    before = api.get("/carbon/uploads").json()["total"]

    def dispatch(_: int) -> dict[str, Any]:
        found: dict[str, Any] = api.post("/sync/dispatch", content, type="train", year=YEAR).json()
        return found

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(dispatch, range(8)))
    assert api.get("/carbon/uploads").json()["total"] == before + 1
    assert len({(one["job_id"], one["pipeline_id"], one["upload_id"]) for one in found}) == 1
    assert found[0]["job_id"] is not None
    assert [one["known_already"] for one in found].count(False) == 1


def test_recalculate__by_many_at_once__is_one_job(api: Api) -> None:
    path = f"/sync/recalculate-emissions/{YEAR}/train"
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: api.post(path).json()["job_id"], range(8)))
    assert len(set(found)) == 1


def test_dispatch__next_tick_of_the_sensor__starts_its_run(api: Api, app: CarbonApp) -> None:
    content = (TRAIN + "PHY,5000,1,CH\n").encode()
    found = api.post("/sync/dispatch", content, type="train", year=YEAR).json()
    [request] = ticked()
    assert request.partition_key == f"train|{YEAR}"
    assert dg.AssetKey(["carbon", "data_entries"]) in (request.asset_selection or ())
    assert found["pipeline_id"] in request.tags[PIPELINE]


def test_recalculate__next_tick_of_the_sensor__starts_its_run(api: Api, app: CarbonApp) -> None:
    found = api.post(f"/sync/recalculate-emissions/{YEAR}/travel").json()
    [request] = ticked()
    assert dg.AssetKey(["carbon", "data_entry_emissions"]) in (request.asset_selection or ())
    assert found["pipeline_id"] in request.tags[PIPELINE]


def ticked() -> list[dg.RunRequest]:
    """The runs that one tick of carbon's real sensor requests."""
    definitions = build_definitions(load_settings())
    sensor = next(s for s in definitions.sensors or () if s.name == "carbon_recalculation_sensor")
    assert isinstance(sensor, dg.SensorDefinition)
    with (
        runner(load_settings()) as run,
        quiet(),
        dg.build_sensor_context(
            run.instance,
            repository_def=definitions.get_repository_def(),
            resources=dict(definitions.resources or {}),
        ) as context,
    ):
        return list(sensor.evaluate_tick(context).run_requests or ())


def test_factors__of_a_type__recalculate_that_type_in_the_same_pipeline(api: Api, app: CarbonApp) -> None:
    before = tonnes(api)
    found = api.post("/sync/factors/train", TRAIN_FACTORS.encode(), year=YEAR).json()
    assert job(api, found["job_id"])["kind"] == "carbon.factor_ingest"
    assert app.settle() == []
    story = api.get(f"/carbon/uploads/{found['upload_id']}").json()
    made = [job(api, number)["key"] for number in story["jobs"]]
    assert f"data_entry_emissions:train|{YEAR}" in made
    assert f"data_entry_emissions:electricity|{YEAR}" not in made
    assert tonnes(api) == pytest.approx(before + 2000 * 1 / 1e6)


def test_factors__row_of_another_type__is_refused_with_its_line(api: Api) -> None:
    answer = api.post("/sync/factors/paper", NEWER.encode(), year=YEAR)
    assert answer.status_code == 422
    problems = answer.json()["problems"]
    assert {(p["column"], p["code"]) for p in problems} == {("data_entry_type", "other_type")}
    assert [p["line"] for p in problems] == [2, 3, 4, 5]


def test_units__a_file__is_a_job_of_its_own(api: Api) -> None:
    found = api.post("/sync/units", (UNITS + "BIO,Biology,SCI\n").encode(), year=YEAR)
    assert found.status_code == 202, found.text
    assert job(api, found.json()["job_id"])["kind"] == "carbon.unit_sync"


# Applications


@pytest.fixture
def beside(app: CarbonApp, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """The API of an app beside which another application runs, that keeps units and factors."""
    application = Application()
    application.save(Place("", int(YEAR), kind="units"), [*csv.DictReader(io.StringIO(UNITS)), BIOLOGY])
    rows = csv.DictReader(io.StringIO(TRAIN_FACTORS))
    application.save(Place("train", int(YEAR), kind="factors"), list(rows))
    with application_serving(application) as address:
        monkeypatch.setenv("PERENNIAL_CARBON_APP_URL", address)
        with serving(load_settings()) as api:
            yield api


def test_units_and_factors__without_a_body__are_pulled_as_jobs(beside: Api, app: CarbonApp) -> None:
    for path, kind in (("/sync/units", "carbon.unit_sync"), ("/sync/factors/train", "carbon.factor_ingest")):
        found = beside.post(path, year=YEAR)
        assert found.status_code == 202, found.text
        assert beside.post(path, year=YEAR).json() == found.json() | {"known_already": True}
        number, name = found.json()["job_id"], found.json()["pipeline_id"]
        assert (job(beside, number)["kind"], job(beside, number)["status"]) == (kind, "queued")
        assert app.settle() == []
        assert job(beside, number)["status"] == "completed"
        assert beside.get(f"/pipelines/{name}").json()["status"] == "SUCCESS"
    assert "BIO" in {row["unit_id"] for row in app.sql("SELECT unit_id FROM carbon.units")}
    assert beside.get("/carbon/uploads?kind=factors").json()["total"] == 2


@pytest.mark.parametrize("given", ["text/csv", "application/x-www-form-urlencoded", "application/json"])
def test_units__empty_body_of_any_type__is_a_pull(beside: Api, given: str) -> None:
    answer = beside.session.post(
        f"{beside.address}/sync/units?year={YEAR}", headers={"Content-Type": given}, timeout=30
    )
    assert answer.status_code == 202, answer.text


def test_units__pull_with_what_is_said_of_a_file__is_refused_and_names_it(
    beside: Api, app: CarbonApp
) -> None:
    given = {
        "institution": "other",
        "name": "u.csv",
        "by": "anna",
        "decimal": "comma",
        "accept_valid": "true",
    }
    before = len(app.carbon.ledger.find(limit=None))
    for name, value in given.items():
        for path in ("/sync/units", "/sync/factors/train"):
            answer = beside.post(path, year=YEAR, **{name: value})
            assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request"), name
            assert [one["field"] for one in answer.json()["errors"]] == [name]
    assert len(app.carbon.ledger.find(limit=None)) == before


def test_factors__not_listed_by_any_application__is_not_found(beside: Api) -> None:
    answer = beside.post("/sync/factors/paper")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_in_feed")


def test_what_if__newer_factors__says_their_effect_and_changes_nothing(api: Api, app: CarbonApp) -> None:
    answer = api.upload(NEWER.encode(), kind="factors", year=YEAR, what_if="true")
    assert answer.status_code == 200, answer.text
    assert [f["change"] for f in answer.json()["factors"]] == ["changed"]
    [effect] = answer.json()["effects"]
    assert (effect["data_entry_type"], effect["year"]) == ("train", int(YEAR))
    assert app.due() == set()
    assert api.get("/carbon/uploads?kind=factors").json()["total"] == 1


def test_uploads__pages__are_newest_first_with_the_total(api: Api) -> None:
    everything = api.get("/carbon/uploads").json()
    assert (everything["total"], len(everything["items"])) == (5, 5)
    ids = [one["upload_id"] for one in everything["items"]]
    assert ids == sorted(ids, reverse=True)
    second = api.get("/carbon/uploads?limit=2&offset=2").json()
    assert [one["upload_id"] for one in second["items"]] == ids[2:4]
    assert {one["type"] for one in api.get("/carbon/uploads?kind=data").json()["items"]} == {
        "train",
        "electricity",
        "paper",
    }
    assert api.get("/carbon/uploads?year=2024").json() == {"total": 0, "items": []}
    assert api.get("/carbon/uploads?accepted=false").json()["total"] == 0


def test_upload__refused__is_listed_with_its_problems(api: Api) -> None:
    answer = api.post("/sync/dispatch", (TRAIN + "XXX,-1,1,CH\n").encode(), type="train", year=YEAR)
    assert answer.status_code == 422
    assert answer.json()["problem_count"] == 2
    [refused] = api.get("/carbon/uploads?accepted=false").json()["items"]
    story = api.get(f"/carbon/uploads/{refused['upload_id']}").json()
    assert (story["status"], story["accepted"]) == ("FAILED", False)
    assert [p["line"] for p in story["problems"]] == [4, 4]


# Recalculation


def test_recalculate__a_type_twice__is_one_job(api: Api, app: CarbonApp) -> None:
    first = api.post(f"/sync/recalculate-emissions/{YEAR}/train")
    assert first.status_code == 202, first.text
    again = api.post(f"/sync/recalculate-emissions/{YEAR}/train")
    assert (first.json()["known_already"], again.json()["known_already"]) == (False, True)
    assert first.json()["jobs"] == again.json()["jobs"]
    assert first.json()["pipeline_id"] == again.json()["pipeline_id"]
    assert app.settle() == []
    assert job(api, first.json()["job_id"])["status"] == "completed"


def test_recalculate__all__is_a_job_for_each_module_with_entries(api: Api, app: CarbonApp) -> None:
    found = api.post(f"/sync/recalculate-emissions/{YEAR}/all").json()
    modules = ("buildings", "purchases", "travel")
    keys = {job(api, number)["key"] for number in found["jobs"]}
    assert keys == {f"asked_modules:{name}|{YEAR}" for name in modules}
    assert app.settle() == []


def test_stale_and_status__newer_factors__name_the_type_until_it_is_calculated(
    api: Api, app: CarbonApp
) -> None:
    assert api.get("/factors/stale").json() == NOTHING_STALE
    found = api.upload(NEWER.encode(), kind="factors", year=YEAR).json()
    [year] = api.get("/factors/stale").json()["years"]
    assert (year["year"], year["job_id"], year["job_status"]) == (int(YEAR), found["job_id"], "queued")
    app.reconcile()
    [part] = api.get("/factors/stale").json()["types"]
    assert (part["data_entry_type"], part["module"], part["state"]) == ("train", "travel", "stale")
    modules = {one["module"]: one["status"] for one in api.get("/recalculation-status").json()["modules"]}
    assert modules == {"travel": "due", "buildings": "current", "purchases": "current"}
    api.post(f"/sync/recalculate-emissions/{YEAR}/train")
    [travel] = [m for m in api.get("/recalculation-status").json()["modules"] if m["module"] == "travel"]
    assert (travel["status"], travel["recalculating"]) == ("recalculating", True)
    assert app.settle() == []
    assert api.get("/factors/stale").json() == NOTHING_STALE
    assert api.get("/recalculation-status?year=2024").json() == {"modules": []}


def test_stale__a_factor_that_the_newest_file_lacks__is_named_with_what_it_causes(
    api: Api, app: CarbonApp
) -> None:
    api.post("/sync/factors/train", b"country,value,unit\nworld,30,g/km\n", year=YEAR)
    assert app.settle() == []
    [factor] = api.get(f"/factors/stale?year={YEAR}").json()["factors"]
    assert json.loads(factor["classification"]) == {"country": "CH"}
    assert (factor["file"], factor["line"], factor["entries"]) == ("factors.csv", 2, 1)
    assert api.get("/factors/stale?year=2024").json() == NOTHING_STALE


def test_reads__nothing_uploaded_yet__are_empty(settings: Settings, ledger: Ledger) -> None:
    assert ledger.get(1) is None
    with serving(settings) as api:
        assert api.get("/factors/stale").json() == NOTHING_STALE
        assert api.get("/recalculation-status").json() == {"modules": []}
        assert api.get("/carbon/reports").json() == {"reports": []}
        assert api.get("/carbon/uploads").json() == {"total": 0, "items": []}


# Reports


def test_report__by_format_or_accept__is_json_csv_or_a_page(api: Api, app: CarbonApp) -> None:
    path = f"{api.address}/carbon/reports/{YEAR}"
    for how in ({"params": {"format": "csv"}}, {"headers": {"Accept": "text/csv"}}):
        answer = api.session.get(path, timeout=30, **how)  # type: ignore[arg-type]
        assert answer.headers["content-type"].startswith("text/csv")
        assert answer.text == app.run("report", YEAR, "--csv").out
    for how in ({"params": {"format": "html"}}, {"headers": {"Accept": "text/html,*/*;q=0.8"}}):
        answer = api.session.get(path, timeout=30, **how)  # type: ignore[arg-type]
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.text.startswith("<!DOCTYPE html>")
        assert "style-src 'unsafe-inline'" in answer.headers["content-security-policy"]
    answer = api.session.get(path, timeout=30, headers={"Accept": "image/png"})
    assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable")
    assert api.session.get(path, timeout=30).json() == app.run("report", YEAR, "--json").json


def test_report__unit_and_moment__are_those_of_the_command(api: Api, app: CarbonApp) -> None:
    assert tonnes(api, unit="PHY") == app.run("report", YEAR, "--unit", "PHY", "--json").json["total_tonnes"]
    unknown = api.get(f"/carbon/reports/{YEAR}?unit=NOPE")
    assert (unknown.status_code, unknown.json()["code"]) == (422, "unknown_unit_id")
    before = api.get(f"/carbon/reports/{YEAR}?as_of=2020-01-01")
    assert (before.status_code, before.json()["code"]) == (404, "no_report")
    assert api.get(f"/carbon/reports/{YEAR}?as_of=soon").status_code == 422


def test_reports__a_locked_year__is_listed_with_its_reason(api: Api, app: CarbonApp) -> None:
    assert api.get("/carbon/reports").json() == {"reports": [{"year": int(YEAR), "locked": None}]}
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    assert api.get("/carbon/reports").json()["reports"][0]["locked"] == "published"


def test_types_and_templates__a_type__can_be_filled_and_uploaded(api: Api) -> None:
    types = {one["name"]: one for one in api.get("/carbon/types").json()["types"]}
    assert (types["train"]["module"], types["train"]["unit"]) == ("travel", "km")
    [country] = [one for one in types["train"]["columns"] if one["name"] == "country"]
    assert (country["role"], country["default"], country["required"]) == ("key", "world", False)
    assert len(types) == 22
    for name in ("train", "plane", "commute"):
        template = api.get(f"/carbon/templates/{name}?year={YEAR}")
        assert template.headers["content-type"].startswith("text/csv")
        answer = api.post("/sync/dispatch", template.content, type=name, what_if="true")
        assert answer.status_code == 200, f"{name}: {answer.text}"
        assert answer.json()["rows"] == 1
    rows = api.get(f"/carbon/templates/factors?type=train&year={YEAR}").text.splitlines()[1:]
    assert rows
    assert {row.split(",")[1] for row in rows} == {"train"}


# What is refused


REFUSED: list[tuple[str, str, dict[str, str], int, str]] = [
    ("POST", "/sync/factors/zeppelin", {"year": YEAR}, 422, "unknown_type"),
    ("POST", f"/sync/recalculate-emissions/{YEAR}/zeppelin", {}, 422, "unknown_type"),
    ("POST", f"/sync/recalculate-emissions/{YEAR}/plane", {}, 404, "no_entries"),
    ("POST", f"/sync/recalculate-emissions/{YEAR}/cloud", {}, 404, "no_entries"),
    ("POST", "/sync/recalculate-emissions/2024/all", {}, 404, "no_entries"),
    ("POST", "/sync/recalculate-emissions/1066/train", {}, 422, "invalid_request"),
    ("POST", "/sync/recalculate-emissions/2049/train", {}, 422, "year_outside"),
    ("POST", "/sync/dispatch", {"type": "zeppelin", "year": YEAR}, 422, "unknown_type"),
    ("POST", "/sync/dispatch", {"type": "train"}, 422, "missing_column"),
    ("POST", "/sync/dispatch", {"type": "train", "yaer": YEAR}, 422, "invalid_request"),
    ("POST", "/sync/dispatch", {"type": "train", "year": "2049"}, 422, "no_units"),
    ("POST", "/sync/dispatch", {"type": "zeppelin", "year": YEAR, "what_if": "true"}, 422, "unknown_type"),
    ("GET", "/carbon/uploads/77", {}, 404, "unknown_upload"),
    ("GET", "/carbon/uploads/x", {}, 422, "invalid_request"),
    ("GET", "/carbon/uploads", {"limit": "0"}, 422, "invalid_request"),
    ("GET", "/carbon/reports/2024", {}, 404, "no_report"),
    ("GET", "/carbon/templates/zeppelin", {}, 422, "unknown_type"),
    ("GET", "/carbon/templates/factors", {"type": "zeppelin"}, 422, "unknown_type"),
    ("GET", "/carbon/templates/units", {"type": "train"}, 422, "invalid_request"),
    ("GET", "/carbon/reports/soon", {}, 422, "invalid_request"),
    ("GET", "/recalculation-status", {"year": "soon"}, 422, "invalid_request"),
    ("GET", "/factors/stale", {"year": "soon"}, 422, "invalid_request"),
]


def test_call__wrong__names_the_fault_and_the_remedy_and_changes_nothing(api: Api, app: CarbonApp) -> None:
    before = len(app.carbon.ledger.find(limit=None))
    for method, path, given, status, code in REFUSED:
        answer = api.session.request(
            method, api.address + path, params=given, data=TRAIN.encode() if method == "POST" else b"",
            timeout=30,
        )  # fmt: skip
        assert (answer.status_code, answer.json()["code"]) == (status, code), f"{path} {given} {answer.text}"
        assert answer.json()["remedy"], path
        assert answer.headers["content-type"] == "application/problem+json"
    assert len(app.carbon.ledger.find(limit=None)) == before


def test_units_and_factors__neither_body_nor_application__are_a_conflict(api: Api) -> None:
    for path in ("/sync/units", "/sync/factors/train"):
        answer = api.post(path, year=YEAR)
        assert (answer.status_code, answer.json()["code"]) == (409, "no_application")
        assert "PERENNIAL_CARBON_APP_URL" in answer.json()["remedy"]
    assert api.post("/sync/dispatch", year=YEAR, type="train").json()["code"] == "empty_file"


def test_body__a_form_or_json__is_refused_before_it_is_read_as_a_file(api: Api) -> None:
    form = api.session.post(f"{api.address}/sync/units?year={YEAR}", files={"file": UNITS}, timeout=30)
    document = api.session.post(f"{api.address}/sync/dispatch", json={"rows": []}, timeout=30)
    for answer in (form, document):
        assert (answer.status_code, answer.json()["code"]) == (415, "no_file")
        assert "--data-binary" in answer.json()["remedy"]


WRITES = [
    ("/sync/dispatch?type=train&year=2025", TRAIN),
    ("/sync/factors/train?year=2025", TRAIN_FACTORS),
    ("/sync/units?year=2025", UNITS + "BIO,Biology,SCI\n"),
    ("/carbon/uploads?kind=data&type=electricity&year=2025", ELECTRICITY + "PHY,1,kWh,\n"),
    ("/sync/recalculate-emissions/2025/train", ""),
]


def test_write__locked_year__is_a_conflict(api: Api, app: CarbonApp) -> None:
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    for path, body in WRITES[1:]:
        answer = api.session.post(api.address + path, data=body.encode(), timeout=30)
        assert (answer.status_code, answer.json()["code"]) == (409, "year_locked"), path
        assert "unlock" in answer.json()["remedy"]


def test_call__without_token_or_to_write_with_the_read_token__is_refused(api: Api, app: CarbonApp) -> None:
    before = len(app.carbon.ledger.find(limit=None))
    reads = ["/carbon/uploads", "/carbon/uploads/1", f"/carbon/reports/{YEAR}", "/factors/stale"]
    reads += ["/recalculation-status", "/quality/status"]
    for path, body in [*WRITES, *((path, None) for path in reads)]:
        call = {"data": body.encode()} if body is not None else {}
        method = "GET" if body is None else "POST"
        answer = requests.request(method, api.address + path, timeout=30, **call)
        assert (answer.status_code, answer.json()["code"]) == (401, "wrong_api_token"), path
        reader = {"Authorization": f"Bearer {READ}"}
        answer = requests.request(method, api.address + path, timeout=30, headers=reader, **call)
        assert answer.status_code == (200 if body is None else 403), path
    assert len(app.carbon.ledger.find(limit=None)) == before


# Sources


def test_quality__never_asked_source_and_failing_application__have_their_status(
    app: CarbonApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERENNIAL_CARBON_APP_URL", "http://127.0.0.1:9/feed")
    assert app.run("fetch").code == 1
    with serving(load_settings()) as api:
        found = api.get("/quality/status").json()
    assert not found["healthy"]
    by_name = {one["source"]: one for one in found["sources"]}
    assert by_name["tushare.daily"]["status"] == "never_ingested"
    assert (by_name["carbon.manual"]["domain"], by_name["carbon.manual"]["status"]) == ("carbon", "error")
    assert by_name["carbon.manual"]["last_failure"]
    assert by_name["carbon.manual"]["last_success"] is None


DOCUMENTED = {
    "/sync/dispatch": {"200", "202", "409", "415", "422"},
    "/sync/factors/{type}": {"200", "202", "409", "415", "422"},
    "/sync/units": {"200", "202", "409", "415", "422"},
    "/carbon/uploads": {"200", "202", "409", "415", "422"},
    "/sync/recalculate-emissions/{year}/{type}": {"202", "404", "409", "422"},
}


def test_openapi__every_write_of_carbon__documents_its_statuses_and_its_file(api: Api) -> None:
    document = api.get("/openapi.json").json()
    for path, statuses in DOCUMENTED.items():
        route = document["paths"][path]["post"]
        assert statuses <= route["responses"].keys(), path
        if "415" in statuses:
            assert route["requestBody"]["content"]["text/csv"]["example"]
    [name] = [
        one
        for one in document["paths"]["/sync/factors/{type}"]["post"]["parameters"]
        if one["name"] == "type"
    ]
    assert "train" in name["schema"]["enum"], "a client sees the types there are"
