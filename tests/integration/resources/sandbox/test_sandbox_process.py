"""A code location without a source gets a sandbox of its own: one per home, reused, restarted when dead."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from resources.sandbox import process as sandbox_process
from resources.sandbox.process import SandboxDown, ensure_sandbox, find_sandbox, port_file


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


def test_ensure_sandbox__many_ask_at_once__starts_one(home: Path) -> None:
    with ThreadPoolExecutor(4) as threads:
        urls = set(threads.map(lambda _: ensure_sandbox(home), range(4)))
    assert len(sandbox_process._children) == 1
    assert urls == {find_sandbox(home)}
    assert "listening" in (home / "sandbox" / "server.log").read_text()


def test_ensure_sandbox__it_died__starts_another_and_reaps_it(home: Path) -> None:
    ensure_sandbox(home)
    [child] = sandbox_process._children
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert find_sandbox(home) is None
    assert ensure_sandbox(home) == find_sandbox(home)
    assert child not in sandbox_process._children


@pytest.mark.parametrize("text", ["", "{", "9"])
def test_find_sandbox__nobody_answers_there__finds_none(home: Path, text: str) -> None:
    port_file(home).parent.mkdir()
    port_file(home).write_text(text)
    assert find_sandbox(home) is None


def test_ensure_sandbox__it_cannot_start__raises_its_last_lines(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main = home / "sandbox" / "__main__.py"
    main.parent.mkdir()
    (main.parent / "__init__.py").touch()
    main.write_text("raise SystemExit('no market today')")
    monkeypatch.setattr(sandbox_process, "ROOT", home)
    with pytest.raises(SandboxDown, match="exit code 1: no market today") as caught:
        ensure_sandbox(home)
    assert "server.log" in caught.value.remedy
    main.write_text("import time; time.sleep(60)")
    with pytest.raises(SandboxDown, match=r"did not answer within 0.5 s"):
        ensure_sandbox(home, start_seconds=0.5)
