"""The platform's own settings, and the group of each domain that is on.

Nothing here reads the process environment: `environments.py` does, and it is the only module that may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal, Self, TypeVar

from pydantic import PrivateAttr, SecretStr, field_validator

from orchestration.registry import MODULES, find_domain
from services.setting_types import AbsolutePath, CommaSeparated, Port, PortOrNone, Seconds, UpperCase
from services.settings import StorageSettings, setting

PROJECT_ROOT = Path(__file__).resolve().parents[1]

_PLACES = ("PERENNIAL_DATABASE_URL", "PERENNIAL_CATALOG_URL", "PERENNIAL_WAREHOUSE", "PERENNIAL_UPLOADS")
Group = TypeVar("Group", bound=StorageSettings)


class Settings(StorageSettings):
    domains: Annotated[tuple[str, ...], CommaSeparated] = setting(
        derived=lambda _: tuple(MODULES),
        shown=f"`{','.join(MODULES)}`",
        example=next(reversed(MODULES)),
    )
    """The domains that are on. Of a domain that is off nothing is fetched, observed or reported."""
    ui_host: str = setting("127.0.0.1", example="192.168.1.10")
    """Address the Dagster UI listens on. It has no login: open it to others only behind a proxy that has."""
    ui_port: Port = setting(3000, example="8000")
    """Port of the Dagster UI."""
    api_host: str = setting("127.0.0.1", example="192.168.1.10")
    """Address the HTTP API listens on. Another one needs a token."""
    api_port: PortOrNone = setting(3001, example="8080")
    """Port of the HTTP API of `perennial up` and `perennial api`; with 0 `perennial up` serves none."""
    api_token: SecretStr = setting(
        SecretStr(""), shown="none: every caller that reaches it may use it", example="0123456789abcdef"
    )
    """The bearer token with which callers of the HTTP API may read and operate."""
    api_read_token: SecretStr = setting(
        SecretStr(""), shown="none: every caller that may read may operate too", example="fedcba9876543210"
    )
    """The bearer token with which callers of the HTTP API may read only."""
    api_rate: float = setting(100.0, gt=0, le=100_000, allow_inf_nan=False, example="20")
    """Requests in a second that the HTTP API takes from one address; twice as many at once."""
    api_streams: int = setting(300, ge=1, le=400, example="100")
    """Streams that the HTTP API keeps open at once."""
    ingest_log: AbsolutePath = setting(
        derived=lambda data: data["home"] / "logs" / "check_ingest.log",
        shown="`logs/check_ingest.log` in the home folder",
        example="/var/log/perennial/check_ingest.log",
    )
    """The file `scripts/check_ingest.sh` appends its line to, on the machine whose cron runs it."""
    ingest_exec: str = setting("", shown="none: the command of this machine", example="docker exec perennial")
    """What `scripts/check_ingest.sh` puts before the command to reach it in a container."""
    ingest_timeout_seconds: Seconds = setting(300.0, example="60")
    """How long `scripts/check_ingest.sh` waits for the check."""
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], UpperCase] = setting(
        "INFO", example="WARNING"
    )
    """`DEBUG`, `INFO`, `WARNING` or `ERROR`."""
    _given: dict[str, str] = PrivateAttr(default_factory=dict)
    """The variables that these settings were read from: the groups of the domains are among them."""

    @field_validator("domains")
    @classmethod
    def _in_their_order(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        chosen = {name.lower() for name in given}
        if not chosen or not chosen.issubset(MODULES):
            raise ValueError(f"one or more of {', '.join(MODULES)}, separated by commas")
        return tuple(name for name in MODULES if name in chosen)

    @property
    def api_has_token(self) -> bool:
        return bool(self.api_token) or bool(self.api_read_token)

    def problems(self, now: datetime) -> Iterator[str]:
        yield from super().problems(now)
        if self.api_read_token and self.api_read_token == self.api_token:
            yield "PERENNIAL_API_READ_TOKEN: PERENNIAL_API_TOKEN is the same and may operate. Set another"

    @classmethod
    def read(cls, text: Mapping[str, str]) -> Self:
        settings = super().read(text)
        settings._given.update(text)  # noqa: SLF001
        return settings

    def group(self, kind: type[Group]) -> Group:
        """The settings of a domain."""
        given = self._given or self.text()
        return kind.read({**kind.in_real_home, **given} if kind.in_real_home and self._is_real() else given)

    def _is_real(self) -> bool:
        given = self._given or self.text()
        return any(find_domain(name).settings().read(given).is_real for name in self.domains)

    def groups(self) -> Iterator[StorageSettings]:
        """The platform's own settings, then those of each domain that is on."""
        yield self
        for name in self.domains:
            yield self.group(find_domain(name).settings())

    def environment(self) -> dict[str, str]:
        """All of it as text by variable, secrets included: never log it."""
        return {variable: text for group in self.groups() for variable, text in group.text().items()}


@contextmanager
def empty_home(settings: Settings) -> Iterator[Settings]:
    """These settings with an embedded home that is thrown away; tokens and sources stay."""
    given = {name: text for name, text in settings.environment().items() if name not in _PLACES}
    with TemporaryDirectory() as folder:
        yield Settings.read({**given, "PERENNIAL_HOME": folder, "PERENNIAL_ENV": "embedded"})


def default_home(project: Path, working: Path) -> Path:
    """`.perennial` in the checkout, so that every folder of it means the same state; else right here."""
    checkout = (project / "workspace.yaml").is_file()
    return (project if checkout else working) / ".perennial"
