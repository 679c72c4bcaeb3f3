"""The platform's own settings, and beside them the group of each domain that is on.

Nothing here reads the process environment: `environments.py` does, and it is the only module that may.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import PrivateAttr, SecretStr, field_validator

from orchestration.registry import MODULES, find_domain
from services.setting_types import AbsolutePath, CommaSeparated, Port, Seconds, UpperCase
from services.settings import StorageSettings, setting

PROJECT_ROOT = Path(__file__).resolve().parents[1]

Group = TypeVar("Group", bound=StorageSettings)


class Settings(StorageSettings):
    domains: Annotated[tuple[str, ...], CommaSeparated] = setting(
        "The domains that are on. Of a domain that is off nothing is fetched, observed or reported.",
        derived=lambda _: tuple(MODULES),
        shown=f"`{','.join(MODULES)}`",
        example=next(reversed(MODULES)),
    )
    ui_host: str = setting(
        "Address the Dagster UI listens on. It has no login: open it to others only behind a proxy that has.",
        default="127.0.0.1",
        example="192.168.1.10",
    )
    ui_port: Port = setting("Port of the Dagster UI.", default=3000, example="3001")
    api_host: str = setting(
        "Address `perennial api` listens on. Another one needs a token.",
        default="127.0.0.1",
        example="192.168.1.10",
    )
    api_port: Port = setting("Port of `perennial api`.", default=3001, example="8080")
    api_token: SecretStr = setting(
        "The bearer token that `perennial api` wants from its callers.",
        default=SecretStr(""),
        shown="none: every caller that reaches it may use it",
        example="0123456789abcdef",
    )
    ingest_log: AbsolutePath = setting(
        "The file `scripts/check_ingest.sh` appends its line to, on the machine whose cron runs it.",
        derived=lambda data: data["home"] / "logs" / "check_ingest.log",
        shown="`logs/check_ingest.log` in the home folder",
        example="/var/log/perennial/check_ingest.log",
    )
    ingest_exec: str = setting(
        "What `scripts/check_ingest.sh` puts before the command to reach it in a container or a pod.",
        default="",
        shown="none: the command of this machine",
        example="kubectl exec deploy/perennial --",
    )
    ingest_timeout_seconds: Seconds = setting(
        "How long `scripts/check_ingest.sh` waits for the check.", default=300.0, example="60"
    )
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], UpperCase] = setting(
        "`DEBUG`, `INFO`, `WARNING` or `ERROR`.", default="INFO", example="WARNING"
    )
    _groups: dict[str, StorageSettings] = PrivateAttr(default_factory=dict)

    @field_validator("domains")
    @classmethod
    def _in_their_order(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        chosen = {name.lower() for name in given}
        if not chosen or not chosen.issubset(MODULES):
            raise ValueError(f"one or more of {', '.join(MODULES)}, separated by commas")
        return tuple(name for name in MODULES if name in chosen)

    def group(self, domain: str, kind: type[Group]) -> Group:
        """The settings of a domain."""
        if domain not in self._groups:
            self._groups[domain] = find_domain(domain).settings().read(self.text())
        found = self._groups[domain]
        if not isinstance(found, kind):
            raise TypeError(f"the settings of {domain} are no {kind.__name__}")
        return found

    def with_groups(self, groups: Mapping[str, StorageSettings]) -> Settings:
        """The same with these settings of domains."""
        self._groups.update(groups)
        return self

    def groups(self) -> Iterator[StorageSettings]:
        """The platform's own settings, then those of each domain that is on."""
        yield self
        for name in self.domains:
            yield self.group(name, StorageSettings)

    def environment(self) -> dict[str, str]:
        """All of it as text by variable, secrets included: never log it."""
        return {variable: text for group in self.groups() for variable, text in group.text().items()}


def default_home(project: Path, working: Path) -> Path:
    """`.perennial` in the checkout, so that every folder of it means the same state; else right here."""
    checkout = (project / "workspace.yaml").is_file()
    return (project if checkout else working) / ".perennial"
