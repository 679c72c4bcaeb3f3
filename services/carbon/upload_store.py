"""The index of uploads: what each file was, who uploaded it, what came of it. Its rows are in staging."""

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
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.engine import Row

from domain.shared.clock import Clock
from resources.database.engine import reading, writing
from resources.database.schema import BigId, Json, UtcDateTime, metadata
from resources.database.statements import chunks, lock_name
from resources.ledger.schema import pipeline_member

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
    """One file. `topic` says what it speaks of beside its years: for data its type. `taken` of its `rows`
    are good; an upload that is not `accepted` changed nothing."""

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
        """Its name in rows: enough of the digest to be one of a kind, short enough to be read."""
        return self.sha256[:16]

    @property
    def moment(self) -> datetime:
        """When it came, of one that was recorded."""
        if self.uploaded_at is None:
            raise ValueError(f"{self.name} was not recorded")
        return self.uploaded_at

    @property
    def written_at(self) -> datetime:
        """When its content was written: known of an inbox file, otherwise when it was uploaded."""
        return self.modified_at or self.moment

    @property
    def place(self) -> tuple[str, str, str, str]:
        """What a newer upload of the same takes the place of. Factors are the year's, whoever brings them."""
        if self.kind == "factors":
            return self.kind, "", "", ""
        return self.kind, self.topic, self.institution, self.source


@dataclass(frozen=True, slots=True)
class Standing:
    """An upload as a look sees it. `years` are those it still speaks of."""

    id: int
    kind: str
    topic: str
    institution: str
    source: str
    pipeline_id: str
    name: str
    rows: int
    taken: int
    years: tuple[int, ...]


_STANDING = tuple(field.name for field in fields(Standing))[:-1]
_COLUMNS = tuple(column.name for column in upload.columns)


