"""Entries without a factor, or counted with a fallback: status, explain, report and receipt name them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from domain.carbon.emissions import UNMATCHED
from domain.carbon.tables import EMISSIONS
from services.carbon.findings import find_problems
from tests.integration.services.carbon.carbon_app import FACTORS, PAPER, TRAIN, UNITS, YEAR, CarbonApp

VIRGIN = PAPER + "ART,50,virgin\nSCI,5,virgin\n"
MISSING = f"carbon_reports:{YEAR}"
WITH_VIRGIN = FACTORS + 'paper,,"{""kind"": ""virgin""}",0.9,kg/kg,sample\n'


def without_factor(app: CarbonApp) -> dict[str, Any]:
    found = find_problems(app.carbon)
    return {f.subject: f for f in found if f.reason_code == "without_factor"}


def listed(app: CarbonApp, *options: str) -> list[tuple[Any, ...]]:
    rows = app.run("explain", *options, "--without-factor", "--json").json["without_factor"]
    return [(row["year"], row["data_entry_type"], row["classification"], row["entries"]) for row in rows]


def test_status__results_without_a_factor__are_explained_until_a_factor_comes(app: CarbonApp) -> None:
    assert find_problems(app.carbon) == []
    app.upload_and_settle("data", VIRGIN, "--type", "paper")
    [(subject, found)] = without_factor(app).items()
    assert (subject, found.health) == (MISSING, "explained")
    assert found.reason.startswith("2 results")
    assert found.reason.endswith("purchases (paper 2)")
    assert "explain --without-factor" in found.action
    healed = app.run("heal")
    assert healed.code == 0, "it holds nothing up"
    app.upload_and_settle("factors", WITH_VIRGIN)
    assert without_factor(app) == {}


def test_status__results_that_an_earlier_version_recorded__are_counted(app: CarbonApp) -> None:
    app.upload_and_settle("data", VIRGIN, "--type", "paper")
    provenance = app.carbon.provenance
    records = provenance.records([EMISSIONS.name]).values()
    provenance.record(
        [replace(one, detail={k: v for k, v in one.detail.items() if k != UNMATCHED}) for one in records]
    )
    assert without_factor(app)[MISSING].reason.endswith(": purchases (paper 2)")
    assert len(without_factor(app)) == 1


def test_explain__without_factor__lists_kinds_with_counts(app: CarbonApp) -> None:
    assert app.run("explain", "--without-factor").out == "no result lacks a factor\n"
    app.upload_and_settle("data", VIRGIN, "--type", "paper")
    row = (int(YEAR), "paper", '{"kind":"virgin"}', 2)
    assert listed(app) == listed(app, YEAR) == [row]
    assert listed(app, YEAR, "--module", "purchases", "--institution", "main", "--unit", "UNI") == [row]
    assert listed(app, "--unit", "SCI") == [(*row[:3], 1)]
    for others in (("2024",), ("--module", "travel"), ("--type", "train"), ("--institution", "x")):
        assert listed(app, *others) == [], others
    said = app.run("explain", "--without-factor")
    assert "kind virgin" in said.out
    assert "2 results have no factor\n" in said.out
    assert "--without-factor" in app.run("report", YEAR).out


def test_explain__without_factor__is_bounded_and_says_of_how_many(app: CarbonApp) -> None:
    app.upload_and_settle("data", VIRGIN, "--type", "paper")
    app.upload_and_settle("data", "unit_id,distance,vehicle\nART,5,taxi\n", "--type", "road")
    said = app.run("explain", YEAR, "--without-factor", "--limit", "1", "--json").json
    assert (len(said["without_factor"]), said["of_all"], said["results"]) == (1, 2, 3)
    assert "1 of 2 kinds shown" in app.run("explain", YEAR, "--without-factor", "--limit", "1").out


def test_explain__without_factor_of_changed_entries__names_no_words(app: CarbonApp) -> None:
    app.upload_and_settle("data", VIRGIN, "--type", "paper")
    assert app.upload("data", VIRGIN + "SCI,6,virgin\n", "--type", "paper").code == 0
    app.reconcile()  # the entries are new, their results are not
    assert listed(app) == [(int(YEAR), "paper", None, 2)]
    assert "have changed since" in app.run("explain", "--without-factor").out


def test_explain__wrong_questions__are_refused(app: CarbonApp) -> None:
    assert app.run("explain").code == 2
    assert app.run("explain", "--without-factor", "--entry", "line 2").code == 2
    assert app.run("explain", YEAR, "--module", "travel", "--type", "paper").code == 2
    assert app.run("explain", YEAR, "--module", "nothing").code == 2
    by_module = app.run("explain", YEAR, "--module", "travel", "--json").json["results"]
    assert {row["data_entry_type"] for row in by_module} == {"train"}
    assert app.run("explain", YEAR, "--institution", "other").code == 2


def test_report__fallback_factors__are_named_with_their_part_of_the_total(app: CarbonApp) -> None:
    reported = app.run("report", YEAR, "--json").json
    assert reported["fallbacks"] == [
        {
            "data_entry_type": "train",
            "wanted": '{"country":"FR"}',
            "used": '{"country":"world"}',
            "entries": 1,
            "results": 1,
            "mg": 15_000_000,
        }
    ]
    note = "1 of 7 results, 0.015 t (1.4 % of the total), use a fallback factor"
    assert f"{note}:\n    0.015 t  train country FR as world\n" in app.run("report", YEAR).out
    assert note in app.run("report", YEAR, "--csv").err
    assert app.run("report", YEAR, "--unit", "PHY", "--json").json["fallbacks"] == []
    page = app.folder / "page.html"
    assert app.run("report", YEAR, "--html", str(page)).code == 0
    assert "country FR as world" in page.read_text(encoding="utf-8")
    own = FACTORS + 'train,,"{""country"": ""FR""}",5,g/km,sample\n'
    app.upload_and_settle("factors", own)
    assert app.run("report", YEAR, "--json").json["fallbacks"] == []


def test_explain__of_a_result_with_a_fallback_factor__says_so(app: CarbonApp) -> None:
    assert "a fallback: no factor is for country FR" in app.run("explain", YEAR, "--unit", "ART").out
    assert "a fallback" not in app.run("explain", YEAR, "--unit", "PHY").out


def test_receipt__of_data__names_fallbacks_also_of_factors_that_wait(empty_app: CarbonApp) -> None:
    app = empty_app
    assert app.upload("units", UNITS).code == 0
    early = app.upload("data", TRAIN, "--type", "train", "--json").json["files"][0]
    assert (early["fallbacks"], early["notes"]) == ([], []), "no factors are known yet"
    assert app.upload("factors", FACTORS).code == 0
    [receipt] = app.upload("data", TRAIN + "\n\n", "--type", "train", "--json").json["files"]
    assert receipt["fallbacks"] == [
        {"year": int(YEAR), "rows": 1, "wanted": '{"country":"FR"}', "used": '{"country":"world"}'}
    ]
    said = app.upload("data", TRAIN + "\n", "--type", "train")
    assert "1 of 2 rows of 2025 use a fallback factor: country FR as world (1)" in said.out
    said = app.upload("data", VIRGIN, "--type", "paper", "--what-if")
    assert "2 of 3 rows of 2025 have no factor yet: kind virgin (2)" in said.err


def test_lock__of_a_report_with_gaps__warns_of_them(app: CarbonApp) -> None:
    app.upload_and_settle("data", VIRGIN, "--type", "paper")
    said = app.run("lock", YEAR, "--reason", "published", "--json").json
    assert [note.partition(" results")[0] for note in said["notes"]] == ["2 of 9", "1 of 9"]
