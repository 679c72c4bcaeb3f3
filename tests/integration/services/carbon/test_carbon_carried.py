"""Chains whose work has to wait: what is kept of them is bounded, and none is forgotten."""

from __future__ import annotations

import pytest

from domain.carbon import pipelines
from services.carbon.intake import ingest_entries
from services.partitions import Attempt
from tests.integration.services.carbon.carbon_app import YEAR, CarbonApp

PLACE = f"paper|{YEAR}"


def edit(app: CarbonApp, mass: float) -> str:
    """Entries that change and are taken in; nobody calculates them yet. Their chain."""
    rows = f"unit_id,mass,kind\nART,{mass},recycled\n"
    reported = app.upload("data", rows, "--type", "paper", "--json").json
    ingest_entries(app.carbon, [PLACE], Attempt(f"run {mass}"), lambda _: None)
    return str(reported["files"][0]["pipeline"])


def statuses(app: CarbonApp, *chains: str) -> list[str]:
    return [app.run("pipelines", chain, "--json").json["status"] for chain in chains]


def test_edits_that_nobody_calculates_leave_a_bounded_trail(
    app: CarbonApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines, "CARRIED", 3)
    edits = [edit(app, mass) for mass in range(1, 7)]
    detail = app.carbon.observe().state("data_entries", PLACE).detail
    assert detail["pipelines"] == edits[-4:]


def test_chains_whose_calculation_failed_end_with_the_one_that_succeeds(
    app: CarbonApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipelines, "CARRIED", 1)
    failed = []
    for implausible in (1e12, 9.9e11):
        failed.append(edit(app, implausible))
        app.reconcile()
    assert statuses(app, *failed) == ["PARTIAL", "PARTIAL"]
    last = edit(app, 1)
    assert app.settle() == []
    assert statuses(app, *failed, last) == ["SUCCESS"] * 3
