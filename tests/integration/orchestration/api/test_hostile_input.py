"""Path traversal and injection, in every parameter of every call: a 4xx in paths, and never a bug."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from orchestration.api.app import build_app
from orchestration.services import open_ledger
from orchestration.settings import Settings
from tests.serving import serving
from tests.settings import make_settings

HOSTILE = [
    "../../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "/etc/passwd",
    "file:///etc/passwd",
    "' OR '1'='1",
    "1; DROP TABLE work; --",
    "1 UNION SELECT * FROM setting",
    "%' ESCAPE '%",
    "$(touch /tmp/owned)",
    "{{7*7}}",
    "<script>alert(1)</script>",
    "a\r\nSet-Cookie: owned=1",
    "\x00",
    "\x1b[2J",
    "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    "9" * 400,
    "-1",
    "1e400",
    "NaN",
]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return make_settings(home=tmp_path / "home", source="sandbox", api_rate=100_000.0)


def calls(document: dict[str, Any]) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Method, path, and the names of its parameters in the path and in the query, of every call."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            given = operation.get("parameters", [])
            names = {
                place: [one["name"] for one in given if one["in"] == place] for place in ("path", "query")
            }
            yield method.upper(), path, names["path"], names["query"]


def test_every_parameter__hostile_input__is_refused_and_no_bug(settings: Settings) -> None:
    open_ledger(settings, write=True).close()
    document = build_app(settings).openapi()
    wrong: list[tuple[str, str, int]] = []
    with serving(settings) as (address, _), httpx.Client(base_url=address, timeout=30) as client:

        def status(method: str, path: str, **query: str) -> int:
            answer = client.request(
                method, path, params=query, content=b"a,b\n1,2\n" if method == "POST" else None
            )
            assert "set-cookie" not in answer.headers
            assert "root:" not in answer.text
            return answer.status_code

        for method, path, in_path, in_query in calls(document):
            for text in HOSTILE:
                place = path
                for name in in_path:
                    place = place.replace(f"{{{name}}}", quote(text, safe=""))
                found = [status(method, place)] if in_path else []
                wrong += [(method, place, one) for one in found if not 400 <= one < 500]
                queried = [
                    status(method, path.replace("{", "").replace("}", ""), **{n: text}) for n in in_query
                ]
                wrong += [(method, f"{path}?{text[:40]}", one) for one in queried if one >= 500]
    assert wrong == []


def test_every_path__traversal_outside_of_parameters__is_not_found(settings: Settings) -> None:
    open_ledger(settings, write=True).close()
    with serving(settings) as (address, _), httpx.Client(base_url=address, timeout=30) as client:
        for path in (
            "/../../etc/passwd",
            "//etc/passwd",
            "/.%2e/%2e%2e/etc/passwd",
            "/work/../../../etc/passwd",
        ):
            answer = client.get(httpx.URL(address).copy_with(raw_path=path.encode()))
            assert (answer.status_code, answer.json()["code"]) == (404, "no_such_call"), path
