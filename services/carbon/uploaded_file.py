"""A file that somebody uploads, and the check of its rows before anything of it is stored."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal

from domain.carbon.intake.entries_file import Scope, read_entries
from domain.carbon.intake.factors_file import read_factors
from domain.carbon.intake.units_file import read_units
from domain.shared.error import InvalidInput
from domain.shared.names import LONGEST, fault_of_name, fault_of_text
from domain.shared.tabular.numbers import Mark
from domain.shared.tabular.problems import FileRefused
from domain.shared.tabular.sheet import Parsed
from services.carbon.service import CarbonService
from services.carbon.unit_checks import omitted_units, units_of, units_of_others

FileKind = Literal["units", "factors", "data"]
LARGEST = 1 << 30
"""Bytes one file may have."""


@dataclass(frozen=True)
class File:
    """A file, and what its uploader says about it."""

    kind: FileKind
    name: str
    content: bytes
    by: str
    institution: str = "main"
    source: str = "csv"
    year: int | None = None
    data_entry_type: str | None = None
    mark: Mark | None = None
    modified_at: datetime | None = None
    """When it was last written, of an inbox file: it supersedes no upload that is newer."""

    def __post_init__(self) -> None:
        """These words are recorded for good, whatever becomes of the file."""
        names = {"file name": self.name, "institution": self.institution, "type": self.data_entry_type}
        faults = {what: fault_of_name(name) for what, name in names.items() if name is not None}
        faults["uploader"] = fault_of_text(self.by, 2 * LONGEST)
        for what, fault in faults.items():
            if fault:
                raise InvalidInput(f"the {what} is {fault}", reason_code="bad_name", remedy="give it another")


def check_file(carbon: CarbonService, file: File, *, accept_valid: bool = False) -> Parsed:
    """Return the rows of a file if all are good; with `accept_valid` those that are."""
    try:
        parsed = _read(carbon, file).or_refused(file.name, accept_valid=accept_valid)
        if (check := {"units": omitted_units, "data": units_of_others}.get(file.kind)) is None:
            return parsed
        return replace(parsed, warnings=(*check(carbon, file.institution, parsed.frame), *parsed.warnings))
    except FileRefused as error:
        raise FileRefused(file.name, error.problems, error.total) from None


def _read(carbon: CarbonService, file: File) -> Parsed:
    source = io.BytesIO(file.content)
    if file.kind == "units":
        return read_units(source, year=file.year)
    if file.kind == "factors":
        return read_factors(
            source,
            carbon.catalogue,
            year=file.year,
            mark=file.mark,
            data_entry_type=file.data_entry_type,
        )
    scope = Scope(file.institution, file.source, file.year, file.data_entry_type, file.mark)
    return read_entries(source, carbon.catalogue, partial(units_of, carbon), scope)
