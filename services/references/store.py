"""The references' own tables: scrape runs, and where the next scrape of a source goes on.

Hand-offs have a module of their own: their tables may be taken away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    ColumnElement,
    Engine,
    Index,
    String,
    Table,
    Text,
    and_,
    case,
    delete,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)

from domain.shared.clock import Clock, machine_clock
from domain.shared.table import ABSENT
from resources.database.engine import reading, writing
from resources.database.schema import Json, UtcDateTime, metadata, partial
from resources.database.statements import insert_into, rows_in
from resources.scraping.reference import Checkpoint
from services.references.handoff_store import HandoffStore

scrape_run = Table(
    "scrape_run",
    metadata,
    Column("id", String, primary_key=True),
    Column("source", String, nullable=False),
    Column("requested_by", String, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    Column("status", String, nullable=False),
    Column("counts", Json, nullable=False),
    Column("reason_code", String, nullable=False),
    Column("error", Text),
    Column("alive_at", UtcDateTime),  # by the machine's clock
    CheckConstraint("status IN ('running', 'completed', 'failed')", name="status"),
)
Index("ix_scrape_run_source_id", scrape_run.c.source, scrape_run.c.id)
Index("ix_scrape_run_running", scrape_run.c.source, **partial("status = 'running'"))

source_state = Table(
    "source_state",
    metadata,
    Column("source", String, primary_key=True),
    Column("etag", Text, nullable=False),
    Column("last_modified", Text, nullable=False),
    Column("cursor", Text, nullable=False),
    # Of the scrape that began last: only that one knows where the next goes on.
    Column("scrape_run_id", String, nullable=False),
    Column("scraped_at", UtcDateTime),
    Column("handed_version", String, nullable=False),
    Column("ingested_version", String, nullable=False),
)


ALIVE = timedelta(minutes=2)
"""So long after a sign of life a scrape is about to hand over itself what it stored."""
LOST_AFTER = timedelta(minutes=15)
"""So long after its last sign of life a scrape is dead: longer than any one request of a scraper."""
LOST = "worker_lost"


@dataclass(frozen=True, slots=True)
class ScrapeRun:
    id: str
    source: str
    requested_by: str
    started_at: datetime
    finished_at: datetime | None
    status: str
    counts: Mapping[str, Any]
    reason_code: str
    error: str | None


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is kept of a source. `handed_version` is the version of its partition whose references all have a
    hand-off, `ingested_version` those of references and documents that were compared last."""

    source: str
    etag: str = ""
    last_modified: str = ""
    cursor: str = ""
    scrape_run_id: str = ""
    scraped_at: datetime | None = None
    handed_version: str = str(ABSENT)
    ingested_version: str = ""

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(self.etag, self.last_modified, self.cursor)


_RUN = [scrape_run.c[one.name] for one in fields(ScrapeRun)]
_STATE = [source_state.c[one.name] for one in fields(SourceState)]


