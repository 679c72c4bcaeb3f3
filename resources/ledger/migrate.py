"""Bringing a database to the schema this program knows, and, for tests and rescues, back again.

All of it happens in one transaction under a lock, on SQLite too: several processes may start at once,
and a migration that is killed leaves the old schema behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, inspect, text

from resources.ledger.engine import (
    forget_schema,
    half_migrated,
    schema_mismatch,
    schema_version,
    speaking,
    writing_unchecked,
)
from resources.ledger.schema import HEAD, VERSION_TABLE, metadata

if TYPE_CHECKING:
    from alembic.config import Config

SCRIPTS = Path(__file__).parent / "migrations"
_LOCK = 0x1ED6E4


def migrate(engine: Engine) -> None:
    """Bring the schema to HEAD. Where it is there already this is one short look, without Alembic."""
    with speaking(engine):
        if _fits_already(engine):
            return
        with _alone(engine) as connection:
            if _version_or_refusal(connection, engine) != HEAD:
                _alembic(connection, "upgrade", "head")
                _require_whole(connection, engine)
    forget_schema(engine)


def _fits_already(engine: Engine) -> bool:
    if engine.dialect.name == "sqlite" and not Path(str(engine.url.database)).exists():
        return False
    with engine.connect() as connection, connection.begin():
        tables = inspect(connection).get_table_names()
        return (
            VERSION_TABLE in tables
            and schema_version(connection) == HEAD
            and set(metadata.tables) <= set(tables)
        )


def downgrade(engine: Engine, revision: str) -> None:
    """Back to an older schema ("base": none at all). What the newer one kept is lost."""
    with speaking(engine), _alone(engine) as connection:
        _alembic(connection, "downgrade", revision)
    forget_schema(engine)


def _version_or_refusal(connection: Connection, engine: Engine) -> str | None:
    tables = set(inspect(connection).get_table_names())
    version = schema_version(connection) if VERSION_TABLE in tables else None
    ours = sorted(tables & set(metadata.tables))
    if version is None and ours:
        raise half_migrated(engine, f"it has tables of ours ({', '.join(ours)}) but no version")
    if version is not None and version not in _known_revisions():
        if version < HEAD:  # older, and yet no migration leads on from there: `schema_mismatch` says migrate
            raise half_migrated(engine, f"its version {version} was never one of this program's")
        raise schema_mismatch(engine, version)
    if version == HEAD:
        _require_whole(connection, engine)
    return version


def _require_whole(connection: Connection, engine: Engine) -> None:
    missing = set(metadata.tables) - set(inspect(connection).get_table_names())
    if missing:
        raise half_migrated(engine, f"it lacks {', '.join(sorted(missing))}")


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """One transaction, and nobody else migrates meanwhile."""
    if engine.dialect.name == "sqlite":
        from filelock import FileLock

        path = Path(str(engine.url.database))
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path}.lock"):
            # Kept in the file for ever after, but cannot be set while others are connected and writing.
            raw = engine.raw_connection()
            raw.cursor().execute("PRAGMA journal_mode = WAL")
            raw.close()
            with writing_unchecked(engine) as connection:
                yield connection
        return
    with writing_unchecked(engine) as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        yield connection


def _alembic(connection: Connection, direction: str, revision: str) -> None:
    from alembic import command

    config = alembic_config()
    config.attributes["connection"] = connection
    getattr(command, direction)(config, revision)


def _known_revisions() -> set[str]:
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(alembic_config())
    return {script.revision for script in scripts.walk_revisions()}


def alembic_config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
