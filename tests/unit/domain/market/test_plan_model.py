"""Compares the plan with an oracle over weeks of random changes to a market; see `plan_models.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from domain.market.observed import Rules
from domain.market.plan import plan, take
from domain.market.trading import TradingCalendar
from domain.shared.table import ALL
from domain.shared.verdict import Plan, Verdict
from tests.unit.domain.market.world import (
    ADJUSTED,
    CALENDAR,
    CATALOGUE,
    COVERED,
    DAILY,
    JUDGED,
    LISTED,
    REVISED,
    SHANGHAI,
    STOCKS,
    Market,
    content,
    corrupt,
    shanghai_time,
    trading_calendar,
)
from tests.unit.domain.plan_models import EXAMPLES, PartitionId, PlanModel, Want, run_model

GONE: tuple[int, str] = (0, "")
BROKEN = (0, "corrupt")
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
MOST = 1_200
FAR = timedelta(days=70)
"""No rule of a test reaches further back."""
PUBLISHED = {
    "normalized_daily": time(16),
    "normalized_adj_factor": time(9, 30),
    "normalized_daily_basic": time(17),
    "suspensions": time(9, 30),
}
OPEN_DAYS = trading_calendar().open_days

MOMENTS = st.sampled_from(
    [
        "2026-09-29 19:00",  # two days before a week of holidays
        "2026-10-08 12:00",  # its last day
        "2026-11-13 18:29",  # a Friday, just before the daily pass
        "2026-11-17 20:00",
        "2026-11-30 08:00",  # before the next year's calendar is wanted
        "2026-12-30 23:30",
    ]
)
PICK = st.integers(0, 12) | st.integers(0, 200)
"""One of a list that is not known yet, its newest first."""


@dataclass
class Known:
    """What the oracle remembers of one partition. Contents are (rows, words)."""

    held: tuple[int, str] = GONE
    recorded: tuple[int, str] | None = None
    asked: datetime | None = None
    same: int = 0
    fetches: int = 0
    made_from: Any = None

    @property
    def whole(self) -> bool:
        return self.recorded is not None and self.held == self.recorded

    def fault(self) -> str | None:
        if self.whole:
            return None
        if self.held == BROKEN:
            return "corrupt"
        if self.held == GONE:
            return "missing"
        return "unrecorded" if self.recorded is None else "changed"


class Oracle:
    """What must be due at a moment, from memory alone."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.known: dict[PartitionId, Known] = {}
        self.listed: int | None = LISTED
        self.lost_years: set[int] = set()
        self.revised: set[str] = set()
        self.busy: set[str] = set()

    def at(self, table: str, partition: str) -> Known:
        return self.known.get((table, partition), Known())

    def due(self, now: datetime) -> dict[PartitionId, Want]:
        wants = self._references(now)
        published = self.published(now)
        for day in map(str, self.window(now)):
            for table in DAILY:
                if want := self._fetched(table, day, now, published):
                    wants[table, day] = want
            if day not in self.busy:
                wants |= self._derived(day)
        for day in self.older(now):
            wants |= self._older(day, now, published)
        wants |= {
            (REVISED, day): Want("derive", "revised", tuple(self.at(t, day).held for t in DAILY))
            for day in self.revised - self.busy
        }
        return wants

    def older(self, now: datetime) -> list[str]:
        """Days before the window of which anything is not what was recorded."""
        first = min(self.window(now), default=date.min)
        days = {day for table, day in self.known if table in (*DAILY, ADJUSTED, COVERED)}
        known = {str(d) for d in OPEN_DAYS if d < first and d.year not in self.lost_years}
        return sorted(day for day in days & known if self._differs(day))

    def _differs(self, day: str) -> bool:
        tables = [self.at(table, day) for table in (*DAILY, ADJUSTED, COVERED)]
        if any((known.recorded or GONE) != known.held for known in tables):
            return True
        recorded = [self.at(table, day).recorded for table in DAILY]
        pair = [
            self.at(table, day).recorded or GONE for table in ("normalized_daily", "normalized_adj_factor")
        ]
        adjusted, covered = self.at(ADJUSTED, day), self.at(COVERED, day)
        if (GONE not in pair) if adjusted.recorded is None else (list(adjusted.made_from) != pair):
            return True
        if covered.recorded is None:
            return any(one is not None for one in recorded)
        return [held for held, *_ in covered.made_from] != [one or GONE for one in recorded]

    def _older(self, day: str, now: datetime, published: list[date]) -> dict[PartitionId, Want]:
        """What was never fetched is no gap; what derives from a gap comes after it."""
        wants = {
            (table, day): want
            for table in DAILY
            if (self.at(table, day).recorded, self.at(table, day).held) != (None, GONE)
            and (want := self._fetched(table, day, now, published))
            and want.state == "gap"
        }
        if not wants and day not in self.busy:
            wants = self._derived(day)
        return {place: replace(want, state="older") for place, want in wants.items()}

    def open_days(self, now: datetime) -> list[date]:
        today = now.astimezone(SHANGHAI).date()
        return [d for d in OPEN_DAYS if today - FAR < d <= today and d.year not in self.lost_years]

    def published(self, now: datetime) -> list[date]:
        """Open days whose daily look is past, oldest first."""
        return [d for d in self.open_days(now) if self._moment(d, self.rules.daily_at) <= now]

    def window(self, now: datetime) -> list[date]:
        """Recent days; and the newest published ones, unless the calendar has a hole after them."""
        today = now.astimezone(SHANGHAI).date()
        recent = {d for d in self.open_days(now) if (today - d).days <= self.rules.window_days}
        newest = self.published(now)[-self.rules.limit :]
        return sorted(recent | {d for d in newest if not self.lost_years & {d.year, today.year}})

    def years(self, now: datetime) -> list[int]:
        today = now.astimezone(SHANGHAI).date()
        return sorted(
            {(today - timedelta(days=31)).year if today.month == 1 else today.year, today.year}
            | ({today.year + 1} if today.month == 12 else set())
        )

    @staticmethod
    def _moment(day: date, hour: time) -> datetime:
        return datetime.combine(day, hour, tzinfo=SHANGHAI)

    def _references(self, now: datetime) -> dict[PartitionId, Want]:
        today = now.astimezone(SHANGHAI).date()
        nine = self._moment(today, time(9))
        hour = nine if nine <= now else nine - DAY
        wants = {}
        for place in [(CALENDAR, str(year)) for year in self.years(now)] + [(STOCKS, ALL)]:
            known = self.at(*place)
            records = (known.held, known.recorded, self.rules.configuration)
            if fault := known.fault():
                wants[place] = Want("refresh", fault, records)
            elif known.asked is None or known.asked < hour:
                wants[place] = Want("refresh", "daily_refresh", (*records, hour))
        for place, known in self.known.items():
            if place[0] == CALENDAR and place not in wants and (fault := known.fault()):
                records = (known.held, known.recorded, self.rules.configuration)
                wants[place] = Want("refresh", fault, records)
        return wants

    def share(self, table: str, rows: int) -> str:
        """How much of a day these rows are: all of it, part, too little, or nobody knows."""
        if table not in JUDGED:
            return "unjudged" if rows else "asked"
        if rows == 0:
            return "nothing"
        if self.listed is None:
            return "unjudged"
        return "too little" if rows < 0.9 * self.listed else "part" if rows < 0.99 * self.listed else "all"

    def _fetched(self, table: str, day: str, now: datetime, published: list[date]) -> Want | None:
        opened = date.fromisoformat(day)
        if now < self._moment(opened, max(self.rules.daily_at, PUBLISHED[table])):
            return None
        known = self.at(table, day)
        if table in JUDGED and self.listed is None:
            return None  # it waits for the stock list
        share = self.share(table, known.held[0])
        records = (known.held, known.recorded, self.rules.configuration)
        if fault := known.fault():
            return Want("gap", "incomplete" if share == "too little" else fault, records)
        if share in ("too little", "nothing"):
            return Want("gap", "incomplete", (*records, self.listed))
        assert known.asked is not None, "what is whole was asked for"
        if share == "part" and known.same < 2:
            wait = timedelta(hours=(1, 6, 24)[min(known.fetches, 3) - 1])
            return Want("gap", "partial", (*records, known.fetches)) if now >= known.asked + wait else None
        newest = published[-self.rules.recheck_days :] if self.rules.recheck_days else []
        if opened in newest and known.asked < self._moment(published[-1], self.rules.daily_at):
            return Want("recheck", "recheck", (*records, known.fetches))
        return None

    def adjusted_from(self, day: str) -> tuple[Any, ...] | None:
        sources = [self.at(table, day) for table in ("normalized_daily", "normalized_adj_factor")]
        if all(source.whole and source.held != GONE for source in sources):
            return tuple(source.held for source in sources)
        return None

    def covered_from(self, day: str) -> tuple[Any, ...] | None:
        """All that coverage says of a day: what lies there, how whole it is, out of how many."""
        tables = [self.at(table, day) for table in DAILY]
        if all(known.recorded is None and known.held == GONE for known in tables):
            return None
        return tuple(
            (
                known.held,
                "missing"
                if known.held == GONE and known.recorded != GONE
                else self.share(table, known.held[0])
                if known.held != BROKEN
                else "broken",
                known.same >= 2 and self.share(table, known.held[0]) == "part",
                self.listed if table in JUDGED else None,
            )
            for table, known in zip(DAILY, tables, strict=True)
        )

    def _derived(self, day: str) -> dict[PartitionId, Want]:
        wants = {}
        for table, made_from in ((ADJUSTED, self.adjusted_from(day)), (COVERED, self.covered_from(day))):
            known = self.at(table, day)
            if made_from is None:
                continue
            reason = known.fault() or ("inputs_changed" if known.made_from != made_from else None)
            if reason:
                wants[table, day] = Want("derive", reason, (known.held, made_from))
        return wants

    def turning_points(self, now: datetime) -> list[datetime]:
        """The moments of the next days at which anything could become due, or leave the window."""
        today = now.astimezone(SHANGHAI).date()
        hours = {time(0), time(9), self.rules.daily_at, *PUBLISHED.values()}
        moments = {self._moment(today + n * DAY, hour) for n in range(4) for hour in hours}
        for known in self.known.values():
            if known.asked:
                moments |= {known.asked + timedelta(hours=h) for h in (1, 6, 24)}
        return sorted(moment for moment in moments if moment > now)


