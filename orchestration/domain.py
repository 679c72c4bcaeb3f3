"""`Domain`: everything the platform needs to know of a domain, as one value.

Definitions, commands, `status`, `doctor`, SQL, HTTP, demo and documentation iterate over `registry.py` and
use these parts. Every part that needs an import is a function: a domain that is off is never imported, and
a command that only reads imports no Dagster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import dagster as dg
    import typer
    from fastapi import APIRouter

    from domain.shared.freshness import SourceState
    from domain.shared.health import Finding, SourceFreshness
    from domain.shared.table import Table
    from domain.shared.verdict import Plan
    from domain.shared.watchdog import Watch
    from domain.shared.work import Kind
    from orchestration.settings import Settings
    from services.settings import StorageSettings


class Service(Protocol):
    """What every domain's service can do."""

    @property
    def clock(self) -> Callable[[], datetime]: ...
    def plan(self) -> Plan: ...


@dataclass(frozen=True)
class Demonstrated:
    """How a domain's part of the demo ended, and what it adds to the demo's JSON document."""

    ok: bool
    document: Mapping[str, Any]


@dataclass(frozen=True)
class Sandbox:
    """The sandbox that stands in for a domain's source."""

    url: str
    port: int | None = None
    """Where `perennial up` starts it; None if it is run by others."""
    port_file: Path | None = None
    """Where it writes its port, so that commands of this home find it."""
    table: str = ""
    """The table that `perennial sandbox break` breaks, if none is named."""


def _none(_: Settings) -> None:
    return None


@dataclass(frozen=True)
class constant:  # noqa: N801 - reads as the function that it is
    """A function that imports `module:name` when it is called, and returns it."""

    path: str

    def __call__(self) -> Any:
        module, _, name = self.path.partition(":")
        return getattr(import_module(module), name)


@dataclass(frozen=True)
class function:  # noqa: N801
    """The function `module:name`, imported when it is called."""

    path: str

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return constant(self.path)()(*arguments, **named)


@dataclass(frozen=True, kw_only=True)
class Domain:
    name: str
    """Also the group of its commands."""
    namespace: str = ""
    """Of its tables in the lake and of its assets, and their group; its name if none is given."""
    settings: Callable[[], type[StorageSettings]]
    """The model of its settings."""
    open: Callable[..., Any]
    """Opens its service from the settings, with `write=True` for commands that change something."""
    tables: Callable[[], Sequence[Table]]
    kinds: Callable[[], Sequence[Kind]]
    """Its kinds of work."""
    views: Callable[[], Mapping[str, str]] = dict
    """SQL views over its tables, by name."""
    ledger_tables: Mapping[str, constant] = field(default_factory=dict)
    """The tables of the ledger's database that SQL sees, by name; imported when a query names them."""
    definitions: Callable[[Settings], dg.Definitions]
    retention: Callable[[], Sequence[dg.AssetsDefinition]] = tuple
    """Assets that run every night with the care of the lake."""
    pools: Callable[[], Mapping[str, int]] = dict
    """Dagster's concurrency limits, by pool."""
    findings: Callable[[Any], list[Finding]]
    """What is unhealthy, given its service."""
    sources: Callable[[Any], Sequence[tuple[SourceFreshness, SourceState]]] = lambda _: ()
    """When each of its sources last answered and last failed, and what that means, given its service."""
    watch: Callable[[Any], Watch] | None = None
    """What `perennial check` says, given its service."""
    checks: Callable[[], Mapping[str, Callable[[Any], str | None]]]
    """What `perennial doctor` examines, by part. Given its service, a check returns what was found, or None
    if the part is not used here; it raises what is wrong."""
    reference_time: Callable[[Settings], datetime | None] = lambda _: None
    """The time by the clock of its source."""
    late_codes: Callable[[], Sequence[str]] = tuple
    """Reason codes of findings that give a reason to doubt this machine's clock."""
    pipelines: Callable[..., Mapping[str, Mapping[str, Any]]] | None = None
    """Its own view of pipelines, by id, given its service and ids; or `before` and `limit`, for its newest.
    `status` in a view stands for the one that follows from the work alone."""
    begin: str = ""
    """The command with which a person begins."""
    commands: Callable[[], typer.Typer]
    routes: Callable[[Settings], APIRouter] | None = None
    """Its part of the HTTP application; `orchestration/api/app.py` says what a route need not do."""
    demo: Callable[..., Demonstrated] | None = None
    """Called with the settings and `shown`: whether people read the answer."""
    sandbox: Callable[[Settings], Sandbox | None] = _none
    prepare: Callable[[Settings], None] = _none
    """Called by `perennial up` before anything is started."""
    pages: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Generated pages of the documentation, by file name."""

    def __post_init__(self) -> None:
        if not self.namespace:
            object.__setattr__(self, "namespace", self.name)
