"""Where the lake is: the addresses of catalog and warehouse, normalised once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from domain.shared.error import InvalidInput

CATALOG_NAME = "perennial"
"""Trino must be configured with the same catalog name: it is part of every catalog row."""

CONNECT_SECONDS = 10
"""Without it a server that accepts a connection and is silent would be waited for without end."""

_UNSAFE = set("#?%*[]{}'\"\\")


@dataclass(frozen=True)
class LakeLocation:
    """A lake's addresses. `repr` never shows the catalog address, which may hold a password."""

    catalog_url: str = field(repr=False)
    warehouse: str
    home: Path

    @classmethod
    def of(cls, catalog_url: str, warehouse: str, home: Path) -> LakeLocation:
        return cls(_catalog_url(catalog_url), _warehouse(warehouse), home)

    @property
    def kind(self) -> Literal["sqlite", "postgres"]:
        return "sqlite" if self.catalog_url.startswith("sqlite:") else "postgres"

    @property
    def sqlite_path(self) -> Path:
        return Path(unquote(self.catalog_url.removeprefix("sqlite:///").split("?", 1)[0]))

    @property
    def postgres_dsn(self) -> str:
        """The address in libpq's own spelling."""
        return self.catalog_url.replace("postgresql+psycopg2://", "postgresql://", 1)

    @property
    def properties(self) -> dict[str, str]:
        """What pyiceberg opens the catalog with: `load_catalog(CATALOG_NAME, **properties)`."""
        wait = f"{'&' if '?' in self.catalog_url else '?'}timeout=60" if self.kind == "sqlite" else ""
        uri = f"{self.catalog_url}{wait}"
        return {"type": "sql", "uri": uri, "warehouse": self.warehouse, "pool_pre_ping": "true"}

    @property
    def caches(self) -> Path:
        return self.home / "cache" / "lake"

    @property
    def locks(self) -> Path:
        return self.home / "locks"


def _catalog_url(url: str) -> str:
    if url.startswith("sqlite:////"):
        return url
    for prefix in ("postgresql+psycopg2://", "postgresql://", "postgres://"):
        if url.startswith(prefix):
            rest = url.removeprefix(prefix)
            if "connect_timeout=" not in rest:
                rest += f"{'&' if '?' in rest else '?'}connect_timeout={CONNECT_SECONDS}"
            return f"postgresql+psycopg2://{rest}"
    raise InvalidInput(
        f"a lake catalog cannot be kept in {url.split(':', 1)[0]!r}",
        remedy="use sqlite:////absolute/path/catalog.db or postgresql://user@host/database",
    )


def _warehouse(address: str) -> str:
    address = address.rstrip("/")
    scheme = urlsplit(address).scheme
    if scheme == "":
        address = f"file://{address}"
    elif scheme not in ("file", "s3"):
        raise InvalidInput(
            f"a warehouse on {scheme!r} is not supported",
            remedy="use file:///absolute/path or s3://bucket/path",
        )
    rest = address.split("://", 1)[1]
    if scheme != "s3" and not rest.startswith("/"):
        raise InvalidInput(f"the warehouse {address!r} is not an absolute path")
    # One of the engines that share the files would read these as patterns or as parts of an address.
    if bad := sorted(_UNSAFE & set(rest)):
        raise InvalidInput(
            f"the warehouse path must not contain {' '.join(bad)}",
            remedy="move PERENNIAL_HOME or the warehouse",
        )
    return address
