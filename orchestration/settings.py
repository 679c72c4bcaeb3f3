"""Everything that can be set, as one typed, immutable value.

Nothing here reads the process environment: `environments.py` does, and it is the only module that may.
What a setting is called and means stands in `setting_fields.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Literal

from domain.shared.clock import Clock, machine_clock, stopped_at
from orchestration import setting_values as values
from orchestration.setting_fields import DOMAINS, FIELDS, TUSHARE_API

Environment = Literal["embedded", "production"]
Source = Literal["sandbox", "tushare"]

DERIVED = Path()
"""A folder nobody named: it is derived from the home folder."""
PROJECT_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings:
    """Every setting as a plain value. What is left None or empty here is derived from the rest."""

    home: Path
    env: Environment = "embedded"
    domains: tuple[str, ...] = DOMAINS
    database_url: str = ""
    warehouse: str = ""
    catalog_url: str = ""
    uploads: str = ""
    carbon_drop: Path = DERIVED
    carbon_app_url: str = ""
    carbon_app_token: str = ""
    carbon_api_url: str = ""
    carbon_api_token: str = ""
    source: Source | Literal[""] = ""
    tushare_token: str = ""
    tushare_url: str | None = None
    tushare_points: int = 0
    tushare_calls_per_minute: int | None = None
    tushare_retry_delays: tuple[float, ...] = (10.0, 20.0, 40.0)
    tushare_timeout_seconds: float = 30.0
    market_start: date = date(1990, 12, 19)
    gap_window_days: int = 7
    gap_limit: int = 3
    daily_at: time = time(18, 30)
    now: datetime | None = None
    memory_limit: str = "1GB"
    threads: int = 2
    fetch_workers: int = 4
    ui_host: str = "127.0.0.1"
    ui_port: int = 3000
    sandbox_port: int = 8712
    api_host: str = "127.0.0.1"
    api_port: int = 3001
    api_token: str = ""
    ingest_log: Path | None = None
    ingest_exec: str = ""
    ingest_timeout_seconds: float = 300.0
    log_level: str = "INFO"

    def __post_init__(self) -> None:
        derive = object.__setattr__
        derive(self, "home", self.home.absolute())
        derive(self, "source", self.source or ("tushare" if self.tushare_token else "sandbox"))
        if not self.database_url:
            derive(self, "database_url", values.sqlite_url(self.home / "ledger.db"))
        if not self.catalog_url:
            # One database is enough in production; a file beside the tables is enough on one machine.
            shared = self.env == "production" and values.is_postgres(self.database_url)
            own = values.sqlite_url(self.home / "lake" / "catalog.db")
            derive(self, "catalog_url", self.database_url if shared else own)
        if not self.warehouse:
            derive(self, "warehouse", f"file://{self.home / 'lake' / 'warehouse'}")
        if not self.uploads:
            at = self.warehouse
            beside = (
                f"{at.rstrip('/')}-uploads" if at.startswith("s3://") else f"file://{self.home / 'uploads'}"
            )
            derive(self, "uploads", beside)
        if self.tushare_url is None and self.source == "tushare":
            derive(self, "tushare_url", TUSHARE_API)
        if not self.tushare_points:
            derive(self, "tushare_points", 2000 if self.source == "tushare" else 15000)
        if self.carbon_drop == DERIVED:
            derive(self, "carbon_drop", self.home / "drop")
        if self.ingest_log is None:
            derive(self, "ingest_log", self.home / "logs" / "check_ingest.log")

    @property
    def dagster_home(self) -> Path:
        """Where Dagster keeps its state; `instance.dagster_home()` also makes it ready."""
        return self.home / "dagster"

    @property
    def sandbox_url(self) -> str:
        """Where the sandbox started on this machine answers."""
        return f"http://127.0.0.1:{self.sandbox_port}"

    @property
    def starts_sandbox(self) -> bool:
        """Whether the market's source is a sandbox that nobody else runs for us."""
        return "market" in self.domains and self.source == "sandbox" and self.tushare_url is None

    def business_clock(self) -> Clock:
        return machine_clock if self.now is None else stopped_at(self.now)

    def for_child(self) -> dict[str, str]:
        """These settings as the environment of a child process, secrets included: never log it."""
        child = {
            field.variable: values.as_text(value)
            for field in FIELDS
            if (value := getattr(self, field.attribute)) not in (None, "")
        }
        return child | {"DAGSTER_HOME": str(self.dagster_home)}

    def __repr__(self) -> str:
        shown = (f"{field.attribute}={field.shown(getattr(self, field.attribute))!r}" for field in FIELDS)
        return f"Settings({', '.join(shown)})"


def default_home(project: Path, working: Path) -> Path:
    """`.perennial` in the checkout, so that every folder of it means the same state; else right here."""
    checkout = (project / "workspace.yaml").is_file()
    return (project if checkout else working) / ".perennial"
