"""Which commands of a home live."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

from orchestration.presence import Presence, command_of, living_commands

ROOT = Path(__file__).parents[3]
KILLED = """
import os, sys
from pathlib import Path
from orchestration.presence import Presence
print(Presence(Path(sys.argv[1])).name, flush=True)
os.kill(os.getpid(), 9)
"""


def test_dead__command_was_killed__is_known_at_once_and_forgotten(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    killed = done.stdout.strip()
    with closing(Presence(tmp_path)) as ours:
        assert ours.dead() == {killed}
        assert ours.alone()
        ours.forget(ours.dead())
        assert ours.dead() == frozenset()
    assert list(tmp_path.iterdir()) == []


def test_alone__another_command_lives__is_false_until_it_ends(tmp_path: Path):
    with closing(Presence(tmp_path)) as ours:
        with closing(Presence(tmp_path)) as other:
            assert (ours.alone(), ours.dead()) == (False, frozenset())
            assert living_commands(tmp_path) == {ours.name, other.name}
        assert ours.alone()


def test_new_run_id__names_its_command(tmp_path: Path):
    with closing(Presence(tmp_path)) as ours:
        ids = {ours.new_run_id() for _ in range(3)}
        assert len(ids) == 3
        assert {command_of(run_id) for run_id in ids} == {ours.name}
        assert {len(run_id) for run_id in ids} == {36}
