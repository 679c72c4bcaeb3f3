"""From the process environment to `Settings` and back: the only module that reads or writes `os.environ`.

A wrong value is never replaced by a default. Everything wrong is said at once, each line with the
setting, the value (unless secret) and what to do.
"""

from __future__ import annotations

import difflib
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from domain.shared.clock import Clock, machine_clock
from domain.shared.error import InvalidInput
from orchestration import setting_values as values
from orchestration.setting_fields import FIELDS, Field
from orchestration.settings import PROJECT_ROOT, Settings, default_home

PREFIXES = ("PERENNIAL_", "TUSHARE_")

_BATCH = "DAGSTER_EVENT_BATCH_SIZE"
_EVENTS_AT_ONCE = "1000"

_log = logging.getLogger("perennial.settings")

_PREFIX = re.compile(f"^({'|'.join(PREFIXES)})+")

# Kubernetes puts every service of a namespace into the environment of its pods. One named
# `perennial-ui` would otherwise set PERENNIAL_UI_PORT to tcp://10.0.0.1:80.
_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT)(_\w+)?$|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?$")
_SERVICE_VALUE = re.compile(r"^(tcp|udp|sctp)://")


def load_settings(environ: Mapping[str, str] | None = None, *, clock: Clock = machine_clock) -> Settings:
    """The settings of `environ` (default: of this process). Raises InvalidInput with every problem found."""
    given = _ours(os.environ if environ is None else environ)
    problems = _misspelt(given)
    found: dict[str, Any] = {"home": default_home(PROJECT_ROOT, Path.cwd())}
    for field in FIELDS:
        raw = given.get(field.variable)
        if raw is None:
            continue
        try:
            found[field.attribute] = field.parse(raw)
        except ValueError as wanted:
            problems.append(_problem(field, raw, str(wanted)))
    if not problems:
        settings = Settings(**found)
        problems = _contradictions(settings, clock)
    if problems:
        raise InvalidInput(
            "\n".join(["wrong settings:", *(f"  {problem}" for problem in problems)]),
            reason_code="invalid_settings",
            remedy="correct these environment variables; docs/settings.md describes every one",
        )
    return settings


def child_environment(settings: Settings) -> dict[str, str]:
    """This process's environment with `settings` over it, for a child process. Never log it."""
    foreign = {name: value for name, value in os.environ.items() if not name.startswith(PREFIXES)}
    return {**foreign, _BATCH: os.environ.get(_BATCH, _EVENTS_AT_ONCE)} | settings.for_child()


def batch_events() -> None:
    """Let Dagster write the events of a range of partitions together, unless the person says otherwise."""
    os.environ.setdefault(_BATCH, _EVENTS_AT_ONCE)


def export_database_url(settings: Settings) -> None:
    """Make `{env: PERENNIAL_DATABASE_URL}` in Dagster's instance file mean what these settings mean.

    Dagster resolves it in this process's environment, where the person may have named another driver.
    """
    os.environ["PERENNIAL_DATABASE_URL"] = settings.database_url


def _ours(environ: Mapping[str, str]) -> dict[str, str]:
    """Our variables that say something: an empty one is unset, a Kubernetes service link is not ours."""
    return {
        name: raw.strip()
        for name, raw in environ.items()
        if name.startswith(PREFIXES)
        and raw.strip()
        and not (_SERVICE_LINK.search(name) or _SERVICE_VALUE.match(raw.strip()))
    }


def _misspelt(given: Mapping[str, str]) -> list[str]:
    known = {field.variable for field in FIELDS}
    problems = []
    for name in sorted(given.keys() - known):
        meant = _nearest(name, known)
        if meant:
            problems.append(f"{name} is no setting; did you mean {meant}?")
        else:
            _log.warning("%s is no setting and is ignored; docs/settings.md lists them all", name)
    return problems


def _nearest(name: str, known: set[str]) -> str | None:
    """The setting meant by `name`. Compared without prefixes: they make everything look alike."""
    by_stem = {_stem(variable): variable for variable in known}
    near = difflib.get_close_matches(_stem(name), by_stem, n=1, cutoff=0.75)
    return by_stem[near[0]] if near else None


def _stem(variable: str) -> str:
    return _PREFIX.sub("", variable)


def _problem(field: Field, raw: str, wanted: str) -> str:
    value = "its value" if field.secret else values.redacted_url(raw)
    return f"{field.variable}: {value} is not {wanted}. Example: {field.variable}={field.example}"


def _contradictions(settings: Settings, clock: Clock) -> list[str]:
    """What is wrong only together."""
    problems = []
    if settings.env == "production":
        for field in FIELDS:
            url = getattr(settings, field.attribute)
            if field.parse is values.database_url and not values.is_postgres(url):
                problems.append(
                    f"{field.variable}: production needs Postgres, not SQLite. "
                    f"Set {field.variable}={field.example}"
                )
    if settings.source == "tushare" and not settings.tushare_token:
        problems.append(
            "TUSHARE_TOKEN: the source tushare needs the token of your account. "
            "Set it, or PERENNIAL_SOURCE=sandbox"
        )
    if settings.now is not None:
        shown = values.as_text(settings.now)
        if settings.source != "sandbox":
            problems.append(
                f"PERENNIAL_NOW: {shown} would stop the clock while real data comes in. "
                "Unset it, or set PERENNIAL_SOURCE=sandbox"
            )
        if settings.now > clock():
            problems.append(f"PERENNIAL_NOW: {shown} is in the future. Set a moment that has passed")
    today = (settings.now or clock()).astimezone(values.MARKET_TIMEZONE).date()
    if settings.market_start > today:
        problems.append(
            f"PERENNIAL_MARKET_START: {settings.market_start} is after today, {today}. "
            f"Set a day that has passed{', or a later PERENNIAL_NOW' if settings.now else ''}"
        )
    return problems
