"""What every lake does, whatever keeps its catalog. Subclasses give the fixture `lakes`: a factory of
lakes over the same files; each call is like another process's lake, `tables` may differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from domain.shared.error import InvalidInput
from domain.shared.table import ABSENT, ALL, Column, Table
from resources.lake.client import Lake
from resources.lake.error import SnapshotGone
from resources.lake.versions import VersionReader
from tests.unit.resources.lake.frames import (
    BY_KIND,
    BY_KIND_AND_YEAR,
    CODES,
    DAILY,
    TABLES,
    WHOLE,
    Lakes,
    days_from,
    entries,
    factors,
    on_files,
    papers,
    prices,
    rows_of,
    stocks,
    with_columns,
)

MON, TUE, WED = "2026-11-16", "2026-11-17", "2026-11-18"
PRICES, STOCKS, ENTRIES = DAILY.name, WHOLE.name, BY_KIND_AND_YEAR.name
WIDER = with_columns(DAILY, *DAILY.columns, Column("turnover", pa.float64(), "turnover"))


def close_of(lake: Lake, as_of: datetime | dict[str, int] | None = None) -> float | None:
    query = f"SELECT close FROM {PRICES} WHERE trade_date = ? AND ts_code = ?"
    rows = lake.sql(query, params=[MON, CODES[0]], as_of=as_of).to_pylist()
    return rows[0]["close"] if rows else None


class CatalogBehaviour:
    """What depends on the catalog: commits, moments, evolution, maintenance."""

    def test_replace__partition_has_rows__holds_exactly_the_frame_in_one_snapshot(self, lakes: Lakes) -> None:
        lake = lakes()
        first = lake.replace(PRICES, MON, prices(MON))
        second = lake.replace(PRICES, MON, prices(MON, scale=2, codes=CODES[:2]))
        stored = rows_of(lakes(), PRICES)
        assert stored.sort_by("ts_code").to_pylist() == prices(MON, scale=2, codes=CODES[:2]).to_pylist()
        assert (first.parent_id, second.parent_id) == (None, first.snapshot_id)
        assert lake.replace(PRICES, MON, prices(MON)).parent_id == second.snapshot_id

    def test_replace__over_months__is_one_snapshot(self, lakes: Lakes) -> None:
        lake, days = lakes(), days_from("2026-09-28", 40)
        commit = lake.replace(PRICES, days, prices(*days))
        assert commit.parent_id is None
        assert lake.partitions(PRICES) == days == sorted(commit.versions)
        assert commit.versions == lakes(fresh_home=True).versions(PRICES, days)

    def test_replace__guard_raises__commits_nothing(self, lakes: Lakes) -> None:
        lake = lakes()
        first = lake.replace(PRICES, MON, prices(MON))

        def lost_lease() -> None:
            raise InvalidInput("lease lost")

        with pytest.raises(InvalidInput, match="lease lost"):
            lake.replace(PRICES, MON, prices(MON, scale=2), guard=lost_lease)
        assert lake.versions(PRICES, [MON]) == first.versions

    def test_merge__rows_of_one_partition__leaves_the_others(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace(ENTRIES, "plane|2025", entries("plane", 2025, 1.0, 2.0))
        other = lake.replace(ENTRIES, "train|2025", entries("train", 2025, 5.0))
        lakes().merge(ENTRIES, entries("plane", 2025, 9.0))
        rows = lakes().sql(f"SELECT amount FROM {ENTRIES} ORDER BY kind, id").to_pylist()
        assert [row["amount"] for row in rows] == [9.0, 2.0, 5.0]
        assert lakes().versions(ENTRIES, ["train|2025"]) == other.versions

    def test_holdings__written_meanwhile__are_of_one_moment(
        self, lakes: Lakes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lake = lakes()
        lake.replace(PRICES, [MON, TUE], prices(MON, TUE))
        lake.merge(STOCKS, stocks(a="Ping An"))
        before = {PRICES: lake.versions(PRICES, [MON, TUE]), STOCKS: lake.versions(STOCKS, [ALL])}
        versions = VersionReader.versions

        def meanwhile(*given: object) -> object:
            monkeypatch.undo()
            lakes().replace(PRICES, MON, prices(MON, scale=2))
            lakes().merge(STOCKS, stocks(a="another"))
            return versions(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(VersionReader, "versions", meanwhile)
        found = lakes().holdings({PRICES: [WED], STOCKS: []}, and_present=True)
        assert found == {**before, PRICES: {**before[PRICES], WED: ABSENT}}
        after = lakes().holdings({PRICES: [WED, MON], STOCKS: []})
        assert (after[STOCKS], list(after[PRICES])) == ({}, [MON, WED])
        assert after[PRICES][MON] != before[PRICES][MON]

    def test_read__nothing_was_written__is_empty(self, lakes: Lakes) -> None:
        lake = lakes()
        empty = lake.sql("SELECT * FROM market.prices p LEFT JOIN refs.papers r ON p.volume = r.id")
        assert (empty.num_rows, empty.schema.types) == (0, [*DAILY.schema.types, *BY_KIND.schema.types])
        assert lake.versions(PRICES, [MON, TUE]) == {MON: ABSENT, TUE: ABSENT}
        assert lake.partitions(PRICES) == []
        report = lake.maintain(PRICES, now=datetime.now(UTC), compact_before="2026-11")
        assert (report.deleted_files, report.expired_snapshots) == (0, 0)

    def test_sql__as_of_a_moment_or_a_snapshot__reads_the_rows_of_then(self, lakes: Lakes) -> None:
        lake = lakes()
        empty = datetime.now(UTC) - timedelta(seconds=1)
        first = lake.replace(PRICES, MON, prices(MON))
        moment = datetime.now(UTC)
        while datetime.now(UTC) - moment < timedelta(milliseconds=2):
            pass  # Iceberg counts in milliseconds
        lake.replace(PRICES, MON, prices(MON, scale=2))
        asked = (None, moment, {PRICES: first.snapshot_id}, {STOCKS: 1}, empty)
        assert [close_of(lakes(), as_of) for as_of in asked] == [20.32, 10.16, 10.16, 20.32, None]
        with pytest.raises(SnapshotGone):
            close_of(lake, {PRICES: 7})
        for wrong in (datetime(2026, 1, 1), {"market.nothing": 1}):  # noqa: DTZ001
            with pytest.raises(InvalidInput):
                close_of(lake, wrong)

    def test_read__column_added_to_the_definition__is_null_in_old_rows(self, lakes: Lakes) -> None:
        first = lakes().replace(PRICES, [MON, TUE], prices(MON, TUE))
        lake = lakes(tables=(WIDER, WHOLE))
        query = f"SELECT trade_date AS d, sum(turnover) AS t FROM {PRICES} GROUP BY 1 ORDER BY 1"
        assert [r["t"] for r in lake.sql(query).to_pylist()] == [None, None]
        for day, turnover in ((WED, [1.5, 2.5, math.inf, None]), (TUE, [9.0] * 4)):
            lake.replace(PRICES, day, prices(day).append_column("turnover", pa.array(turnover)))
        again = lakes(tables=(WIDER, WHOLE))
        assert [r["t"] for r in again.sql(query).to_pylist()] == [None, 36.0, math.inf]
        assert again.sql(query, as_of={PRICES: first.snapshot_id}).column("t").null_count == 2
        assert again.version(PRICES, MON) == first.versions[MON], "a column that is NULL changes no version"

    def test_read__column_renamed_by_another_engine__keeps_its_values(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace(STOCKS, ALL, stocks(a="Ping An"))
        with lake._writer.catalog.load(STOCKS).update_schema() as update:
            update.rename_column("name", "title")
        renamed = with_columns(WHOLE, WHOLE.columns[0], Column("title", pa.string(), "title"))
        assert rows_of(lakes(tables=(renamed,)), STOCKS).to_pylist() == [{"ts_code": "a", "title": "Ping An"}]

    def test_maintain__closed_month__is_one_file_and_keeps_every_version(self, lakes: Lakes) -> None:
        lake = lakes()
        days = [*days_from("2026-10-29", 5), MON]
        for day in days:
            lake.replace(PRICES, day, prices(day))
        before = lake.versions(PRICES, days)
        reports = [lake.maintain(PRICES, now=datetime.now(UTC), compact_before="2026-11") for _ in range(2)]
        assert [report.compacted_files for report in reports] == [3, 0]
        assert lake.versions(PRICES, days) == before
        assert lakes(fresh_home=True).versions(PRICES, days) == before

    def test_maintain__snapshots_past_their_time__keeps_the_current_and_the_pinned(
        self, lakes: Lakes
    ) -> None:
        lake = lakes()
        made = [lake.replace(PRICES, MON, prices(MON, scale=n)).snapshot_id for n in range(1, 5)]
        between = datetime.now(UTC)
        made.append(lake.replace(PRICES, MON, prices(MON, scale=5)).snapshot_id)
        later = datetime.now(UTC) + timedelta(days=8)
        report = lake.maintain(PRICES, now=later, compact_before=None, keep_snapshots=[made[1], 12345])
        assert report.expired_snapshots == 3
        other = lakes(fresh_home=True)
        assert close_of(other, {PRICES: made[1]}) == pytest.approx(20.32)
        assert close_of(other) == pytest.approx(50.8)
        # At the last moment an expired one was current, not the pinned one.
        for gone in ({PRICES: made[0]}, datetime.now(UTC) - timedelta(hours=1), between):
            with pytest.raises(SnapshotGone):
                close_of(other, gone)


class LakeBehaviour(CatalogBehaviour):
    """All the rest: partitions, frames, keys and SQL."""

    def test_replace__same_content_in_any_order__makes_no_snapshot(self, lakes: Lakes) -> None:
        first = lakes().replace(PRICES, MON, prices(MON))
        again = lakes().replace(PRICES, MON, prices(MON).take([3, 1, 0, 2]))
        wanted = (False, first.snapshot_id, first.versions)
        assert (again.changed, again.snapshot_id, again.versions) == wanted

    def test_replace__one_day_of_a_month__leaves_the_others(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace(PRICES, [MON, TUE, WED], prices(MON, TUE, WED))
        before = lake.versions(PRICES, [MON, TUE, WED])
        lake.replace(PRICES, TUE, prices(TUE, scale=2))
        after = lakes().versions(PRICES, [MON, TUE, WED])
        assert (after[MON], after[WED]) == (before[MON], before[WED])
        assert after[TUE] != before[TUE]
        assert lake.partitions(PRICES) == [MON, TUE, WED]

    def test_replace__empty_frame__is_refused_unless_allowed(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace(PRICES, [MON, TUE], prices(MON, TUE))
        for days, frame in (([MON], prices()), ([TUE, WED], prices(TUE))):
            with pytest.raises(InvalidInput) as caught:
                lake.replace(PRICES, days, frame)
            assert caught.value.reason_code == "empty_frame"
        lake.replace(PRICES, [MON, TUE], prices(MON, scale=3), allow_empty=True)
        assert lake.partitions(PRICES) == [MON]
        assert lake.replace(PRICES, MON, prices(), allow_empty=True).versions == {MON: ABSENT}
        assert lake.partitions(PRICES) == []

    def test_merge__some_keys_are_there__inserts_and_updates(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.merge(STOCKS, stocks(a="Ping An", b="Vanke"))
        commit = lake.merge(STOCKS, stocks(b="China Vanke", c="Pufa"))
        rows = rows_of(lakes(), STOCKS).sort_by("ts_code").to_pylist()
        assert [tuple(r.values()) for r in rows] == [("a", "Ping An"), ("b", "China Vanke"), ("c", "Pufa")]
        assert commit.versions == {ALL: lake.version(STOCKS, ALL)}
        assert not lake.merge(STOCKS, stocks(b="China Vanke")).changed

    def test_merge__key_that_does_not_name_the_partition__is_refused(self, lakes: Lakes) -> None:
        by_id = replace(BY_KIND, key=("id",))
        with pytest.raises(InvalidInput, match="cannot be merged"):
            lakes(tables=(by_id,)).merge("refs.papers", papers((1, "draft", "one")))

    def test_replace__tables_of_every_kind__are_replaced_by_partition(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace("carbon.factors", "2025", factors(2025, coal="2.4100", gas="1.9"))
        lake.replace("carbon.factors", "2026", factors(2026, coal="2.5"))
        lake.replace("carbon.factors", "2025", factors(2025, coal="2.4"))
        kinds = ["with space", "a/b=c", "50%?#*", "中文", "it's", '"quoted"', "[x]"]
        lake.replace("refs.papers", kinds, papers(*((n, kind, "one") for n, kind in enumerate(kinds))))
        commit = lake.replace("refs.papers", "a/b=c", papers((9, "a/b=c", "two")))
        assert lake.partitions("carbon.factors") == ["2025", "2026"]
        assert lakes(fresh_home=True).partitions("refs.papers") == sorted(kinds)
        assert lakes().versions("refs.papers", ["a/b=c"]) == commit.versions
        found = rows_of(lake, "carbon.factors").sort_by("year")["factor"].to_pylist()
        assert [str(v) for v in found] == ["2.4000", "2.5000"]

    def test_replace__partition_of_two_dimensions__leaves_its_neighbours(self, lakes: Lakes) -> None:
        keys = ["plane|2024", "plane|2025", "train|2024", "train|2025"]
        rows = [entries(kind, int(year), 1.0, 2.0) for kind, year in (key.split("|") for key in keys)]
        before = lakes().replace(ENTRIES, keys, pa.concat_tables(rows)).versions
        commit = lakes().replace(ENTRIES, "plane|2025", entries("plane", 2025, 3.0))
        assert lakes().partitions(ENTRIES) == keys
        assert lakes().versions(ENTRIES, keys) == before | commit.versions

    @pytest.mark.parametrize(
        ("table", "keys"),
        [
            (PRICES, ["20261116", ALL]),
            ("carbon.factors", ["26.0"]),
            (STOCKS, ["x"]),
            (ENTRIES, ["plane", "plane|", "|2025", "plane|20x5", "plane|02025", "2025|plane"]),
        ],
    )
    def test_versions__key_of_the_wrong_kind__is_refused(
        self, lakes: Lakes, table: str, keys: list[str]
    ) -> None:
        for key in keys:
            with pytest.raises(InvalidInput, match="partition key"):
                lakes().versions(table, [key])

    @pytest.mark.parametrize(
        ("frame", "said"),
        [
            (prices(MON).drop_columns(["close"]), r"missing \['close'\]"),
            (prices(MON).append_column("extra", pa.array([1] * 4)), r"unexpected \['extra'\]"),
            (prices(MON).set_column(3, "volume", pa.array([1.0, 2.0, 2.5, 3.0])), r"prices.volume.*2.5"),
            (prices(MON).set_column(2, "close", pa.array(["1", "2", "x", "y"])), r"prices.close.*'[xy]'"),
            (prices(MON).set_column(1, "ts_code", pa.array(["a", None, "b", None])), "ts_code: 2 .*row 1"),
            (pa.concat_tables([prices(MON), prices(MON)]), r"key .* not unique.*2026-11-16.*000001.SZ"),
            (prices(MON, TUE), "rows of 2026-11-17"),
        ],
        ids=["missing", "unexpected", "truncation", "no number", "null", "repeated key", "other partition"],
    )
    def test_replace__wrong_frame__is_refused_by_name(self, lakes: Lakes, frame: pa.Table, said: str) -> None:
        lake = lakes()
        with pytest.raises(InvalidInput, match=said):
            lake.replace(PRICES, MON, frame)
        assert lake.partitions(PRICES) == []

    def test_replace__other_column_order_and_castable_types__are_as_defined(self, lakes: Lakes) -> None:
        frame = pa.table(
            {
                "volume": pa.array([1, 2], pa.int32()),
                "ts_code": pa.array(["b", "a"]).dictionary_encode(),
                "close": pa.array([1, 2], pa.int64()),
                "trade_date": pa.array([MON, MON]),
            }
        )
        lakes().replace(PRICES, MON, frame)
        stored = rows_of(lakes(), PRICES)
        assert stored.schema.types == DAILY.schema.types
        assert stored.column("ts_code").to_pylist() == ["a", "b"], "sorted by the table's order"

    def test_sql__tables_and_extra_relations__are_joined(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace(PRICES, MON, prices(MON))
        lake.replace(STOCKS, ALL, stocks(**{CODES[0]: "Ping An"}))
        rows = lake.sql(
            "SELECT s.name, p.close, f.age FROM market.prices p JOIN market.stocks s USING (ts_code) "
            'JOIN "market"."freshness" f USING (ts_code) WHERE p.close > $least',
            params={"least": 1},
            extra={"market.freshness": pa.table({"ts_code": [CODES[0]], "age": [3]})},
        ).to_pylist()
        assert rows == [{"name": "Ping An", "close": 10.16, "age": 3}]

    def test_sql__about_the_catalogue__knows_every_table(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace(PRICES, MON, prices(MON))
        tables = lake.sql("SHOW ALL TABLES").to_pylist()
        assert {f"{t['schema']}.{t['name']}" for t in tables} == {t.name for t in TABLES}
        named = lake.sql("SELECT column_name FROM information_schema.columns WHERE table_name = 'prices'")
        assert named.column(0).to_pylist() == DAILY.schema.names
        assert (
            lake.sql("DESCRIBE market.prices").num_rows == lake.sql("SUMMARIZE market.prices").num_rows == 4
        )

    def test_read__definition_contradicts_the_stored_table__is_refused(self, lakes: Lakes) -> None:
        lakes().replace(PRICES, MON, prices(MON))
        for columns, said in (
            (DAILY.columns[:3], r"columns \['volume'\] that the definition lacks"),
            ((*DAILY.columns[:3], Column("volume", pa.string(), "v")), "volume: stored as long"),
            ((*DAILY.columns, Column("x", pa.int64(), "x", nullable=False)), r"\['x'\] must be nullable"),
        ):
            with pytest.raises(InvalidInput, match=said):
                rows_of(lakes(tables=(with_columns(DAILY, *columns),)), PRICES)


class TestLakeOnSqlite(LakeBehaviour):
    @pytest.fixture
    def lakes(self, tmp_path: Path) -> Lakes:
        def make(fresh_home: bool = False, tables: Sequence[Table] = TABLES) -> Lake:
            return on_files(tmp_path, tables, **({"home": tmp_path / "elsewhere"} if fresh_home else {}))

        return make
