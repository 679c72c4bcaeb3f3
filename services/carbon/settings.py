"""The settings of the carbon domain."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, SecretStr

from domain.shared.clock import machine_clock, stopped_at
from domain.shared.years import YEARS, this_year
from services.setting_types import AbsolutePath, CommaSeparated, HttpUrl, Location
from services.settings import StorageSettings, setting


def _uploads(data: dict[str, Any]) -> str:
    warehouse = str(data["warehouse"])
    return f"{warehouse}-uploads" if warehouse.startswith("s3://") else f"file://{data['home'] / 'uploads'}"


def _years(data: dict[str, Any]) -> tuple[int, int]:
    return 2015, this_year(stopped_at(data["now"]) if data["now"] else machine_clock) + 1


def _in_order(found: tuple[int, int]) -> tuple[int, int]:
    if not YEARS[0] <= found[0] <= found[1] <= YEARS[-1]:
        raise ValueError(f"should be the first and the last year, from {YEARS[0]} to {YEARS[-1]}")
    return found


class CarbonSettings(StorageSettings):
    renamed: ClassVar = {"PERENNIAL_CARBON_DROP": "PERENNIAL_CARBON_INBOX"}

    uploads: Location = setting(
        derived=_uploads,
        shown="`uploads` in the home folder; next to the warehouse where that is an object store",
        example="s3://bucket/uploads",
    )
    """Where uploaded files and their staged rows are kept: a folder or a URI of `file` or `s3`."""
    carbon_years: Annotated[tuple[int, int], CommaSeparated, AfterValidator(_in_order)] = setting(
        derived=_years, shown="`2015` to next year", example="2010,2030"
    )
    """The first and the last year of carbon's partitions. Files and entries of other years are refused."""
    carbon_inbox: AbsolutePath = setting(
        derived=lambda data: data["home"] / "inbox",
        shown="`inbox` in the home folder",
        example="/srv/carbon/inbox",
    )
    """Carbon's inbox: files in its `units/`, `factors/` and `data/` are imported as uploads."""
    carbon_app_url: HttpUrl | None = setting(None, shown="none", example="https://carbon.example.org/feed")
    """Feed of the application in which people edit entries, units or factors: read, never written."""
    carbon_app_token: SecretStr = setting(SecretStr(""), shown="none", example="0123456789abcdef")
    """The bearer token of the application's feed."""
    carbon_api_url: HttpUrl | None = setting(None, shown="none", example="https://meters.example.org/feed")
    """Feed of a system that counts activity, or keeps units or factors: read, never written."""
    carbon_api_token: SecretStr = setting(SecretStr(""), shown="none", example="0123456789abcdef")
    """The bearer token of that system's feed."""

    @property
    def locations(self) -> tuple[str, ...]:
        return (*super().locations, self.uploads)
