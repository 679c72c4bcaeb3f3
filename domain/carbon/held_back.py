"""Partitions that are not made anew, because that would lose rows: the ledger does not know their files.

A ledger that was lost, or put back from a backup, knows less than there was. What is there stays as it is
until those files are known again, or a person says that they are gone.
"""

from __future__ import annotations

from domain.carbon.observed import Observed
from domain.carbon.tables import UNITS
from domain.carbon.verdict import year_of


def held_back(seen: Observed, table: str, partition: str) -> tuple[str, str] | None:
    """The reason code, and why; None if nothing would be lost."""
    if missing := unanswered(seen, table, partition):
        told = ", ".join(f"{institution} ({source})" for institution, source in missing)
        return "no_files", f"it has rows of {told}, and no file of theirs is known"
    return None


def unanswered(seen: Observed, table: str, partition: str) -> list[tuple[str, str]]:
    """The institutions and sources that rows of it came from, and that no upload speaks for."""
    kind, topic = ("units", "") if table == UNITS.table else ("data", partition.split("|", 1)[0])
    known = {(one.institution, one.source) for one in seen.newest_uploads(kind, topic, year_of(partition))}
    return sorted(set(seen.brought.get((table, partition), ())) - known)
