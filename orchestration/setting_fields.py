"""The registry of settings: one row says what a variable is called, means, defaults to and looks like.

`docs/settings.md` is generated from these rows (`make docs`); the typed value is `settings.Settings`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestration import setting_values as values

DOMAINS = ("market", "carbon")
TUSHARE_API = "https://api.tushare.pro"


@dataclass(frozen=True)
class Field:
    """One setting. `default` is what the documentation says; the value itself is in `Settings`."""

    variable: str
    attribute: str
    parse: Callable[[str], Any]
    default: str
    description: str
    example: str
    secret: bool = False

    def shown(self, value: object) -> str:
        """The value for people: a secret hidden, a password in a URL blanked out."""
        if value is None or value == "":
            return ""
        if self.secret:
            return values.HIDDEN
        return values.redacted_url(values.as_text(value))


FIELDS: tuple[Field, ...] = (
    Field(
        "PERENNIAL_HOME",
        "home",
        values.plain_folder,
        "`.perennial` in the checkout, else in the working folder",
        "The folder that holds all state: lake, ledger, Dagster, logs. If relative, to the working folder.",
        "/var/lib/perennial",
    ),
    Field(
        "PERENNIAL_ENV",
        "env",
        values.one_of("embedded", "production"),
        "`embedded`",
        "`embedded`: one machine, SQLite, files. `production`: Postgres, object store, Kubernetes.",
        "production",
    ),
    Field(
        "PERENNIAL_DOMAINS",
        "domains",
        values.some_of(*DOMAINS),
        f"`{','.join(DOMAINS)}`",
        "What this house keeps alive. Of a domain left out nothing is fetched, looked at or told.",
        "carbon",
    ),
    Field(
        "PERENNIAL_DATABASE_URL",
        "database_url",
        values.database_url,
        "SQLite, `ledger.db` in the home folder",
        "Database of the work ledger; in production Dagster's storage too. Its password is never shown.",
        "postgresql://perennial:password@db:5432/perennial",
    ),
    Field(
        "PERENNIAL_WAREHOUSE",
        "warehouse",
        values.warehouse_uri,
        "`lake/warehouse` in the home folder",
        "Where the lake's data files live: a folder or a URI of `file` or `s3`.",
        "s3://bucket/warehouse",
    ),
    Field(
        "PERENNIAL_CATALOG_URL",
        "catalog_url",
        values.database_url,
        "SQLite, `lake/catalog.db` in the home folder; in production `PERENNIAL_DATABASE_URL`",
        "Database of the Iceberg catalogue.",
        "postgresql://perennial:password@db:5432/catalog",
    ),
    Field(
        "PERENNIAL_UPLOADS",
        "uploads",
        values.warehouse_uri,
        "`uploads` in the home folder; beside the warehouse where that is an object store",
        "Where uploaded files are kept, as they came and as rows: a folder or a URI of `file` or `s3`, for "
        "this environment alone.",
        "s3://bucket/uploads",
    ),
    Field(
        "PERENNIAL_CARBON_DROP",
        "carbon_drop",
        values.plain_folder,
        "`drop` in the home folder",
        "Carbon's inbox: files in its `units/`, `factors/` and `data/` are imported as uploads.",
        "/srv/carbon/drop",
    ),
    Field(
        "PERENNIAL_CARBON_APP_URL",
        "carbon_app_url",
        values.http_url,
        "none",
        "Feed of the application in which people edit carbon entries: read, never written.",
        "https://carbon.example.org/feed",
    ),
    Field(
        "PERENNIAL_CARBON_APP_TOKEN",
        "carbon_app_token",
        values.text,
        "none",
        "What the application's feed wants as bearer token.",
        "0123456789abcdef",
        secret=True,
    ),
    Field(
        "PERENNIAL_CARBON_API_URL",
        "carbon_api_url",
        values.http_url,
        "none",
        "Feed of a system that counts activity by itself: read, never written.",
        "https://meters.example.org/feed",
    ),
    Field(
        "PERENNIAL_CARBON_API_TOKEN",
        "carbon_api_token",
        values.text,
        "none",
        "What that system's feed wants as bearer token.",
        "0123456789abcdef",
        secret=True,
    ),
    Field(
        "PERENNIAL_SOURCE",
        "source",
        values.one_of("sandbox", "tushare"),
        "`tushare` if `TUSHARE_TOKEN` is set, else `sandbox`",
        "Where market data comes from. A home folder keeps the source it was first filled from.",
        "sandbox",
    ),
    Field(
        "TUSHARE_TOKEN",
        "tushare_token",
        values.text,
        "none",
        "Token of your Tushare account.",
        "0123456789abcdef",
        secret=True,
    ),
    Field(
        "TUSHARE_URL",
        "tushare_url",
        values.http_url,
        f"`{TUSHARE_API}`; for the sandbox one is started when needed",
        "A server that speaks Tushare's protocol.",
        "http://exchange.internal:8712",
    ),
    Field(
        "TUSHARE_POINTS",
        "tushare_points",
        values.whole(1, 1_000_000),
        "`2000`; for the sandbox `15000`",
        "Points of the account: they decide the pace and which tables may be fetched.",
        "5000",
    ),
    Field(
        "TUSHARE_CALLS_PER_MINUTE",
        "tushare_calls_per_minute",
        values.whole(1, 100_000),
        "what the points allow",
        "Calls per minute over all processes, where an account differs from the published table.",
        "180",
    ),
    Field(
        "TUSHARE_RETRY_DELAYS",
        "tushare_retry_delays",
        values.delays,
        "`10,20,40`",
        "Seconds between one run's passes over failed calls; n waits are n + 1 passes. `none`: one pass.",
        "1,2,4",
    ),
    Field(
        "TUSHARE_TIMEOUT_SECONDS",
        "tushare_timeout_seconds",
        values.seconds,
        "`30`",
        "How long one call may take.",
        "60",
    ),
    Field(
        "PERENNIAL_MARKET_START",
        "market_start",
        values.day,
        "`1990-12-19`",
        "First day of the warehouse's partitions. The exchange opened on the default.",
        "2015-01-01",
    ),
    Field(
        "PERENNIAL_GAP_WINDOW_DAYS",
        "gap_window_days",
        values.whole(1, 366),
        "`7`",
        "How many days back each look searches for gaps.",
        "14",
    ),
    Field(
        "PERENNIAL_GAP_LIMIT",
        "gap_limit",
        values.whole(1, 366),
        "`3`",
        "How many days one look fills at most, newest first; of older days, how many are filled at a time.",
        "5",
    ),
    Field(
        "PERENNIAL_DAILY_AT",
        "daily_at",
        values.time_of_day,
        "`18:30`",
        "When the daily schedule looks, Asia/Shanghai.",
        "19:05",
    ),
    Field(
        "PERENNIAL_NOW",
        "now",
        values.moment,
        "the real time",
        "Stops the business clock. Without a time zone it is Shanghai's. Sandbox only, never in the future.",
        "2026-11-17T18:31",
    ),
    Field(
        "PERENNIAL_MEMORY_LIMIT",
        "memory_limit",
        values.memory,
        "`1GB`",
        "Memory of each DuckDB connection.",
        "4GB",
    ),
    Field(
        "PERENNIAL_THREADS",
        "threads",
        values.whole(1, 256),
        "`2`",
        "Threads of each DuckDB connection.",
        "8",
    ),
    Field(
        "PERENNIAL_FETCH_WORKERS",
        "fetch_workers",
        values.whole(1, 64),
        "`4`",
        "Calls to the source that one run makes at the same time.",
        "8",
    ),
    Field(
        "PERENNIAL_UI_HOST",
        "ui_host",
        values.text,
        "`127.0.0.1`",
        "Address the Dagster UI listens on. It has no login: open it to others only behind a proxy that has.",
        "192.168.1.10",
    ),
    Field(
        "PERENNIAL_UI_PORT",
        "ui_port",
        values.whole(1, 65535),
        "`3000`",
        "Port of the Dagster UI.",
        "3001",
    ),
    Field(
        "PERENNIAL_SANDBOX_PORT",
        "sandbox_port",
        values.whole(1, 65535),
        "`8712`",
        "Port of the sandbox that `perennial up` starts.",
        "8713",
    ),
    Field(
        "PERENNIAL_API_HOST",
        "api_host",
        values.text,
        "`127.0.0.1`",
        "Address `perennial api` listens on. Another one needs a token.",
        "192.168.1.10",
    ),
    Field(
        "PERENNIAL_API_PORT",
        "api_port",
        values.whole(1, 65535),
        "`3001`",
        "Port of `perennial api`.",
        "8080",
    ),
    Field(
        "PERENNIAL_API_TOKEN",
        "api_token",
        values.text,
        "none: whoever reaches it may use it",
        "What `perennial api` wants from its callers as bearer token.",
        "0123456789abcdef",
        secret=True,
    ),
    Field(
        "PERENNIAL_INGEST_LOG",
        "ingest_log",
        values.absolute_path,
        "`logs/check_ingest.log` in the home folder",
        "The file `scripts/check_ingest.sh` appends its line to, on the machine whose cron runs it.",
        "/var/log/perennial/check_ingest.log",
    ),
    Field(
        "PERENNIAL_INGEST_EXEC",
        "ingest_exec",
        values.text,
        "none: the command of this machine",
        "What `scripts/check_ingest.sh` puts before the command to reach it in a container or a pod.",
        "kubectl exec deploy/perennial --",
    ),
    Field(
        "PERENNIAL_INGEST_TIMEOUT_SECONDS",
        "ingest_timeout_seconds",
        values.seconds,
        "`300`",
        "How long `scripts/check_ingest.sh` waits for the check.",
        "60",
    ),
    Field(
        "PERENNIAL_LOG_LEVEL",
        "log_level",
        values.log_level,
        "`INFO`",
        "`DEBUG`, `INFO`, `WARNING` or `ERROR`.",
        "WARNING",
    ),
)
