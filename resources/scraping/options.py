"""The options of the scrapers that come with the platform, as a sources file names them."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MOST_BYTES = 64 * 2**20
"""Of one answer, one JSON file, one line."""
MOST_OF_A_FEED = 16 * 2**20
"""feedparser takes about 2 s for each MiB that is not well-formed."""


class Fields(BaseModel):
    """Which field of an item holds what; a dot leads into an object, such as `attributes.title`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = "id"
    title: str = "title"
    link: str = "url"
    published: str = "published_at"


class HttpOptions(BaseModel):
    """Any source that is read over HTTP."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout: float = Field(30, gt=0, le=600)
    """Seconds to wait for the next bytes of an answer."""
    token_header: str = Field("", pattern=r"^[A-Za-z0-9-]*$")
    """The header with the token, such as X-Api-Key; empty: it is a bearer token."""


class PagedOptions(Fields, HttpOptions):
    """A JSON answer in pages."""

    style: Literal["page", "cursor"] = "page"
    """Pages by number, or by what each page says leads on."""
    items: str = "items"
    """The list in an answer; empty if the answer is the list."""
    total: str = ""
    """Where an answer says how many references there are."""
    page: str = "page"
    """The parameter with the page's number."""
    first_page: int = 1
    size: str = ""
    """The parameter with the number of items that a page should have."""
    per_page: int = Field(100, ge=1, le=10_000)
    cursor: str = "cursor"
    """The parameter with the cursor."""
    next: str = "next"
    """Where an answer has the next cursor: a text, or the address of the next page."""
    changed_since: str = ""
    """The parameter with which the source gives only what changed since a time."""
    changed: str = "updated_at"
    """The field with the time of the last change, if `changed_since` is set."""
    overlap_hours: float = Field(24, ge=0, le=24 * 366)
    """How far before the newest change that was seen `changed_since` asks: what was changed while pages were
    read may have shifted from one to another."""
    etag_of_all: bool = False
    """Whether the ETag of the first page changes with any page."""

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.etag_of_all and self.changed_since:
            raise ValueError("etag_of_all and changed_since are two ways to one end; give one")
        return self


class FeedOptions(HttpOptions):
    """An RSS or Atom feed."""

    id: Literal["id", "link"] = "id"
    """What identifies an entry: its guid (else its link), or its link."""


class FolderOptions(Fields):
    """A folder of JSON, JSONL and CSV files."""

    items: str = ""
    """The list in a JSON file; empty if the file is the list."""


OPTIONS: dict[str, type[BaseModel]] = {
    "paged": PagedOptions,
    "rss": FeedOptions,
    "folder": FolderOptions,
}
"""By kind of source; a plugin checks its own."""
