"""What Dagster resources hold: the text of settings, secrets as names of variables.

The UI shows every value but a secret, of which it shows the variable.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import dagster as dg

from domain.shared.table import Table
from domain.shared.work import Kind
from services.setting_types import is_postgres
from services.settings import StorageSettings
from services.storage import open_lake, open_ledger

if TYPE_CHECKING:
    from resources.lake.client import Lake
    from resources.ledger.client import Ledger

Opened = TypeVar("Opened")

_KEPT: dict[Any, Any] = {}


def resource_text(settings: StorageSettings, kind: type[StorageSettings]) -> dict[str, str]:
    """The text of a resource that reads `kind`; what was not given is derived again."""
    names = {variable: name for variable, (name, _) in kind.variables().items()}
    return {
        variable: dg.EnvVar(variable) if settings.is_secret(names[variable]) else value
        for variable, value in settings.text().items()
        if variable in names
    }


def kept(settings: StorageSettings, what: Sequence[str], open_: Callable[[], Opened]) -> Opened:
    """What `open_` opens: of a server one per process, as its connections are few and sensors run often.

    A file may be put back from a backup under a running daemon: nothing is kept open on it.
    """
    if not is_postgres(settings.database_url):
        return open_()
    key = (*what, *sorted(settings.text().items()))
    if key not in _KEPT:
        _KEPT[key] = open_()
    opened: Opened = _KEPT[key]
    return opened


class StorageResource(dg.ConfigurableResource):
    """The lake and the ledger, for the care of the platform itself."""

    settings: dict[str, str]

    def lake(self, tables: Sequence[Table]) -> "Lake":
        settings = StorageSettings.read(self.settings)
        return kept(settings, ["lake", *(t.name for t in tables)], lambda: open_lake(settings, tables))

    def ledger(self, kinds: Sequence[Kind]) -> "Ledger":
        settings = StorageSettings.read(self.settings)
        names = ["ledger", *(kind.name for kind in kinds)]
        return kept(settings, names, lambda: open_ledger(settings, kinds, write=True))
