"""Compares the plan with an oracle over random uploads, failures and lost data; see `plan_models.py`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from domain.carbon.plan import plan
from domain.carbon.tables import name_of, year_of
from domain.shared.verdict import Plan, Verdict
from tests.unit.domain.carbon.world import (
    ENTRIES,
    MASSES,
    MODULES,
    PAST,
    REPORT,
    TREE,
    TYPES,
    VALUES,
    Made,
    World,
    a_catalogue,
)
from tests.unit.domain.plan_models import EXAMPLES, PartitionId, PlanModel, Want, run_model

YEARS = (2024, 2025)
TYPES_OF = {"travel": ("plane", "train"), "buildings": ("power",)}

EMPTY: tuple[Any, ...] = ()
BROKEN = ("corrupt",)

PICK = st.integers(0, 40)
"""One of a list that is not known yet."""
WORDS = st.sampled_from(["a", "b", "c"])
SOME_YEARS = st.sampled_from([(2024,), (2025,), YEARS])
SOME_FACTORS = st.dictionaries(st.sampled_from(TYPES), st.integers(1, 3), min_size=1)


@dataclass
class Known:
    """What the oracle remembers of one partition; `recorded` None: it has no record."""

    held: Any = EMPTY
    recorded: Any = None
    made_from: Any = None
    made_at: int = 0
    since: int = 0
    """In minutes: of masses, since when the report has others; of units, when they last became others."""

    @property
    def whole(self) -> bool:
        return self.recorded is not None and self.held == self.recorded

    @property
    def never(self) -> bool:
        return self.recorded is None and self.held == EMPTY

    @property
    def lost(self) -> bool:
        return self.held == BROKEN or (self.held == EMPTY and self.recorded not in (None, EMPTY))

    def fault(self) -> str | None:
        if self.whole:
            return None
        if self.held == BROKEN:
            return "corrupt"
        if self.held == EMPTY:
            return "missing"
        return "unrecorded" if self.recorded is None else "changed"


@dataclass(frozen=True)
class File:
    number: int
    what: str
    place: str
    years: tuple[int, ...]
    says: Any


@dataclass
class Oracle:
    """What must be due, from memory alone."""

    files: list[File] = field(default_factory=list)
    known: dict[PartitionId, Known] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()
    locked: set[int] = field(default_factory=set)
    statuses: dict[str, str] = field(default_factory=dict)
    failed: dict[PartitionId, Want] = field(default_factory=dict)
    now: int = 0

    def at(self, table: str, partition: object) -> Known:
        return self.known.get((table, str(partition)), Known())

    def now_holds(self, place: PartitionId, held: Any) -> None:
        known = self.known.setdefault(place, Known())
        known.held = held
        if known.never:
            del self.known[place]

    # What each partition should be

    def newest(self, what: str, year: int) -> list[File]:
        by_place = {f.place: f for f in self.files if f.what == what and year in f.years}
        return sorted(by_place.values(), key=lambda f: f.number)

    def factors(self, year: int) -> tuple[tuple[int, ...], dict[str, int]]:
        files = [f for f in self.files if f.what == "factors" and year in f.years]
        values: dict[str, int] = {}
        for one in files:
            values |= one.says
        return tuple(f.number for f in files), values

    def sums(self, table: str, partition: str) -> tuple[Any, ...]:
        year = year_of(partition)
        types = TYPES if table == REPORT else TYPES_OF[name_of(partition)]
        masses = {t: self.at(MASSES, f"{t}|{year}").held for t in sorted(types)}
        return tuple((t, mass) for t, mass in masses.items() if mass != EMPTY)

    def made_from(self, place: PartitionId) -> Any:
        """Of what it is to be made; None if that is not whole."""
        table, partition = place
        name, year = name_of(partition), year_of(partition)
        if table == TREE:
            return tuple(f.number for f in self.newest("units", year))
        if table == VALUES:
            return self.factors(year)[0]
        if table == ENTRIES:
            return tuple(f.number for f in self.newest(name, year)), name in self.changed
        if table == MASSES:
            entries, factors = self.at(ENTRIES, partition), self.at(VALUES, year)
            if not entries.whole or not (factors.whole or factors.never):
                return None
            return entries.held, dict(factors.held).get(name), name in self.changed
        return self.sums(*place), self.at(TREE, year).held if table == REPORT else None

    def content(self, place: PartitionId) -> Any:
        """What it holds once it is made."""
        table, partition = place
        name, year = name_of(partition), year_of(partition)
        if table in (TREE, ENTRIES):
            return tuple(f.says for f in self.newest("units" if table == TREE else name, year))
        if table == VALUES:
            return tuple(sorted(self.factors(year)[1].items()))
        if table == MASSES:
            entries, factor, _ = self.made_from(place)
            return (entries, factor) if entries != EMPTY else EMPTY
        return self.sums(*place)

    # What is to be said of them

    def wants(self) -> dict[PartitionId, Want]:
        found = {place: want for place in self._intake() if (want := self._filled(place))}
        found |= {
            place: want
            for place in self._masses()
            if (want := self._derived(place) if self.made_from(place) is not None else self._kept_back(place))
        }
        found = {place: self._unless_locked(place, want) for place, want in found.items()}
        moving = self._moving(found)
        for place in self._sums():
            if (want := self._derived(place)) is not None:
                found[place] = self._unless_locked(place, self._unless_early(place, want, moving))
        return found

    def _intake(self) -> set[PartitionId]:
        places = {p for p in self.known if p[0] in (TREE, VALUES, ENTRIES)}
        places |= {(VALUES, partition) for table, partition in self.known if table == PAST}
        for one in self.files:
            table = {"units": TREE, "factors": VALUES}.get(one.what, ENTRIES)
            prefix = f"{one.what}|" if table == ENTRIES else ""
            places |= {(table, f"{prefix}{year}") for year in one.years}
        return places

    def _masses(self) -> set[PartitionId]:
        return {(MASSES, partition) for table, partition in self._intake() if table == ENTRIES}

    def _sums(self) -> set[PartitionId]:
        years = {year_of(p) for table, p in self.known if table in (MASSES, MODULES, REPORT)}
        modules = {(MODULES, f"{m}|{year}") for m in TYPES_OF for year in years}
        judged = {p for p in modules if self.sums(*p) or self.at(*p).held != EMPTY}
        return judged | {(REPORT, str(year)) for year in years}

    def _filled(self, place: PartitionId) -> Want | None:
        table, partition = place
        tables = [VALUES, PAST] if table == VALUES else [table]
        knowns = [self.at(t, partition) for t in tables]
        wanted = self.made_from(place)
        numbers = set(wanted[0] if table == ENTRIES else wanted)
        old = knowns[0].made_from or ((), None)
        fresh = numbers - set(old[0] if table == ENTRIES else knowns[0].made_from or ())
        records = (*((k.held, k.recorded) for k in knowns), wanted)
        for known in knowns:
            if known.never and fresh:
                return Want("due", "uploaded", records)
            if fault := known.fault():
                return Want("due", fault, records)
        if knowns[0].made_from == wanted:
            return None
        return Want("due", "uploaded" if fresh else "rules_changed", records)

    def _derived(self, place: PartitionId) -> Want | None:
        known, wanted = self.at(*place), self.made_from(place)
        records = (known.held, known.recorded, wanted)
        fault = known.fault()
        rules = place[0] == MASSES and known.made_from and known.made_from[2] != wanted[2]
        if rules and known.recorded is not None and fault in (None, "changed"):
            return Want("due", "rules_changed", records)
        if fault:
            return Want("due", fault, records)
        return Want("due", "inputs_changed", records) if known.made_from != wanted else None

    def _kept_back(self, place: PartitionId) -> Want | None:
        """Taken in, not calculated since, and now something of it is hurt."""
        taken, known = self.at(ENTRIES, place[1]).recorded, self.at(*place)
        calculated = known.made_from[0] if known.made_from else None
        return Want("waiting", "input_missing", ()) if taken is not None and taken != calculated else None

    def _unless_locked(self, place: PartitionId, want: Want) -> Want:
        if year_of(place[1]) in self.locked:
            return Want("waiting", "year_locked", ())
        return want

    def _unless_early(self, place: PartitionId, want: Want, moving: set[int]) -> Want:
        year = year_of(place[1])
        types = TYPES if place[0] == REPORT else TYPES_OF[name_of(place[1])]
        sources = [self.at(MASSES, f"{t}|{year}") for t in types]
        sources += [self.at(TREE, year)] if place[0] == REPORT else []
        if any(s.lost for s in sources):
            return replace(want, state="waiting", records=())
        return (
            replace(want, state="waiting", records=()) if year in moving and self._is_patient(place) else want
        )

    def _is_patient(self, place: PartitionId) -> bool:
        """Nothing that it lacks has waited for ten minutes, counted from its last summing at the earliest."""
        known, (masses, tree) = self.at(*place), self.made_from(place)
        had, had_tree = known.made_from or ((), EMPTY)
        year = year_of(place[1])
        types = TYPES if place[0] == REPORT else TYPES_OF[name_of(place[1])]
        lacking = [self.at(MASSES, f"{t}|{year}") for t in types if dict(masses).get(t) != dict(had).get(t)]
        lacking += [self.at(TREE, year)] if place[0] == REPORT and tree != had_tree else []
        since = [max(one.since, known.made_at) for one in lacking if one.whole]
        return not since or self.now - min(since) < 10

    def since(self, place: PartitionId, held: Any) -> int:
        """Of what is about to be recorded."""
        known = self.at(*place)
        if place[0] != MASSES:
            return known.since if known.recorded == held else self.now
        report = self.at(REPORT, year_of(place[1])).made_from or ((), EMPTY)
        has = dict(report[0]).get(name_of(place[1]))
        return self.now if has == (known.recorded if known.recorded != EMPTY else None) else known.since

    def _moving(self, upstream: dict[PartitionId, Want]) -> set[int]:
        soon = {
            year_of(place[1])
            for place, want in upstream.items()
            if want.state == "due"
            and self.statuses.get(":".join(place)) != "deferred"
            and self.failed.get(place) != want
        }
        under_way = {
            year_of(key.split(":", 1)[1])
            for key, status in self.statuses.items()
            if status in ("queued", "running") and key.split(":", 1)[0] not in (MODULES, REPORT)
        }
        return soon | under_way


class CarbonPlanModel(PlanModel):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.oracle = Oracle()
        self.failed: dict[str, str] = {}
        self.sums: dict[PartitionId, tuple[Verdict, Made, Any, Any]] = {}

    @initialize(years=SOME_YEARS, whole=st.sampled_from([True, True, True, False]))
    def it_begins(self, years: tuple[int, ...], whole: bool) -> None:
        """Often all is done; or there are entries and nothing else."""
        for name in TYPES:
            self._upload(name, years, "a")
        if whole:
            self._upload("units", years, "a")
            self._upload("factors", years, dict.fromkeys(TYPES, 1))
        self.everything_asked_for_is_done()

    # People

    def _upload(self, what: str, years: tuple[int, ...], says: Any, place: str = "main") -> None:
        one = self.world.upload(what, *years, says=says, institution=place)
        self.oracle.files.append(File(one.id, what, place, years, says))

    @rule(
        what=st.sampled_from(["units", *TYPES]),
        years=SOME_YEARS,
        says=WORDS,
        place=st.sampled_from(["main", "hospital"]),
    )
    def a_file_comes(self, what: str, years: tuple[int, ...], says: str, place: str) -> None:
        """Words that are new, or the same, or those of long ago."""
        self._upload(what, years, says, place)

    @rule(years=SOME_YEARS, says=SOME_FACTORS)
    def factors_come(self, years: tuple[int, ...], says: dict[str, int]) -> None:
        self._upload("factors", years, says)

    @rule(year=st.sampled_from(YEARS), name=st.sampled_from(TYPES))
    def somebody_removes_the_last_entry(self, year: int, name: str) -> None:
        place = ENTRIES, f"{name}|{year}"
        if not self.oracle.at(*place).whole:
            return
        inputs = self.world.states[place].inputs
        self.world.lose(*place)
        self.world.record(*place, inputs)
        known = self.oracle.known[place]
        known.held = known.recorded = EMPTY

    @rule(year=st.sampled_from(YEARS))
    def a_year_is_locked_or_unlocked(self, year: int) -> None:
        if year in self.oracle.locked:
            self.oracle.locked.discard(year)
            del self.world.locked[year]
        else:
            self.oracle.locked.add(year)
            self.world.locked[year] = "published"

    @rule(minutes=st.sampled_from([1, 4, 9, 10, 1000]))
    def time_passes(self, minutes: int) -> None:
        self.oracle.now += minutes
        self.world.wait(minutes=minutes)

    @rule(name=st.sampled_from(TYPES))
    def a_formula_changes(self, name: str) -> None:
        """Or becomes again what it was."""
        self.oracle.changed ^= {name}
        self.world.catalogue = a_catalogue(changed=self.oracle.changed)

    # Accidents

    @precondition(lambda self: self.oracle.known)
    @rule(pick=PICK, how=st.sampled_from(["lose", "corrupt", "edit"]), words=WORDS)
    def something_is_hurt(self, pick: int, how: str, words: str) -> None:
        places = sorted(self.oracle.known)
        self._hurt(places[pick % len(places)], how, words)

    def _hurt(self, place: PartitionId, how: str, words: str) -> None:
        if how == "edit":
            self.world.edit(*place, words)
        else:
            getattr(self.world, how)(*place)
        edited = (("plane", words),) if place[0] in (VALUES, PAST) else ("edited", words)
        self.oracle.now_holds(place, {"lose": EMPTY, "corrupt": BROKEN, "edit": edited}[how])

    # Work

    @property
    def plan(self) -> Plan:
        """What a pass comes to: the ledger refuses what failed for this very reason."""
        self.world.refused = set()
        while True:
            found = self.world.plan
            fresh = {v.key for v in found.due if self.failed.get(v.key) == v.fingerprint}
            if fresh <= self.world.refused:
                return found
            self.world.refused |= fresh

    def _free(self) -> list[Verdict]:
        """What is due and not leased."""
        return [v for v in self.plan.due if (v.table, v.partition) not in self.sums]

    def _do(self, verdict: Verdict, *, dies: bool = False) -> None:
        """The asset of this table, and what the oracle remembers of it."""
        place = verdict.table, verdict.partition
        made_from, content = self.oracle.made_from(place), self.oracle.content(place)
        self.world.work(verdict, dies=dies)
        self._is_made(verdict, made_from, content, dies=dies)

    def _is_made(self, verdict: Verdict, made_from: Any, content: Any, *, dies: bool = False) -> None:
        place = table, partition = verdict.table, verdict.partition
        contents = {place: content}
        if table == VALUES:
            contents[PAST, partition] = ("of", content)
        for each, held in contents.items():
            self.oracle.now_holds(each, held)
            if not dies:
                since = self.oracle.since(each, held)
                self.oracle.known[each] = Known(held, held, made_from, self.oracle.now, since)
        self.world.statuses.pop(verdict.key, None)
        self.oracle.statuses.pop(verdict.key, None)
        if not dies:
            self.failed.pop(verdict.key, None)
            self.oracle.failed.pop(place, None)

    @rule(pick=PICK, number=st.integers(1, 6), deaths=st.sets(st.integers(0, 5), max_size=2))
    def some_of_it_is_done(self, pick: int, number: int, deaths: set[int]) -> None:
        """One after the other; now and then the run dies between its commit and its record of it."""
        for turn in range(number):
            due = self._free()
            if not due:
                return
            self._do(due[pick % len(due)], dies=turn in deaths)

    @rule(pick=PICK, status=st.sampled_from(["queued", "running", "deferred"]))
    def work_is_under_way_or_put_off(self, pick: int, status: str) -> None:
        if due := self._free():
            self._stays(due[pick % len(due)], status)

    @rule(pick=PICK, how=st.sampled_from(["failed", "called off"]))
    def work_fails_or_is_called_off(self, pick: int, how: str) -> None:
        if due := self._free():
            self._stays(due[pick % len(due)], how)

    def _stays(self, verdict: Verdict, how: str) -> None:
        """It is not done, for this reason. Of what was called off an observation says nothing."""
        key, place = verdict.key, (verdict.table, verdict.partition)
        self.world.statuses.pop(key, None)
        self.oracle.statuses.pop(key, None)
        if how in ("failed", "called off"):
            self.failed[key] = verdict.fingerprint
            self.oracle.failed[place] = self.oracle.wants()[place]
        else:
            self.oracle.statuses[key] = how
        if how != "called off":
            self.world.statuses[key] = how

    @rule(
        pick=PICK,
        hurt=st.sampled_from(["lose", "corrupt", "edit", None, None]),
        table=st.sampled_from([TREE, VALUES, PAST, ENTRIES, MASSES, MASSES]),
        how=st.sampled_from(["queued", "running", "deferred", "failed", "called off", "dies"]),
    )
    def all_that_is_summed_is_done_but_one_piece(
        self, pick: int, hurt: str | None, table: str, how: str
    ) -> None:
        """Whether the sums wait for it depends on what keeps it."""
        self.everything_asked_for_is_done()
        year = YEARS[pick % 2]
        self._upload("factors", (year,), {TYPES[pick % 3]: 4 + pick % 3, TYPES[(pick + 1) % 3]: pick % 4})
        self._work_off([v for v in self._upstream() if v.table == VALUES])
        places = sorted(p for p in self.oracle.known if p[0] == table and year_of(p[1]) == year)
        if hurt and places:
            place = places[pick % len(places)]
            self._hurt(place, hurt, "a")
            key = f"{VALUES if table == PAST else table}:{place[1]}"
            due = [v for v in self._upstream() if v.key == key]
        else:
            due = self._upstream()
        if due:
            self._keep(due[pick % len(due)], how)

    def _keep(self, one: Verdict, how: str) -> None:
        """All others are done, and this one is not; or it is, and somebody does it again."""
        if how == "dies":
            self._do(one, dies=True)
        elif how not in ("queued", "running"):
            self._stays(one, how)
        self._do_upstream(but="" if how in ("queued", "running") else one.key)
        if how in ("queued", "running"):
            self._stays(one, how)

    def _upstream(self) -> list[Verdict]:
        return [v for v in self._free() if v.table not in (MODULES, REPORT)]

    def _do_upstream(self, but: str = "") -> set[str]:
        """All that follows from the files, but for the sums; the tables of what was done."""
        done: set[str] = set()
        while due := [v for v in self._upstream() if v.key != but]:
            self._work_off(due)
            done |= {v.table for v in due}
        return done

    def _work_off(self, due: list[Verdict]) -> None:
        for verdict in due:
            self._do(verdict)

    @rule()
    def a_person_retries_what_failed(self) -> None:
        self.failed.clear()
        self.oracle.failed.clear()

    @rule()
    def sums_begin(self) -> None:
        """They note what they are made from, and read it, and are not done yet."""
        for verdict in self._free():
            place = verdict.table, verdict.partition
            made = self.world.build(*place) if verdict.table in (MODULES, REPORT) else None
            if made is not None:
                expected = self.oracle.made_from(place), self.oracle.content(place)
                self.sums[place] = (verdict, made, *expected)

    @precondition(lambda self: self.sums)
    @rule(dies=st.booleans())
    def sums_end(self, dies: bool) -> None:
        for verdict, made, made_from, content in self.sums.values():
            if (
                year_of(verdict.partition) not in self.oracle.locked
            ):  # a lock that came meanwhile forbids the commit
                self.world.commit(verdict, made, dies=dies)
                self._is_made(verdict, made_from, content, dies=dies)
        self.sums.clear()

    # Complete, and no more often than need be

    @rule()
    def everything_asked_for_is_done(self) -> None:
        """A few looks, and all is healthy; every report is what the files say."""
        self.sums_end(dies=False)
        self._let_all_be_done()
        for _ in range(5):
            due = self._free()
            if not due:
                break
            for verdict in due:
                self._do(verdict)
        assert self.world.judged() == {}
        for year in YEARS:
            self._report_is_right(year)

    def _let_all_be_done(self) -> None:
        self.a_person_retries_what_failed()
        for year in list(self.oracle.locked):
            self.a_year_is_locked_or_unlocked(year)
        self.world.statuses.clear()
        self.oracle.statuses.clear()

    def _report_is_right(self, year: int) -> None:
        factors = self.oracle.factors(year)[1]
        entries = {t: self.oracle.at(ENTRIES, f"{t}|{year}").held for t in TYPES}
        right = {t: [list(words), factors.get(t)] for t, words in entries.items() if words != EMPTY}
        assert (self.world.contents.get((REPORT, str(year))) or {}) == right

    @rule(
        year=st.sampled_from(YEARS),
        first=SOME_FACTORS,
        picks=st.lists(PICK, min_size=1, max_size=8),
        meanwhile=st.lists(SOME_FACTORS, max_size=2),
        deaths=st.sets(st.integers(0, 6), max_size=2),
    )
    def factors_come_and_their_year_is_summed_once(
        self,
        year: int,
        first: dict[str, int],
        picks: list[int],
        meanwhile: list[dict[str, int]],
        deaths: set[int],
    ) -> None:
        """Once, and again for every time that a recalculation ended while it was being summed. It takes some
        minutes, and nobody summed that year for long."""
        self.everything_asked_for_is_done()
        self.time_passes(1000)
        self._upload("factors", (year,), first)
        summed = disturbed = 0
        for turn in range(60):
            due = self._free()
            if not due:
                break
            if turn in (2, 5, 9):
                self.time_passes(3)
            verdict = due[picks[turn % len(picks)] % len(due)]
            if verdict.table != REPORT:
                self._do(verdict, dies=turn in deaths and verdict.table != MODULES)
                continue
            self.sums_begin()
            summed += 1
            if meanwhile:
                disturbed += self._recalculate(year, meanwhile.pop())
            self.sums_end(dies=False)
        assert self.world.judged() == {}
        assert summed <= 1 + disturbed
        self._report_is_right(year)

    def _recalculate(self, year: int, says: dict[str, int]) -> bool:
        """New factors and all that follows, but for the sums. Whether anything was recalculated."""
        self._upload("factors", (year,), says)
        return MASSES in self._do_upstream()

    # What must hold

    @invariant()
    def the_plan_wants_what_was_hurt_or_is_out_of_date_and_nothing_else(self) -> None:
        found, wants = self.plan, self.oracle.wants()
        said = {(v.table, v.partition): ("due" if v.due else v.state, v.reason_code) for v in found.verdicts}
        ill = {place: what for place, what in said.items() if what[0] != "healthy"}
        assert ill == {place: (want.state, want.reason) for place, want in wants.items()}
        self.fingerprints_match_the_records(found, wants)
        self._same_observation_makes_the_same_plan(found)

    @invariant()
    def a_report_that_is_called_up_to_date_is_what_the_files_say(self) -> None:
        judged = [v for v in self.plan.verdicts if v.state != "healthy"]
        for year in YEARS:
            ill = [v for v in judged if year_of(v.partition) == year]
            state = self.world.report_state(year)
            assert state.current == (not ill), state
            if not ill:
                self._report_is_right(year)

    def _same_observation_makes_the_same_plan(self, found: Plan) -> None:
        seen = self.world.observed
        backwards = replace(
            seen,
            states=dict(reversed(list(seen.states.items()))),
            uploads=tuple(reversed(seen.uploads)),
            factor_digests=dict(reversed(list(seen.factor_digests.items()))),
        )
        assert plan(self.world.catalogue, backwards) == found


@EXAMPLES
def test_plan__random_history__wants_what_the_oracle_wants(examples: int) -> None:
    run_model(CarbonPlanModel, examples)
