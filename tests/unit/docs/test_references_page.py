"""What docs/references.md shows works: the sources file, the options, the plugin."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from orchestration.settings import PROJECT_ROOT
from resources.scraping.errors import ScrapeDown
from resources.scraping.options import OPTIONS
from resources.scraping.reference import NOTHING_READ
from resources.scraping.source import Source, make_scraper
from services.references.sources import read_file

PAGE = (PROJECT_ROOT / "docs/references.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert isinstance(found, str)
    return found


def test_sources_file__of_the_page__is_accepted(tmp_path: Path):
    (tmp_path / "sources.yaml").write_text(block("yaml"))
    assert [(one.name, one.kind) for one in read_file(tmp_path / "sources.yaml")] == [
        ("atlas", "paged"),
        ("herald", "rss"),
        ("inbox", "folder"),
    ]


def test_options__each__is_on_the_page():
    names = {name for model in OPTIONS.values() for name in model.model_fields}
    assert [name for name in sorted(names) if f"`{name}`" not in PAGE] == []


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType("ourlibrary")
    exec(compile(block("python"), "ourlibrary", "exec"), module.__dict__)
    module.__dict__["newest_change"] = lambda _: "7"
    module.__dict__["rows_of"] = lambda _: iter([{"key": "1", "name": "One"}])
    monkeypatch.setitem(sys.modules, "ourlibrary", module)
    return module


def test_plugin__of_the_page__gives_references_and_is_free_when_nothing_changed(plugin: ModuleType):
    scraper = make_scraper(Source("library", "ourlibrary:make", "sru://library"))
    first = scraper.fetch(NOTHING_READ, full=False)
    assert [(one.id, one.title) for one in first] == [("1", "One")]
    assert scraper.fetch(first.checkpoint(), full=False).unchanged
    assert not scraper.fetch(first.checkpoint(), full=True).unchanged


def test_plugin__of_the_page_without_its_source__raises_the_type_for_time(plugin: ModuleType):
    def rows_of(_: str) -> None:
        raise OSError(5, "gone")

    plugin.__dict__["rows_of"] = rows_of
    scraper = make_scraper(Source("library", "ourlibrary:make", "sru://library"))
    with pytest.raises(ScrapeDown):
        list(scraper.fetch(NOTHING_READ, full=False))
