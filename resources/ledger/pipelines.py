"""Which work items belong to one pipeline. Its status follows from theirs and is not kept."""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Engine, bindparam, func, select, text

from domain.shared.packaged import packaged
from domain.shared.pipeline import ALPHABET
from domain.shared.work import CANCELLED, COMPLETED, FAILED, SUPERSEDED, Work
from resources.database.engine import reading, writing
from resources.database.schema import UtcDateTime
from resources.database.statements import chunks, insert_into, rows_in
from resources.ledger.rows import as_work, select_work
from resources.ledger.schema import pipeline_member, work


def new_pipeline_id() -> str:
    """A ULID: ids that sort by the moment they were made, and say nothing else."""
    number = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    return "".join(ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def missing_members(connection: Connection, members: Mapping[int, Collection[str]]) -> bool:
    """Whether any of these rows is not yet a member of its pipelines."""
    wanted = {number: set(names) for number, names in members.items() if names}
    known = _of(connection, wanted)
    return any(not names <= set(known.get(number, ())) for number, names in wanted.items())


def join(connection: Connection, members: Mapping[int, Collection[str]]) -> None:
    """Make these rows members of these pipelines; a member may join again."""
    wanted = sorted({(name, number) for number, names in members.items() for name in names})
    if wanted:
        rows = [{"pipeline_id": name, "work_id": number} for name, number in wanted]
        connection.execute(insert_into(pipeline_member, connection).on_conflict_do_nothing(), rows)


def inherit(connection: Connection, heirs: Sequence[tuple[int, int]]) -> None:
    """A pipeline that waits for the older row waits for the newer one instead."""
    if not heirs:
        return
    of = _of(connection, [old for old, _ in heirs])
    join(connection, {new: of.get(old, ()) for old, new in heirs})


def _of(connection: Connection, ids: Iterable[int]) -> dict[int, tuple[str, ...]]:
    member = pipeline_member.c
    query = select(member.work_id, member.pipeline_id).order_by(member.pipeline_id)
    found: dict[int, list[str]] = defaultdict(list)
    for number, name in rows_in(connection, query, member.work_id, ids):
        found[number].append(name)
    return {number: tuple(names) for number, names in found.items()}


@dataclass(frozen=True, slots=True)
class StatusCount:
    """The work items of one pipeline that have one kind and status. `counting` of them are the newest of
    their key. `fences` changes with every claim: two equal sets of these mean that nothing happened."""

    kind: str
    status: str
    number: int
    counting: int
    started_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime
    fences: int


@dataclass(frozen=True, slots=True)
class Pipelines:
    engine: Engine

    def of(self, work_ids: Iterable[int]) -> dict[int, tuple[str, ...]]:
        """By row, the pipelines it belongs to."""
        with reading(self.engine) as connection:
            return _of(connection, work_ids)

    def add(self, work_id: int, pipeline_ids: Collection[str]) -> None:
        """Make a row a member of these pipelines; a member may join again."""
        with writing(self.engine) as connection:
            join(connection, {work_id: pipeline_ids})

    def inherit_unfinished(self, row: Work) -> None:
        """Make a row that is about to be completed a member of the pipelines that still wait for its key:
        those of its rows that failed or were cancelled since one was completed last."""
        done = (
            select(func.max(work.c.id))
            .where(work.c.kind == row.kind, work.c.key == row.key, work.c.status == COMPLETED)
            .scalar_subquery()
        )
        waited = (
            select(pipeline_member.c.pipeline_id)
            .join(work, work.c.id == pipeline_member.c.work_id)
            .where(work.c.kind == row.kind, work.c.key == row.key, work.c.id < row.id)
            .where(work.c.id > func.coalesce(done, 0), work.c.status.in_((FAILED, CANCELLED, SUPERSEDED)))
        )
        with reading(self.engine) as connection:
            names = set(connection.execute(waited).scalars())
        if names:
            self.add(row.id, names)

    def members(self, pipeline_ids: Collection[str]) -> dict[str, list[Work]]:
        """By pipeline, its work, oldest first."""
        found: dict[str, list[Work]] = {name: [] for name in pipeline_ids}
        query = (
            select_work()
            .add_columns(pipeline_member.c.pipeline_id)
            .join(pipeline_member, pipeline_member.c.work_id == work.c.id)
        )
        with reading(self.engine) as connection:
            member = pipeline_member.c.pipeline_id
            for row in rows_in(connection, query.order_by(work.c.id), member, pipeline_ids):
                found[row[-1]].append(Work(*row[:-1]))
        return found

    def status_counts(self, pipeline_ids: Collection[str]) -> dict[str, list[StatusCount]]:
        """By pipeline, how many of its work items have each kind and status. Unknown pipelines have none."""
        moments = {name: UtcDateTime() for name in ("started_at", "finished_at", "updated_at")}
        query = text(packaged(__file__, "pipeline_counts")).columns(**moments)
        query = query.bindparams(bindparam("pipelines", expanding=True))
        found: dict[str, list[StatusCount]] = {name: [] for name in pipeline_ids}
        with reading(self.engine) as connection:
            for chunk in chunks(sorted(found)):
                for name, *values in connection.execute(query, {"pipelines": chunk}):
                    found[name].append(StatusCount(*values))
        return found

    def newest(self, limit: int, *, before: str | None = None, kind_prefix: str = "") -> list[str]:
        """The ids of the newest pipelines that have work, newest first: ULIDs sort by time."""
        member = pipeline_member.c
        query = select(member.pipeline_id).distinct().order_by(member.pipeline_id.desc()).limit(limit)
        if before is not None:
            query = query.where(member.pipeline_id < before)
        if kind_prefix:
            query = query.join(work, work.c.id == member.work_id)
            query = query.where(work.c.kind.startswith(kind_prefix, autoescape=True))
        with reading(self.engine) as connection:
            return list(connection.execute(query).scalars())

    def page(self, pipeline_id: str, limit: int, offset: int = 0) -> list[Work]:
        """Some of the work of a pipeline, oldest first."""
        member = pipeline_member.c
        query = select_work().join(pipeline_member, member.work_id == work.c.id)
        query = query.where(member.pipeline_id == pipeline_id).order_by(work.c.id).limit(limit).offset(offset)
        with reading(self.engine) as connection:
            return [as_work(row) for row in connection.execute(query)]
