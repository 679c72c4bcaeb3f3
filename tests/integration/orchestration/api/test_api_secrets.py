"""Planted tokens and the database's password are in no answer of the API and in no line of its log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from orchestration.api.app import build_app
from orchestration.registry import MODULES
from orchestration.services import open_ledger
from orchestration.settings import Settings
from tests.serving import serving
from tests.settings import make_settings

PLANTED = {
    name: f"pl4nted{number}{name.replace('_', '')}9f8e7d6c"
    for number, name in enumerate(
        ("api_token", "api_read_token", "tushare_token", "carbon_app_token", "carbon_api_token", "database")
    )
}
ATLAS = "pl4nted9atlas9f8e7d6c"
SECRETS = (*PLANTED.values(), ATLAS)
AWAY = f"postgresql://perennial:{PLANTED['database']}@127.0.0.1:1/ledger"
CSV = b"unit_id,name,parent_id\nUNI,University,\n"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    tokens = {name: value for name, value in PLANTED.items() if name != "database"}
    if "references" in MODULES:
        tokens["references_tokens"] = f"atlas={ATLAS}"
    return make_settings(home=tmp_path / "home", source="tushare", api_rate=100_000.0, **tokens)


def calls(settings: Settings) -> Iterator[tuple[str, str]]:
    """Every call there is, with something in the place of each name in its path."""
    for path, methods in build_app(settings).openapi()["paths"].items():
        for method in methods:
            for value in ("1", "2025", "01M7WRPGPY805SWQ78BEHEER0R", "train", "nonsense"):
                yield method.upper(), re.sub(r"{\w+}", value, path)


def headers() -> Iterator[dict[str, str]]:
    yield {}
    for token in (*SECRETS, "wrong"):
        yield {"Authorization": f"Bearer {token}"}
        yield {"Authorization": token, "Cookie": f"token={token}", "Origin": f"http://{token}.example"}


def answered(settings: Settings) -> str:
    """Everything that the API answers to everything, as text."""
    texts, seen = [], set()
    with serving(settings) as (address, _), httpx.Client(base_url=address, timeout=30) as client:

        def call(method: str, path: str, **more: object) -> None:
            answer = client.request(method, path, **more)  # type: ignore[arg-type]
            seen.add(answer.status_code)
            texts.append(f"{answer.status_code} {answer.headers} {answer.text}")

        given = dict(list(headers())[1])
        for method, path in sorted(set(calls(settings))):
            call(method, path, headers=given)
            call(method, path, headers=given, content=CSV, params={"kind": "units", "year": "2025"})
            call(method, path, headers=given, params=dict.fromkeys(("token", "api_key", "limit"), SECRETS[2]))
        for more in headers():
            for path in (
                "/pipelines",
                f"/pipelines/{SECRETS[0]}",
                f"/nowhere/{SECRETS[0]}?token={SECRETS[0]}",
            ):
                call("GET", path.replace("{}", SECRETS[0]), headers=more)
            call("POST", "/sync/jobs/1/recover", headers=more)
        assert seen >= {401, 403, 404, 422}, seen
    return "\n".join(texts)


@pytest.mark.parametrize("database", ["there", "away"])
def test_every_call__secrets_are_planted__shows_none(
    settings: Settings,
    database: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    if database == "away":
        settings = make_settings(settings, database_url=AWAY, catalog_url=AWAY)
    else:
        open_ledger(settings, write=True).close()
    text = answered(settings)
    log = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    text += "\n".join(map(caplog.handler.format, log)) + "".join(capfd.readouterr())
    assert "/sync/jobs/1/recover" in text, "the log was read"
    assert [secret for secret in SECRETS if secret in text] == []
