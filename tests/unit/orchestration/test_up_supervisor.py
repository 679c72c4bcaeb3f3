"""Processes that live and die together, shown on small real ones."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.supervisor import (
    MARK,
    AlreadyRunning,
    Child,
    Command,
    Supervisor,
    kill_marked,
    marked,
    only_one,
)

FOREVER = "import time; print('ready', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + FOREVER
PARENT_OF_STUBBORN = (
    f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {STUBBORN!r}]); {FOREVER}"
)
PARENT_OF_RUNAWAY = (
    "import subprocess, sys; "
    f"subprocess.Popen([sys.executable, '-c', {STUBBORN!r}], start_new_session=True); {FOREVER}"
)


def python(code: str, name: str = "child") -> Command:
    return Command(name, [sys.executable, "-c", code])


def supervisor(folder: Path, *, grace_seconds: float = 5) -> Supervisor:
    logs = folder / "logs"
    return Supervisor(str(folder), os.environ, folder, logs, grace_seconds=grace_seconds)


def says(child: Child, times: int = 1) -> bool:
    return child.log.exists() and child.log.read_text().count("ready") >= times


@pytest.fixture
def left_over(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that an earlier supervisor of this folder left behind."""
    process = subprocess.Popen(
        [sys.executable, "-c", STUBBORN],
        env={**os.environ, MARK: str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_lines_go_to_the_terminal_with_a_prefix_and_to_a_log_both_without_colours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with supervisor(tmp_path).running() as running:
        child = running.start(python(r"print('\x1b[32mgreen\x1b[0m ready'); " + FOREVER, "ui"))
        assert running.wait_until(lambda: says(child, 2))
    assert child.log == tmp_path / "logs/ui.log"
    assert child.log.read_text() == "green ready\nready\n"
    assert capsys.readouterr().out == "ui         | green ready\nui         | ready\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_wait_and_every_child(tmp_path: Path, number: int):
    with supervisor(tmp_path).running() as running:
        children = [running.start(python(FOREVER, name)) for name in ("one", "two")]
        assert running.wait_until(lambda: all(says(child) for child in children))
        os.kill(os.getpid(), number)
        assert not running.wait_until(lambda: False)
        assert running.dead() is None
    assert [child.exit_code() for child in children] == [-signal.SIGTERM] * 2
    assert marked(str(tmp_path)) == []


def test_the_handlers_of_before_are_put_back(tmp_path: Path):
    before = signal.getsignal(signal.SIGINT)
    with supervisor(tmp_path).running():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before


def test_a_child_that_ends_by_itself_ends_the_wait_and_is_named(tmp_path: Path):
    with supervisor(tmp_path).running() as running:
        healthy = running.start(python(FOREVER, "healthy"))
        running.start(python("import sys; sys.exit(3)", "broken"))
        assert not running.wait_until(lambda: False)
        dead = running.dead()
    assert dead is not None
    assert (dead.name, dead.exit_code()) == ("broken", 3)
    assert healthy.exit_code() is not None


def test_children_that_ignore_the_polite_signal_are_killed_in_bounded_time(tmp_path: Path):
    with supervisor(tmp_path, grace_seconds=0.3).running() as running:
        child = running.start(python(STUBBORN))
        assert running.wait_until(lambda: says(child))
        begin = time.monotonic()
    assert time.monotonic() - begin < 3
    assert child.exit_code() == -signal.SIGKILL


def test_a_grandchild_that_outlives_its_parent_is_killed_with_the_group(tmp_path: Path):
    with supervisor(tmp_path, grace_seconds=0.3).running() as running:
        child = running.start(python(PARENT_OF_STUBBORN))
        assert running.wait_until(lambda: says(child, 2))
        assert len(marked(str(tmp_path))) == 2
    assert marked(str(tmp_path)) == []


def test_a_descendant_that_left_the_group_is_found_and_killed_too(tmp_path: Path):
    with supervisor(tmp_path, grace_seconds=0.3).running() as running:
        child = running.start(python(PARENT_OF_RUNAWAY))
        assert running.wait_until(lambda: says(child, 2))
        assert len(marked(str(tmp_path))) == 2
    assert marked(str(tmp_path)) == []


def test_asking_twice_does_not_wait_for_the_grace(tmp_path: Path):
    with supervisor(tmp_path, grace_seconds=60).running() as running:
        child = running.start(python(STUBBORN))
        assert running.wait_until(lambda: says(child))
        impatient = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import os, time; time.sleep(0.5); os.kill({os.getpid()}, {signal.SIGINT})",
            ]
        )
        begin = time.monotonic()
    assert time.monotonic() - begin < 10
    assert impatient.wait() == 0


def test_nothing_is_left_when_starting_a_later_child_fails(tmp_path: Path):
    with supervisor(tmp_path).running() as running:
        child = running.start(python(FOREVER))
        with pytest.raises(FileNotFoundError):
            running.start(Command("absent", [str(tmp_path / "no such program")]))
    assert child.exit_code() is not None
    assert marked(str(tmp_path)) == []


def test_what_a_killed_supervisor_left_is_ended_and_counted(
    tmp_path: Path, left_over: "subprocess.Popen[str]"
):
    assert kill_marked(str(tmp_path / "another home"), grace_seconds=0.2) == 0
    assert left_over.poll() is None
    assert kill_marked(str(tmp_path), grace_seconds=0.2) == 1
    assert left_over.wait(timeout=5) == -signal.SIGKILL


def test_a_second_holder_of_the_lock_learns_who_the_first_is(tmp_path: Path):
    lock = tmp_path / "state" / "lock"
    with only_one(lock), pytest.raises(AlreadyRunning) as caught, only_one(lock):
        pytest.fail("two holders")
    assert caught.value.pid == str(os.getpid())


def test_the_lock_of_a_killed_holder_is_free(tmp_path: Path):
    lease = (
        "import sys, pathlib; from orchestration.supervisor import only_one; "
        "lock = only_one(pathlib.Path(sys.argv[1])); lock.__enter__(); "
        "print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", lease, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(AlreadyRunning, match=str(holder.pid)), only_one(tmp_path / "lock"):
            pytest.fail("two holders")
        holder.kill()
        holder.wait()
        with only_one(tmp_path / "lock"):
            assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
