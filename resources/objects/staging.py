"""Where uploaded files wait, and stay: as they came, and as the checked rows that were taken of them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from domain.shared.error import InfrastructureError, TransientResourceError
from resources.objects.store import Store, store_for

LOST = "staging_damaged"
"""The reason code of rows that are gone or cannot be understood. An object store that does not answer is no
such trouble."""
_OF = b"pipeline"
"""Under this name a file of rows says whose they are. Files from before they did say nothing."""

_NOTES = "notes"


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
        marked = rows.replace_schema_metadata({**(rows.schema.metadata or {}), _OF: pipeline_id.encode()})
        pq.write_table(marked, sink, compression="zstd", write_page_checksum=True)
        self.store.create(f"{self.place}/{pipeline_id}/original", original)
        self.store.create(f"{self.place}/{pipeline_id}/rows.parquet", sink.getvalue().to_pybytes())

    def kept(self) -> set[str]:
        """All that have rows, whether these can be read or not."""
        uris = self._listed(self.place)
        return {uri.split("/")[-2] for uri in uris if uri.endswith("/rows.parquet")}

    def _listed(self, prefix: str) -> list[str]:
        try:
            return [one.uri for one in self.store.list(prefix)]
        except OSError as error:
            raise TransientResourceError(f"kept uploads cannot be listed: {error}") from error

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
            rows = pq.read_table(pa.BufferReader(self.store.read(uri)), page_checksum_verification=True)
        except (FileNotFoundError, pa.ArrowException, OSError) as error:
            raise _lost(f"the rows of an uploaded file cannot be read: {uri}") from error
        about = dict(rows.schema.metadata or {})
        # A restore may put a file in the place of another: all numbers would be right, of something else.
        if about.pop(_OF, pipeline_id.encode()) != pipeline_id.encode():
            raise _lost(f"the rows of an uploaded file are those of another: {uri}")
        return rows.replace_schema_metadata(about)

    def remove(self, pipeline_id: str) -> None:
        for name in ("rows.parquet", "original"):
            self.store.delete(f"{self.place}/{pipeline_id}/{name}")

    def note(self, pipeline_id: str, about: bytes) -> None:
        """Keep what was uploaded, beside its rows, for a ledger that will not know of it any more."""
        self.store.create(self._note(pipeline_id), about)

    def noted(self) -> set[str]:
        """All that have a note; in a folder of their own, as every look may list them."""
        names = (uri.rpartition("/")[2] for uri in self._listed(f"{self.place}/{_NOTES}"))
        return {name.removesuffix(".json") for name in names if name.endswith(".json")}

    def noted_of(self, pipeline_id: str) -> bytes | None:
        try:
            return self.store.read(self._note(pipeline_id))
        except FileNotFoundError:
            return None

    def remove_note(self, pipeline_id: str) -> None:
        self.store.delete(self._note(pipeline_id))

    def _note(self, pipeline_id: str) -> str:
        return f"{self.place}/{_NOTES}/{pipeline_id}.json"

    def original(self, pipeline_id: str) -> bytes:
        return self.store.read(f"{self.place}/{pipeline_id}/original")


def _lost(what: str) -> InfrastructureError:
    return InfrastructureError(
        what, reason_code=LOST, remedy="upload the file again, or put the staged file back"
    )
