"""The index of uploads: what each file was, who uploaded it, what became of it. Its rows are in staging.

An upload *counts* in a year until a newer one of its scope supersedes it there; of factors all count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Engine,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from domain.carbon.feeds import ORIGINS
from domain.carbon.observed import CurrentUpload
from domain.shared.clock import Clock
from resources.database.engine import reading, writing
from resources.database.schema import BigId, Json, UtcDateTime, metadata
from resources.database.statements import chunks, lock_name, rows_in

if TYPE_CHECKING:
    import pyarrow as pa

upload = Table(
    "upload",
    metadata,
    Column("id", BigId, primary_key=True, autoincrement=True),
    Column("kind", String, nullable=False),
    Column("topic", String, nullable=False),
    Column("institution", String, nullable=False),
    Column("source", String, nullable=False),
    Column("name", String, nullable=False),
    Column("sha256", String, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("taken", BigInteger, nullable=False),
    Column("problem_count", BigInteger, nullable=False),
    Column("problems", Json, nullable=False),
    Column("warnings", Json, nullable=False),
    Column("accepted", Boolean, nullable=False),
    Column("uploaded_by", String, nullable=False),
    Column("uploaded_at", UtcDateTime, nullable=False),
    Column("pipeline_id", String, nullable=False),
    Column("modified_at", UtcDateTime),
    sqlite_autoincrement=True,
)
Index("ix_upload_pipeline_id", upload.c.pipeline_id)
Index(
    "ix_upload_place",
    *(upload.c[name] for name in ("accepted", "kind", "topic", "institution", "source", "id")),
)

upload_year = Table(
    "upload_year",
    metadata,
    Column("upload_id", BigId, ForeignKey("upload.id", ondelete="CASCADE"), primary_key=True),
    Column("year", Integer, primary_key=True),
    Column("work_id", BigInteger),
)


@dataclass(frozen=True, slots=True)
class Upload:
    """One file. `topic` is what it is about besides its years: for data its type. `taken` of its `rows` are
    good; an upload that is not `accepted` changed nothing."""

    kind: str
    topic: str
    institution: str
    source: str
    name: str
    sha256: str
    bytes: int
    rows: int
    taken: int
    years: tuple[int, ...]
    uploaded_by: str
    pipeline_id: str
    accepted: bool = True
    problem_count: int = 0
    problems: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()
    uploaded_at: datetime | None = None
    modified_at: datetime | None = None
    id: int = 0

    def __str__(self) -> str:
        what = f"{self.kind} {self.topic}".rstrip()
        years = ", ".join(map(str, self.years))
        when = f" on {self.uploaded_at:%Y-%m-%d %H:%M} UTC" if self.uploaded_at else ""
        return (
            f"{self.name} ({what} {years} of {self.institution}, by {self.uploaded_by}{when}, "
            f"pipeline {self.pipeline_id})"
        )

    @property
    def file(self) -> str:
        """The file's name in rows: enough of the digest to be unique, short enough to be read."""
        return self.sha256[:16]

    @property
    def moment(self) -> datetime:
        """When a recorded upload came."""
        if self.uploaded_at is None:
            raise ValueError(f"{self.name} was not recorded")
        return self.uploaded_at

    @property
    def written_at(self) -> datetime:
        """When its content was written: known of an inbox file, otherwise when it was uploaded."""
        return self.modified_at or self.moment

    @property
    def scope(self) -> tuple[str, str, str, str]:
        """What a newer upload must share to supersede this one; factors are of their year alone, and an
        institution has one tree of units."""
        if self.kind == "factors":
            return self.kind, "", "", ""
        return self.kind, self.topic, self.institution, "" if self.kind == "units" else self.source


_SCOPE = (
    *(upload.c[name] for name in ("kind", "topic", "institution")),
    case((upload.c.kind == "units", ""), else_=upload.c.source),
)


def _of_scope(one: Upload) -> list[ColumnElement[bool]]:
    same = [column == word for column, word in zip(_SCOPE, one.scope, strict=True)]
    if one.kind != "factors":
        return same
    return [*same[:1], *([upload.c.topic.in_(("", one.topic))] if one.topic else [])]


def _accepted_of_years(one: Upload) -> tuple[ColumnElement[bool], ...]:
    years = select(upload_year.c.upload_id).where(upload_year.c.year.in_(one.years))
    return upload.c.accepted.is_(True), upload.c.id.in_(years)


_COLUMNS = tuple(column.name for column in upload.columns)
_CURRENT = tuple(field.name for field in fields(CurrentUpload) if field.name != "years")


