"""One call to the source, as a value: the endpoint, its parameters and the table it must give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

ROW_CAP = 6000
"""The most rows the source gives in one answer."""


@dataclass(frozen=True)
class TushareRequest:
    """`schema` has the source's own field names and the wanted types, `cap` is the endpoint's row cap."""

    api_name: str
    params: Mapping[str, str]
    schema: pa.Schema
    cap: int = ROW_CAP

    @property
    def fields(self) -> str:
        """As the source wants them: one string, comma-separated."""
        return ",".join(self.schema.names)
