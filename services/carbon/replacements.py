"""Uploads that take the place of others, with the rows of both; one that loses most rows must say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from domain.carbon.feeds import ORIGINS
from domain.shared.error import InfrastructureError, InvalidInput
from services.carbon.service import CarbonService
from services.carbon.upload_store import Upload


@dataclass(frozen=True)
class Replacement:
    """An upload that counts no more in a year once a newer one of its scope does."""

    year: int
    old: Upload
    rows_before: int
    rows_after: int

    @property
    def shrinks(self) -> bool:
        """Whether more than half of the rows would be gone."""
        return self.rows_after * 2 < self.rows_before

    def __str__(self) -> str:
        return (
            f"instead of upload {self.old.id}, {self.old.name}: "
            f"{self.rows_before:,} → {self.rows_after:,} rows of {self.year}"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "upload": self.old.id,
            "file": self.old.name,
            "year": self.year,
            "rows_before": self.rows_before,
            "rows_after": self.rows_after,
        }


class WouldShrink(InvalidInput):
    """Most rows of a scope would be gone: more likely the file is a part of what it should be."""

    reason_code = "would_shrink"

    def __init__(self, file: str, one: Replacement) -> None:
        super().__init__(
            f"{file} has {one.rows_after:,} rows of {one.year}, and would take the place of the "
            f"{one.rows_before:,} rows of upload {one.old.id} ({one.old.name})",
            remedy="put all rows into it; if they are all, upload it with `--replace` (HTTP: `replace=true`)",
        )


def replacements(carbon: CarbonService, wanted: Upload, rows: pa.Table) -> Iterator[Replacement]:
    """What an upload with these rows takes the place of, year by year.

    Factors of files add up and replace none. An application lists those of a type whole, each time.
    """
    of_file = wanted.source not in ORIGINS
    uploads = carbon.store.uploads
    newest = uploads.newest_reading if wanted.kind == "factors" else uploads.newest_of
    for year in () if wanted.kind == "factors" and of_file else wanted.years:
        old = newest(replace(wanted, years=(year,)))
        if old is not None:
            yield Replacement(year, old, _rows_of(carbon, old, year), _count(rows, year))


def refuse_shrinking(file: str, found: tuple[Replacement, ...]) -> None:
    for one in found:
        if one.shrinks:
            raise WouldShrink(file, one)


def _rows_of(carbon: CarbonService, old: Upload, year: int) -> int:
    if len(old.years) == 1:
        return old.taken
    try:
        return _count(carbon.staged_rows(old), year)
    except InfrastructureError:
        return 0  # lost rows are no reason to refuse the file that brings them back


def _count(rows: pa.Table, year: int) -> int:
    return pc.sum(pc.equal(rows.column("year"), year), min_count=0).as_py() or 0
