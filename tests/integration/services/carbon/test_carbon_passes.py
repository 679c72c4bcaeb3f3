"""What a pass costs: it is taken every few seconds, by a process that was opened anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest

from domain.carbon.factors import digests
from domain.carbon.observed import Observed
from resources.lake.client import Lake
from services.carbon.reconcile import CarbonReconciler
from services.carbon.service import CarbonService
from services.reconcile import reconcile
from tests.integration.services.carbon.carbon_app import FACTORS, YEAR, CarbonApp
from tests.light import heavy_imports

CHEAPER = FACTORS.replace(",8,g/km", ",7,g/km")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queries that are made from now on."""
    found: list[str] = []
    query = Lake.query

    def noted(self: Lake, sql: str, *arguments: Any, **named: Any) -> pa.Table:
        found.append(sql)
        return query(self, sql, *arguments, **named)

    monkeypatch.setattr(Lake, "query", noted)
    return found


def seen_of_factors(app: CarbonApp) -> Mapping[str, str]:
    return app.carbon.observe().factor_digests[int(YEAR)]


def test_a_pass_reads_no_row(app: CarbonApp, read: list[str]) -> None:
    assert reconcile(CarbonReconciler(app.carbon)).starts == ()
    assert read == []


def test_reconcile__nothing_is_due__takes_no_write_lock(app: CarbonApp) -> None:
    app.reconcile()
    with closing(sqlite3.connect(app.home / "ledger.db")) as another:
        another.execute("BEGIN IMMEDIATE")
        assert reconcile(CarbonReconciler(app.carbon)).starts == ()


def test_upload_and_wait__factors_of_one_type_changed__observes_at_most_six_times(
    app: CarbonApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe, count = CarbonService.observe, [0]

    def counted(self: CarbonService) -> Observed:
        count[0] += 1
        return observe(self)

    monkeypatch.setattr(CarbonService, "observe", counted)
    app.upload_and_settle("factors", CHEAPER)
    assert app.due() == set()
    assert count[0] - 1 <= 6  # one is this test's own


@pytest.mark.parametrize("again", [False, True])
def test_what_types_see_of_their_factors_is_recorded_with_them(app: CarbonApp, again: bool) -> None:
    if again:
        app.upload_and_settle("factors", CHEAPER)
    recorded = seen_of_factors(app)
    assert recorded == digests(app.carbon.factors(int(YEAR)))
    assert set(recorded) == {"train", "electricity", "paper"}


def test_what_was_recorded_of_other_factors_is_not_believed(app: CarbonApp) -> None:
    factors = app.carbon.factors(int(YEAR))
    app.carbon.lake.replace("carbon.factors", YEAR, factors.slice(1))
    assert int(YEAR) not in app.carbon.observe().factor_digests
    assert f"factors:{YEAR}" in app.due()


@pytest.mark.parametrize(
    "words", [("status",), ("plan", "carbon"), ("carbon", "report", YEAR)], ids=lambda words: words[-1]
)
def test_looking_imports_nothing_heavy(app: CarbonApp, words: tuple[str, ...]) -> None:
    assert heavy_imports(words) == []
