"""The calls that docs/api.md shows are made as they stand there, with curl against a real server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestration.services import open_ledger
from orchestration.settings import PROJECT_ROOT, Settings
from resources.ledger.client import Ledger
from tests.integration.orchestration.api.conftest import Api, serving
from tests.settings import make_settings

PAGE = (PROJECT_ROOT / "docs/api.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:3001"


def run(block: str, folder: Path, **variables: str) -> str:
    script = f"set -e\n{block}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def newest(settings: Settings) -> tuple[int, str]:
    """The work item of the upload, and its pipeline."""
    ledger = open_ledger(settings)
    [work] = ledger.find(limit=1)
    [pipeline] = ledger.pipelines.of([work.id])[work.id]
    ledger.close()
    return work.id, pipeline


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_documented_calls__in_their_order__are_answered(
    settings: Settings, ledger: Ledger, tmp_path: Path
) -> None:
    assert ledger.running() == []
    blocks = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    open_to_all = make_settings(settings, api_token="")
    with serving(open_to_all) as api:
        look, upload, follow = (block.replace(ADDRESS, api.address) for block in blocks)
        assert '{"status":"ready"}' in run(look, tmp_path)
        assert '"upload_id"' in run(upload, tmp_path, api=api.address)
        job, pipeline = newest(settings)
        ledger.cancel(job)  # the stream ends when the pipeline has ended
        said = run(follow, tmp_path, api=api.address, job=str(job), pipeline=pipeline)
    assert f'"id":{job},' in said
    assert f'"pipeline_id":"{pipeline}"' in said
    assert "event: end" in said


def test_documented_routes__and_those_there_are__are_the_same(api: Api) -> None:
    there = {
        (method.upper(), re.sub(r"\{\w+\}", "*", path))
        for path, methods in api.get("/openapi.json").json()["paths"].items()
        for method in methods
    }
    documented = {
        (method, re.sub(r"\b[A-Z]{2,}\b", "*", path))
        for method, path in re.findall(r"`(GET|POST) (/[\w/.-]+)", PAGE)
    }
    assert there - documented == set()
    assert documented - there == {("GET", "/openapi.json")}


def test_documented_problem__of_an_unknown_work_item__is_the_answer(api: Api, ledger: Ledger) -> None:
    assert ledger.get(77) is None
    assert api.get("/work/77").text.replace('":', '": ').replace(',"', ', "') in PAGE
