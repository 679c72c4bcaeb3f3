"""Settings for tests, by the names of fields instead of variables."""

from __future__ import annotations

from typing import Any

from orchestration.environments import load_settings
from orchestration.registry import MODULES, find_domain
from orchestration.settings import Settings
from services.setting_types import as_text


def make_settings(base: Settings | None = None, **values: Any) -> Settings:
    """The settings in which these fields, of the platform or of any domain, have these values."""
    groups = [Settings, *(find_domain(name).settings() for name in MODULES)]
    variables = {name: variable for group in groups for variable, (name, _) in group.variables().items()}
    text = {variables[name]: as_text(value) for name, value in values.items()}
    return load_settings({**(base.environment() if base else {}), **text})
