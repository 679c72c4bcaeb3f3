"""The page of carbon types says what the catalogue says."""

from __future__ import annotations

from domain.carbon.catalogue import catalogue
from orchestration.settings import PROJECT_ROOT
from services.carbon.types_page import render


def test_the_page_is_generated_from_the_catalogue() -> None:
    assert (PROJECT_ROOT / "docs/carbon-types.md").read_text() == render(), "run: make docs"


def test_every_type_tells_its_method_and_every_column_what_it_means() -> None:
    page = render()
    for kind in catalogue().types.values():
        assert kind.method in page
        for column in kind.columns:
            assert f"| `{column.name}` |" in page
            assert column.description in page
