"""Settings as pydantic models: what every service needs, and what the group of a domain extends.

The variable of a field is its alias: `PERENNIAL_` and its name, unless the model of a domain has another
`alias_generator`. The text below a field describes it.

A group is a plain value: only `orchestration/environments.py` reads the process environment. The Dagster
resource of a domain holds the text of its group (secrets as names of variables), so that commands and runs
open a service from the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic.fields import FieldInfo

from domain.shared.clock import Clock, machine_clock, stopped_at
from services.setting_types import (
    HIDDEN,
    AbsolutePath,
    DatabaseUrl,
    Location,
    LowerCase,
    Memory,
    Moment,
    Port,
    as_text,
    is_postgres,
    redacted_url,
    sqlite_url,
)

PREFIX = "PERENNIAL_"


def setting(
    default: Any = ...,
    *,
    example: str,
    shown: str = "",
    derived: Callable[[dict[str, Any]], Any] | None = None,
    **limits: Any,
) -> Any:
    """A field. `derived` makes its default from the fields before it, which `shown` says in words."""
    return Field(
        **({"default_factory": derived} if derived else {"default": default}),
        examples=[example],
        json_schema_extra={"shown": shown or f"`{as_text(default)}`"},
        **limits,
    )


def _catalog_url(data: dict[str, Any]) -> str:
    # One database is enough in production; a file next to the tables is enough on one machine.
    if data["env"] == "production" and is_postgres(data["database_url"]):
        return str(data["database_url"])
    return sqlite_url(data["home"] / "lake" / "catalog.db")


class StorageSettings(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: f"{PREFIX}{name.upper()}",
        validate_by_name=True,
        validate_by_alias=True,
        str_strip_whitespace=True,
        use_attribute_docstrings=True,
    )

    renamed: ClassVar[Mapping[str, str]] = {}
    """Variables by the names that they had before."""
    in_real_home: ClassVar[Mapping[str, str]] = {}
    """Variables that have another default where the source of a domain is real: nothing made up beside it."""

    home: AbsolutePath = setting(
        shown="`.perennial` in the checkout, else in the working folder", example="/var/lib/perennial"
    )
    """The folder that holds all state: lake, ledger, Dagster, logs. If relative, to the working folder."""
    env: Annotated[Literal["embedded", "production"], LowerCase] = setting("embedded", example="production")
    """`embedded`: SQLite and files. `production`: Postgres. Runs are processes of this machine in both."""
    database_url: DatabaseUrl = setting(
        derived=lambda data: sqlite_url(data["home"] / "ledger.db"),
        shown="SQLite, `ledger.db` in the home folder",
        example="postgresql://perennial:password@db:5432/perennial",
    )
    """Database of the work ledger; in production Dagster's storage too. Its password is never shown."""
    warehouse: Location = setting(
        derived=lambda data: f"file://{data['home'] / 'lake' / 'warehouse'}",
        shown="`lake/warehouse` in the home folder",
        example="s3://bucket/warehouse",
    )
    """Where the lake's data files live: a folder or a URI of `file` or `s3`."""
    catalog_url: DatabaseUrl = setting(
        derived=_catalog_url,
        shown="SQLite, `lake/catalog.db` in the home folder; in production `PERENNIAL_DATABASE_URL`",
        example="postgresql://perennial:password@db:5432/catalog",
    )
    """Database of the Iceberg catalogue."""
    now: Moment | None = setting(None, shown="the real time", example="2026-11-17T18:31")
    """Stops the business clock. Without a time zone it is Shanghai's. Sandbox only, never in the future."""
    memory_limit: Memory = setting("1GB", example="4GB")
    """Memory of each DuckDB connection."""
    threads: int = setting(2, ge=1, le=256, example="8")
    """Threads of each DuckDB connection."""
    sandbox_port: Port = setting(8712, example="8713")
    """Port of the sandbox that `perennial up` starts, where one stands in for a source."""

    @classmethod
    def variables(cls) -> dict[str, tuple[str, FieldInfo]]:
        """The name and the description of each field, by variable."""
        return {field.alias or "": (name, field) for name, field in cls.model_fields.items()}

    @classmethod
    def read(cls, text: Mapping[str, str]) -> Self:
        """The settings that these variables say; others are ignored. Raises pydantic's ValidationError."""
        return cls.model_validate({name: text[name] for name in cls.variables() if name in text})

    def text(self) -> dict[str, str]:
        """The variables that make the same settings again, secrets included: never log them."""
        given = [(variable, name) for variable, (name, _) in self.variables().items()]
        return {v: as_text(getattr(self, name)) for v, name in given if name in self.model_fields_set}

    def shown(self, name: str) -> str:
        """A value for people: a secret hidden, a URL without its login."""
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

    @property
    def locations(self) -> tuple[str, ...]:
        """Where files are kept that tell of earlier work."""
        return (self.warehouse,)

    @property
    def is_real(self) -> bool:
        """Whether its source gives real data, and no sandbox stands in for it."""
        return False

    def business_clock(self) -> Clock:
        return machine_clock if self.now is None else stopped_at(self.now)

    def check_files(self) -> None:
        """Read the files that settings name; a mistake in one is an InvalidInput that names its line."""

    def problems(self, now: datetime) -> Iterator[str]:
        """What is wrong with the values together, though each is right by itself."""
        urls = {"PERENNIAL_DATABASE_URL": self.database_url, "PERENNIAL_CATALOG_URL": self.catalog_url}
        for variable, url in urls.items():
            if self.env == "production" and not is_postgres(url):
                example = "postgresql://perennial:password@db:5432/perennial"
                yield f"{variable}: production needs Postgres, not SQLite. Set {variable}={example}"
        if self.now is not None and self.now > now:
            yield f"PERENNIAL_NOW: {as_text(self.now)} is in the future. Set a moment that has passed"
