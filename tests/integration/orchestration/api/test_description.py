"""The OpenAPI document says everything that a client must know; and `/status` is what the command says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from orchestration.api.app import build_app
from orchestration.settings import Settings
from resources.ledger.client import Ledger
from tests.command import said
from tests.integration.orchestration.api.conftest import Api, serving
from tests.settings import make_settings


@pytest.fixture
def document(settings: Settings) -> dict[str, Any]:
    return build_app(settings).openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_openapi__every_operation__has_title_tag_and_described_parameters(document: dict[str, Any]) -> None:
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))
    for method, path, operation in operations(document):
        assert operation["summary"], (method, path)
        assert set(operation["tags"]) <= tags, (method, path)
        without = [one["name"] for one in operation.get("parameters", []) if not one.get("description")]
        assert without == [], (method, path)


def test_openapi__every_answer__has_an_example(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        for status, answer in operation["responses"].items():
            for media, content in answer.get("content", {}).items():
                if media != "text/event-stream":  # OpenAPI has no examples of items
                    assert has_example(document, content), (method, path, status, media)


def has_example(document: dict[str, Any], content: dict[str, Any]) -> bool:
    schema = content.get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    parts = schema.get("properties", {}).values()
    enough = ("example", "examples", "default", "$ref", "enum", "const")
    return bool(
        {"example", "examples"} & {*content, *schema}
        or (parts and all(set(enough) & set(one) for one in parts))
    )


def test_openapi__every_operation__names_its_problems_and_its_scope(document: dict[str, Any]) -> None:
    for method, path, operation in operations(document):
        expected = {"422", "429", "500", "503"}
        if path not in ("/healthz", "/readyz"):
            expected |= {"401", "403"}
            assert operation["security"] == [{"token": ["read" if method == "get" else "operate"]}]
        expected |= {"404"} if "{" in path else set()
        expected |= {"400", "409", "413"} if method != "get" else set()
        assert expected <= operation["responses"].keys(), (method, path)
        for status in expected:
            answer = operation["responses"][status]
            assert answer["description"]
            [(media, content)] = answer["content"].items()
            assert (media, content["schema"]) == (
                "application/problem+json",
                {"$ref": "#/components/schemas/Problem"},
            )


def test_openapi__without_tokens__needs_none(settings: Settings) -> None:
    document = build_app(make_settings(settings, api_token="")).openapi()
    assert document["paths"]["/work"]["get"]["security"] == [{}, {"token": ["read"]}]


def test_pages__that_load_scripts_of_other_hosts__are_not_served(api: Api) -> None:
    for path in ("/docs", "/redoc", "/docs/oauth2-redirect"):
        assert api.get(path).status_code == 404
    assert api.get("/openapi.json").json()["info"]["title"] == "Perennial"


def test_status__over_http__is_what_the_command_says(
    settings: Settings, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ledger.running() == []
    stopped = make_settings(settings, now="2026-11-17T18:31")
    for variable, text in stopped.environment().items():
        monkeypatch.setenv(variable, text)
    with serving(stopped) as api:
        there, here = api.get("/status").json(), said("status", "--json").json
    for moment in (there, here):
        assert moment.pop("checked_at")
    assert there == here
    assert there["findings"]


def test_status__before_the_first_start__says_so(api: Api) -> None:
    found = api.get("/status").json()
    assert (found["started"], found["healthy"]) == (False, False)


def test_status_command__is_called__imports_no_server() -> None:
    code = (
        "import sys; from orchestration.cli import main, status, work; import orchestration.health; "
        "import orchestration.domains.carbon, orchestration.domains.market; "
        "servers = ('fastapi', 'starlette', 'uvicorn', 'prometheus_client'); "
        "print([name for name in servers if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