@dataclass(frozen=True, slots=True)
class ReferencesStore:
    """What the references keep in the ledger's database, beside their work."""

    engine: Engine
    clock: Clock
    machine_clock: Clock = machine_clock

    @property
    def handoffs(self) -> HandoffStore:
        return HandoffStore(self.engine, self.clock)

    def begin(self, scrape_run_id: str, source: str, by: str) -> SourceState:
        """Note that a scrape begins; return what is kept of its source. Scrapes of it that died end."""
        self.end_lost()
        values = {"id": scrape_run_id, "source": source, "requested_by": by, "started_at": self.clock()}
        values |= {"status": "running", "counts": {}, "reason_code": "", "alive_at": self.machine_clock()}
        new = {"source": source, "scrape_run_id": scrape_run_id}
        new |= dict.fromkeys(("etag", "last_modified", "cursor", "ingested_version"), "")
        new |= {"handed_version": str(ABSENT)}
        upsert = insert_into(source_state, self.engine).on_conflict_do_update(
            index_elements=["source"], set_={"scrape_run_id": scrape_run_id}
        )
        query = select(*_STATE).where(source_state.c.source == source)
        with writing(self.engine) as connection:
            connection.execute(insert(scrape_run), values)
            connection.execute(upsert, new)
            return SourceState(*connection.execute(query).one())

    def finish(self, scrape_run_id: str, source: str, counts: Mapping[str, Any], then: Checkpoint) -> None:
        """Note that a scrape ended well. `then` is kept unless another scrape began since: what that one
        stored meanwhile may be newer or older, so the next scrape reads the whole source."""
        now, state = self.clock(), source_state.c
        last = state.scrape_run_id == scrape_run_id
        with writing(self.engine) as connection:
            connection.execute(
                update(source_state)
                .where(state.source == source)
                .values(
                    scraped_at=now,
                    scrape_run_id="",
                    etag=case((last, then.etag), else_=""),
                    last_modified=case((last, then.last_modified), else_=""),
                    cursor=case((last, then.cursor), else_=""),
                )
            )
            done = {"finished_at": now, "status": "completed", "counts": dict(counts)}
            done |= {"reason_code": "", "error": None}  # it may have been taken for dead
            connection.execute(update(scrape_run).where(scrape_run.c.id == scrape_run_id).values(done))

    def fail(self, scrape_run_id: str, counts: Mapping[str, Any], reason_code: str, error: str) -> None:
        """Note that a scrape failed; what it stored before is kept."""
        failed = {"finished_at": self.clock(), "status": "failed", "counts": dict(counts)}
        failed |= {"reason_code": reason_code, "error": error}
        with writing(self.engine) as connection:
            connection.execute(update(scrape_run).where(scrape_run.c.id == scrape_run_id).values(failed))

    def show_life(self, scrape_run_id: str, counts: Mapping[str, Any]) -> None:
        """Note that a scrape is alive, and what it did so far."""
        alive = {"alive_at": self.machine_clock(), "counts": dict(counts)}
        change = update(scrape_run).where(scrape_run.c.id == scrape_run_id, _is_running())
        with writing(self.engine) as connection:
            connection.execute(change.values(alive))

    def scraping(self) -> frozenset[str]:
        """The sources that are being scraped just now."""
        query = select(scrape_run.c.source).where(
            _is_running(), scrape_run.c.alive_at > self.machine_clock() - ALIVE
        )
        with reading(self.engine) as connection:
            return frozenset(connection.execute(query).scalars())

    def end_lost(self) -> list[str]:
        """End the scrapes that show no sign of life any more; return their sources."""
        run, dead = scrape_run.c, self.machine_clock() - LOST_AFTER
        lost = and_(_is_running(), or_(run.alive_at < dead, run.alive_at.is_(None)))
        with reading(self.engine) as connection:
            found = connection.execute(select(run.id, run.source).where(lost)).all()
        ended = {"status": "failed", "reason_code": LOST, "finished_at": self.clock()}
        ended |= {"error": "its process shows no sign of life any more"}
        with writing(self.engine) as connection:
            for number, _ in found:
                connection.execute(update(scrape_run).where(lost, run.id == number).values(ended))
        return sorted({source for _, source in found})

    def forget_checkpoint(self, source: str) -> None:
        """Have the whole source read again, soon: nobody knows what of it is stored."""
        values = {"etag": "", "last_modified": "", "cursor": "", "scraped_at": None}
        with writing(self.engine) as connection:
            connection.execute(update(source_state).where(source_state.c.source == source).values(values))

    def state_of(self, source: str) -> SourceState:
        return self.states().get(source, SourceState(source))

    def states(self) -> dict[str, SourceState]:
        """What is kept of each source that was ever scraped."""
        with reading(self.engine) as connection:
            return {row.source: SourceState(*row) for row in connection.execute(select(*_STATE))}

    def note_handed(self, source: str, version: str, *, before: str | None = None) -> bool:
        """Note that all references of this version have a hand-off; with `before`, only if that was the
        version noted last."""
        change = update(source_state).where(source_state.c.source == source)
        if before is not None:
            change = change.where(source_state.c.handed_version == before)
        with writing(self.engine) as connection:
            return bool(connection.execute(change.values(handed_version=version)).rowcount)

    def note_ingested(self, source: str, version: str) -> None:
        """Note that references and documents of these versions were compared."""
        change = update(source_state).where(source_state.c.source == source)
        with writing(self.engine) as connection:
            connection.execute(change.values(ingested_version=version))

    def scrape_run(self, scrape_run_id: str) -> ScrapeRun | None:
        query = select(*_RUN).where(scrape_run.c.id == scrape_run_id)
        with reading(self.engine) as connection:
            row = connection.execute(query).first()
        return None if row is None else ScrapeRun(*row)

    def find_runs(
        self, ids: Collection[str] | None = None, *, before: str | None = None, limit: int = 100
    ) -> list[ScrapeRun]:
        """These scrape runs, or the newest of all sources, newest first."""
        query = select(*_RUN).order_by(scrape_run.c.id.desc())
        if before is not None:
            query = query.where(scrape_run.c.id < before)
        with reading(self.engine) as connection:
            if ids is not None:
                return [ScrapeRun(*row) for row in rows_in(connection, query, scrape_run.c.id, ids)]
            return [ScrapeRun(*row) for row in connection.execute(query.limit(limit))]

    def delete_scrape_runs(self, before: datetime) -> int:
        """Delete the runs that ended before a moment, but the newest of each source; return how many.

        One by one: a run may have met a million contents.
        """
        newest = select(func.max(scrape_run.c.id)).group_by(scrape_run.c.source)
        old = and_(scrape_run.c.finished_at < before, scrape_run.c.id.not_in(newest))
        with reading(self.engine) as connection:
            names = connection.execute(select(scrape_run.c.id).where(old)).scalars().all()
        for name in names:
            if self.handoffs.available:
                self.handoffs.forget_scrape(name)
            with writing(self.engine) as connection:
                connection.execute(delete(scrape_run).where(scrape_run.c.id == name))
        return len(names)


def _is_running() -> ColumnElement[bool]:
    """The condition of the partial index, literally: SQLite matches no bound values."""
    return scrape_run.c.status == literal_column("'running'")
