"""The history of hand-offs: one row for each content of a reference, and every scrape that met it.

The tables are an optional branch of the schema. While a person has taken it away, every operation here raises
`HandoffsUnavailable`; references and jobs are not touched by that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    Connection,
    Engine,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    update,
)

from domain.references.handoffs import EXHAUSTED, QUEUED_FROM_SCRAPE, Content, Ended, Handoff
from domain.references.jobs import INGEST, ingest_key
from domain.shared.clock import Clock
from domain.shared.error import PerennialError
from domain.shared.work import COMPLETED, FAILED, QUEUED, RUNNING, Work
from resources.database.engine import has_branch, reading, writing
from resources.database.schema import BigId, UtcDateTime, metadata, partial
from resources.database.statements import chunks, insert_into, lock_name, rows_in
from resources.ledger.outcome import cause_of
from resources.ledger.rows import read_keys
from resources.ledger.schema import is_running, work

BRANCH = "handoffs"

ingestion_handoffs = Table(
    "ingestion_handoffs",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("reference_id", String, nullable=False),
    Column("payload_hash", String, nullable=False),
    Column("source", String, nullable=False),
    Column("status", String, nullable=False),
    Column("reason_code", String, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("work_id", BigInteger),
    Column("error", Text),
    Column("scrape_run_id", String, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    UniqueConstraint("reference_id", "payload_hash"),
    CheckConstraint("status IN ('queued', 'running', 'completed', 'failed')", name="status"),
    sqlite_autoincrement=True,
    info={"branch": BRANCH},
)
Index("ix_ingestion_handoffs_source_id", ingestion_handoffs.c.source, ingestion_handoffs.c.id)
Index(
    "ix_ingestion_handoffs_unfinished",
    ingestion_handoffs.c.source,
    ingestion_handoffs.c.status,
    ingestion_handoffs.c.id,
    **partial("status IN ('queued', 'running', 'failed')"),
)

handoff_scrape = Table(
    "handoff_scrape",
    metadata,
    Column("scrape_run_id", String, primary_key=True),
    Column("handoff_id", BigId, ForeignKey("ingestion_handoffs.id", ondelete="CASCADE"), primary_key=True),
    info={"branch": BRANCH},
)
Index("ix_handoff_scrape_handoff_id", handoff_scrape.c.handoff_id)

_HANDOFF = [ingestion_handoffs.c[one.name] for one in fields(Handoff)]


class HandoffsUnavailable(PerennialError):
    """A person has taken the tables of hand-offs away."""

    reason_code = "handoff_unavailable"
    remedy = "`perennial migrate --up handoffs` brings hand-off back"

    def __init__(self) -> None:
        super().__init__(
            "hand-off is unavailable: its tables were taken away; references are stored all the same"
        )


@dataclass(frozen=True, slots=True)
class Known:
    """The hand-off of a content, in short."""

    id: int
    status: str
    reason_code: str

    @property
    def settled(self) -> bool:
        """Whether meeting the content again changes nothing: time heals only what was tried too often."""
        return self.status == COMPLETED or (self.status == FAILED and self.reason_code != EXHAUSTED)


@dataclass(frozen=True, slots=True)
class HandoffStore:
    engine: Engine
    clock: Clock

    @property
    def available(self) -> bool:
        with reading(self.engine) as connection:
            return has_branch(connection, BRANCH)

    def put(self, contents: Sequence[Content], scrape_run_id: str) -> list[Handoff]:
        """Make sure that each content has a hand-off, and note that this scrape met it.

        Of content that is handed over already nothing changes, unless it comes back after other content, or
        failed of what time may heal: then it is queued again.
        """
        if not contents:
            return []
        now, table = self.clock(), ingestion_handoffs.c
        insert = insert_into(ingestion_handoffs, self.engine)
        came_back = table.scrape_run_id < insert.excluded.scrape_run_id
        upsert = insert.on_conflict_do_update(
            index_elements=["reference_id", "payload_hash"],
            set_={
                "status": QUEUED,
                "reason_code": QUEUED_FROM_SCRAPE,
                "scrape_run_id": insert.excluded.scrape_run_id,
                "work_id": None,
                "finished_at": None,
                "updated_at": now,
            },
            where=came_back,
        )
        rows = [_new(content, now) for content in sorted(contents, key=lambda c: c.reference_id)]
        with self._writing() as connection:
            for chunk in chunks(rows, 500):
                connection.execute(upsert, chunk)
            found = _of_contents(connection, contents)
            again = [row.id for row in found if row.status == FAILED and row.reason_code == EXHAUSTED]
            if again and scrape_run_id:
                _queue_again(connection, again, scrape_run_id, now)
                found = _of_contents(connection, contents)
            if scrape_run_id:
                _note_met(connection, [row.id for row in found], scrape_run_id)
        return found

    def note_met(self, ids: Collection[int], scrape_run_id: str) -> None:
        """Note that a scrape met these, and changed nothing about them."""
        if ids:
            with self._writing() as connection:
                _note_met(connection, ids, scrape_run_id)

    def of_ids(self, ids: Collection[int]) -> dict[int, Handoff]:
        with self._reading() as connection:
            rows = rows_in(connection, select(*_HANDOFF), ingestion_handoffs.c.id, ids)
            return {row.id: Handoff(*row) for row in rows}

    def unfinished(self, source: str, after: int, limit: int) -> list[Handoff]:
        """Those of a source that are queued or running, after an id."""
        table = ingestion_handoffs.c
        wanted = and_(_unfinished(), table.source == source, table.id > after)
        with self._reading() as connection:
            query = select(*_HANDOFF).where(wanted).order_by(table.id).limit(limit)
            return [Handoff(*row) for row in connection.execute(query)]

    def superseded(self, ids: Collection[int]) -> frozenset[int]:
        """Those whose reference has other content by now."""
        newer = ingestion_handoffs.alias("newer")
        this = ingestion_handoffs.c
        query = select(this.id).where(
            select(newer.c.id)
            .where(
                newer.c.reference_id == this.reference_id,
                newer.c.payload_hash != this.payload_hash,
                newer.c.scrape_run_id > this.scrape_run_id,
            )
            .exists()
        )
        with self._reading() as connection:
            return frozenset(row[0] for row in rows_in(connection, query, this.id, ids))

    def begin(self, works: Mapping[int, Work]) -> None:
        """Note that these are being handed over, each by the work that was leased for it."""
        change = (
            update(ingestion_handoffs)
            .where(ingestion_handoffs.c.id == bindparam("this"), _still_leased())
            .values(
                status=RUNNING,
                work_id=bindparam("of_work"),
                attempts=bindparam("attempt"),
                updated_at=self.clock(),
                finished_at=None,
            )
        )
        rows = [{"this": n, "attempt": one.attempts} | _lease_of(one) for n, one in sorted(works.items())]
        if rows:
            with self._writing() as connection:
                connection.execute(change, rows)

    def end(self, ended: Mapping[int, Ended], works: Mapping[int, Work], *, waiting: bool = False) -> None:
        """Write how attempts ended, by the work they belonged to; not of what was queued again since, and
        not of work that somebody else has leased since.

        `waiting`: these wait, and their work is refused.
        """
        now, table = self.clock(), ingestion_handoffs.c
        names = ("status", "reason_code", "error", "finished_at", "work_id")
        mine = and_(table.work_id == bindparam("of_work"), _still_leased())
        if waiting:
            mine = _unfinished()
        change = (
            update(ingestion_handoffs)
            .where(table.id == bindparam("this"), mine)
            .values({name: bindparam(f"new_{name}") for name in names} | {"updated_at": now})
        )
        rows = [
            {
                "this": number,
                "new_status": one.status,
                "new_reason_code": one.reason_code,
                "new_error": None if one.error is None else cause_of(one.error).error,
                "new_finished_at": now if one.status != QUEUED else None,
                "new_work_id": works[number].id,
                **({} if waiting else _lease_of(works[number])),
            }
            for number, one in sorted(ended.items())
        ]
        if rows:
            with self._writing() as connection:
                connection.execute(change, rows)

    def page(
        self, source: str, status: str | None, scrape_run_id: str | None, limit: int, offset: int
    ) -> tuple[int, list[Handoff]]:
        """How many hand-offs of a source there are, and some of them in the order of their ids."""
        wanted: list[ColumnElement[bool]] = [ingestion_handoffs.c.source == source]
        if status is not None:
            wanted.append(ingestion_handoffs.c.status == status)
        if scrape_run_id is not None:
            met = select(handoff_scrape.c.handoff_id).where(handoff_scrape.c.scrape_run_id == scrape_run_id)
            wanted.append(ingestion_handoffs.c.id.in_(met))
        query = select(*_HANDOFF).where(*wanted).order_by(ingestion_handoffs.c.id)
        with self._reading() as connection:
            total = connection.execute(
                select(func.count()).select_from(ingestion_handoffs).where(*wanted)
            ).scalar_one()
            rows = connection.execute(query.limit(limit).offset(offset))
            return total, [Handoff(*row) for row in rows]

    def of_reference(self, reference_id: str) -> list[Handoff]:
        """All of one reference, oldest first."""
        query = select(*_HANDOFF).where(ingestion_handoffs.c.reference_id == reference_id)
        with self._reading() as connection:
            return [Handoff(*row) for row in connection.execute(query.order_by(ingestion_handoffs.c.id))]

    def scrapes(self, ids: Collection[int]) -> dict[int, list[str]]:
        """By hand-off, the scrape runs that met it, oldest first."""
        query = select(handoff_scrape.c.handoff_id, handoff_scrape.c.scrape_run_id)
        found: dict[int, list[str]] = {number: [] for number in ids}
        with self._reading() as connection:
            order = query.order_by(handoff_scrape.c.scrape_run_id)
            for number, name in rows_in(connection, order, handoff_scrape.c.handoff_id, ids):
                found[number].append(name)
        return found

    def forget_scrape(self, scrape_run_id: str) -> None:
        """Forget which contents a scrape met, but those that it met first or last."""
        other = handoff_scrape.alias("other")
        same = other.c.handoff_id == handoff_scrape.c.handoff_id
        before = select(other.c.handoff_id).where(same, other.c.scrape_run_id < scrape_run_id).exists()
        after = select(other.c.handoff_id).where(same, other.c.scrape_run_id > scrape_run_id).exists()
        between = and_(handoff_scrape.c.scrape_run_id == scrape_run_id, before, after)
        with self._writing() as connection:
            connection.execute(delete(handoff_scrape).where(between))

    def known(self, contents: Collection[Content]) -> dict[Content, Known]:
        """Those contents that have a hand-off of the scrape that brought them, or a later one."""
        table, wanted = ingestion_handoffs.c, {(one.reference_id, one.payload_hash): one for one in contents}
        columns = (table.reference_id, table.payload_hash, table.scrape_run_id)
        query = select(*columns, table.id, table.status, table.reason_code)
        with self._reading() as connection:
            rows = rows_in(connection, query, table.reference_id, {name for name, _ in wanted})
            return {
                content: Known(number, status, reason)
                for name, payload, scrape, number, status, reason in rows
                if (content := wanted.get((name, payload))) and scrape >= content.scrape_run_id
            }

    def unfinished_counts(self) -> dict[str, int]:
        """By source, how many are queued or running, read from a partial index."""
        source = ingestion_handoffs.c.source
        query = select(source, func.count()).where(_unfinished()).group_by(source)
        with self._reading() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def active_jobs(self, reference_ids: Collection[str]) -> frozenset[str]:
        """Those references of which an ingestion job waits or runs."""
        keys = {ingest_key(name): name for name in reference_ids}
        with reading(self.engine) as connection:
            states = read_keys(connection, INGEST, list(keys), lock=False)
        return frozenset(keys[key] for key, state in states.items() if state.waiting or state.running)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with reading(self.engine) as connection:
            yield _there(connection)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with writing(self.engine) as connection:
            # In turns: some write rows in the order of references, some in that of ids, and would deadlock.
            lock_name(connection, ingestion_handoffs.name)
            yield _there(connection)


def _there(connection: Connection) -> Connection:
    if not has_branch(connection, BRANCH):
        raise HandoffsUnavailable
    return connection


def _lease_of(one: Work) -> dict[str, int]:
    return {"of_work": one.id, "of_fence": one.fence}


def _still_leased() -> ColumnElement[bool]:
    """Whether work is leased as it was: a lease that others got since has another fence."""
    same = and_(work.c.id == bindparam("of_work"), work.c.fence == bindparam("of_fence"))
    return select(work.c.id).where(same, is_running(work)).exists()


def _is(status: str) -> ColumnElement[bool]:
    """Literally, as in the condition of the partial index: SQLite matches no bound values."""
    return ingestion_handoffs.c.status.in_([_literal(status)])


def _unfinished() -> ColumnElement[bool]:
    return ingestion_handoffs.c.status.in_([_literal(QUEUED), _literal(RUNNING)])


def _literal(status: str) -> Any:
    return literal_column(f"'{status}'")


def _new(content: Content, now: datetime) -> dict[str, Any]:
    return {
        "reference_id": content.reference_id,
        "payload_hash": content.payload_hash,
        "source": content.source,
        "status": QUEUED,
        "reason_code": QUEUED_FROM_SCRAPE,
        "attempts": 0,
        "scrape_run_id": content.scrape_run_id,
        "created_at": now,
        "updated_at": now,
    }


def _of_contents(connection: Connection, contents: Iterable[Content]) -> list[Handoff]:
    table = ingestion_handoffs.c
    wanted = {(one.reference_id, one.payload_hash) for one in contents}
    names = {name for name, _ in wanted}
    rows = rows_in(connection, select(*_HANDOFF), table.reference_id, names)
    found = [Handoff(*row) for row in rows]
    return sorted(
        (one for one in found if (one.reference_id, one.payload_hash) in wanted), key=lambda o: o.id
    )


def _note_met(connection: Connection, ids: Collection[int], scrape_run_id: str) -> None:
    rows = [{"scrape_run_id": scrape_run_id, "handoff_id": number} for number in ids]
    connection.execute(insert_into(handoff_scrape, connection).on_conflict_do_nothing(), rows)


def _queue_again(connection: Connection, ids: Collection[int], scrape_run_id: str, now: datetime) -> None:
    change = update(ingestion_handoffs).values(
        status=QUEUED,
        reason_code=QUEUED_FROM_SCRAPE,
        scrape_run_id=scrape_run_id,
        work_id=None,
        finished_at=None,
        updated_at=now,
    )
    still = and_(_is(FAILED), ingestion_handoffs.c.reason_code == EXHAUSTED)
    for chunk in chunks(sorted(ids)):
        connection.execute(change.where(ingestion_handoffs.c.id.in_(chunk), still))
