"""Which source this ledger belongs to: demo prices and real ones never share a lake."""

from __future__ import annotations

from sqlalchemy import Engine, select

from domain.shared.error import InvalidInput
from resources.database.engine import reading, writing
from resources.database.errors import location
from resources.database.statements import insert_into
from resources.ledger.schema import setting

SOURCE = "source"


def stamp_source(engine: Engine, source: str) -> None:
    """The first to come stamps; whoever comes with another source is refused."""
    if stamped_source(engine) is None:
        with writing(engine) as connection:
            connection.execute(
                insert_into(setting, engine).values(name=SOURCE, value=source).on_conflict_do_nothing()
            )
    check_source(engine, source)


def check_source(engine: Engine, source: str) -> None:
    """Refuse a look at what belongs to another source; what nobody has stamped belongs to nobody yet."""
    stamped = stamped_source(engine)
    if stamped not in (None, source):
        raise InvalidInput(
            f"the state at {location(engine)} belongs to source {stamped!r}, not {source!r}",
            reason_code="source_mismatch",
            remedy=f"set PERENNIAL_HOME to another folder for {source!r}, or PERENNIAL_SOURCE={stamped}",
        )


def stamped_source(engine: Engine) -> str | None:
    with reading(engine) as connection:
        return connection.execute(select(setting.c.value).where(setting.c.name == SOURCE)).scalar()
