"""Factors over time: what an upload makes of those a year has, and what a calculation sees of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from domain.carbon.tables import FACTOR_VERSIONS, FACTORS
from domain.shared.compute import query
from domain.shared.hashing import digest
from domain.shared.packaged import packaged

NEWEST_UPLOADS = "speakers"
"""Key in a record's detail: by type, the newest upload that has factors of it."""


@dataclass(frozen=True)
class Origin:
    """The upload that a factor version names as its origin."""

    job_id: int
    file: str
    at: datetime


@dataclass(frozen=True)
class YearOfFactors:
    factors: pa.Table
    versions: pa.Table

    @classmethod
    def empty(cls) -> YearOfFactors:
        return cls(FACTORS.schema.empty_table(), FACTOR_VERSIONS.schema.empty_table())


def merged(year: int, known: YearOfFactors, incoming: pa.Table, origin: Origin) -> YearOfFactors:
    """The year after an upload.

    A factor keeps its id and, while value and unit stay, its version. Of the types that
    the upload has factors of, factors that it lacks become stale and are still used. Other types stay.
    """
    relations = {"incoming": incoming, "factors": known.factors, "versions": known.versions}
    parameters = {"year": year, "job": origin.job_id, "file": origin.file, "at": origin.at}
    versions = query(packaged(__file__, "factor_versions"), relations, parameters).cast(
        FACTOR_VERSIONS.schema
    )
    factors = query(
        packaged(__file__, "factors"),
        {**relations, "versions": versions},
        {"year": year, "job": origin.job_id},
    ).cast(FACTORS.schema)
    return YearOfFactors(factors, versions)


def newest_by_type(known: Mapping[str, int], incoming: pa.Table, upload: int) -> dict[str, int]:
    """Return by type the newest upload that has factors of it."""
    return {**known, **dict.fromkeys(incoming.column("data_entry_type").unique().to_pylist(), upload)}


def digests(factors: pa.Table) -> dict[str, str]:
    """By type, all that a calculation sees of its factors: not their origin, nor whether they are stale."""
    columns = ("data_entry_type", "factor_id", "emission_type", "classification", "value", "unit", "version")
    seen: dict[str, list[tuple[object, ...]]] = defaultdict(list)
    for name, *rest in zip(*(factors.column(c).to_pylist() for c in columns), strict=True):
        seen[name].append(tuple(rest))
    return {name: digest(sorted(rows)) for name, rows in seen.items()}


def changed_types(before: pa.Table, after: pa.Table) -> list[str]:
    """Return the types whose calculation uses other factors afterwards."""
    old, new = digests(before), digests(after)
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
