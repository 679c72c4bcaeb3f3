"""Dagster's storage as we run it: opened without reading migrations, and in all else the one shipped."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from alembic.script import ScriptDirectory
from dagster._core.scheduler.instigation import InstigatorType, TickData, TickStatus
from dagster._core.storage.dagster_run import DagsterRun
from sqlalchemy.exc import DatabaseError

from orchestration import embedded, event_log
from tests.dagster_home import opened

DATABASES = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    with opened(home) as instance:
        assert isinstance(instance.run_storage, embedded.EmbeddedRuns)
        assert isinstance(instance.schedule_storage, embedded.EmbeddedSchedules)
    return home


@pytest.fixture
def unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    event_log._as_made()  # once per process, for the databases of runs

    def read(*_: object, **__: object) -> None:
        pytest.fail("Dagster's migrations were read")

    monkeypatch.setattr(ScriptDirectory, "from_config", read)


def use(instance: dg.DagsterInstance, name: str) -> None:
    """A run that fails and a tick of a sensor."""
    instance.add_run(DagsterRun(job_name="prices", run_id=name, tags={"asked by": name}))
    run = instance.get_run_by_id(name)
    assert run is not None
    instance.report_run_failed(run)
    instance.create_tick(TickData("origin", "look", InstigatorType.SENSOR, TickStatus.SKIPPED, 1.0))


def told(instance: dg.DagsterInstance) -> dict[str, Any]:
    return {
        "runs": [(run.run_id, run.status, dict(run.tags)) for run in instance.get_runs()],
        "events": [len(instance.all_logs(run.run_id)) for run in instance.get_runs()],
        "ticks": [tick.tick_data for tick in instance.get_ticks("origin", "")],
        "failed": instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE])),
    }


def schema(home: Path) -> Iterator[tuple[Any, ...]]:
    for database in DATABASES:
        with closing(sqlite3.connect(home / database)) as one:
            yield tuple(one.execute("PRAGMA journal_mode"))
            yield from one.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name")
            yield from one.execute("SELECT * FROM alembic_version")


def test_what_is_made_is_used_without_reading_migrations(made: Path, unavailable: None):
    with opened(made) as instance:
        use(instance, "first")
        assert told(instance)["failed"] == 1


def test_it_makes_what_dagster_makes_and_tells_what_dagster_tells(tmp_path: Path, made: Path):
    with opened(tmp_path / "shipped", shipped=True) as shipped:
        use(shipped, "first")
        expected = told(shipped)
    with opened(made) as ours:
        use(ours, "first")
        assert told(ours) == expected
    assert list(schema(made)) == list(schema(tmp_path / "shipped"))
    assert [len(expected[what]) for what in ("runs", "ticks")] == [1, 1]


def test_either_goes_on_where_the_other_stopped(made: Path):
    with opened(made) as ours:
        use(ours, "first")
        before = told(ours)
    with opened(made, shipped=True) as shipped:
        assert told(shipped) == before
        use(shipped, "second")
        after = told(shipped)
    with opened(made) as ours:
        assert told(ours) == after
        use(ours, "third")
        assert len(told(ours)["runs"]) == 3


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize(
    "left", [None, "", "DROP TABLE alembic_version", "DELETE FROM alembic_version"], ids=str
)
def test_what_is_missing_or_half_made_is_finished(made: Path, database: str, left: str | None):
    if not left:
        (made / database).unlink()
    if left is not None:
        with closing(sqlite3.connect(made / database)) as one:
            one.executescript(left)
    with opened(made) as instance:
        use(instance, "first")
        assert told(instance)["failed"] == 1
    with closing(sqlite3.connect(made / database)) as one:
        assert one.execute("SELECT count(*) FROM alembic_version").fetchone() == (1,)


@pytest.mark.parametrize("database", DATABASES)
def test_rubbish_is_told_and_left_as_it_is(made: Path, database: str):
    rubbish = b"rubbish " * 1000
    (made / database).write_bytes(rubbish)
    with pytest.raises(DatabaseError, match="not a database"), opened(made) as instance:
        use(instance, "first")
    assert (made / database).read_bytes() == rubbish


def test_a_database_somebody_else_writes_is_waited_for(made: Path):
    with opened(made) as instance, closing(sqlite3.connect(made / DATABASES[0])) as other:
        other.execute("BEGIN IMMEDIATE")
        done = threading.Thread(target=use, args=(instance, "first"))
        done.start()
        done.join(6)  # longer than SQLite waits unless told
        assert done.is_alive()
        other.rollback()
        done.join()
        assert told(instance)["failed"] == 1
