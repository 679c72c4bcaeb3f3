"""One call to the source, as a value: the endpoint, its parameters and the table it must give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from domain.shared.error import InvalidInput

ROW_CAP = 6000
"""The most rows the source gives in one answer."""


@dataclass(frozen=True)
class Request:
    """`schema` has the source's own field names and the wanted types.

    The types: date32 (from 'YYYYMMDD'), float64, int64, string, bool (from 0/1).
    `cap` is the endpoint's own row cap.
    """

    api_name: str
    params: Mapping[str, str]
    schema: pa.Schema
    cap: int = ROW_CAP

    def __post_init__(self) -> None:
        if self.cap < 1:
            raise InvalidInput(f"{self.api_name}: a row cap of {self.cap} allows no rows")
        if not len(self.schema):
            raise InvalidInput(f"{self.api_name}: no field is asked for")
        for field in self.schema:
            if not _supported(field.type):
                raise InvalidInput(f"{self.api_name}: field {field.name} cannot be read as {field.type}")

    @property
    def fields(self) -> str:
        """As the source wants them: one string, comma-separated."""
        return ",".join(self.schema.names)


def _supported(wanted: pa.DataType) -> bool:
    kinds = pa.types
    return bool(
        kinds.is_date32(wanted)
        or kinds.is_float64(wanted)
        or kinds.is_int64(wanted)
        or kinds.is_string(wanted)
        or kinds.is_boolean(wanted)
    )
