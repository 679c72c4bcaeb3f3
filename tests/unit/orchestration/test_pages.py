"""The generated pages of the documentation, and the settings that one of them lists."""

from __future__ import annotations

import re

import pytest

from orchestration.environments import load_settings
from orchestration.pages import pages, settings_page, settings_table
from orchestration.settings import PROJECT_ROOT
from services.setting_types import as_text
from services.settings import StorageSettings, setting

SETTINGS = {
    variable: (group, name, field)
    for group in load_settings({}).groups()
    for variable, (name, field) in group.variables().items()
}
POSTGRES = {"PERENNIAL_DATABASE_URL": "postgresql://u@h/d"}
COMPANIONS = {
    "PERENNIAL_ENV": POSTGRES | {"PERENNIAL_MARKET_START": "2015-01-01"},
    "PERENNIAL_CATALOG_URL": POSTGRES,
}


@pytest.mark.parametrize("name", pages())
def test_page__in_docs__is_what_make_docs_writes(name: str):
    assert (PROJECT_ROOT / "docs" / name).read_text() == pages()[name](), "run: make docs"


def test_settings_page__rendered__lists_every_setting_once():
    page = settings_page()
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == sorted(SETTINGS)


@pytest.mark.parametrize("variable", SETTINGS)
def test_example__of_every_setting__is_accepted(variable: str):
    group, name, field = SETTINGS[variable]
    [example] = field.examples or ()
    settings = load_settings({variable: example, **COMPANIONS.get(variable, {})})
    found = next(one for one in settings.groups() if type(one) is type(group))
    assert name in found.model_fields_set


@pytest.mark.parametrize("variable", SETTINGS)
def test_default__documented_as_a_value__is_the_value(variable: str):
    group, name, field = SETTINGS[variable]
    extra = field.json_schema_extra
    assert isinstance(extra, dict)
    shown = str(extra["shown"])
    if re.fullmatch("`[^`]+`", shown):
        assert as_text(getattr(group, name)) == shown.strip("`")


def test_settings_table__field_without_a_text__is_refused():
    class Silent(StorageSettings):
        silent: str = setting("", example="x")

    with pytest.raises(ValueError, match="PERENNIAL_SILENT"):
        list(settings_table("toy", Silent))
