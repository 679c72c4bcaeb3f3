"""Opens what a generic command needs: the lake and the ledger of every domain that is on, without Dagster."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from orchestration import registry
from orchestration.settings import Settings
from services import storage
from services.settings import StorageSettings

if TYPE_CHECKING:
    from resources.lake.client import Lake
    from resources.ledger.client import Ledger

Group = TypeVar("Group", bound=StorageSettings)


def settings_of(settings: Settings, domain: str, kind: type[Group]) -> Group:
    """The settings that the service of a domain is opened from. The domain must be on."""
    registry.require_domain(settings, domain)
    return settings.group(kind)


def open_lake(settings: Settings) -> Lake:
    return storage.open_lake(settings, registry.tables(settings), registry.views(settings))


def open_ledger(settings: Settings, *, write: bool = False) -> Ledger:
    """`write` brings its schema to this program's."""
    return storage.open_ledger(settings, registry.kinds(settings), write=write)
