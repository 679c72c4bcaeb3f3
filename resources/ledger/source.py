"""Which source this database belongs to: sandbox prices and real ones never share a lake."""

from __future__ import annotations

from sqlalchemy import select

from domain.shared.error import InvalidInput
from resources.database.engine import reading, writing
from resources.database.errors import location
from resources.database.statements import insert_into
from resources.ledger.context import LedgerContext
from resources.ledger.schema import setting

SOURCE = "source"


class SourceOperations(LedgerContext):
    def stamp_source(self, source: str) -> None:
        """The first source is kept; every other one is refused."""
        if self.stamped_source() is None:
            with writing(self.engine) as connection:
                row = insert_into(setting, self.engine).values(name=SOURCE, value=source)
                connection.execute(row.on_conflict_do_nothing())
        self.check_source(source)

    def check_source(self, source: str) -> None:
        """Raise if the database belongs to another source; one without a stamp belongs to none yet."""
        stamped = self.stamped_source()
        if stamped not in (None, source):
            raise InvalidInput(
                f"the state at {location(self.engine)} belongs to source {stamped!r}, not {source!r}",
                reason_code="source_mismatch",
                remedy=f"set PERENNIAL_HOME to another folder for {source!r}, or PERENNIAL_SOURCE={stamped}",
            )

    def stamped_source(self) -> str | None:
        with reading(self.engine) as connection:
            return connection.execute(select(setting.c.value).where(setting.c.name == SOURCE)).scalar()