@dataclass(frozen=True, slots=True)
class Uploads:
    engine: Engine
    clock: Clock

    def record(self, one: Upload) -> Upload:
        """Keep it, and give it back with its number and moment."""
        with writing(self.engine) as connection:
            return self._insert(connection, one)

    def record_again(self, one: Upload) -> Upload | None:
        """Keep what the ledger knew once, of the moment when it came; None if it knows it again."""
        with writing(self.engine) as connection:
            known = select(upload.c.id).where(upload.c.pipeline_id == one.pipeline_id)
            lock_name(connection, "upload")
            if connection.execute(known).first() is not None:
                return None
            return self._insert(connection, one)

    def _insert(self, connection: Connection, one: Upload) -> Upload:
        values = {name: getattr(one, name) for name in _COLUMNS if name not in ("id", "uploaded_at")}
        values |= {"problems": list(one.problems), "warnings": list(one.warnings)}
        # Numbers and moments say who came last: they must not overtake each other.
        lock_name(connection, "upload")
        at = values["uploaded_at"] = one.uploaded_at or self.clock()
        number = connection.execute(insert(upload).values(values).returning(upload.c.id)).scalar_one()
        if one.years:
            rows = [{"upload_id": number, "year": year} for year in one.years]
            connection.execute(insert(upload_year), rows)
        return replace(one, id=number, uploaded_at=at)

    def known_pipelines(self) -> set[str]:
        with reading(self.engine) as connection:
            return set(connection.execute(select(upload.c.pipeline_id)).scalars())

    def taken_by(self, work_id: int, upload_ids: Collection[int], year: int) -> dict[int, int]:
        """By upload, the work that took its rows of a year in: this one, where none has done so before."""
        mine = and_(upload_year.c.upload_id.in_(list(upload_ids)), upload_year.c.year == year)
        with writing(self.engine) as connection:
            fresh = update(upload_year).where(mine, upload_year.c.work_id.is_(None))
            connection.execute(fresh.values(work_id=work_id))
            query = select(upload_year.c.upload_id, upload_year.c.work_id).where(mine)
            return {row[0]: row[1] for row in connection.execute(query)}

    def overtaken(self, upload_ids: Collection[int], year: int) -> set[str]:
        """The chains of uploads that these overtook before anybody looked: nothing was ever done for them."""
        older, years = upload.alias("older"), upload_year.alias("of_older")
        names = ("kind", "topic", "institution", "source")
        query = (
            select(older.c.pipeline_id)
            .join(upload, and_(older.c.id < upload.c.id, *(older.c[n] == upload.c[n] for n in names)))
            .join(years, and_(years.c.upload_id == older.c.id, years.c.year == year))
            .where(upload.c.id.in_(list(upload_ids)), older.c.accepted.is_(True), years.c.work_id.is_(None))
            .where(~exists().where(pipeline_member.c.pipeline_id == older.c.pipeline_id))
        )
        with reading(self.engine) as connection:
            return set(connection.execute(query).scalars())

    def refuse(self, number: int) -> None:
        """It was noted, and cannot be taken after all."""
        with writing(self.engine) as connection:
            connection.execute(update(upload).where(upload.c.id == number).values(accepted=False))

    def standing(self) -> list[Standing]:
        """What a look needs of the accepted uploads that still say something, oldest first: of each place and
        year the newest, and of factors all. A look comes every few seconds: it reads no problems and no past.
        """
        place = (upload.c.kind, upload.c.topic, upload.c.institution, upload.c.source, upload_year.c.year)
        rank = func.row_number().over(partition_by=place, order_by=upload.c.id.desc())
        # Of the many only what the index holds is read, and of those few that stand the rest.
        ranked = (
            select(upload.c.id, upload.c.kind, upload_year.c.year, rank.label("rank"))
            .join(upload_year, upload_year.c.upload_id == upload.c.id)
            .where(upload.c.accepted.is_(True))
            .subquery()
        )
        query = (
            select(*(upload.c[name] for name in _STANDING), ranked.c.year)
            .join(ranked, ranked.c.id == upload.c.id)
            .where(or_(ranked.c.rank == 1, ranked.c.kind == "factors"))
            .order_by(upload.c.id, ranked.c.year)
        )
        found: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        with reading(self.engine) as connection:
            for row in connection.execute(query):
                found[tuple(row[:-1])].append(row[-1])
        return [
            Standing(**dict(zip(_STANDING, one, strict=True)), years=tuple(years))
            for one, years in found.items()
        ]

    def newest_of(self, one: Upload) -> Upload | None:
        """The accepted upload of the same place that speaks of any of its years, if there is one."""
        with reading(self.engine) as connection:
            number = connection.execute(select(func.max(upload.c.id)).where(*_beside(one))).scalar()
        return None if number is None else self.find(ids=[number])[0]

    def replaced_by(self, one: Upload) -> list[Upload]:
        """The accepted uploads of its place that stand in any of its years, oldest first: what it takes the
        place of. Of factors nothing is replaced: they add to each other."""
        if one.kind == "factors":
            return []
        same = [upload.c[name] == getattr(one, name) for name in ("kind", "topic", "institution", "source")]
        query = (
            select(func.max(upload.c.id))
            .join(upload_year, upload_year.c.upload_id == upload.c.id)
            .where(upload.c.accepted, *same, upload_year.c.year.in_(one.years))
            .group_by(upload_year.c.year)
        )
        with reading(self.engine) as connection:
            numbers = set(connection.execute(query).scalars())
        return self.find(ids=numbers)[::-1]

    def since(self, one: Upload, number: int) -> list[Upload]:
        """The same, all that came after this number, newest first."""
        with reading(self.engine) as connection:
            query = select(upload.c.id).where(upload.c.id > number, *_beside(one))
            numbers = connection.execute(query).scalars().all()
        return self.find(ids=numbers)

    def outdated(self, sources: Collection[str], before: datetime) -> list[Upload]:
        """Uploads of these sources that came before a moment and say nothing any more: newer ones took their
        place in every year, or they were refused."""
        spoken = {one.id for one in self.standing()}
        old = select(upload.c.id).where(upload.c.source.in_(list(sources)), upload.c.uploaded_at < before)
        with reading(self.engine) as connection:
            numbers = [number for number in connection.execute(old).scalars() if number not in spoken]
        return self.find(ids=numbers)

    def forget(self, ids: Collection[int]) -> None:
        with writing(self.engine) as connection:
            for chunk in chunks(sorted(ids)):
                connection.execute(delete(upload_year).where(upload_year.c.upload_id.in_(chunk)))
                connection.execute(delete(upload).where(upload.c.id.in_(chunk)))

    def as_arrow(self) -> pa.Table:
        """Every upload, for queries."""
        from resources.database.arrow import read_arrow

        return read_arrow(self.engine, upload)

    def find(
        self,
        *,
        ids: Collection[int] | None = None,
        kind: str | None = None,
        accepted: bool | None = None,
        pipeline_ids: Collection[str] | None = None,
        sha256: str | None = None,
        limit: int | None = None,
    ) -> list[Upload]:
        """Newest first."""
        query = select(*(upload.c[name] for name in _COLUMNS)).order_by(upload.c.id.desc())
        if ids is not None:
            query = query.where(upload.c.id.in_(list(ids)))
        if kind is not None:
            query = query.where(upload.c.kind == kind)
        if accepted is not None:
            query = query.where(upload.c.accepted.is_(accepted))
        if pipeline_ids is not None:
            query = query.where(upload.c.pipeline_id.in_(list(pipeline_ids)))
        if sha256 is not None:
            query = query.where(upload.c.sha256 == sha256)
        if limit is not None:
            query = query.limit(limit)
        with reading(self.engine) as connection:
            rows = connection.execute(query).all()
            years: dict[int, list[int]] = defaultdict(list)
            found = select(upload_year.c.upload_id, upload_year.c.year).order_by(upload_year.c.year)
            if any(given is not None for given in (limit, pipeline_ids, ids, sha256)):
                found = found.where(upload_year.c.upload_id.in_([row[0] for row in rows]))
            for number, year in connection.execute(found):
                years[number].append(year)
        return [_upload(row, tuple(years[row[0]])) for row in rows]


def _beside(one: Upload) -> list[ColumnElement[bool]]:
    """Accepted, of the same place, and of any of its years."""
    years = select(upload_year.c.upload_id).where(upload_year.c.year.in_(one.years))
    names = ("kind",) if one.kind == "factors" else ("kind", "topic", "institution", "source")
    return [upload.c.accepted, *(upload.c[n] == getattr(one, n) for n in names), upload.c.id.in_(years)]


def _upload(row: Row[Any], years: tuple[int, ...]) -> Upload:
    return Upload(**dict(zip(_COLUMNS, row, strict=True)), years=years)
