"""Partitions that are not made anew, because that would lose rows: the ledger does not know their files.

A ledger that was lost, or put back from a backup, knows less than there was. What is there stays as it is
until those files are known again, or a person says that they are gone.
"""

from __future__ import annotations

from domain.carbon.observed import Observed
from domain.carbon.tables import DATA_ENTRIES, FACTORS, UNITS
from domain.carbon.verdict import year_of

_KINDS = {UNITS.table: "units", FACTORS.table: "factors", DATA_ENTRIES.table: "data"}


def held_back(seen: Observed, table: str, partition: str) -> tuple[str, str] | None:
    """The reason code, and why; None if nothing would be lost."""
    names = [
        one.name
        for one in seen.unlisted
        if (one.kind, one.topic) == _speaking_of(table, partition) and year_of(partition) in one.years
    ]
    if names:
        return "unlisted_upload", f"the ledger does not list {', '.join(names)}, which is newer than it"
    if missing := unanswered(seen, table, partition):
        told = ", ".join(f"{institution} ({source})" for institution, source in missing)
        return "no_files", f"it has rows of {told}, and no file of theirs is known"
    return None


def unanswered(seen: Observed, table: str, partition: str) -> list[tuple[str, str]]:
    """The institutions and sources that rows of it came from, and that no upload speaks for."""
    newest = seen.newest_uploads(*_speaking_of(table, partition), year_of(partition))
    known = {(one.institution, one.source) for one in newest}
    return sorted(set(seen.origin.get((table, partition), ())) - known)


def _speaking_of(table: str, partition: str) -> tuple[str, str]:
    """Kind and topic of the uploads that it is made of."""
    return _KINDS[table], partition.split("|", 1)[0] if table == DATA_ENTRIES.table else ""
