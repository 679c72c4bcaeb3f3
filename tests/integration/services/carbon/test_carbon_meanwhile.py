"""What changes while it is calculated is calculated again: inputs are noted before they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from resources.lake.client import Lake
from services.carbon.calculate import calculate_emissions
from services.carbon.intake import ingest_entries, ingest_factors
from services.carbon.service import CarbonService
from services.partitions import Attempt
from tests.integration.services.carbon.carbon_app import FACTORS, TRAIN, YEAR, CarbonApp

KEY = f"train|{YEAR}"


def nobody(_: object) -> None:
    """Reports nothing: what Dagster shows is not tested here."""


def entries_change(app: CarbonApp) -> int:
    """By how many milligrams the report must say more from now on."""
    assert app.upload("data", TRAIN.replace("500", "600"), "--type", "train").code == 0
    ingest_entries(app.carbon, [KEY], Attempt("another run"), nobody)
    return 100 * 30_000


def factors_change(app: CarbonApp) -> int:
    assert app.upload("factors", FACTORS.replace(",8,g/km", ",9,g/km")).code == 0
    ingest_factors(app.carbon, [YEAR], Attempt("another run"), nobody)
    return 1000 * 2 * 1_000


@pytest.mark.parametrize("change", [entries_change, factors_change])
@pytest.mark.parametrize(
    ("of", "name"), [(CarbonService, "observe_partitions"), (Lake, "partition_writer")], ids=["noted", "read"]
)
def test_what_changes_while_it_is_calculated_is_calculated_again(
    app: CarbonApp,
    monkeypatch: pytest.MonkeyPatch,
    of: type,
    name: str,
    change: Callable[[CarbonApp], int],
) -> None:
    usual, more, before = getattr(of, name), list[int](), app.milligrams()

    def meanwhile(self: Any, *given: Any, **named: Any) -> Any:
        monkeypatch.setattr(of, name, usual)  # once
        found = usual(self, *given, **named)
        more.append(change(app))
        return found

    monkeypatch.setattr(of, name, meanwhile)
    calculate_emissions(app.carbon, [KEY], Attempt("a run"), nobody)
    for _ in range(3):
        app.reconcile()
    assert [app.milligrams() - before] == more
    assert not app.due()
