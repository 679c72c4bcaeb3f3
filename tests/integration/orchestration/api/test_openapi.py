"""The whole HTTP API against its own OpenAPI: whatever hypothesis thinks of, all answers are documented."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi import checks

from domain.market.plan import FILL
from domain.shared.work import ACTIVE, WorkRequest
from orchestration.services import open_ledger
from orchestration.settings import Settings
from resources.ledger.pipelines import new_pipeline_id
from tests.serving import serving
from tests.settings import make_settings

TOKEN = "f00dfacecafe0123456789abcdef"
READ_TOKEN = "beef0123456789abcdef00000000"
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
SOURCES = """
sources:
  - {{name: inbox, kind: folder, url: {home}/inbox}}
"""
MODES = {
    GenerationMode.POSITIVE: [*CHECKS, checks.unsupported_method],
    GenerationMode.NEGATIVE: [*CHECKS, checks.negative_data_rejection],
}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    home: Path = tmp_path_factory.mktemp("openapi")
    (home / "inbox").mkdir()
    (home / "sources.yaml").write_text(SOURCES.format(home=home))  # else a sandbox would be started
    return make_settings(
        home=home,
        source="sandbox",
        api_token=TOKEN,
        api_read_token=READ_TOKEN,
        api_rate=100_000.0,
        references_sources=str(home / "sources.yaml"),
    )


@pytest.fixture(scope="module")
def known(settings: Settings) -> dict[str, list[str]]:
    """Ids that there are, by the beginning of the paths that name them."""
    ledger = open_ledger(settings, write=True)
    names = [new_pipeline_id() for _ in range(4)]
    rows = [
        WorkRequest(FILL, f"normalized_daily:2026-11-{day}", "f", pipelines=(name,))
        for day, name in enumerate(names, start=16)
    ]
    created = ledger.enqueue(rows).created
    ledger.close()
    numbers = [str(row.id) for row in created]
    return {
        "/pipelines/{id}": names,
        "/work/{id}": numbers,
        "/sync/jobs/{id}": numbers,
        "/scraping/{source}": ["inbox", "atlas"],
    }


@pytest.fixture(scope="module")
def schema(settings: Settings, known: dict[str, list[str]]) -> Iterator[BaseSchema]:
    assert known
    with serving(settings) as (address, _):
        yield schemathesis.openapi.from_url(f"{address}/openapi.json")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("token", "count"), [("", 2), (READ_TOKEN, 3), (TOKEN, 6)], ids=["nobody", "reads", "operates"]
)
def test_every_call__valid_and_invalid__answers_as_documented(
    settings: Settings,
    schema: BaseSchema,
    known: dict[str, list[str]],
    token: str,
    count: int,
    mode: GenerationMode,
) -> None:
    assert failures(settings, schema, known, token, mode, count) == {}


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("mode", MODES)
def test_every_call__many_examples__answers_as_documented(
    settings: Settings, schema: BaseSchema, known: dict[str, list[str]], mode: GenerationMode
) -> None:
    assert failures(settings, schema, known, TOKEN, mode, count=100) == {}


def failures(
    settings: Settings,
    schema: BaseSchema,
    known: dict[str, list[str]],
    token: str,
    mode: GenerationMode,
    count: int,
) -> dict[str, set[str]]:
    """By operation, what was wrong with its answers."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    found: dict[str, set[str]] = {}
    quiet = examples(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for result in schema.get_all_operations():
        operation = result.ok()
        settle(settings)
        ids = next((of for path, of in known.items() if operation.path.startswith(path)), [])

        wrong = found[operation.label] = set()

        @quiet
        @given(operation.as_strategy(generation_mode=mode), st.none() | st.sampled_from([None, *ids]))
        def call(case: schemathesis.Case, known_id: str | None) -> None:
            if known_id is not None and mode is GenerationMode.POSITIVE:
                case.path_parameters[next(iter(case.path_parameters))] = known_id
            try:
                case.call_and_validate(headers=headers, checks=MODES[mode])
            except FailureGroup as group:
                # Where a token is what is missing, this test has given one.
                messages = {f"{one.title}: {one.message}" for one in group.exceptions}
                wrong.update(one for one in messages if "Authorization" not in one)  # noqa: B023

        try:
            call()
        except Unsatisfiable:  # nothing of a call without parameters can be invalid
            assert not operation.path_parameters.items, operation.label
    return {label: wrong for label, wrong in found.items() if wrong}


def settle(settings: Settings) -> None:
    """Cancel all work, also what was queued again: a stream of what has ended ends."""
    with closing(open_ledger(settings)) as ledger:
        for row in ledger.find(status=ACTIVE):
            ledger.cancel(row.id)
