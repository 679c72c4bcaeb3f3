"""Answers that are kept until all of a reference have come; and which failure ends a pass."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from domain.shared.error import InfrastructureError
from resources.tushare.errors import NotPermitted, QuotaUsedUp, RateLimited, SourceDown
from resources.tushare.request import TushareRequest
from services.market.asking import KeptAnswers

SCHEMA = pa.schema([("ts_code", pa.string())])
CALLS = {name: TushareRequest("stock_basic", {"exchange": name}, SCHEMA) for name in ("SSE", "SZSE", "BSE")}
TODAY = date(2026, 11, 17)


class Source:
    """Answers with the name of the exchange; the exchanges in `failures` fail."""

    def __init__(self, **failures: InfrastructureError) -> None:
        self.failures = failures
        self.asked: list[str] = []

    def __call__(self, request: TushareRequest) -> pa.Table:
        exchange = request.params["exchange"]
        self.asked.append(exchange)
        if exchange in self.failures:
            raise self.failures[exchange]
        return pa.table({"ts_code": [exchange]}, schema=request.schema)


@pytest.fixture
def kept(tmp_path: Path) -> KeptAnswers:
    """Two of three answers came."""
    answers = KeptAnswers.at(f"file://{tmp_path}", 2)
    with pytest.raises(SourceDown):
        answers.collect("list", CALLS, TODAY, Source(BSE=SourceDown("down")))
    return answers


def test_collect__after_a_failure__asks_for_the_rest_alone(kept: KeptAnswers) -> None:
    source = Source()
    answers = kept.collect("list", CALLS, TODAY, source)
    assert source.asked == ["BSE"]
    assert {name: frame["ts_code"].to_pylist() for name, frame in answers.items()} == {n: [n] for n in CALLS}


def test_collect__another_day_or_another_list_or_forgotten__asks_for_all(kept: KeptAnswers) -> None:
    source = Source()
    kept.collect("list", CALLS, TODAY + timedelta(days=1), source)
    kept.collect("other", CALLS, TODAY, source)
    kept.forget("list")
    kept.collect("list", CALLS, TODAY, source)
    assert len(source.asked) == 9


def test_collect__a_kept_answer_unreadable_or_of_other_columns__asks_again(
    kept: KeptAnswers, tmp_path: Path
) -> None:
    next(tmp_path.rglob("SSE.arrow")).write_bytes(b"half")
    source = Source()
    kept.collect("list", CALLS, TODAY, source)
    assert sorted(source.asked) == ["BSE", "SSE"]
    wider = pa.schema([*SCHEMA, ("name", pa.string())])
    calls = {name: TushareRequest("stock_basic", call.params, wider) for name, call in CALLS.items()}
    asked: list[TushareRequest] = []
    kept.keep("list", {"SSE": SCHEMA.empty_table()}, TODAY)
    kept.collect("list", calls, TODAY, lambda call: asked.append(call) or wider.empty_table())
    assert len(asked) == 3


def test_collect__nothing_fails__writes_nothing(tmp_path: Path) -> None:
    KeptAnswers.at(f"file://{tmp_path}", 2).collect("list", CALLS, TODAY, Source())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("failures", "raised"),
    [
        ({"SSE": SourceDown("x"), "BSE": NotPermitted("x")}, NotPermitted),
        ({"SSE": SourceDown("x"), "BSE": QuotaUsedUp("x")}, QuotaUsedUp),
        ({"SSE": RateLimited("x"), "BSE": SourceDown("x")}, SourceDown),
    ],
)
def test_collect__several_failures__raises_the_one_that_decides(
    tmp_path: Path, failures: dict[str, InfrastructureError], raised: type[InfrastructureError]
) -> None:
    with pytest.raises(raised):
        KeptAnswers.at(f"file://{tmp_path}", 2).collect("list", CALLS, TODAY, Source(**failures))
