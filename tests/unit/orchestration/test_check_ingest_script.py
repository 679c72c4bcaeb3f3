"""scripts/check_ingest.sh with a `perennial` that prints what the test wants."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestration.settings import PROJECT_ROOT

SCRIPT = PROJECT_ROOT / "scripts/check_ingest.sh"
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4}"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "of today" / "check.log"


@pytest.fixture
def run(tmp_path: Path, log: Path) -> Run:
    def run(body: str | None, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
        if body is not None:
            program(tmp_path / "bin" / "perennial", body)
        base = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "PERENNIAL_INGEST_LOG": str(log)}
        return subprocess.run(
            [SCRIPT, *arguments], env=base | environ, capture_output=True, text=True, timeout=30
        )

    return run


def test_script__complete__logs_one_ok_line_and_prints_nothing(run: Run, log: Path):
    done = run('echo "noise on the way" >&2; echo "market: complete to 2026-11-17"')
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert re.fullmatch(rf"{STAMP} OK market: complete to 2026-11-17\n", log.read_text())


def test_script__gap__logs_an_alert_and_prints_it_for_cron(run: Run, log: Path):
    done = run('echo "market: normalized_daily misses 2026-11-17"; exit 1')
    assert done.returncode == 1
    assert re.fullmatch(
        rf"{STAMP} ALERT \(exit 1\) market: normalized_daily misses 2026-11-17\n", log.read_text()
    )
    assert done.stderr == log.read_text()
    run("echo fine")
    assert [line.split()[1] for line in log.read_text().splitlines()] == ["ALERT", "OK"]


def test_script__check_broke__quotes_standard_error(run: Run, log: Path):
    done = run('echo "wrong settings: PERENNIAL_ENV" >&2; exit 2')
    assert done.returncode == 2
    assert "ALERT (exit 2) wrong settings: PERENNIAL_ENV\n" in log.read_text()


def test_script__command_is_missing__logs_an_alert(run: Run, log: Path):
    done = run(None, PERENNIAL_INGEST_EXEC="no-such-program exec pod --")
    assert done.returncode == 127
    assert "ALERT (exit 127) could not run no-such-program exec pod -- perennial" in log.read_text()


def test_script__check_hangs__is_stopped_and_logs_an_alert(run: Run, log: Path):
    done = run("echo started; exec sleep 20", PERENNIAL_INGEST_TIMEOUT_SECONDS="0.2")
    assert done.returncode == 124
    assert "ALERT (exit 124) no answer within 0.2 s; last line: started" in log.read_text()


def test_script__prefix_set__runs_in_the_container(run: Run, log: Path, tmp_path: Path):
    prefix = "docker exec perennial"
    program(tmp_path / "bin" / "docker", f'echo "$0 $*" | sed "s,{tmp_path}/bin/,,"')
    run("echo never; exit 3", "--strict", PERENNIAL_INGEST_EXEC=prefix)
    assert log.read_text().endswith(f"OK {prefix} perennial check market --strict\n")


def test_script__control_characters_and_floods__stay_one_line(run: Run, log: Path):
    run(r"""printf 'a\033[31mb\tc\r'; head -c 3000 /dev/zero | tr '\0' x; exit 1""")
    assert log.read_text().count("\n") == 1
    assert len(log.read_text()) < 600
    assert "\033" not in log.read_text()
    assert "\r" not in log.read_text()


def test_script__log_cannot_be_written__fails(run: Run, tmp_path: Path):
    (tmp_path / "file").touch()
    done = run("echo fine", PERENNIAL_INGEST_LOG=str(tmp_path / "file" / "check.log"))
    assert done.returncode == 1
    assert "cannot write" in done.stderr
    assert run("exit 7", PERENNIAL_INGEST_LOG=str(tmp_path / "file" / "check.log")).returncode == 7


def test_script__no_log_set__logs_in_the_home_folder(run: Run, tmp_path: Path):
    run("echo fine", PERENNIAL_INGEST_LOG="", PERENNIAL_HOME=str(tmp_path / "home"))
    assert (tmp_path / "home/logs/check_ingest.log").read_text().endswith("OK fine\n")
