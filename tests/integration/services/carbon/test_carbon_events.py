"""What Dagster is told: of every partition of every table what it comes to, what changed, and a picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from base64 import b64decode
from typing import Any

import dagster as dg

from domain.carbon.tables import TABLES
from orchestration.cli.runner import runner
from orchestration.environments import load_settings
from tests.integration.services.carbon.carbon_app import FACTORS, TRAIN, UNITS, YEAR, CarbonApp

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


def test_every_table_tells_what_it_comes_to_and_shows_it(app: CarbonApp) -> None:
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


def test_new_factors_can_be_followed_from_their_file_to_the_report(app: CarbonApp) -> None:
    first = newest()
    dearer = FACTORS.replace(",8,g/km", ",9,g/km")
    assert app.upload("factors", dearer, "--wait").code == 0
    reported = newest()
    factors = reported["factors", YEAR]
    [change] = states(factors["factors_before_and_after"])
    assert change[:2] == ["train", "train"]
    assert change[3:] == ["8.000", "g/km", "9.000", "g/km", "changed"]
    assert ["train", "2", "0", "1", "0", "1"] in states(factors["factors_changed"])
    assert states(reported["factor_versions", YEAR]["what_changed"])[0] == ["train", "2", "3", "1"]
    used = states(reported["data_entry_emissions", f"train|{YEAR}"]["factors_used"])
    assert {(row[1], row[4], row[5], row[6]) for row in used} == {
        ("2", "9.000", "g/km", "sample"),
        ("1", "30.000", "g/km", "sample"),
    }
    for place in (
        ("data_entry_emissions", f"train|{YEAR}"),
        ("carbon_report_modules", f"travel|{YEAR}"),
    ):
        assert reported[place]["sum"] == "0.031 → 0.033 t CO2e (+6.5 %)"
        assert states(reported[place]["what_changed"]) == [["train", "0.031", "0.033", "0.002"]]
    assert reported["carbon_reports", YEAR]["sum"] == "1.081 → 1.083 t CO2e (+0.2 %)"
    assert states(reported["carbon_reports", YEAR]["what_changed"])[0] == [
        "travel",
        "0.031",
        "0.033",
        "0.002",
    ]
    untouched = {place for place in reported if reported[place] == first[place]}
    assert ("data_entry_emissions", f"paper|{YEAR}") in untouched
    assert ("units", YEAR) in untouched


def test_units_and_entries_tell_what_came_and_went(app: CarbonApp) -> None:
    assert app.upload("units", UNITS.replace("PHY,Physics,SCI", "PHY,Physics,UNI")).code == 0
    assert app.upload("data", TRAIN + "PHY,10,1,CH\n", "--type", "train", "--wait").code == 0
    reported = newest()
    assert states(reported["units", YEAR]["what_changed"]) == [
        ["UNI", "2", "3", "1"],
        ["SCI", "1", "0", "-1"],
        ["top", "1", "1", "0"],
    ]
    entries = reported["data_entries", f"train|{YEAR}"]
    assert entries["sum"] == "2 → 3 entries (+50.0 %)"
    assert states(entries["busiest_units"]) == [["PHY", "2"], ["ART", "1"]]


def test_a_partition_that_is_made_again_says_that_it_is_as_before(app: CarbonApp) -> None:
    lake = app.carbon.lake
    nothing = lake.tables["carbon.carbon_reports"].schema.empty_table()
    lake.replace("carbon.carbon_reports", YEAR, nothing, allow_empty=True)
    assert app.run("heal").code == 0
    assert newest()["carbon_reports", YEAR]["sum"] == "1.081 t CO2e, as before"
