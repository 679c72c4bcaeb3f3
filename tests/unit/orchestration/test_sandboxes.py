"""The sandbox of a home: one process, however many domains it stands in for."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.registry import find_domain
from orchestration.sandboxes import started_sandboxes
from tests.settings import make_settings


def test_started_sandboxes__two_domains_need_it__is_started_once(tmp_path: Path):
    settings = make_settings(home=tmp_path, sandbox_port=8799)
    assert [one.port for one in started_sandboxes(settings)] == [8799]


@pytest.mark.parametrize(("place", "found"), [("sandbox", True), ("none", False)])
def test_sandbox_of_references__is_there_for_the_sources_to_try_only(tmp_path: Path, place: str, found: bool):
    settings = make_settings(home=tmp_path, references_sources=place)
    sandbox = find_domain("references").sandbox(settings)
    assert (sandbox is not None) is found
