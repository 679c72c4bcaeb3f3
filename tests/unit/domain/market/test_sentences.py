"""The sentences of the market's verdicts and findings, each once; other tests assert codes and values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, timedelta

from domain.market.health import findings
from domain.market.observed import Rules
from domain.shared.table import ABSENT, ALL
from tests.unit.domain.market.test_plan_verdicts import DIFFERENCES, EVENING, PRICES
from tests.unit.domain.market.world import (
    COVERED,
    STOCKS,
    TUESDAY,
    Market,
    days,
    shanghai_time,
    state,
    unavailable,
)
from tests.unit.domain.rows import assert_sentences, of_finding, of_verdict, row, source

KEY = f"{PRICES}:{TUESDAY}"


def markets() -> Iterator[Market]:
    """Each with something else that a plan may find."""
    for differ, _, _ in DIFFERENCES.values():
        market = Market.healthy(EVENING)
        differ(market)
        yield market
    yield Market(shanghai_time("2026-11-17 18:00"))
    yield Market.healthy("2026-11-16 20:00").at("2026-11-17 09:00")
    for place in ((PRICES, str(TUESDAY)), (STOCKS, ALL)):
        market = Market.healthy(EVENING)
        market.states[place] = unavailable(market.states[place])
        yield market
    market = Market.healthy(EVENING)
    market.states[STOCKS, ALL] = state(0, market.now)
    market.revised.add(TUESDAY)
    market.put("normalized_adj_factor", TUESDAY, 1_000, words="revised")
    yield market
    for seen in (1, 2):
        market = Market.healthy(EVENING)
        market.put(PRICES, TUESDAY, 950, seen=seen)
        yield market
    yield Market.healthy(EVENING, rules=Rules(window_days=0))


def test_sentences__of_plan_and_findings__are_those_of_the_file(write_sentences: bool) -> None:
    lines = [of_verdict(v) for market in markets() for v in market.plan.verdicts if _is_shown(v.key)]
    market = Market.healthy(EVENING)
    market.change(PRICES, TUESDAY, version=ABSENT)
    market.work(market.verdict(COVERED, TUESDAY))
    now, wanted = market.now, market.verdict(PRICES, TUESDAY).fingerprint
    soon, failed = now + timedelta(minutes=8), replace(source(market.now), last_error="HTTP 502")
    for work in (
        row("deferred", KEY, reason_code="source_down", error="HTTP 502\nremedy", not_before=soon),
        row("failed", KEY, reason_code="permission", error="no right to call daily"),
        row("cancelled", KEY, fingerprint=wanted, finished_at=now.astimezone(UTC)),
        row("running", KEY, lease_until=soon),
        row("running", KEY, lease_until=now.astimezone(UTC) - timedelta(minutes=1), run_id="abc"),
    ):
        lines += map(of_finding, findings(market.plan, [work], (), market.calendar, now, now))
    sources = [
        source(),
        replace(failed, last_success=None, last_failure=now),
        replace(failed, last_success=shanghai_time("2026-11-16 18:31"), last_failure=now),
        source(shanghai_time("2026-11-13 12:00")),
        source(shanghai_time("2026-10-12 12:00")),
    ]
    market = Market.healthy(EVENING)
    holes = {PRICES: days("2026-03-02", "2026-03-03"), "suspensions": days("2026-03-02")}
    earlier = {PRICES: days("2026-03-02", "2026-03-03")}
    lines += map(of_finding, findings(market.plan, (), sources, market.calendar, now, now, holes, earlier))
    assert_sentences(__file__, lines, write=write_sentences)


def _is_shown(key: str) -> bool:
    return key.endswith((f":{TUESDAY}", ":2026-11-16", ":ALL", ":2026"))
