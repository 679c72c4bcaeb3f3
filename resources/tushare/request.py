"""One call to the source, as a value: the endpoint, its parameters and the table it must give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from domain.shared.error import InvalidInput

ROW_CAP = 6000
"""The most rows the source gives in one answer."""
TYPES = (pa.date32(), pa.float64(), pa.int64(), pa.string(), pa.bool_())
"""What a field can be read as: a date from 'YYYYMMDD', a bool from 0 or 1."""


@dataclass(frozen=True)
class Request:
    """`schema` has the source's own field names and the wanted types, `cap` is the endpoint's row cap."""

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
            if field.type not in TYPES:
                raise InvalidInput(f"{self.api_name}: field {field.name} cannot be read as {field.type}")

    @property
    def fields(self) -> str:
        """As the source wants them: one string, comma-separated."""
        return ",".join(self.schema.names)
