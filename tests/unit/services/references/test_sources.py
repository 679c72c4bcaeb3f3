"""The sources file: what it says becomes scrapers; each mistake names its line, the entry and the remedy."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import ValidationError

from domain.shared.error import InvalidInput
from orchestration.environments import load_settings
from resources.scraping.source import Source, make_scraper
from services.references.settings import ReferencesSettings
from services.references.sources import open_sources, read_file

GOOD = """\
sources:
  - name: atlas
    kind: paged
    url: https://atlas.example.org/api/references
    every: 15m
    options: {total: meta.total, per_page: 50}
  - name: herald
    kind: rss
    url: https://herald.example.org/feed.xml
  - name: inbox
    kind: folder
    url: /srv/references
  - name: own
    kind: ourpackage.library:make
    url: sru://library
"""


def sources_file(folder: Path, text: str) -> Path:
    path = folder / "sources.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, text: str) -> str:
    with pytest.raises(InvalidInput) as error:
        read_file(sources_file(folder, text))
    assert error.value.reason_code == "sources_file"
    assert error.value.remedy
    assert str(folder / "sources.yaml") in error.value.message
    return error.value.message


def test_open_sources__file_with_tokens__gives_each_source_its_own(tmp_path: Path):
    settings = ReferencesSettings(
        home=tmp_path,
        references_sources=str(sources_file(tmp_path, GOOD)),
        references_tokens="atlas=s3cret",
        references_every="2h",
    )
    sources = open_sources(settings)
    assert list(sources) == ["atlas", "herald", "inbox", "own"]
    atlas = sources.scheduled["atlas"]
    assert (atlas.every, atlas.source.token) == (timedelta(minutes=15), "s3cret")
    assert sources.scheduled["herald"].every == timedelta(hours=2)
    assert sources.scheduled["herald"].source.token == ""
    assert "s3cret" not in repr(sources.scheduled) + repr(settings) + settings.shown("references_tokens")
    assert settings.is_secret("references_tokens")


def test_fingerprint__token_changes__changes(tmp_path: Path):
    def fingerprint(token: str) -> str:
        return open_sources(
            ReferencesSettings(home=tmp_path, references_tokens=f"atlas={token}")
        ).fingerprint("atlas")

    assert fingerprint("one") == fingerprint("one") != fingerprint("two")


def test_open_sources__no_file__has_the_sandbox_embedded_and_nothing_in_production(tmp_path: Path):
    assert list(open_sources(ReferencesSettings(home=tmp_path))) == ["atlas", "herald", "inbox"]
    assert list(open_sources(ReferencesSettings(home=tmp_path, env="production"))) == []


def test_open_sources__token_of_no_source__is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="atlsa") as error:
        open_sources(ReferencesSettings(home=tmp_path, references_tokens="atlsa=s3cret"))
    assert "s3cret" not in error.value.message + error.value.remedy


def test_settings__tokens_without_a_name__are_refused_unseen(tmp_path: Path):
    with pytest.raises(ValidationError) as error:
        ReferencesSettings(home=tmp_path, references_tokens="s3cret")
    assert "part 1 should be source=token" in error.value.errors()[0]["msg"]


def test_settings__text__makes_the_same_settings_again(tmp_path: Path):
    given = ReferencesSettings(home=tmp_path, references_every="90m", references_tokens="atlas=x")
    assert given.text()["PERENNIAL_REFERENCES_EVERY"] == "90m"
    assert ReferencesSettings.read(given.text()) == given


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("every: 15m", "every: often"),
            "line 5: source atlas: every: should be a number and one of s, m, h, d",
        ),
        (("kind: rss", "kind: rsss"), "line 8: source herald: kind: should be paged, rss, folder or"),
        (("name: herald", "name: atlas"), "line 7: source atlas: name: is the name of two sources"),
        (("name: herald", "name: her:ald"), "line 7: source her:ald: name:"),
        (("https://atlas.", "https://me:s3cret@atlas."), "line 4: source atlas: url: should hold no user"),
        (("https://herald.", "herald."), "line 9: source herald: url: should begin with https://"),
        (("/srv/references", "srv/references"), "line 12: source inbox: url: should be a folder"),
        (("per_page: 50", "per_page: 0"), "line 6: source atlas: options.per_page:"),
        (
            ("per_page: 50", "pages: 50"),
            "line 6: source atlas: options.pages: is no name that is known here; known are timeout,",
        ),
        (("    kind: rss\n", ""), "line 7: source herald: kind: is missing"),
        (("sources:", "source:"), "line 1: source"),
        (("options: {", "options: {{"), "line 7: it is no YAML: expected"),
    ],
)
def test_read_file__mistake__names_line_entry_and_field(tmp_path: Path, change: tuple[str, str], said: str):
    message = refused(tmp_path, GOOD.replace(*change))
    assert said in message
    assert "s3cret" not in message


def test_read_file__several_mistakes__names_each_with_its_line(tmp_path: Path):
    text = GOOD.replace("every: 15m", "evry: 15m").replace("per_page: 50", "per_page: 0")
    message = refused(
        tmp_path, text.replace("https://herald.", "herald.").replace("name: own", "name: atlas")
    )
    for said in (
        "line 5: source atlas: evry:",
        "line 6: source atlas: options.per_page:",
        "line 9:",
        "line 13:",
    ):
        assert said in message
    assert message.count("sources.yaml") == 1
    assert "SourceEntry" not in refused(tmp_path, "sources: [b]")


def test_load_settings__mistake_in_the_file__is_one_of_the_file_and_of_no_variable(tmp_path: Path):
    file = sources_file(tmp_path, GOOD.replace("kind: rss", "kind: rsss"))
    environ = {"PERENNIAL_HOME": str(tmp_path), "PERENNIAL_REFERENCES_SOURCES": str(file)}
    with pytest.raises(InvalidInput) as error:
        load_settings(environ)
    assert error.value.reason_code == "sources_file"
    assert "environment" not in error.value.remedy


def test_read_file__empty_or_absent__is_refused(tmp_path: Path):
    assert refused(tmp_path, "")
    assert refused(tmp_path, "- a\n- b\n")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_file(tmp_path / "none.yaml")


def test_make_scraper__plugin_that_is_not_installed__is_refused():
    with pytest.raises(InvalidInput, match="nowhere") as error:
        make_scraper(Source("own", "nowhere.at_all:make", "x"))
    assert error.value.reason_code == "scrape_plugin"


@pytest.mark.parametrize("kind", ["os:getcwd", "builtins:str", "os:sep"])
def test_make_scraper__plugin_that_makes_no_scraper__is_refused_by_name(kind: str):
    with pytest.raises(InvalidInput, match=f"source own: the plugin {kind}") as error:
        make_scraper(Source("own", kind, "x"))
    assert error.value.reason_code == "scrape_plugin"
    assert "fetch(since)" in error.value.remedy
