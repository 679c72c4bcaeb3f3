"""The settings of the references domain."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, SecretStr

from services.references.sources import NONE, SANDBOX, VARIABLE, checked_place, checked_tokens, read_file
from services.setting_types import Duration
from services.settings import StorageSettings, setting


def _place(data: dict[str, Any]) -> str:
    return SANDBOX if data["env"] == "embedded" else NONE


class ReferencesSettings(StorageSettings):
    in_real_home: ClassVar[Mapping[str, str]] = {VARIABLE: NONE}

    references_sources: Annotated[str, AfterValidator(checked_place)] = setting(
        derived=_place,
        shown="`sandbox`: three sources to try; in production, and where market data is real, `none`",
        example="none",
    )
    """The path of the [sources file](references.md#the-sources-file): which sources are scraped, and how."""
    references_tokens: Annotated[SecretStr, AfterValidator(checked_tokens)] = setting(
        SecretStr(""), shown="none", example="atlas=0123456789abcdef,herald=fedcba9876543210"
    )
    """Bearer tokens of sources, as `source=token` separated by commas."""
    references_every: Duration = setting(timedelta(hours=1), example="15m")
    """How often a source is scraped that says nothing else in the sources file."""
    references_handoff_attempts: Annotated[int, Field(ge=1, le=20)] = setting(3, example="5")
    """Attempts at handing one content to ingestion while errors are transient."""
    references_handoff_backoff_seconds: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] = setting(
        0.0, example="5"
    )
    """Seconds before the second attempt at a hand-off; doubled for each further one, at most 60. With 0 the
    attempts follow one another at once."""
    references_ingest: str = setting("", shown="the one that ships", example="my_package.cleaning:ingest")
    """The function that makes a document of a reference, as `module:function`."""

    def check_files(self) -> None:
        if self.references_sources not in (SANDBOX, NONE):
            read_file(Path(self.references_sources))
