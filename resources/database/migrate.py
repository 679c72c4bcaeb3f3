"""Bringing a database to the schema this program knows, and, for tests and rescues, back again.

All of it happens in one transaction under a lock, on SQLite too: several processes may start at once,
and a migration that is killed leaves the old schema behind.

A branch of the schema is optional: a person may take it away with all that its tables hold. It stays away,
whatever migrates later, until a person brings it back.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, column, delete, insert, inspect, select, table

from domain.shared.error import InvalidInput
from resources.database.engine import (
    forget_schema,
    found_versions,
    has_branch,
    reading,
    schema_version,
    writing_unchecked,
)
from resources.database.errors import driver_errors, half_migrated, schema_mismatch
from resources.database.schema import BRANCHES, HEAD, VERSION_TABLE, metadata
from resources.database.statements import lock_name

if TYPE_CHECKING:
    from alembic.config import Config

OLDEST = "0005"
"""The schema that the migrations begin with."""
SCRIPTS = Path(__file__).parent / "migrations"
_TAKEN_AWAY = "schema_without_"
"""How the name of a setting begins that says that a branch was taken away."""
_setting = table("setting", column("name"), column("value"))


def migrate(engine: Engine) -> None:
    """Bring the schema to HEAD, with the branches that nobody took away. Where it is there already this is a
    short read, without Alembic."""
    with driver_errors(engine):
        if _is_current(engine):
            return
        with _exclusive(engine) as connection:
            if _current_version(connection, engine) != HEAD:
                _alembic(connection, "upgrade", HEAD)
            for branch in BRANCHES:
                if not (has_branch(connection, branch) or _is_taken_away(connection, branch)):
                    _alembic(connection, "upgrade", f"{branch}@head")
    forget_schema(engine)


def downgrade(engine: Engine, revision: str) -> None:
    """Back to an older schema ("base": none at all). What only the newer one keeps is lost, and so are the
    optional branches."""
    with driver_errors(engine), _exclusive(engine) as connection:
        for branch in BRANCHES:
            if has_branch(connection, branch):
                _alembic(connection, "downgrade", f"{branch}@base")
        _alembic(connection, "downgrade", revision)
    forget_schema(engine)


def take_branch_away(engine: Engine, branch: str) -> None:
    """Delete the tables of an optional branch and what they hold. It stays away."""
    _check_known(branch)
    with driver_errors(engine), _exclusive(engine) as connection:
        if has_branch(connection, branch):
            _alembic(connection, "downgrade", f"{branch}@base")
        if not _is_taken_away(connection, branch):
            values = {"name": _TAKEN_AWAY + branch, "value": "a person took it away"}
            connection.execute(insert(_setting), values)


def bring_branch_back(engine: Engine, branch: str) -> None:
    """Make the tables of an optional branch again; they are empty."""
    _check_known(branch)
    with driver_errors(engine), _exclusive(engine) as connection:
        connection.execute(delete(_setting).where(_setting.c.name == _TAKEN_AWAY + branch))
    migrate(engine)


def branches(engine: Engine) -> dict[str, bool]:
    """Whether the tables of each optional branch are there."""
    with reading(engine) as connection:
        return {branch: has_branch(connection, branch) for branch in BRANCHES}


def _check_known(branch: str) -> None:
    if branch not in BRANCHES:
        known = ", ".join(BRANCHES)
        raise InvalidInput(
            f"the schema has no optional branch {branch!r}",
            reason_code="unknown_branch",
            remedy=f"name one of: {known}",
        )


def _is_current(engine: Engine) -> bool:
    found = found_versions(engine)
    if HEAD not in found:
        return False
    missing = [branch for branch, newest in BRANCHES.items() if newest not in found]
    if not missing:
        return True
    with engine.connect() as connection, connection.begin():
        return all(_is_taken_away(connection, branch) for branch in missing)


def _is_taken_away(connection: Connection, branch: str) -> bool:
    query = select(_setting.c.name).where(_setting.c.name == _TAKEN_AWAY + branch)
    return connection.execute(query).first() is not None


def _current_version(connection: Connection, engine: Engine) -> str | None:
    """The version to migrate from; raises where no migration leads on from what is there."""
    tables = set(inspect(connection).get_table_names())
    version = schema_version(connection) if VERSION_TABLE in tables else None
    ours = sorted(tables & set(metadata.tables))
    if version is None and ours:
        raise half_migrated(engine, f"it has tables of ours ({', '.join(ours)}) but no version")
    if version is not None and version > HEAD:
        raise schema_mismatch(engine, version)
    if version is not None and version < OLDEST:
        raise half_migrated(engine, f"no migration leads on from its version {version}")
    return version


@contextmanager
def _exclusive(engine: Engine) -> Iterator[Connection]:
    """One transaction, while no other process migrates."""
    if engine.dialect.name != "sqlite":
        with writing_unchecked(engine) as connection:
            lock_name(connection, "migration")
            yield connection
        return
    from filelock import FileLock

    path = Path(str(engine.url.database))
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{path}.lock"):
        with writing_unchecked(engine, _prepare_migration) as connection:
            yield connection
        engine.dispose()  # the connection, which has foreign keys off


def _prepare_migration(driver: Any) -> None:
    # The mode is kept in the file for ever after, but cannot be set while others are connected and writing.
    driver.execute("PRAGMA journal_mode = WAL")
    # A table that is built anew is dropped in between, which must not take the rows that refer to it along.
    driver.execute("PRAGMA foreign_keys = OFF")


def _alembic(connection: Connection, direction: str, revision: str) -> None:
    from alembic import command

    config = alembic_config()
    config.attributes["connection"] = connection
    getattr(command, direction)(config, revision)


def alembic_config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
