"""Migrations: up, down and up again; what they build is what the code believes; wrong schemas are refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from domain.shared.error import InvalidInput
from resources.ledger.engine import forget_schema, open_engine
from resources.ledger.migrate import alembic_config, downgrade, migrate
from resources.ledger.schema import HEAD, VERSION_TABLE, metadata


@pytest.fixture
def engine(ledger_url: str):
    engine = open_engine(ledger_url)
    yield engine
    engine.dispose()


def shape(engine) -> dict[str, object]:
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
        return {name: " ".join(definition.split()) for name, definition in rows if definition}


def test_up_down_and_up_again(engine):
    migrate(engine)
    once = shape(engine)
    downgrade(engine, "base")
    assert shape(engine) == {}
    migrate(engine)
    assert shape(engine) == once
    assert {name.split(".")[0] for name in once} >= set(
        metadata.tables
    ) or engine.dialect.name == "postgresql"


def test_what_migrations_build_is_what_the_code_believes(engine):
    migrate(engine)
    migrated = shape(engine)
    downgrade(engine, "base")
    metadata.create_all(engine)
    assert migrated == shape(engine)


def test_autogenerate_finds_nothing_to_do(engine):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    migrate(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []


def test_the_code_knows_the_newest_migration():
    from alembic.script import ScriptDirectory

    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == HEAD


def test_many_processes_may_migrate_at_once(ledger_url):
    def one(_: int) -> None:
        engine = open_engine(ledger_url)
        migrate(engine)
        engine.dispose()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(one, range(12)))


def test_other_tables_of_a_shared_database_are_left_alone(engine):
    with engine.begin() if engine.dialect.name == "postgresql" else _sqlite_file(engine) as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('dagster')")
    migrate(engine)
    downgrade(engine, "base")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT * FROM alembic_version").scalar() == "dagster"


def _sqlite_file(engine):
    Path(engine.url.database).parent.mkdir(parents=True)
    return engine.begin()


def set_version(engine, version: str | None) -> None:
    with engine.begin() as connection:
        if version is None:
            connection.execute(text(f"DROP TABLE {VERSION_TABLE}"))
        else:
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = :v"), {"v": version})
    forget_schema(engine)


def test_a_newer_schema_is_refused_for_reading_and_for_migrating(ledger):
    set_version(ledger.engine, "9999")
    for action in (ledger.counts, ledger.migrate):
        with pytest.raises(InvalidInput, match="newer than this program") as refusal:
            action()
        assert "upgrade this program" in refusal.value.remedy


def test_a_half_migrated_schema_is_refused(ledger):
    set_version(ledger.engine, None)
    with pytest.raises(InvalidInput, match="schema none"):
        ledger.counts()
    with pytest.raises(InvalidInput, match="half-migrated") as refusal:
        ledger.migrate()
    assert "backup" in refusal.value.remedy


def test_a_schema_that_lost_a_table_is_refused(ledger):
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE pace")
    with pytest.raises(InvalidInput, match="lacks pace"):
        ledger.migrate()


def test_an_unmigrated_ledger_says_what_to_do_and_leaves_nothing_behind(open_ledger):
    ledger = open_ledger()
    with pytest.raises(InvalidInput) as refusal:
        ledger.counts()
    assert "migrate" in refusal.value.remedy
    if ledger.engine.dialect.name == "sqlite":
        assert not Path(ledger.engine.url.database).exists()
    else:
        assert inspect(ledger.engine).get_table_names() == []


def test_a_migration_that_dies_leaves_the_old_schema(engine, monkeypatch):
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("resources.ledger.migrate._require_whole", die)
    with pytest.raises(KeyboardInterrupt):
        migrate(engine)
    assert inspect(engine).get_table_names() == []
    monkeypatch.undo()
    migrate(engine)
