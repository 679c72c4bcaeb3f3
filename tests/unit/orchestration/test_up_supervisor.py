"""Processes that live and end together, shown on small real ones."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.supervisor import (
    AlreadyRunning,
    Child,
    Command,
    Supervisor,
    end_left_over,
    only_one,
)
from tests.processes import in_group, left_by_up, started_by_up

FOREVER = "import time; print('ready', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + FOREVER
PARENT_OF_STUBBORN = (
    f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]); {FOREVER}"
)


def python(code: str, name: str = "child") -> Command:
    return Command(name, [sys.executable, "-c", code])


def supervisor(folder: Path, *, grace_seconds: float = 5) -> Supervisor:
    return Supervisor(folder / "up.group", os.environ, folder, folder / "logs", grace_seconds=grace_seconds)


def is_ready(child: Child, times: int = 1) -> bool:
    return child.log.exists() and child.log.read_text().count("ready") >= times


def test_start__coloured_lines__are_prefixed_on_the_terminal_and_logged_without_colours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with supervisor(tmp_path).running() as running:
        child = running.start(python(r"print('\x1b[32mgreen\x1b[0m ready'); " + FOREVER, "ui"))
        assert running.wait_until(lambda: is_ready(child, 2))
    assert child.log == tmp_path / "logs/ui.log"
    assert child.log.read_text() == "green ready\nready\n"
    assert capsys.readouterr().out == "ui         | green ready\nui         | ready\n"


def test_running__signal__ends_the_wait_and_every_child(tmp_path: Path):
    before = signal.getsignal(signal.SIGTERM)
    with supervisor(tmp_path).running() as running:
        children = [running.start(python(FOREVER, name)) for name in ("one", "two")]
        assert running.wait_until(lambda: all(is_ready(child) for child in children))
        os.kill(os.getpid(), signal.SIGTERM)
        assert not running.wait_until(lambda: False)
        assert running.dead() is None
    assert [child.exit_code() for child in children] == [-signal.SIGTERM] * 2
    assert signal.getsignal(signal.SIGTERM) == before
    assert left_by_up(tmp_path) == []


def test_running__child_ends_by_itself__stops_the_others_and_names_it(tmp_path: Path):
    with supervisor(tmp_path).running() as running:
        healthy = running.start(python(FOREVER, "healthy"))
        running.start(python("import sys; sys.exit(3)", "broken"))
        assert not running.wait_until(lambda: False)
        dead = running.dead()
    assert dead is not None
    assert (dead.name, dead.exit_code()) == ("broken", 3)
    assert healthy.exit_code() is not None


def test_running__descendant_ignores_sigterm__is_killed_after_the_grace(tmp_path: Path):
    with supervisor(tmp_path, grace_seconds=0.3).running() as running:
        child = running.start(python(PARENT_OF_STUBBORN))
        assert running.wait_until(lambda: is_ready(child, 2))
        assert len(in_group(child.process.pid)) == 2
        begin = time.monotonic()
    assert time.monotonic() - begin < 3
    assert left_by_up(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, -signal.SIGKILL)], ids=["restart", "Ctrl-C"]
)
def test_running__child_in_the_middle_of_a_commit__may_end_it_unless_a_person_waits(
    tmp_path: Path, number: signal.Signals, code: int
):
    commit = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1.5), sys.exit(0)))"
    with Supervisor(tmp_path / "up.group", os.environ, tmp_path, tmp_path / "logs").running() as running:
        child = running.start(python(f"{commit}; {FOREVER}"))
        assert running.wait_until(lambda: is_ready(child))
        os.kill(os.getpid(), number)
        assert not running.wait_until(lambda: False)
    assert child.exit_code() == code


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[Path]:
    """The lock of a supervisor that was killed; a child that ignores SIGTERM and its own child live on."""
    code = (
        "import os, pathlib, sys\n"
        "from orchestration.supervisor import Command, Supervisor\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "with Supervisor(folder / 'up.group', os.environ, folder, folder / 'logs').running() as running:\n"
        f"    child = running.start(Command('child', [sys.executable, '-c', {PARENT_OF_STUBBORN!r}]))\n"
        "    log = folder / 'logs' / 'child.log'\n"
        "    running.wait_until(lambda: log.exists() and log.read_text().count('ready') == 2)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=Path(__file__).parents[3])
    assert done.returncode == -signal.SIGKILL
    lock = tmp_path / "up.group"
    yield lock
    end_left_over(lock, grace_seconds=0.1)


def test_end_left_over__children_of_a_killed_supervisor__ends_them(killed: Path):
    assert len(started_by_up(killed.parent)) == 2
    assert end_left_over(killed, grace_seconds=0.3)
    assert left_by_up(killed.parent) == []
    assert not end_left_over(killed)


def test_only_one__lock_is_held__names_the_holder_until_it_leaves(tmp_path: Path):
    lock = tmp_path / "state" / "lock"
    with only_one(lock), pytest.raises(AlreadyRunning, match=str(os.getpid())), only_one(lock):
        pytest.fail("two holders")
    with only_one(lock):
        assert lock.read_text() == f"{os.getpid()}\n"
