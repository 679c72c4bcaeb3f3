"""Events of runs in Dagster: for each partition its sums, what changed, and a picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from base64 import b64decode
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from domain.carbon.tables import TABLES
from orchestration.cli.runner import runner
from orchestration.environments import load_settings
from tests.integration.services.carbon.carbon_app import (
    FACTORS,
    FURNITURE,
    PAPER,
    UNITS,
    YEAR,
    CarbonApp,
    furnished_once,
)

PARTS = {
    ("units", YEAR): {"top": 1, "UNI": 2, "SCI": 1},
    ("factors", YEAR): {"train": 2, "electricity": 2, "paper": 1},
    ("factor_versions", YEAR): {"train": 2, "electricity": 2, "paper": 1},
    ("data_entries", f"train|{YEAR}"): {"main, csv": 2},
    ("data_entry_emissions", f"train|{YEAR}"): {"train": 0.031},
    ("carbon_report_modules", f"travel|{YEAR}"): {"train": 0.031},
    ("carbon_reports", YEAR): {"buildings": 0.98, "purchases": 0.07, "travel": 0.031},
}


def newest() -> dict[tuple[str, str], dict[str, Any]]:
    """The metadata of the newest materialization of every partition of every table."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    with runner(load_settings()) as run:
        for table in TABLES:
            key = dg.AssetKey(["carbon", table.table])
            for record in reversed(run.instance.fetch_materializations(key, limit=100).records):
                event = record.asset_materialization
                assert event is not None
                reported = {name: value.value for name, value in event.metadata.items()}
                found[table.table, str(event.partition)] = reported
    return found


def states(text: str) -> list[list[str]]:
    """Of a table in Markdown, the rows below its head."""
    return [[state.strip() for state in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def picture(text: str) -> list[str]:
    """The words in a plot, which must be well-formed."""
    found = re.fullmatch(r"!\[[^]]+\]\(data:image/svg\+xml;base64,([^)]+)\)", text)
    assert found is not None
    return [node.text or "" for node in ET.fromstring(b64decode(found[1])).iter() if node.text]


@pytest.fixture(scope="module")
def furnished(place: Path) -> Path:
    """The home of a year that real runs made."""

    def furnish(app: CarbonApp) -> None:
        for kind, text, options in FURNITURE:
            assert app.upload(kind, text, *options).code == 0
        assert app.run("heal").code == 0

    return furnished_once(place, "furnished by runs", furnish)


def test_event__first_content_of_each_table__shows_its_parts(app: CarbonApp) -> None:
    reported = newest()
    assert {table for table, _ in reported} == {table.table for table in TABLES}
    for place, parts in PARTS.items():
        of = reported[place]
        assert of["sum"].endswith("; nothing is known from before"), place
        rows = {part: (before, after) for part, before, after, _ in states(of["what_changed"])}
        assert {part: float(after) for part, (_, after) in rows.items()} == parts
        assert {before for before, _ in rows.values()} == {""}
        assert {words.split()[0] for words in picture(of["what_changed_plot"])} >= {
            p.split()[0] for p in parts
        }
    for of in reported.values():
        assert {
            "version",
            "changed",
            "seconds",
            "attempts",
            "reason",
            "inputs",
            "sum",
            "what_changed",
            "what_changed_plot",
        } <= of.keys()


def test_events__new_factors_units_and_entries__show_what_changed(app: CarbonApp) -> None:
    first = newest()
    assert app.upload("factors", FACTORS.replace(",8,g/km", ",9,g/km")).code == 0
    assert app.upload("units", UNITS.replace("PHY,Physics,SCI", "PHY,Physics,UNI")).code == 0
    assert app.upload("data", PAPER + "PHY,10,recycled\n", "--type", "paper", "--wait").code == 0
    reported = newest()
    factors = reported["factors", YEAR]
    [change] = states(factors["factors_before_and_after"])
    assert change[:2] == ["train", "train"]
    assert change[3:] == ["8.000", "g/km", "9.000", "g/km", "changed"]
    assert ["train", "2", "0", "1", "0", "1"] in states(factors["factors_changed"])
    assert states(reported["factor_versions", YEAR]["what_changed"])[0] == ["train", "2", "3", "1"]
    assert states(reported["units", YEAR]["what_changed"]) == [
        ["UNI", "2", "3", "1"],
        ["SCI", "1", "0", "-1"],
        ["top", "1", "1", "0"],
    ]
    entries = reported["data_entries", f"paper|{YEAR}"]
    assert entries["sum"] == "1 → 2 entries (+100.0 %)"
    assert states(entries["replaced"]) == [["data.csv", "2", "data.csv", "1"]]
    assert states(entries["busiest_units"]) == [["ART", "1"], ["PHY", "1"]]
    used = states(reported["data_entry_emissions", f"train|{YEAR}"]["factors_used"])
    assert {(row[1], row[4], row[5], row[6]) for row in used} == {
        ("2", "9.000", "g/km", "sample"),
        ("1", "30.000", "g/km", "sample"),
    }
    for table, partition in (("data_entry_emissions", "train"), ("carbon_report_modules", "travel")):
        event = reported[table, f"{partition}|{YEAR}"]
        assert event["sum"] == "0.031 → 0.033 t CO2e (+6.5 %)"
        assert states(event["what_changed"]) == [["train", "0.031", "0.033", "0.002"]]
    report = reported["carbon_reports", YEAR]
    assert report["sum"] == "1.081 → 1.090 t CO2e (+0.8 %)"
    assert ["travel", "0.031", "0.033", "0.002"] in states(report["what_changed"])
    untouched = ("data_entry_emissions", f"electricity|{YEAR}")
    assert reported[untouched] == first[untouched]
