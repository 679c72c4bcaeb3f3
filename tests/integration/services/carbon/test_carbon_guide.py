"""The guide to carbon, done line by line by somebody new, in an empty folder and an empty home."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from orchestration.settings import PROJECT_ROOT
from tests.integration.services.carbon.carbon_app import CarbonApp

TOTAL = re.compile(r"^ all .* ([\d,]+\.\d{3}) ", re.MULTILINE)


def blocks(section: str) -> list[str]:
    """The commands of a section, line by line."""
    text = (PROJECT_ROOT / "docs" / "carbon.md").read_text(encoding="utf-8")
    part = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    found = re.findall(r"^```sh\n(.*?)^```", part, re.DOTALL | re.MULTILINE)
    return [line for block in found for line in block.splitlines()]


def do(app: CarbonApp, lines: list[str]) -> dict[str, str]:
    """What each line says."""
    found: dict[str, str] = {}
    for line in lines:
        command, _, target = line.partition(" > ")
        program, group, *arguments = shlex.split(command)
        assert (program, group) == ("perennial", "carbon")
        said = app.run(*arguments)
        assert said.code == 0, (line, said.err)
        if target:
            Path(target).write_text(said.out, encoding="utf-8")
        found[line] = said.out
    return found


@pytest.fixture
def newcomer(empty_app: CarbonApp, monkeypatch: pytest.MonkeyPatch) -> CarbonApp:
    folder = empty_app.folder / "somewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return empty_app


def test_the_templates_as_they_are_lead_to_a_report_with_numbers(newcomer: CarbonApp) -> None:
    said = do(newcomer, blocks("Begin"))
    [total] = TOTAL.findall(said["perennial carbon report 2025"])
    assert float(total) > 0
    assert "University" in Path("report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_university_leads_from_an_empty_folder_to_a_page_and_to_newer_factors(
    newcomer: CarbonApp,
) -> None:
    said = do(newcomer, blocks("A university to try it with"))
    [total] = TOTAL.findall(said["perennial carbon report 2025"])
    assert float(total.replace(",", "")) > 1000
    assert "Sample University" in Path("report.html").read_text(encoding="utf-8")
    [foreseen] = [reported for line, reported in said.items() if line.endswith("--what-if")]
    assert "it raises plane 2025 by 5.0 %" in foreseen
    assert "it lowers electricity 2025 by 3.0 %" in foreseen
    [explained] = [reported for line, reported in said.items() if "explain" in line]
    assert "version 2" in explained
