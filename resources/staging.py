"""Where uploaded files wait, and stay: as they came, and as the checked rows that were taken of them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from domain.shared.error import InfrastructureError
from resources.lake.store import Store, store_for

LOST = "staging_damaged"
"""The reason code of rows that are gone or cannot be understood. An object store that does not answer is no
such trouble."""


@dataclass(frozen=True)
class Staging:
    """Files by the id of the pipeline that an upload begins."""

    place: str
    store: Store

    @classmethod
    def at(cls, place: str) -> Staging:
        """`file:///path` or `s3://bucket/path`."""
        return cls(place.rstrip("/"), store_for(place))

    def keep(self, pipeline_id: str, original: bytes, rows: pa.Table) -> None:
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd")
        self.store.create(f"{self.place}/{pipeline_id}/original", original)
        self.store.create(f"{self.place}/{pipeline_id}/rows.parquet", sink.getvalue().to_pybytes())

    def holds(self, pipeline_id: str, rows: pa.Table) -> bool:
        """Whether the rows can be read, and are these."""
        try:
            return bool(self.rows(pipeline_id).equals(rows))
        except InfrastructureError:
            return False

    def rows(self, pipeline_id: str) -> pa.Table:
        import pyarrow.parquet as pq

        uri = f"{self.place}/{pipeline_id}/rows.parquet"
        try:
            return pq.read_table(pa.BufferReader(self.store.read(uri)))
        except (FileNotFoundError, pa.ArrowException, OSError) as error:
            raise InfrastructureError(
                f"the rows of an uploaded file cannot be read: {uri}",
                reason_code=LOST,
                remedy="upload the file again, or put the staged file back",
            ) from error

    def remove(self, pipeline_id: str) -> None:
        for name in ("rows.parquet", "original"):
            self.store.delete(f"{self.place}/{pipeline_id}/{name}")

    def original(self, pipeline_id: str) -> bytes:
        return self.store.read(f"{self.place}/{pipeline_id}/original")
