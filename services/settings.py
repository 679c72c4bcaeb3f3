"""Settings as pydantic models: what every service needs, and what the group of a domain extends.

The variable of a field is `PERENNIAL_` and its name, unless it has an alias. A group is a plain value: only
`orchestration/environments.py` reads the process environment. The Dagster resource of a domain holds the text
of its group (secrets as names of variables), so that commands and runs open a service from the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic.fields import FieldInfo

from domain.shared.clock import Clock, machine_clock, stopped_at
from services.setting_types import (
    HIDDEN,
    DatabaseUrl,
    Folder,
    Location,
    LowerCase,
    Memory,
    Moment,
    as_text,
    is_postgres,
    redacted_url,
    sqlite_url,
)

PREFIX = "PERENNIAL_"


def setting(
    description: str,
    *,
    example: str,
    default: Any = ...,
    derived: Callable[[dict[str, Any]], Any] | None = None,
    shown: str = "",
    alias: str | None = None,
    ge: float | None = None,
    le: float | None = None,
) -> Any:
    """A field. `derived` makes its default from the fields before it, which `shown` says in words."""
    return Field(
        **({"default_factory": derived} if derived else {"default": default}),
        description=description,
        examples=[example],
        json_schema_extra={"shown": shown or f"`{as_text(default)}`"},
        alias=alias,
        ge=ge,
        le=le,
    )


def _catalog_url(data: dict[str, Any]) -> str:
    # One database is enough in production; a file beside the tables is enough on one machine.
    if data["env"] == "production" and is_postgres(data["database_url"]):
        return str(data["database_url"])
    return sqlite_url(data["home"] / "lake" / "catalog.db")


class StorageSettings(BaseModel):
    """Where the lake and the ledger are, and what the time is."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: f"{PREFIX}{name.upper()}",
        validate_by_name=True,
        validate_by_alias=True,
        str_strip_whitespace=True,
    )

    home: Folder = setting(
        "The folder that holds all state: lake, ledger, Dagster, logs. If relative, to the working folder.",
        shown="`.perennial` in the checkout, else in the working folder",
        example="/var/lib/perennial",
    )
    env: Annotated[Literal["embedded", "production"], LowerCase] = setting(
        "`embedded`: one machine, SQLite, files. `production`: Postgres, object store, Kubernetes.",
        default="embedded",
        example="production",
    )
    database_url: DatabaseUrl = setting(
        "Database of the work ledger; in production Dagster's storage too. Its password is never shown.",
        derived=lambda data: sqlite_url(data["home"] / "ledger.db"),
        shown="SQLite, `ledger.db` in the home folder",
        example="postgresql://perennial:password@db:5432/perennial",
    )
    warehouse: Location = setting(
        "Where the lake's data files live: a folder or a URI of `file` or `s3`.",
        derived=lambda data: f"file://{data['home'] / 'lake' / 'warehouse'}",
        shown="`lake/warehouse` in the home folder",
        example="s3://bucket/warehouse",
    )
    catalog_url: DatabaseUrl = setting(
        "Database of the Iceberg catalogue.",
        derived=_catalog_url,
        shown="SQLite, `lake/catalog.db` in the home folder; in production `PERENNIAL_DATABASE_URL`",
        example="postgresql://perennial:password@db:5432/catalog",
    )
    now: Moment | None = setting(
        "Stops the business clock. Without a time zone it is Shanghai's. Sandbox only, never in the future.",
        default=None,
        shown="the real time",
        example="2026-11-17T18:31",
    )
    memory_limit: Memory = setting("Memory of each DuckDB connection.", default="1GB", example="4GB")
    threads: int = setting("Threads of each DuckDB connection.", default=2, ge=1, le=256, example="8")

    @classmethod
    def variables(cls) -> dict[str, tuple[str, FieldInfo]]:
        """The name and the description of each field, by variable."""
        return {field.alias or "": (name, field) for name, field in cls.model_fields.items() if field.alias}

    @classmethod
    def read(cls, text: Mapping[str, str]) -> Self:
        """The settings that these variables say; others are ignored. Raises pydantic's ValidationError."""
        return cls.model_validate({name: text[name] for name in cls.variables() if name in text})

    def text(self) -> dict[str, str]:
        """What makes the same settings again, by variable, secrets included: never log it."""
        texts = {variable: as_text(getattr(self, name)) for variable, (name, _) in self.variables().items()}
        return {variable: text for variable, text in texts.items() if text}

    def shown(self, name: str) -> str:
        """A value for people: a secret hidden, a password in a URL blanked out."""
        value = getattr(self, name)
        if isinstance(value, SecretStr):
            return HIDDEN if value.get_secret_value() else ""
        return redacted_url(as_text(value))

    def is_secret(self, name: str) -> bool:
        """Whether people must not see its value: a token, or the address of a server with a login."""
        text = as_text(getattr(self, name))
        return self.shown(name) != text or is_postgres(text)

    def __repr_args__(self) -> Iterable[tuple[str, Any]]:
        return [(name, self.shown(name)) for name in type(self).model_fields]

    @property
    def dagster_home(self) -> Path:
        """Where Dagster keeps its state; `instance.dagster_home()` also makes it ready."""
        return self.home / "dagster"

    def business_clock(self) -> Clock:
        return machine_clock if self.now is None else stopped_at(self.now)

    def problems(self, now: datetime) -> Iterator[str]:
        if self.env == "production":
            for variable in ("PERENNIAL_DATABASE_URL", "PERENNIAL_CATALOG_URL"):
                name, field = self.variables()[variable]
                if not is_postgres(getattr(self, name)):
                    yield (
                        f"{variable}: production needs Postgres, not SQLite. "
                        f"Set {variable}={(field.examples or [''])[0]}"
                    )
        if self.now is not None and self.now > now:
            shown = as_text(self.now)
            yield f"PERENNIAL_NOW: {shown} is in the future. Set a moment that has passed"
