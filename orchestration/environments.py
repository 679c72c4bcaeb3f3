"""From the process environment to `Settings` and back: the only module that reads or writes `os.environ`.

A wrong value is never replaced by a default. All problems are reported at once, each with the variable, the
value (unless secret) and what to do.
"""

from __future__ import annotations

import difflib
import gc
import logging
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import SecretStr, ValidationError

from domain.shared.clock import Clock, machine_clock
from domain.shared.error import InvalidInput
from orchestration.registry import MODULES, find_domain
from orchestration.settings import PROJECT_ROOT, Settings, default_home
from services.setting_types import redacted_url
from services.settings import PREFIX, StorageSettings

_BATCH = "DAGSTER_EVENT_BATCH_SIZE"
_EVENTS_AT_ONCE = "1000"

_log = logging.getLogger("perennial.settings")

Group = TypeVar("Group", bound=StorageSettings)


def load_settings(
    environ: Mapping[str, str] | None = None,
    *,
    home: str | Path | None = None,
    clock: Clock = machine_clock,
) -> Settings:
    """The settings of `environ` (default: of this process), or of another `home`.

    Raises InvalidInput with every problem found.
    """
    variables = os.environ if environ is None else environ
    given = {name: raw.strip() for name, raw in variables.items() if raw.strip()}
    if home is not None:
        given[f"{PREFIX}HOME"] = str(home)
    given.setdefault(f"{PREFIX}HOME", str(default_home(PROJECT_ROOT, Path.cwd())))
    problems: list[str] = []
    settings = _read(Settings, given, problems)
    enabled = settings.domains if settings else tuple(MODULES)
    groups = [settings, *(_read(find_domain(name).settings(), given, problems) for name in enabled)]
    problems += _misspelt(given, enabled)
    problems += [problem for group in groups if group for problem in group.problems(clock())]
    if settings is None or problems:
        raise InvalidInput(
            "\n".join(["wrong settings:", *(f"  {problem}" for problem in dict.fromkeys(problems))]),
            reason_code="invalid_settings",
            remedy="correct these environment variables; docs/settings.md describes every one",
        )
    for group in groups:
        if group:
            group.check_files()
    return settings


def _read(kind: type[Group], given: Mapping[str, str], problems: list[str]) -> Group | None:
    """The group, or None and its problems are added."""
    try:
        return kind.read(given)
    except ValidationError as error:
        problems += _problems(kind, error)
        return None


def _problems(kind: type[StorageSettings], error: ValidationError) -> Iterator[str]:
    variables = kind.variables()
    for found in error.errors(include_url=False):
        variable = str(found["loc"][0]) if found["loc"] else ""
        if variable not in variables:  # a default that could not be derived from what is wrong
            continue
        _, field = variables[variable]
        value = "its value" if field.annotation is SecretStr else redacted_url(str(found["input"]))
        message = found["msg"].removeprefix("Value error, ")
        yield f"{variable}: {value}: {message}. Example: {variable}={(field.examples or [''])[0]}"


def _misspelt(given: Mapping[str, str], enabled: tuple[str, ...]) -> Iterator[str]:
    """A problem for each variable that is nearly a setting; of one that is like no setting only a warning."""
    known = _variables(enabled)
    prefixes = {variable.split("_")[0] for variable in known}
    unknown = sorted(name for name in given.keys() - known if name.split("_")[0] in prefixes)
    if not unknown:
        return
    of_others = _variables(tuple(MODULES))  # only now, as it imports the settings of domains that are off
    renamed = {old: new for group in _groups(tuple(MODULES)) for old, new in group.renamed.items()}
    by_stem = {_stem(variable, prefixes): variable for variable in known | of_others}
    for name in unknown:
        if name in of_others:
            continue
        if name in renamed:
            yield f"{name} was renamed to {renamed[name]}"
            continue
        # Compared without prefixes: they make everything look alike.
        near = difflib.get_close_matches(_stem(name, prefixes), by_stem, n=1, cutoff=0.75)
        if near:
            yield f"{name} is no setting; did you mean {by_stem[near[0]]}?"
        else:
            _log.warning("%s is no setting and is ignored; docs/settings.md lists them all", name)


def _variables(domains: tuple[str, ...]) -> set[str]:
    return {variable for group in _groups(domains) for variable in group.variables()}


def _groups(domains: tuple[str, ...]) -> list[type[StorageSettings]]:
    return [Settings, *(find_domain(name).settings() for name in domains)]


def _stem(variable: str, prefixes: set[str]) -> str:
    return re.sub(f"^(({'|'.join(prefixes)})_)+", "", variable)


def child_environment(settings: Settings) -> dict[str, str]:
    """This process's environment with `settings` over it, for a child process. Never log it."""
    own = settings.environment()
    ours = _variables(settings.domains)
    foreign = {k: v for k, v in os.environ.items() if k not in ours and not k.startswith(PREFIX)}
    batch = {_BATCH: os.environ.get(_BATCH, _EVENTS_AT_ONCE)}
    return {**foreign, **batch, **own, "DAGSTER_HOME": str(settings.dagster_home)}


def prepare_process() -> None:
    """Prepare this process for runs of many partitions.

    Dagster writes the events of a range together, unless the person says otherwise. The cycle collector
    rarely walks the large heap of Dagster: decoding makes lists by the hundred thousand and no cycle, and
    the default thresholds cost over 40 % of a backfill of 250 days.
    """
    os.environ.setdefault(_BATCH, _EVENTS_AT_ONCE)
    gc.set_threshold(100_000, 50, 10)


def export_database_url(settings: Settings) -> None:
    """Make `{env: PERENNIAL_DATABASE_URL}` in Dagster's instance file mean what these settings mean.

    Dagster resolves it in this process's environment, where the person may have named another driver.
    """
    os.environ["PERENNIAL_DATABASE_URL"] = settings.database_url
