"""What the folders around a dropped file say of it: `data/institution=ethz/paper/2025/` is all of it.

A word that says nothing is refused, as what somebody meant by it would be lost.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from types import MappingProxyType

from domain.shared.error import InvalidInput

Told = Mapping[str, str]
"""By `year`, `type` and `institution`, what was told."""

INSTITUTION = "institution="


def told_by(folders: Iterable[str], types: Container[str]) -> Told:
    told: dict[str, str] = {}
    for folder in folders:
        what, value = _meaning(folder, types)
        if told.setdefault(what, value) != value:
            raise InvalidInput(
                f"two folders name its {what}, {told[what]!r} and {value!r}: put it where there is one"
            )
    return MappingProxyType(told)


def _meaning(folder: str, types: Container[str]) -> tuple[str, str]:
    if folder.isascii() and folder.isdigit() and len(folder) == 4:
        return "year", folder
    if folder in types:
        return "type", folder
    if folder.startswith(INSTITUTION):
        return "institution", folder.removeprefix(INSTITUTION)
    raise InvalidInput(
        f"the folder {folder!r} is neither a year nor a data entry type: put the file into one that is, or "
        f"for an institution into {INSTITUTION}NAME (`perennial carbon types` lists the types)"
    )
