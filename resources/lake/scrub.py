"""Reading again what lies long: a disk may lose a bit and keep a file's size and time.

A version is computed once for a set of files and kept, so nobody would look at the bytes again. Here they are
read, each file once in `EVERY` nights. What they hold now takes the place of what was known of them; the next
look sees the difference, and heals or tells it as any other change of a stranger's.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b

from domain.shared.table import Table
from resources.lake.store import LocalStore
from resources.lake.versions import VersionReader
from resources.lake.view import View, Views

EVERY = 7

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Scrub:
    views: Views
    versions: VersionReader

    def run(self, table: Table, night: date) -> tuple[str, ...]:
        """The partitions that hold something else than was known of them, of this night's share of the files.

        An object store keeps checksums itself, and reading it costs money: it is left to its own care.
        """
        if not isinstance(self.versions.engine.store, LocalStore):
            return ()
        changed: list[str] = []
        for group in sorted({f.group for f in self.views.of(table).files}, key=str):
            if is_its_night(table.name, group, night):
                changed += self._group(self.views.of(table), group)
        return tuple(changed)

    def _group(self, view: View, group: str | None) -> Collection[str]:
        files = [f for f in view.files if f.group == group]
        partitions = sorted({p for f in files for p in f.possible_partitions(view.table)})
        changed = self.versions.read_again(view, partitions)
        if changed:
            log.warning("%s: the files of %s changed where they lay", view.table.name, ", ".join(changed))
        return changed


def is_its_night(table: str, group: str | None, night: date) -> bool:
    """The files of a table take turns, so that every night reads a part."""
    turn = int.from_bytes(blake2b(f"{table}|{group}".encode(), digest_size=8).digest(), "big")
    return (turn + night.toordinal()) % EVERY == 0
