"""A code location without a source gets a sandbox of its own: one per home, reused, restarted when dead."""

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from resources.tushare import sandbox_process
from resources.tushare.sandbox_process import SandboxDown, ensure_sandbox


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    end_children()  # of tests of other files, which leave theirs to end by themselves
    yield tmp_path
    end_children()


def end_children() -> None:
    for child in [*sandbox_process._children]:
        child.kill()
        child.wait()
        sandbox_process._children.remove(child)


def record_of(home: Path) -> dict[str, object]:
    return dict(json.loads((home / "sandbox" / "server.json").read_text()))


def test_a_home_has_one_sandbox_however_many_ask_at_once(home: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        urls = set(threads.map(lambda _: ensure_sandbox(home), range(4)))
    assert len(sandbox_process._children) == 1
    [url] = urls
    assert record_of(home) == {"url": url, "pid": sandbox_process._children[0].pid}
    payload = {"api_name": "trade_cal", "token": "sandbox-token", "params": {}, "fields": ""}
    assert requests.post(f"{url}/trade_cal", json=payload, timeout=10).json()["code"] == 0
    assert "listening" in (home / "sandbox" / "server.log").read_text()


def test_a_sandbox_that_died_is_replaced_and_reaped(home: Path) -> None:
    first = ensure_sandbox(home)
    [child] = sandbox_process._children
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    second = ensure_sandbox(home)
    assert record_of(home)["url"] == second
    assert child not in sandbox_process._children
    assert first != second or record_of(home)["pid"] != child.pid


def test_a_record_is_believed_only_if_a_sandbox_answers_there(home: Path) -> None:
    (home / "sandbox").mkdir()
    for text in ("", "{", "[]", '{"url": "http://127.0.0.1:9", "pid": 1}'):
        (home / "sandbox" / "server.json").write_text(text)
        url = ensure_sandbox(home)
        assert record_of(home)["url"] == url
    assert len(sandbox_process._children) == 4


def test_a_sandbox_that_cannot_start_says_its_last_words(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = home / "nowhere"
    (nowhere / "sandbox").mkdir(parents=True)
    (nowhere / "sandbox" / "__init__.py").touch()
    (nowhere / "sandbox" / "__main__.py").write_text("raise SystemExit('no market today')")
    monkeypatch.setattr(sandbox_process, "_root_of_sandbox", lambda: nowhere)
    with pytest.raises(SandboxDown, match="exit code 1: no market today") as caught:
        ensure_sandbox(home)
    assert "server.log" in caught.value.remedy
    (nowhere / "sandbox" / "__main__.py").write_text("import time; time.sleep(60)")
    with pytest.raises(SandboxDown, match=r"did not answer within 0.5 s"):
        ensure_sandbox(home, start_seconds=0.5)
