"""Staged uploads: the file as it came, the checked rows that were read from it, and a note of what it was."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from domain.shared.error import InfrastructureError, TransientResourceError
from resources.objects.store import Store, store_for

LOST = "staging_corrupt"
"""The reason code of rows that are lost or do not decode; a store that does not answer is a passing
failure."""
_NOTES = "notes"


@dataclass(frozen=True)
class Staging:
    """Files by the id of the pipeline that an upload begins."""

    location: str
    store: Store

    @classmethod
    def at(cls, location: str) -> Staging:
        """`file:///path` or `s3://bucket/path`."""
        return cls(location.rstrip("/"), store_for(location))

    def keep(self, pipeline_id: str, original: bytes, rows: pa.Table) -> None:
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd", write_page_checksum=True)
        self.store.create(self._uri(pipeline_id, "original"), original)
        self.store.create(self._uri(pipeline_id, "rows.parquet"), sink.getvalue().to_pybytes())

    def kept(self) -> set[str]:
        """The pipelines that have rows, whether these can be read or not."""
        uris = self._listed(self.location)
        return {uri.split("/")[-2] for uri in uris if uri.endswith("/rows.parquet")}

    def holds(self, pipeline_id: str, rows: pa.Table) -> bool:
        """Whether the staged rows can be read, and are these."""
        try:
            return bool(self.rows(pipeline_id).equals(rows))
        except InfrastructureError:
            return False

    def rows(self, pipeline_id: str) -> pa.Table:
        import pyarrow.parquet as pq

        uri = self._uri(pipeline_id, "rows.parquet")
        try:
            return pq.read_table(pa.BufferReader(self.store.read(uri)), page_checksum_verification=True)
        except (FileNotFoundError, pa.ArrowException, OSError) as error:
            raise InfrastructureError(
                f"staged rows cannot be read: {uri}",
                reason_code=LOST,
                remedy="upload the file again, or put the staged file back",
            ) from error

    def remove(self, pipeline_id: str) -> None:
        for name in ("rows.parquet", "original"):
            self.store.delete(self._uri(pipeline_id, name))

    def note(self, pipeline_id: str, about: bytes) -> None:
        """Keep what was uploaded beside its rows, for a ledger that was lost or is older."""
        self.store.create(self._note(pipeline_id), about)

    def noted(self) -> set[str]:
        """The pipelines that have a note; in a folder of their own, as every observation may list them."""
        names = (uri.rpartition("/")[2] for uri in self._listed(f"{self.location}/{_NOTES}"))
        return {name.removesuffix(".json") for name in names if name.endswith(".json")}

    def noted_of(self, pipeline_id: str) -> bytes | None:
        try:
            return self.store.read(self._note(pipeline_id))
        except FileNotFoundError:
            return None

    def remove_note(self, pipeline_id: str) -> None:
        self.store.delete(self._note(pipeline_id))

    def _uri(self, pipeline_id: str, name: str) -> str:
        return f"{self.location}/{pipeline_id}/{name}"

    def _note(self, pipeline_id: str) -> str:
        return self._uri(_NOTES, f"{pipeline_id}.json")

    def _listed(self, prefix: str) -> list[str]:
        try:
            return [one.uri for one in self.store.list(prefix)]
        except OSError as error:
            raise TransientResourceError(f"staged uploads cannot be listed: {error}") from error