def wanted(found: Plan) -> dict[PartitionId, tuple[str, str]]:
    return {(v.table, v.partition): (_urgency(v), v.reason_code) for v in found.due}


def _urgency(verdict: Verdict) -> str:
    assert verdict.request is not None
    return {30: "refresh", 20: "gap", 10: "derive", 5: "older", 0: "recheck"}[verdict.request.priority]


def as_pairs(wants: dict[PartitionId, Want]) -> dict[PartitionId, tuple[str, str]]:
    return {place: (want.state, want.reason) for place, want in wants.items()}


class MarketPlanModel(PlanModel):
    def __init__(self) -> None:
        super().__init__()
        self.market = Market(shanghai_time("2026-11-17 20:00"))
        self.oracle = Oracle(self.market.rules)

    @initialize(
        moment=MOMENTS,
        settled=st.sampled_from([True, True, True, False]),
        thin=st.sets(st.tuples(st.sampled_from(JUDGED), st.integers(0, 4)), max_size=3),
    )
    def it_begins(self, moment: str, settled: bool, thin: set[tuple[str, int]]) -> None:
        """Often all is done; of some days the source has only a part."""
        self.market.now = shanghai_time(moment)
        for table, pick in thin:
            self.market.source[table, str(self._a_day(pick))] = LISTED * 95 // 100
        if settled:
            self.everything_asked_for_is_done()

    # Time, rules, runs

    @rule(
        by=st.sampled_from(
            [
                timedelta(seconds=1),
                timedelta(minutes=59),
                timedelta(hours=1),
                timedelta(hours=6),
                DAY,
                3 * DAY,
            ]
        )
    )
    def time_passes(self, by: timedelta) -> None:
        self.market.now += by

    @rule(
        hour=st.sampled_from([time(9), time(17), time(18, 30)]), early=st.booleans(), days=st.integers(0, 9)
    )
    def it_is_a_certain_hour(self, hour: time, early: bool, days: int) -> None:
        """Exactly then, or just before; over weekends and holidays."""
        local = self.market.now.astimezone(SHANGHAI)
        moment = datetime.combine(local.date() + days * DAY, hour, tzinfo=SHANGHAI)
        moment -= timedelta(seconds=1) if early else timedelta(0)
        self.market.now = max(self.market.now, moment)

    @rule(
        change=st.sampled_from(
            [
                {"configuration": "as set"},
                {"configuration": "another token"},
                {"window_days": 7},
                {"window_days": 15},
                {"limit": 3},
                {"limit": 1},
                {"recheck_days": 3},
                {"recheck_days": 0},
                {"daily_at": time(18, 30)},
                {"daily_at": time(16, 30)},
                {"daily_at": time(16, 30), "limit": 1},
            ]
        )
    )
    def the_rules_change(self, change: dict[str, Any]) -> None:
        self.market.rules = self.oracle.rules = replace(self.market.rules, **change)

    @precondition(lambda self: self.market.window)
    @rule(pick=PICK, over=st.booleans())
    def a_run_of_a_day_starts_or_ends(self, pick: int, over: bool) -> None:
        day = self._a_day(pick)
        (self.market.busy.discard if over else self.market.busy.add)(day)
        (self.oracle.busy.discard if over else self.oracle.busy.add)(str(day))

    # What hurts

    def _a_day(self, pick: int) -> date:
        days = self.market.window
        return days[-1 - pick % len(days)]

    def _places(self) -> list[PartitionId]:
        """What was ever put there: references, then the newest days first."""
        references = [place for place in self.market.states if place[0] in (STOCKS, CALENDAR)]
        days = [place for place in self.market.states if place[0] not in (STOCKS, CALENDAR)]
        return sorted(references) + sorted(days, key=lambda place: (place[1], place[0]), reverse=True)

    def _a_place(self, pick: int) -> tuple[PartitionId, Known]:
        places = self._places()
        place = places[pick % len(places)]
        return place, self.oracle.known[place]

    @precondition(lambda self: self.market.states)
    @rule(pick=PICK)
    def rows_are_deleted(self, pick: int) -> None:
        place, known = self._a_place(pick)
        self.market.drop(*place)
        known.held = GONE
        self._unreadable(place)

    @precondition(lambda self: self.market.states)
    @rule(pick=PICK)
    def a_file_is_corrupt(self, pick: int) -> None:
        place, known = self._a_place(pick)
        self.market.states[place] = corrupt(self.market.states[place])
        known.held = BROKEN
        self._unreadable(place)

    @precondition(lambda self: self.market.states)
    @rule(pick=PICK, rows=st.sampled_from([1, 899, 900, 950, LISTED, 1_100]))
    def rows_are_edited(self, pick: int, rows: int) -> None:
        place, known = self._a_place(pick)
        self.market.change(*place, version=content(rows, "edited"))
        known.held = (rows, "edited")
        self._readable(place)

    @precondition(lambda self: self.market.states)
    @rule(pick=PICK)
    def a_backup_is_played_back(self, pick: int) -> None:
        """What was fetched is there again: nothing to do."""
        place, known = self._a_place(pick)
        if known.recorded is not None:
            self.market.change(*place, version=self.market.states[place].recorded)
            known.held = known.recorded
            self._readable(place)

    @precondition(lambda self: self.market.states)
    @rule(pick=PICK)
    def a_record_is_lost(self, pick: int) -> None:
        """Killed between the two commits, or the ledger is new: rows that nobody vouches for."""
        place, known = self._a_place(pick)
        self.market.change(*place, recorded=None, checked_at=None, seen_count=0, inputs={}, detail={})
        known.recorded, known.asked, known.same, known.fetches, known.made_from = None, None, 0, 0, None

    @precondition(lambda self: self.market.window)
    @rule(pick=PICK)
    def a_day_is_lost_without_a_trace(self, pick: int) -> None:
        day = str(self._a_day(pick))
        for table in (*DAILY, ADJUSTED, COVERED):
            self.market.states.pop((table, day), None)
            self.oracle.known.pop((table, day), None)

    def _unreadable(self, place: PartitionId) -> None:
        """Rules that read a reference do without it now."""
        table, partition = place
        if table == STOCKS:
            self.market.listed = self.oracle.listed = None
        if table == CALENDAR:
            self.oracle.lost_years.add(int(partition))
            self._read_calendar()

    def _readable(self, place: PartitionId) -> None:
        table, partition = place
        if table == STOCKS and self.oracle.listed is None:
            self.market.listed = self.oracle.listed = self.oracle.known[place].held[0]
            # A backup may count more stocks than when the source had a part: still never refused.
            enough = -(-900 * self.oracle.listed // 1_000)
            self.market.source = {p: max(rows, enough) for p, rows in self.market.source.items()}
        if table == CALENDAR:
            self.oracle.lost_years.discard(int(partition))
            self._read_calendar()

    def _read_calendar(self) -> None:
        years = {2025, 2026, 2027} - self.oracle.lost_years
        self.market.calendar = TradingCalendar.of((d for d in OPEN_DAYS if d.year in years), years)

    # The source

    @precondition(lambda self: self.market.window)
    @rule(
        pick=PICK,
        table=st.sampled_from(DAILY),
        share=st.sampled_from([900, 950, 989, 990, 1_000]),
        lost=st.booleans(),
    )
    def the_source_has_other_rows(self, pick: int, table: str, share: int, lost: bool) -> None:
        """A partial day, or one that was corrected since; never so little that it is refused."""
        place = table, str(self._a_day(pick))
        # Rounded up: 900 of 1,000 parts of 1,005 stocks are 905, and 904 would be refused.
        self.market.source[place] = -(-share * (self.oracle.listed or MOST) // 1_000)
        if lost and place in self.market.states:
            self.market.drop(*place)
            self.oracle.known[place].held = GONE

    @precondition(lambda self: self.oracle.listed is not None)
    @rule(listed=st.sampled_from([LISTED, 1_005, 1_020, MOST]))
    def stocks_are_listed(self, listed: int) -> None:
        """The stock list grew (or lost what should not be there); the source has rows for all of them."""
        self.market.listed = self.oracle.listed = listed
        self.market.source.clear()

    # Doing what is asked for

    def _do(self, verdict: Verdict) -> None:
        """The asset of this table, and what the oracle remembers of it."""
        place = table, partition = verdict.table, verdict.partition
        whole = self.market.listed or LISTED
        self.market.work(verdict)
        if table == REVISED:
            self.oracle.revised.discard(partition)
            return
        known = self.oracle.known.setdefault(place, Known())
        now = self.market.now
        if table in (ADJUSTED, COVERED):
            if table == ADJUSTED:
                known.made_from, rows = self.oracle.adjusted_from(partition), LISTED
            else:
                known.made_from, rows = self.oracle.covered_from(partition), len(DAILY)
            known.held = known.recorded = (rows, "")
            known.asked = now
            return
        rows = self.market.source.get(
            place, 365 if table == CALENDAR else whole if table in (*JUDGED, STOCKS) else 0
        )
        if known.recorded not in (None, (rows, "")) and table in DAILY:
            # The source revised the day: what was believed before is to be kept.
            self.market.revised.add(date.fromisoformat(partition))
            self.oracle.revised.add(partition)
        known.same = known.same + 1 if known.recorded == (rows, "") else 1
        known.fetches += 1
        known.held = known.recorded = (rows, "")
        known.asked = now
        self._readable(place)

    @rule(pick=PICK, number=st.integers(1, 5))
    def some_of_it_is_done(self, pick: int, number: int) -> None:
        """The rest failed: the source was away, or the run was killed."""
        due = self.market.plan.due
        begin = pick % max(len(due), 1)
        # Inputs may change within one run; the plan wants again what was made too early.
        for verdict in due[begin : begin + number]:
            if verdict.table not in (ADJUSTED, COVERED) or self._can_derive(verdict):
                self._do(verdict)

    def _can_derive(self, verdict: Verdict) -> bool:
        made_from = {ADJUSTED: self.oracle.adjusted_from, COVERED: self.oracle.covered_from}[verdict.table]
        return made_from(verdict.partition) is not None

    @rule()
    def everything_asked_for_is_done(self) -> None:
        """Complete: a few looks, and nothing is due; what was hurt is what the source has."""
        for _ in range(6):
            due = self.market.plan.due
            if not due:
                break
            for verdict in due:
                self._do(verdict)
        assert wanted(self.market.plan) == {}
        assert {v.state for v in self.market.plan.verdicts} <= {"healthy", "waiting"}

    @rule(live=st.sets(PICK, max_size=3))
    def looks_take_their_share_until_all_is_done(self, live: set[int]) -> None:
        """A pass takes few days; the looks needed are no more than that takes, whatever is on its way."""
        first = self.market.plan.due
        on_its_way = {first[n % len(first)].key for n in live} if first else set()
        # A calendar that comes back brings days with it.
        days = {str(day) for day in Oracle(self.market.rules).window(self.market.now)} | self.oracle.revised
        everything = Oracle(self.market.rules)
        everything.known = self.oracle.known
        days |= set(everything.older(self.market.now))
        # Each day may be filled, derived, asked for revisions and derived again.
        turns = -(-len(days) // self.market.rules.limit)
        for _ in range(6 * turns + 3):
            taken = take(self.market.plan, self.market.rules.limit, on_its_way.__contains__)
            if not taken:
                break
            for verdict in taken:
                if verdict.table not in (ADJUSTED, COVERED) or self._can_derive(verdict):
                    self._do(verdict)
                on_its_way.discard(verdict.key)
        assert wanted(self.market.plan) == {}

    # What must hold

    @invariant()
    def the_plan_wants_what_was_hurt_and_nothing_else(self) -> None:
        found = self.market.plan
        wants = self.oracle.due(self.market.now)
        assert wanted(found) == as_pairs(wants)
        days = self.oracle.window(self.market.now)
        near = {str(day) for day in days}
        fetched = {(v.table, v.partition) for v in found.verdicts if v.table in DAILY and v.partition in near}
        assert fetched == {(table, str(day)) for table in DAILY for day in days}, (
            "each day in sight is judged"
        )
        self.fingerprints_match_the_records(found, wants)
        self._same_observation_makes_the_same_plan(found)

    def _same_observation_makes_the_same_plan(self, found: Plan) -> None:
        seen = self.market.observed
        backwards = replace(
            seen,
            states=dict(reversed(list(seen.states.items()))),
            expected=dict(reversed(list(seen.expected.items()))),
        )
        again = plan(CATALOGUE, backwards, self.market.now.astimezone(), self.market.rules)
        assert again == found

    @rule()
    def nothing_new_comes_before_its_time(self) -> None:
        """Until the very next moment at which something is due, every look says the same; then it is then."""
        now = self.market.now
        before = self.oracle.due(now)
        moment = next((m for m in self.oracle.turning_points(now) if self.oracle.due(m) != before), None)
        if moment is None:
            return
        just_before = replace(self.market, now=moment - timedelta(seconds=1)).plan
        assert [v.request for v in just_before.due] == [v.request for v in self.market.plan.due]
        self.market.now = moment


@EXAMPLES
def test_plan__random_history__wants_what_the_oracle_wants(examples: int) -> None:
    run_model(MarketPlanModel, examples)


def test_plan__backup_of_a_longer_stock_list__ends() -> None:
    """The source of the model once had too few rows for it, and the day was refused for ever."""
    model = MarketPlanModel()
    model.it_begins("2026-11-17 20:00", settled=True, thin=set())
    model.stocks_are_listed(listed=MOST)
    model.time_passes(by=DAY)
    model.everything_asked_for_is_done()
    model.stocks_are_listed(listed=LISTED)
    model.the_source_has_other_rows(pick=0, table=JUDGED[0], share=900, lost=True)
    stocks = model._places().index((STOCKS, ALL))
    model.rows_are_deleted(pick=stocks)
    model.a_backup_is_played_back(pick=stocks)
    model.looks_take_their_share_until_all_is_done(live=set())


def test_plan__revised_day_before_the_window_differs__keeps_its_revisions_due() -> None:
    state = MarketPlanModel()
    state.it_begins(moment="2026-10-08 12:00", settled=True, thin=set())
    state.the_source_has_other_rows(lost=False, pick=1, share=900, table="normalized_daily")
    state.nothing_new_comes_before_its_time()
    state.nothing_new_comes_before_its_time()
    state.some_of_it_is_done(number=1, pick=10)
    state.it_is_a_certain_hour(days=4, early=False, hour=time(9))
    state.the_plan_wants_what_was_hurt_and_nothing_else()
    assert state.oracle.revised
