"""A client that was written from the OpenAPI alone brings files to the report, then newer factors too."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from orchestration.domains.carbon import open_carbon
from orchestration.settings import Settings
from sandbox.carbon.institution import write, write_revision
from services.carbon.report import report_of
from tests.integration.services.carbon.carbon_app import settle
from tests.serving import serving
from tests.settings import make_settings

CLIENT = Path(__file__).with_name("client_from_openapi.py")
TOKEN = "f00dfacecafe0123456789abcdef"
YEAR = 2025


@contextmanager
def working(settings: Settings) -> Iterator[None]:
    """Meanwhile the passes of a daemon do what is due."""
    over = threading.Event()

    def work() -> None:
        with closing(open_carbon(settings, write=True).ledger):
            while not over.wait(0.2):
                carbon = open_carbon(settings, write=True)
                with closing(carbon.ledger):
                    assert settle(carbon) == []

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.slow
def test_client__written_from_the_openapi__brings_files_to_the_report_and_newer_factors_too(
    tmp_path: Path,
) -> None:
    settings = make_settings(home=tmp_path / "home", source="sandbox", api_token=TOKEN)
    write(tmp_path, 0.005, years=[YEAR])
    write_revision(tmp_path, YEAR)
    open_carbon(settings, write=True).ledger.close()
    with serving(settings) as (address, _), working(settings):
        done = subprocess.run(
            [sys.executable, str(CLIENT), address, TOKEN, str(tmp_path), str(YEAR)],
            capture_output=True,
            text=True,
            timeout=200,
        )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    carbon = open_carbon(settings)
    with closing(carbon.ledger):
        assert report_of(carbon, YEAR).total_mg == found["after"] != found["before"] > 0
    assert len(CLIENT.read_text().splitlines()) <= 60
