"""Whether a process is gone can be seen from another one: by pid and birth, never by pid alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sensors.processes import identity, is_gone


@pytest.fixture
def child() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def test_a_living_process_is_not_gone_and_a_dead_one_is(child: subprocess.Popen[bytes]):
    told = identity(child.pid)
    assert told is not None
    assert not is_gone(told)
    child.communicate(b"\n")
    assert is_gone(told)


def test_one_that_is_dead_but_not_buried_is_gone(child: subprocess.Popen[bytes]):
    told = identity(child.pid)
    child.kill()
    while not is_gone(told):  # the kernel takes a moment; the parent has not waited yet
        pass
    child.communicate()


def test_another_process_with_its_pid_is_not_it(child: subprocess.Popen[bytes]):
    told = identity(child.pid)
    assert told is not None
    *others, born = told.split()
    assert is_gone(" ".join([*others, str(int(born) - 1)]))
    child.communicate(b"\n")


@pytest.mark.parametrize("told", [None, "another-host pid:[1] 1 1"])
def test_of_processes_elsewhere_nobody_knows(told: str | None):
    assert not is_gone(told)
