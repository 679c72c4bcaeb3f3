"""The scope that the folders around an inbox file name: `data/institution=ethz/paper/2025/` names it all.

An unknown folder is refused: what somebody meant by it would be lost.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from domain.shared.error import InvalidInput

INSTITUTION = "institution="


def scope_of_folders(folders: Iterable[str], types: Container[str]) -> Mapping[str, str]:
    """Return what the folders name: any of `year`, `type` and `institution`."""
    scope: dict[str, str] = {}
    for folder in folders:
        what, value = _meaning(folder, types)
        if scope.setdefault(what, value) != value:
            raise InvalidInput(
                f"two folders name its {what}, {scope[what]!r} and {value!r}",
                reason_code="unknown_folder",
                remedy="put it where there is one",
            )
    return scope


def _meaning(folder: str, types: Container[str]) -> tuple[str, str]:
    if folder.isascii() and folder.isdigit() and len(folder) == 4:
        return "year", folder
    if folder in types:
        return "type", folder
    if folder.startswith(INSTITUTION):
        return "institution", folder.removeprefix(INSTITUTION)
    raise InvalidInput(
        f"the folder {folder!r} is neither a year nor a data entry type",
        reason_code="unknown_folder",
        remedy=f"put the file into a folder that is, or for an institution into {INSTITUTION}NAME "
        "(`perennial carbon types` lists the types)",
    )
