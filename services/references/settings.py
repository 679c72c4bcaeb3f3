"""The settings of the references domain."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, SecretStr

from services.references.sources import NONE, SANDBOX, checked_place, checked_tokens
from services.setting_types import Duration
from services.settings import StorageSettings, setting


def _place(data: dict[str, Any]) -> str:
    return SANDBOX if data["env"] == "embedded" else NONE


class ReferencesSettings(StorageSettings):
    references_sources: Annotated[str, AfterValidator(checked_place)] = setting(
        derived=_place,
        shown="`sandbox`: three sources to try; in production `none`",
        example="/etc/perennial/sources.yaml",
    )
    """The [sources file](references.md#the-sources-file): which sources are scraped, and how."""
    references_tokens: Annotated[SecretStr, AfterValidator(checked_tokens)] = setting(
        SecretStr(""), shown="none", example="atlas=0123456789abcdef,herald=fedcba9876543210"
    )
    """Bearer tokens of sources, as `source=token` separated by commas."""
    references_every: Duration = setting(timedelta(hours=1), example="15m")
    """How often a source is scraped that says nothing else in the sources file."""
