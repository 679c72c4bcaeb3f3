"""Opening the ledger: addresses, errors people can act on, and an import that costs little."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import psycopg2
import pytest
from sqlalchemy import event, text

from domain.shared.clock import machine_clock
from domain.shared.error import InvalidInput, PermanentRunnerError, TransientResourceError
from domain.shared.work import UNCLASSIFIED, Kind
from resources.database.engine import normalise_url, open_engine, reading, writing
from resources.database.errors import location
from resources.database.schema import UtcDateTime
from resources.ledger.client import Ledger

KIND = Kind("k", transient=UNCLASSIFIED)
ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("postgresql://u:p@h:1/d", "postgresql+psycopg2://u:p@h:1/d"),
        ("postgres://u:p@h/d?sslmode=require", "postgresql+psycopg2://u:p@h/d?sslmode=require"),
        ("postgresql+psycopg2://h/d", "postgresql+psycopg2://h/d"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
    ],
)
def test_a_bare_postgres_address_names_the_driver_we_have(given, normal):
    assert normalise_url(given) == normal


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://h/d"])
def test_databases_that_cannot_carry_a_ledger_are_refused(url):
    with pytest.raises(InvalidInput):
        open_engine(url)


def test_a_password_is_in_no_message():
    ledger = Ledger.open("postgresql://u:s3cret@127.0.0.1:1/d", kinds=[], clock=machine_clock)
    with pytest.raises(TransientResourceError) as failure:
        ledger.counts()
    assert failure.value.reason_code == "ledger_unavailable"
    assert "s3cret" not in f"{failure.value} {location(ledger.engine)} {ledger!r}"


def test_a_read_only_disk_is_said_to_be_one(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/l.db", kinds=[], clock=machine_clock)
    ledger.migrate()

    def write() -> None:
        with writing(ledger.engine) as connection:
            # A right on the file would not stop root.
            connection.exec_driver_sql("PRAGMA query_only = ON")
            connection.exec_driver_sql("DELETE FROM pace")

    with pytest.raises(PermanentRunnerError) as failure:
        write()
    ledger.close()
    assert failure.value.reason_code == "ledger_read_only"
    assert "writable" in failure.value.remedy


def test_a_folder_that_is_a_file_is_said_to_be_unreachable(tmp_path):
    (tmp_path / "l.db").mkdir()
    ledger = Ledger.open(f"sqlite:///{tmp_path}/l.db", kinds=[], clock=machine_clock)
    with pytest.raises(PermanentRunnerError, match="unable to open") as failure:
        ledger.counts()
    assert failure.value.reason_code == "ledger_unreachable"


def test_sqlite_is_in_wal_mode_with_a_patient_writer(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/l.db", kinds=[], clock=machine_clock)
    ledger.migrate()
    with ledger.engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA busy_timeout")).scalar() == 30_000
        assert connection.execute(text("PRAGMA foreign_keys")).scalar() == 1
    ledger.close()


def test_sqlite_finds_due_rows_by_their_index(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/l.db", kinds=[KIND], clock=machine_clock)
    ledger.migrate()
    asked: list[tuple[str, object]] = []
    event.listen(ledger.engine, "before_cursor_execute", lambda *args: asked.append((args[2], args[3])))
    ledger.claim(KIND.name, holder="worker:1", limit=1)
    with ledger.engine.connect() as connection:
        plans = [
            str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {said}", values).all())
            for said, values in list(asked)
            if "FROM work" in said
        ]
    ledger.close()
    assert len(plans) > 0
    assert all("ix_work_due" in plan for plan in plans)


def test_sqlite_finds_what_is_under_way_without_reading_what_is_done(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/l.db", kinds=[], clock=machine_clock)
    ledger.migrate()
    asked: list[tuple[str, object]] = []
    event.listen(ledger.engine, "before_cursor_execute", lambda *args: asked.append((args[2], args[3])))
    ledger.find("k", status=("queued", "running"), limit=None)
    ledger.provenance.pending_revisions()
    with ledger.engine.connect() as connection:
        plans = [
            str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {said}", values).all())
            for said, values in list(asked)
            if "FROM work" in said or "FROM partition_revision" in said
        ]
    ledger.close()
    assert ["ix_work_unfinished" in plans[0], "ix_partition_revision_pending" in plans[1]] == [True, True]


def test_a_moment_without_a_zone_is_refused(tmp_path):
    engine = open_engine(f"sqlite:///{tmp_path}/l.db")
    with pytest.raises(ValueError, match="no time zone"):
        UtcDateTime().process_bind_param(datetime(2026, 11, 18), engine.dialect)  # noqa: DTZ001
    aware = datetime(2026, 11, 18, tzinfo=UTC)
    stored = UtcDateTime().process_bind_param(aware, engine.dialect)
    assert UtcDateTime().process_result_value(stored, engine.dialect) == aware


def test_importing_and_reading_needs_no_heavy_package(tmp_path):
    ledger = Ledger.open(f"sqlite:///{tmp_path}/l.db", kinds=[], clock=machine_clock)
    ledger.migrate()
    ledger.close()
    code = (
        "import sys\n"
        "from resources.ledger.client import Ledger\n"
        "from domain.shared.clock import machine_clock\n"
        f"ledger = Ledger.open('sqlite:///{tmp_path}/l.db', kinds=[], clock=machine_clock)\n"
        "ledger.migrate(); ledger.counts()\n"
        "print(sorted({'alembic', 'dagster', 'pyarrow', 'pandas', 'filelock'} & set(sys.modules)))\n"
    )
    reported = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert reported.stdout == "[]\n"


@pytest.mark.parametrize(("asked", "waits"), [("", 10), ("?connect_timeout=3", 3)])
def test_how_long_a_connection_is_waited_for_may_stand_in_the_address(asked, waits, monkeypatch):
    reported = []

    def connect(*_: object, **options: object) -> None:
        reported.append(int(options["connect_timeout"]))
        raise psycopg2.OperationalError("nobody there")

    monkeypatch.setattr(psycopg2, "connect", connect)
    with pytest.raises(TransientResourceError), reading(open_engine(f"postgresql://127.0.0.1:1/d{asked}")):
        pass
    assert reported[-1] == waits
