"""The sensor while people change the sources file under it."""

from __future__ import annotations

import dagster as dg
import yaml

from orchestration.build import build_definitions
from orchestration.instance import open_instance
from services.references.sync import sync
from tests.integration.services.references.references_app import HERE, ReferencesApp
from tests.integration.services.references.shelf import Shelf, numbered


def sources(app: ReferencesApp, *names: str) -> None:
    for name in names:
        Shelf(app.home / f"{name}.json").holds(numbered(range(2)))
    entries = [{"name": n, "kind": f"{HERE}:make", "url": str(app.home / f"{n}.json")} for n in names]
    (app.home / "sources.yaml").write_text(yaml.safe_dump({"sources": entries}))


def started(app: ReferencesApp, definitions: dg.Definitions) -> set[str]:
    repository = definitions.get_repository_def()
    resources = dict(definitions.resources or {})
    with (
        open_instance(app.settings) as instance,
        dg.build_sensor_context(instance, repository_def=repository, resources=resources) as context,
    ):
        tick = repository.get_sensor_def("references_sensor").evaluate_tick(context)
    return {request.tags["dagster/partition"] for request in tick.run_requests or ()}


def test_sensor__source_added_since_it_was_loaded__starts_the_others(app: ReferencesApp):
    sources(app, "east", "west")
    definitions = build_definitions(app.settings)
    sources(app, "east", "west", "north")
    assert started(app, definitions) == {"east", "west"}
    assert started(app, build_definitions(app.settings)) == {"north"}


def test_sensor__jobs_of_a_source_added_since__wait(app: ReferencesApp):
    sources(app, "east")
    definitions = build_definitions(app.settings)
    sources(app, "east", "north")
    sync(app.service, "north", by="test")
    assert started(app, definitions) == {"east"}
    assert started(app, build_definitions(app.settings)) == {"north"}


def test_sensor__source_taken_out_with_jobs_waiting__starts_the_others(app: ReferencesApp):
    sources(app, "east", "west")
    sync(app.service, "west", by="test")
    definitions = build_definitions(app.settings)
    sources(app, "east")
    assert started(app, definitions) == {"east"}
    assert started(app, build_definitions(app.settings)) == set()
