"""What a look costs: it is taken every few seconds, by an office that was opened anew."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from domain.carbon.factors import digests
from domain.carbon.observed import Observed
from resources.lake.client import Lake
from services.carbon.reconcile import CarbonReconciler
from services.carbon.service import DIGESTS, CarbonService
from services.reconcile import reconcile
from tests.integration.carbon.office import FACTORS, YEAR, Office
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


def seen_of_factors(office: Office) -> Mapping[str, str]:
    return office.carbon.observe().factor_digests[int(YEAR)]


def forget_digests(office: Office) -> None:
    """As facts were before this was recorded."""
    provenance = office.carbon.provenance
    for record in provenance.records(["carbon.factors"]).values():
        provenance.record([replace(record, detail={k: v for k, v in record.detail.items() if k != DIGESTS})])


def test_a_look_reads_no_row(office: Office, read: list[str]) -> None:
    assert reconcile(CarbonReconciler(office.carbon)).starts == ()
    assert read == []


def test_reconcile__nothing_is_due__takes_no_write_lock(office: Office) -> None:
    office.reconcile()
    with closing(sqlite3.connect(office.home / "ledger.db")) as another:
        another.execute("BEGIN IMMEDIATE")
        assert reconcile(CarbonReconciler(office.carbon)).starts == ()


def test_upload_and_wait__factors_of_one_type_changed__observes_at_most_six_times(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    observe, count = CarbonService.observe, [0]

    def counted(self: CarbonService) -> Observed:
        count[0] += 1
        return observe(self)

    monkeypatch.setattr(CarbonService, "observe", counted)
    assert office.upload("factors", CHEAPER, "--wait").code == 0
    assert office.due() == set()
    assert count[0] - 1 <= 6  # one is this test's own


@pytest.mark.parametrize("again", [False, True])
def test_what_types_see_of_their_factors_is_recorded_with_them(office: Office, again: bool) -> None:
    if again:
        assert office.upload("factors", CHEAPER, "--wait").code == 0
    recorded = seen_of_factors(office)
    assert recorded == digests(office.carbon.factors(int(YEAR)))
    assert set(recorded) == {"train", "electricity", "paper"}


def test_what_was_not_recorded_is_read_and_says_the_same(office: Office, read: list[str]) -> None:
    recorded = seen_of_factors(office)
    forget_digests(office)
    assert (seen_of_factors(office), len(read)) == (recorded, 1)
    assert office.due() == set()


def test_what_was_recorded_of_other_factors_is_not_believed(office: Office) -> None:
    factors = office.carbon.factors(int(YEAR))
    office.carbon.lake.replace("carbon.factors", YEAR, factors.slice(1))
    assert int(YEAR) not in office.carbon.observe().factor_digests
    assert f"factors:{YEAR}" in office.due()


@pytest.mark.parametrize(
    "words", [("status",), ("plan", "carbon"), ("carbon", "report", YEAR)], ids=lambda words: words[-1]
)
def test_looking_imports_nothing_heavy(office: Office, words: tuple[str, ...]) -> None:
    assert heavy_imports(*words) == []
