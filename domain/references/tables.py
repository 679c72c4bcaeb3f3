"""The tables of the references: what sources hold, and the documents that are made of it."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from domain.shared.table import Column, Table

_text = partial(Column, type=pa.string(), nullable=False)
_maybe_text = partial(Column, type=pa.string())
_moment = partial(Column, type=pa.timestamp("us", tz="UTC"))

_ID = _text("reference_id", description="Source and id at the source, joined by a colon")
_SOURCE = _text("source", description="The source it was scraped from")
_URL = _maybe_text("url", description="Its address")
_PUBLISHED = _moment("published_at", description="When it was published, as its source says")
_HASH = _text("payload_hash", description="Hash of its canonical content")
_SCRAPE = _text("scrape_run_id", description="The scrape run that brought this content")

_by_source = partial(
    Table,
    key=("source", "reference_id"),
    partition_kind="category",
    partition_columns=("source",),
)

REFERENCES = _by_source(
    name="refs.references",
    description="The references of each source, with their newest content.",
    columns=(
        _ID,
        _SOURCE,
        _maybe_text("title", description="Its title"),
        _URL,
        _PUBLISHED,
        _text("payload", description="All that its source says of it, as canonical JSON"),
        _HASH,
        _SCRAPE,
        _moment("seen_at", description="When this content was scraped first", nullable=False),
    ),
)

DOCUMENTS = _by_source(
    name="refs.documents",
    description="The documents that were made of references.",
    columns=(
        _ID,
        _SOURCE,
        _maybe_text("title", description="Its title, cleaned"),
        _maybe_text("text", description="Its text, cleaned"),
        _URL,
        _PUBLISHED,
        _HASH,
        _SCRAPE,
        _text("ingested_by", description="Name and version of the function that made it"),
        _moment("ingested_at", description="When it was made", nullable=False),
    ),
)

TABLES = (REFERENCES, DOCUMENTS)
