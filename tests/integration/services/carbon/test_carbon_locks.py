"""A lock that comes at the worst moment: between a last check and its commit, or between two commits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest

from domain.shared.error import InvalidInput
from resources.lake.client import Commit, Lake
from resources.ledger.model import LeaseLost
from services.carbon.calculate import sum_reports
from services.carbon.service import CarbonService, YearLocked
from services.partitions import Attempt
from tests.integration.services.carbon.carbon_app import FACTORS, TRAIN, YEAR, CarbonApp

DEARER = FACTORS.replace(",8,g/km", ",9,g/km")


@contextmanager
def between_check_and_commit(
    monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[str], None]
) -> Iterator[None]:
    """Something happens after the guard of each commit; it is called with the table."""
    replace = Lake.replace

    def stepped(self: Lake, table: str, *arguments: Any, guard: Callable[[], None], **named: Any) -> Commit:
        def guard_and_more() -> None:
            guard()
            meanwhile(table)

        return replace(self, table, *arguments, guard=guard_and_more, **named)

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "replace", stepped)
        yield


def outdate_the_report(app: CarbonApp) -> None:
    """Entries that are calculated, and not in the report yet."""
    app.upload("data", TRAIN + "ART,700,1,FR\n", "--type", "train")
    app.reconcile()
    app.reconcile()
    assert f"carbon_reports:{YEAR}" in app.due()


def try_to_lock(carbon: CarbonService, reported: list[InvalidInput]) -> None:
    try:
        carbon.lock_year(int(YEAR), "ada", "published")
    except InvalidInput as error:
        reported.append(error)


def nothing(_: object) -> None:
    pass


def test_a_year_is_not_locked_while_its_report_is_summed(
    app: CarbonApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    outdate_the_report(app)
    before, reported = app.milligrams(), list[InvalidInput]()
    with between_check_and_commit(monkeypatch, lambda _: try_to_lock(app.carbon, reported)):
        sum_reports(app.carbon, [YEAR], Attempt("run"), nothing)
    assert [error.reason_code for error in reported] == ["year_busy"]
    assert app.milligrams() > before
    after = app.content()
    assert app.run("lock", YEAR, "--reason", "published").code == 0
    assert app.settle() == []
    assert app.content() == after


def test_a_lock_waits_for_the_swap_of_work_that_was_called_off_past_its_last_check(
    app: CarbonApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    outdate_the_report(app)
    carbon, seen_when_locked = app.carbon, list[dict[tuple[str, str], str]]()

    def lock() -> None:
        carbon.lock_year(int(YEAR), "ada", "published")
        seen_when_locked.append(app.content())

    person = Thread(target=lock)

    def call_off_and_lock(_: str) -> None:
        [row] = carbon.ledger.running()
        carbon.ledger.cancel(row.id)
        person.start()
        person.join(timeout=1)  # a lock that does not wait is there by now

    with (
        between_check_and_commit(monkeypatch, call_off_and_lock),
        pytest.raises(LeaseLost),
    ):
        sum_reports(app.carbon, [YEAR], Attempt("run"), nothing)
    person.join()
    assert seen_when_locked == [app.content()]


def test_a_click_on_a_locked_year_changes_nothing_and_says_who_locked_it(app: CarbonApp) -> None:
    outdate_the_report(app)
    before = app.content()
    app.run("lock", YEAR, "--reason", "published")
    with pytest.raises(YearLocked, match=r"2025 is locked by .*: published"):
        sum_reports(app.carbon, [YEAR], Attempt("click"), nothing)
    [row] = app.carbon.ledger.find("carbon.aggregation", key_prefix=f"carbon_reports:{YEAR}", limit=1)
    assert (row.status, row.reason_code) == ("skipped", "year_locked")
    assert app.content() == before
