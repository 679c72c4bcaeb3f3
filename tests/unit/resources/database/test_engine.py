"""Opening the ledger: addresses, errors people can act on, and an import that costs little."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import event, exc, text

from domain.shared.clock import machine_clock
from domain.shared.error import InvalidInput, PermanentRunnerError, TransientResourceError
from domain.shared.work import UNCLASSIFIED, Kind
from resources.database.engine import normalise_url, open_engine
from resources.database.errors import driver_errors, location
from resources.database.schema import UtcDateTime
from resources.ledger.client import Ledger

KIND = Kind("k", transient=UNCLASSIFIED)
ROOT = Path(__file__).parents[4]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger.open(f"sqlite:///{tmp_path}/l.db", kinds=[KIND], clock=machine_clock)
    ledger.migrate()
    yield ledger
    ledger.close()


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("postgresql://u:p@h:1/d", "postgresql+psycopg2://u:p@h:1/d"),
        ("postgres://u:p@h/d?sslmode=require", "postgresql+psycopg2://u:p@h/d?sslmode=require"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
    ],
)
def test_normalise_url__bare_postgres_address__names_the_driver(given, normal):
    assert normalise_url(given) == normal


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://h/d"])
def test_open_engine__database_that_cannot_carry_a_ledger__is_refused(url):
    with pytest.raises(InvalidInput):
        open_engine(url)


def test_reading__server_is_down__names_no_password():
    ledger = Ledger.open("postgresql://u:s3cret@127.0.0.1:1/d", kinds=[], clock=machine_clock)
    with pytest.raises(TransientResourceError) as failure:
        ledger.counts()
    assert failure.value.reason_code == "ledger_unavailable"
    assert "s3cret" not in f"{failure.value} {location(ledger.engine)} {ledger!r}"


@pytest.mark.parametrize(
    ("message", "error_type", "reason_code"),
    [
        ("attempt to write a readonly database", PermanentRunnerError, "ledger_read_only"),
        ("unable to open database file", PermanentRunnerError, "ledger_unreachable"),
        ("database disk image is malformed", PermanentRunnerError, "ledger_corrupt"),
        ("password authentication failed for user u", PermanentRunnerError, "ledger_credentials"),
        ("database or disk is full", TransientResourceError, "disk_full"),
        ("database is locked", TransientResourceError, "ledger_unavailable"),
    ],
)
def test_driver_errors__message_of_a_driver__becomes_a_typed_error(ledger, message, error_type, reason_code):
    with pytest.raises(error_type) as failure, driver_errors(ledger.engine):
        raise exc.OperationalError("SELECT 1", {}, sqlite3.OperationalError(message))
    assert failure.value.reason_code == reason_code


def test_open_engine__sqlite__is_in_wal_mode_with_a_patient_writer(ledger):
    with ledger.engine.connect() as connection:
        found = [
            connection.execute(text(f"PRAGMA {name}")).scalar()
            for name in ("journal_mode", "busy_timeout", "foreign_keys")
        ]
    assert found == ["wal", 30_000, 1]


@pytest.mark.parametrize(
    ("ask", "indexes"),
    [
        (lambda ledger: ledger.claim("k", holder="worker:1", limit=1), ["ix_work_due"]),
        (lambda ledger: ledger.backlog("k"), ["ix_work_due", "uq_work_running|ix_work_unfinished"]),
        (
            lambda ledger: ledger.find("k", status=("queued", "running"), limit=None),
            ["ix_work_unfinished"],
        ),
        (lambda ledger: ledger.provenance.pending_revisions(), ["ix_partition_revision_pending"]),
    ],
    ids=["claim", "backlog", "find", "pending_revisions"],
)
def test_queries__of_unfinished_work__use_the_partial_indexes(ledger, ask, indexes):
    asked: list[tuple[str, object]] = []
    event.listen(ledger.engine, "before_cursor_execute", lambda *args: asked.append((args[2], args[3])))
    ask(ledger)
    with ledger.engine.connect() as connection:
        plans = [
            str(connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all())
            for statement, values in list(asked)
            if "FROM work" in statement or "FROM partition_revision" in statement
        ]
    assert all(re.search(index, plan) for index, plan in zip(indexes, plans, strict=False))
    assert len(plans) >= len(indexes)


def test_utc_date_time__moment_without_a_zone__is_refused(ledger):
    dialect, stored = ledger.engine.dialect, UtcDateTime()
    with pytest.raises(ValueError, match="no time zone"):
        stored.process_bind_param(datetime(2026, 11, 18), dialect)  # noqa: DTZ001
    aware = datetime(2026, 11, 18, tzinfo=UTC)
    assert stored.process_result_value(stored.process_bind_param(aware, dialect), dialect) == aware


def test_import__and_one_read__need_no_heavy_package(ledger):
    code = (
        "import sys\n"
        "from resources.ledger.client import Ledger\n"
        "from domain.shared.clock import machine_clock\n"
        f"ledger = Ledger.open('{ledger.engine.url}', kinds=[], clock=machine_clock)\n"
        "ledger.migrate(); ledger.counts()\n"
        "print(sorted({'alembic', 'dagster', 'pyarrow', 'pandas', 'filelock'} & set(sys.modules)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    reported = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert reported.stdout == "[]\n"
