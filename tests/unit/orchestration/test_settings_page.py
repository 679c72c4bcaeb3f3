"""The documented table, the registry and the typed value say the same."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from orchestration.environments import load_settings
from orchestration.setting_fields import FIELDS, Field
from orchestration.settings import PROJECT_ROOT, Settings
from orchestration.settings_page import render


def test_the_page_is_generated_from_the_registry():
    assert (PROJECT_ROOT / "docs/settings.md").read_text() == render(), "run: make docs"


def test_every_value_has_one_row_and_every_row_a_value():
    assert [field.attribute for field in FIELDS] == [field.name for field in fields(Settings)]
    assert len({field.variable for field in FIELDS}) == len(FIELDS)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.variable)
def test_every_example_is_accepted(field: Field):
    company = {"PERENNIAL_ENV": {"PERENNIAL_DATABASE_URL": "postgresql://u@h/d"}}.get(field.variable, {})
    settings = load_settings({field.variable: field.example, **company})
    assert getattr(settings, field.attribute) == field.parse(field.example)


LITERAL = [field for field in FIELDS if re.fullmatch("`[^`]+`", field.default)]


@pytest.mark.parametrize("field", LITERAL, ids=lambda field: field.variable)
def test_a_default_that_is_documented_as_a_value_is_the_value(field: Field):
    assert getattr(Settings(home=Path("/state")), field.attribute) == field.parse(field.default.strip("`"))
