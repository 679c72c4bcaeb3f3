"""Migrations: up, down and up again; what they build is what the code believes; wrong schemas are refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect, text

from domain.carbon.jobs import ALL_KINDS, FILE_INGEST
from domain.shared.clock import machine_clock
from domain.shared.error import InvalidInput
from domain.shared.work import WorkRequest
from resources.database.engine import forget_schema, open_engine, reading
from resources.database.migrate import alembic_config, downgrade, migrate
from resources.database.schema import BRANCHES, HEAD, VERSION_TABLE, metadata
from resources.ledger.client import Ledger
from resources.ledger.provenance import PartitionRecord

for module in (
    "resources.ledger.schema",
    "resources.tushare.pace",
    "services.carbon.store",
    "services.references.store",
):
    import_module(module)  # the tables it defines


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_database"))
    return f"sqlite:///{tmp_path}/home/ledger.db"


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_engine(database_url)
    yield engine
    engine.dispose()


def shape(engine: Engine) -> dict[str, object]:
    """Everything a database says of our tables, definitions word for word."""
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            query = (
                "SELECT name, sql FROM sqlite_master WHERE tbl_name <> :version AND name NOT LIKE 'sqlite_%'"
            )
        else:
            query = (
                "SELECT indexname, indexdef FROM pg_indexes"
                " WHERE schemaname = 'public' AND tablename <> :version"
                " UNION ALL SELECT table_name || '.' || column_name, concat_ws(' ', ordinal_position,"
                " data_type, is_nullable, column_default, is_identity) FROM information_schema.columns"
                " WHERE table_schema = 'public' AND table_name <> :version"
                " UNION ALL SELECT conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)"
                " FROM pg_constraint WHERE connamespace = 'public'::regnamespace"
                " AND conrelid::regclass::text <> :version"
            )
        rows = connection.execute(text(query), {"version": VERSION_TABLE})
        # Spaces and quotes aside: a column that was added later has others before its comma.
        return {
            name: "".join(definition.replace('"', "").split())
            for name, definition in rows
            # A view is no table of the metadata.
            if definition and not name.startswith("ingestion_jobs")
        }


def test_migrate__empty_database__builds_what_the_metadata_says_and_downgrade_leaves_nothing(engine: Engine):
    migrate(engine)
    migrated = shape(engine)
    downgrade(engine, "base")
    assert shape(engine) == {}
    metadata.create_all(engine)
    assert migrated == shape(engine)


def test_migrate__home_of_0005__keeps_its_rows_in_new_words(engine: Engine):
    """The oldest home there is. What it stored is read as if it were stored today."""
    migrate(engine)
    ledger = Ledger(engine, {kind.name: kind for kind in ALL_KINDS}, machine_clock)
    request = WorkRequest(FILE_INGEST, "inbox_files:data/a.csv", "1:2", reason_code="requested")
    ledger.enqueue([request, replace(request, key="inbox_files:c", reason_code="corrupt")])
    ledger.supersede(ledger.enqueue([replace(request, key="inbox_files:b")]).created)
    ledger.provenance.record([PartitionRecord("t", "p", 1, "d")])
    before = ledger.find(), ledger.provenance.records(["t"])
    downgrade(engine, "0005")
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT key, status, reason_code, strikes FROM work ORDER BY id"
        ).all()
        assert connection.exec_driver_sql("SELECT count(*) FROM partition_fact").scalar() == 1
    assert [tuple(row) for row in rows] == [
        ("dropped_files:data/a.csv", "queued", "asked_for", 0),
        ("dropped_files:c", "queued", "damaged", 0),
        ("dropped_files:b", "cancelled", "superseded", 0),
    ]
    migrate(engine)
    assert (ledger.find(), ledger.provenance.records(["t"])) == before


@pytest.mark.parametrize("version", ["0004", "9999"])
def test_migrate__too_old_or_newer_schema__is_refused(engine: Engine, version: str):
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(
            text(f"UPDATE {VERSION_TABLE} SET version_num = '{version}' WHERE version_num = '{HEAD}'")
        )
    forget_schema(engine)
    for action in (read, migrate):
        with pytest.raises(InvalidInput) as refusal:
            action(engine)
        assert refusal.value.reason_code == "ledger_schema"


def test_heads__are_the_newest_migrations():
    from alembic.script import ScriptDirectory

    heads = ScriptDirectory.from_config(alembic_config()).get_heads()
    assert set(heads) == {HEAD, *BRANCHES.values()}


def test_migrate__many_processes_at_once__builds_it_once(database_url: str):
    def one(_: int) -> None:
        engine = open_engine(database_url)
        migrate(engine)
        engine.dispose()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(one, range(12)))


def test_migrate__database_shared_with_dagster__leaves_its_tables_alone(engine: Engine):
    if engine.dialect.name == "sqlite":
        Path(str(engine.url.database)).parent.mkdir(parents=True)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('dagster')")
    migrate(engine)
    downgrade(engine, "base")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT * FROM alembic_version").scalar() == "dagster"


def read(engine: Engine) -> None:
    with reading(engine):
        pass


def test_migrate__tables_without_a_version__is_refused(engine: Engine):
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(text(f"DROP TABLE {VERSION_TABLE}"))
    forget_schema(engine)
    with pytest.raises(InvalidInput, match="there is no ledger"):
        read(engine)
    with pytest.raises(InvalidInput, match="half-migrated"):
        migrate(engine)


def test_reading__no_schema__is_refused_and_leaves_nothing_behind(engine: Engine):
    with pytest.raises(InvalidInput) as refusal:
        read(engine)
    assert "migrate" in refusal.value.remedy
    if engine.dialect.name == "sqlite":
        assert not Path(str(engine.url.database)).exists()
    else:
        assert inspect(engine).get_table_names() == []


def test_migrate__interrupted__leaves_the_old_schema(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    from resources.database import migrate as module

    run = module._alembic

    def die(*arguments: object) -> None:
        run(*arguments)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_alembic", die)
    with pytest.raises(KeyboardInterrupt):
        migrate(engine)
    assert inspect(engine).get_table_names() == []
