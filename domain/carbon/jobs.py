"""The kinds of carbon work, a row each: what it makes, its phase, and what may follow from it.

A new kind is a row here and a function in `services/carbon/` that its asset calls. The plan decides what is
done and when. Files in the inbox are outside of the plan: a sensor of their own finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from domain.carbon.tables import DATA_ENTRIES, EMISSIONS, FACTORS, REPORT_MODULES, REPORTS, TABLES, UNITS
from domain.shared.backoff import Backoff
from domain.shared.work import Kind

FILE_INGEST = "carbon.file_ingest"
UNIT_SYNC = "carbon.unit_sync"
FACTOR_INGEST = "carbon.factor_ingest"
API_INGEST = "carbon.api_ingest"
DATA_INGEST = "carbon.csv_ingest"
MODULE_RECALCULATION = "carbon.module_emission_recalc"
RECALCULATION = "carbon.emission_recalc"
AGGREGATION = "carbon.aggregation"

FEED_UNITS = "pulled_units"
FEED_FACTORS = "pulled_factors"
FEED_ENTRIES = "pulled_entries"
"""What is read of applications. It becomes uploads, so these are no tables."""
ASKED = "asked_modules"
"""Modules that a person wants to be calculated anew; their types are then requested one by one."""

INBOX_FILES = "inbox_files"
"""Files in the inbox: a key for each file, which becomes an upload."""

Phase = Literal["data", "emissions", "aggregation"]


@dataclass(frozen=True)
class Job:
    kind: str
    makes: tuple[str, ...]
    """The first word of its keys; `table:partition`."""
    phase: Phase
    priority: int


JOBS = (
    Job(FILE_INGEST, (INBOX_FILES,), "data", 50),
    Job(UNIT_SYNC, (FEED_UNITS, UNITS.table), "data", 40),
    Job(FACTOR_INGEST, (FEED_FACTORS, FACTORS.table), "data", 40),
    Job(API_INGEST, (FEED_ENTRIES,), "data", 30),
    Job(DATA_INGEST, (DATA_ENTRIES.table,), "data", 30),
    Job(MODULE_RECALCULATION, (ASKED,), "emissions", 20),
    Job(RECALCULATION, (EMISSIONS.table,), "emissions", 20),
    Job(AGGREGATION, (REPORT_MODULES.table, REPORTS.table), "aggregation", 10),
)

_ACROSS_RUNS = Backoff(base=timedelta(seconds=60), factor=2, cap=timedelta(hours=1))
"""Without a maximum: what only time heals (an application that is down, a busy lake) is never final, or a
weekend without it would need a person on Monday."""
_OF_A_YEAR = {FEED_UNITS, FEED_FACTORS, FEED_ENTRIES, *(table.table for table in TABLES)}
YEAR_KINDS = frozenset(job.kind for job in JOBS if _OF_A_YEAR.issuperset(job.makes))
"""Kinds whose work changes what a year holds: each of their keys names it."""


def year_of_key(key: str) -> int:
    """The year of `factors:2025` and of `data_entries:plane|2025`."""
    return int(key.rpartition(":")[2].rpartition("|")[2])


ALL_KINDS = tuple(
    Kind(job.kind, transient=_ACROSS_RUNS, pulled=job.kind == MODULE_RECALCULATION) for job in JOBS
)
KINDS = tuple(kind for kind in ALL_KINDS if kind.name != FILE_INGEST)
"""Those that the plan decides about."""
KIND_OF: Mapping[str, str] = {word: job.kind for job in JOBS for word in job.makes}
"""By the first word of a key, the kind of its work."""
PRIORITY: Mapping[str, int] = {job.kind: job.priority for job in JOBS}