@dataclass(frozen=True, slots=True)
class Uploads:
    engine: Engine
    clock: Clock

    def record(self, one: Upload) -> Upload:
        """Add an upload; return it with its number and moment."""
        with writing(self.engine) as connection:
            return self._insert(connection, one)

    def record_after(self, one: Upload, newest: Upload | None) -> Upload | None:
        """Add an upload; None if its scope has a newer one than `newest` by now."""
        found = select(func.max(upload.c.id)).where(*_of_scope(one), *_accepted_of_years(one))
        with writing(self.engine) as connection:
            lock_name(connection, "upload")
            if connection.execute(found).scalar() != (newest.id if newest else None):
                return None
            return self._insert(connection, one)

    def record_again(self, one: Upload) -> Upload | None:
        """Add an upload that the ledger had, with its old moment; None if somebody else added it."""
        with writing(self.engine) as connection:
            known = select(upload.c.id).where(upload.c.pipeline_id == one.pipeline_id)
            lock_name(connection, "upload")
            if connection.execute(known).first() is not None:
                return None
            return self._insert(connection, one)

    def _insert(self, connection: Connection, one: Upload) -> Upload:
        values = {name: getattr(one, name) for name in _COLUMNS if name not in ("id", "uploaded_at")}
        values |= {"problems": list(one.problems), "warnings": list(one.warnings)}
        # One at a time: the order of the numbers is the order of the moments.
        lock_name(connection, "upload")
        at = values["uploaded_at"] = one.uploaded_at or self.clock()
        number = connection.execute(insert(upload).values(values).returning(upload.c.id)).scalar_one()
        if one.years:
            rows = [{"upload_id": number, "year": year} for year in one.years]
            connection.execute(insert(upload_year), rows)
        return replace(one, id=number, uploaded_at=at)

    def delete(self, ids: Collection[int]) -> None:
        with writing(self.engine) as connection:
            for chunk in chunks(sorted(ids)):
                connection.execute(delete(upload_year).where(upload_year.c.upload_id.in_(chunk)))
                connection.execute(delete(upload).where(upload.c.id.in_(chunk)))

    def ingested_by(self, work_id: int, upload_ids: Collection[int], year: int) -> dict[int, int]:
        """Return by upload the work that ingested its rows of a year: this one, where none did before."""
        number, of_year = upload_year.c.upload_id, upload_year.c.year == year
        fresh = update(upload_year).where(of_year, upload_year.c.work_id.is_(None)).values(work_id=work_id)
        query = select(number, upload_year.c.work_id).where(of_year)
        with writing(self.engine) as connection:
            for chunk in chunks(upload_ids):
                connection.execute(fresh.where(number.in_(chunk)))
            return {row[0]: row[1] for row in rows_in(connection, query, number, upload_ids)}

    def current(self) -> list[CurrentUpload]:
        """Return the uploads that count, oldest first, each with the years in which it does.

        A pass calls this every few seconds: it reads no problems, and of superseded uploads only the index.
        """
        scope = (*_SCOPE, upload_year.c.year)
        rank = func.row_number().over(partition_by=scope, order_by=upload.c.id.desc())
        ranked = (
            select(upload.c.id, upload.c.kind, upload_year.c.year, rank.label("rank"))
            .join(upload_year, upload_year.c.upload_id == upload.c.id)
            .where(upload.c.accepted.is_(True))
            .subquery()
        )
        query = (
            select(*(upload.c[name] for name in _CURRENT), ranked.c.year)
            .join(ranked, ranked.c.id == upload.c.id)
            .where(or_(ranked.c.rank == 1, ranked.c.kind == "factors"))
            .order_by(upload.c.id, ranked.c.year)
        )
        found: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        with reading(self.engine) as connection:
            for row in connection.execute(query):
                found[tuple(row[:-1])].append(row[-1])
        return [
            CurrentUpload(**dict(zip(_CURRENT, one, strict=True)), years=tuple(years))
            for one, years in found.items()
        ]

    def of_scope(self, one: Upload, limit: int | None = None) -> list[Upload]:
        """Return the accepted uploads of the same scope and any of its years, newest first.

        Of factors of one type also those that may have others.
        """
        return self.find(*_of_scope(one), *_accepted_of_years(one), limit=limit)

    def newest_reading(self, one: Upload) -> Upload | None:
        """Return the newest upload of factors of the same type, institution and application."""
        same = [upload.c[name] == getattr(one, name) for name in ("kind", "topic", "institution", "source")]
        return next(iter(self.find(*same, *_accepted_of_years(one), limit=1)), None)

    def newest_of(self, one: Upload) -> Upload | None:
        return next(iter(self.of_scope(one, limit=1)), None)

    def replaced_since(self, moment: datetime) -> list[tuple[int, Upload, Upload]]:
        """Return (year, old, new) of the uploads of files that count since then, where others did before."""
        scope = (*_SCOPE, upload_year.c.year)
        ranked = (
            select(
                upload_year.c.year,
                func.lag(upload.c.id).over(partition_by=scope, order_by=upload.c.id).label("old"),
                upload.c.id.label("new"),
                func.lead(upload.c.id).over(partition_by=scope, order_by=upload.c.id).label("newer"),
                upload.c.uploaded_at,
            )
            .join(upload_year, upload_year.c.upload_id == upload.c.id)
            .where(upload.c.accepted.is_(True), upload.c.kind != "factors", upload.c.source.not_in(ORIGINS))
            .subquery()
        )
        of = ranked.c
        query = select(of.year, of.old, of.new).where(
            of.uploaded_at >= moment, of.old.is_not(None), of.newer.is_(None)
        )
        with reading(self.engine) as connection:
            found = connection.execute(query.order_by(of.new, of.year)).all()
        known = {one.id: one for one in self.find(ids={n for row in found for n in row[1:]})}
        return [(year, known[old], known[new]) for year, old, new in found]

    def superseded_before(self, sources: Collection[str], before: datetime) -> list[Upload]:
        """Return the uploads of these sources from before a moment that count in no year."""
        current = {one.id for one in self.current()}
        old = self.find(upload.c.source.in_(list(sources)), upload.c.uploaded_at < before)
        return [one for one in old if one.id not in current]

    def pipelines(self, *, before: str | None = None, limit: int | None = None) -> set[str]:
        """The ids of all pipelines, or of the newest."""
        query = select(upload.c.pipeline_id).order_by(upload.c.pipeline_id.desc()).limit(limit)
        if before is not None:
            query = query.where(upload.c.pipeline_id < before)
        with reading(self.engine) as connection:
            return set(connection.execute(query).scalars())

    def as_arrow(self) -> pa.Table:
        """Every upload, for queries."""
        from resources.database.arrow import read_arrow

        return read_arrow(self.engine, upload)

    def page(
        self, *, kind: str | None, year: int | None, accepted: bool | None, limit: int, offset: int
    ) -> tuple[int, list[Upload]]:
        """Return how many uploads there are like that, and some of them, newest first."""
        wanted = [upload.c.kind == kind] if kind is not None else []
        if accepted is not None:
            wanted.append(upload.c.accepted.is_(accepted))
        if year is not None:
            wanted.append(upload.c.id.in_(select(upload_year.c.upload_id).where(upload_year.c.year == year)))
        ids = select(upload.c.id).where(*wanted).order_by(upload.c.id.desc()).limit(limit).offset(offset)
        with reading(self.engine) as connection:
            total = connection.execute(select(func.count()).select_from(upload).where(*wanted)).scalar_one()
            numbers = list(connection.execute(ids).scalars())
        return total, self.find(ids=numbers)

    def find(
        self,
        *more: ColumnElement[bool],
        ids: Collection[int] | None = None,
        accepted: bool | None = None,
        pipeline_ids: Collection[str] | None = None,
        limit: int | None = None,
    ) -> list[Upload]:
        """Newest first."""
        query = select(*(upload.c[name] for name in _COLUMNS)).where(*more)
        if accepted is not None:
            query = query.where(upload.c.accepted.is_(accepted))
        of_year = select(upload_year.c.upload_id, upload_year.c.year).order_by(upload_year.c.year)
        years: dict[int, list[int]] = defaultdict(list)
        with reading(self.engine) as connection:
            if ids is not None:
                found = rows_in(connection, query, upload.c.id, ids)
            elif pipeline_ids is not None:
                found = rows_in(connection, query, upload.c.pipeline_id, pipeline_ids)
            else:
                found = iter(connection.execute(query.order_by(upload.c.id.desc()).limit(limit)))
            rows = sorted(found, key=lambda row: -row[0])
            for number, year in rows_in(connection, of_year, upload_year.c.upload_id, [r[0] for r in rows]):
                years[number].append(year)
        return [Upload(**dict(zip(_COLUMNS, row, strict=True)), years=tuple(years[row[0]])) for row in rows]
