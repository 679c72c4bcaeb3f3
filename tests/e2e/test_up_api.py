"""`perennial up` serves the HTTP API beside the UI."""

from __future__ import annotations

import pytest
import requests

from tests.e2e.running import Running

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def test_up__is_up__serves_the_http_api_and_logs_its_calls(first_up: Running) -> None:
    address = f"http://127.0.0.1:{first_up.settings.api_port}"
    assert any(line.startswith("Perennial is up") and address in line for line in first_up.said)
    assert requests.get(f"{address}/readyz", timeout=30).json() == {"status": "ready"}
    status = requests.get(f"{address}/status", timeout=30).json()
    assert (status["started"], status["daemon_runs"]) == (True, True)
    work = requests.get(f"{address}/work", timeout=30)
    assert {item["kind"].partition(".")[0] for item in work.json()["items"]} <= {*first_up.settings.domains}
    log = first_up.settings.home / "logs" / "api.log"
    # The line comes after the answer, through a pipe.
    first_up.wait(lambda: work.headers["X-Request-ID"] in log.read_text(), 30, "the call in the log")
    assert not [line for line in first_up.said if "perennial.api: GET" in line], "calls are in the log only"
