"""The settings of the carbon domain."""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr

from services.setting_types import Folder, HttpUrl, Location
from services.settings import StorageSettings, setting


def _uploads(data: dict[str, Any]) -> str:
    warehouse = str(data["warehouse"])
    return f"{warehouse}-uploads" if warehouse.startswith("s3://") else f"file://{data['home'] / 'uploads'}"


class CarbonSettings(StorageSettings):
    uploads: Location = setting(
        "Where uploaded files are kept, as they came and as rows: a folder or a URI of `file` or `s3`, for "
        "this environment alone.",
        derived=_uploads,
        shown="`uploads` in the home folder; beside the warehouse where that is an object store",
        example="s3://bucket/uploads",
    )
    carbon_drop: Folder = setting(
        "Carbon's inbox: files in its `units/`, `factors/` and `data/` are imported as uploads.",
        derived=lambda data: data["home"] / "drop",
        shown="`drop` in the home folder",
        example="/srv/carbon/drop",
    )
    carbon_app_url: HttpUrl | None = setting(
        "Feed of the application in which people edit carbon entries: read, never written.",
        default=None,
        shown="none",
        example="https://carbon.example.org/feed",
    )
    carbon_app_token: SecretStr = setting(
        "The bearer token of the application's feed.",
        default=SecretStr(""),
        shown="none",
        example="0123456789abcdef",
    )
    carbon_api_url: HttpUrl | None = setting(
        "Feed of a system that counts activity by itself: read, never written.",
        default=None,
        shown="none",
        example="https://meters.example.org/feed",
    )
    carbon_api_token: SecretStr = setting(
        "The bearer token of that system's feed.",
        default=SecretStr(""),
        shown="none",
        example="0123456789abcdef",
    )

    @property
    def polls_feeds(self) -> bool:
        return bool(self.carbon_app_url or self.carbon_api_url)
