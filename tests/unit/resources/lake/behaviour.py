"""What every lake does, whatever keeps its catalog. Subclasses give the fixture `lakes`: a factory of
lakes that share one place; each call is like another process's lake, `tables` may differ."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from domain.shared.error import InvalidInput
from domain.shared.table import ABSENT, ALL, Column
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
    papers,
    prices,
    stocks,
    with_columns,
)

MON, TUE, WED = "2026-11-16", "2026-11-17", "2026-11-18"


def close_of(lake: object, day: str, code: str = CODES[0], **more: object) -> float | None:
    query = "SELECT close FROM market.prices WHERE trade_date = ? AND ts_code = ?"
    rows = lake.sql(query, params=[day, code], **more).to_pylist()  # type: ignore[attr-defined]
    return rows[0]["close"] if rows else None


class LakeBehaviour:
    # --- replace

    def test_a_replaced_partition_holds_exactly_the_frame(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace("market.prices", MON, prices(MON))
        lake.replace("market.prices", MON, prices(MON, scale=2, codes=CODES[:2]))
        stored = lakes().scan("market.prices").read_all()
        assert stored.sort_by("ts_code").to_pylist() == prices(MON, scale=2, codes=CODES[:2]).to_pylist()

    def test_replacing_makes_one_snapshot_on_top_of_the_last(self, lakes: Lakes) -> None:
        lake = lakes()
        first = lake.replace("market.prices", MON, prices(MON))
        second = lake.replace("market.prices", MON, prices(MON, scale=2))
        assert first.parent_id is None
        assert second.parent_id == first.snapshot_id
        assert lake.snapshot_id("market.prices") == second.snapshot_id

    def test_no_moment_between_two_replaces_reads_a_hole(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace("market.prices", MON, prices(MON))
        begin = datetime.now(UTC)
        lake.replace("market.prices", MON, prices(MON, scale=2))
        span = datetime.now(UTC) - begin
        for step in range(20):
            moment = begin + span * step / 19
            assert close_of(lake, MON, as_of=moment) in (10.16, 20.32), moment

    def test_the_same_content_in_any_order_makes_no_snapshot(self, lakes: Lakes) -> None:
        lake = lakes()
        first = lake.replace("market.prices", MON, prices(MON))
        again = lakes().replace("market.prices", MON, prices(MON).take([3, 1, 0, 2]))
        assert (again.changed, again.snapshot_id, again.versions) == (
            False,
            first.snapshot_id,
            first.versions,
        )

    def test_the_other_days_of_the_month_stay_as_they_were(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace_range("market.prices", [MON, TUE, WED], prices(MON, TUE, WED))
        before = lake.versions("market.prices", [MON, TUE, WED])
        lake.replace("market.prices", TUE, prices(TUE, scale=2))
        after = lakes().versions("market.prices", [MON, TUE, WED])
        assert (after[MON], after[WED]) == (before[MON], before[WED])
        assert after[TUE] != before[TUE]
        assert lake.partitions("market.prices") == [MON, TUE, WED]

    def test_a_range_over_months_is_one_snapshot(self, lakes: Lakes) -> None:
        lake = lakes()
        days = days_from("2026-09-28", 40)
        commit = lake.replace_range("market.prices", days, prices(*days))
        assert commit.parent_id is None
        assert lake.partitions("market.prices") == days
        assert set(commit.versions) == set(days)
        assert commit.versions == lakes().versions("market.prices", days)

    def test_an_empty_frame_is_refused_unless_said(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace("market.prices", MON, prices(MON))
        with pytest.raises(InvalidInput, match=r"market.prices: no rows for 2026-11-16"):
            lake.replace("market.prices", MON, prices())
        with pytest.raises(InvalidInput, match=TUE):
            lake.replace_range("market.prices", [MON, TUE], prices(MON))
        assert lake.replace("market.prices", MON, prices(), allow_empty=True).versions == {MON: ABSENT}
        assert lake.partitions("market.prices") == []

    def test_a_range_with_rows_for_some_empties_the_others_if_said(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace_range("market.prices", [MON, TUE], prices(MON, TUE))
        lake.replace_range("market.prices", [MON, TUE], prices(MON, scale=3), allow_empty=True)
        assert lake.partitions("market.prices") == [MON]

    def test_the_guard_stops_the_commit(self, lakes: Lakes) -> None:
        lake = lakes()
        first = lake.replace("market.prices", MON, prices(MON))

        def lost_lease() -> None:
            raise InvalidInput("lease lost")

        with pytest.raises(InvalidInput, match="lease lost"):
            lake.replace("market.prices", MON, prices(MON, scale=2), guard=lost_lease)
        assert lake.snapshot_id("market.prices") == first.snapshot_id
        assert lake.versions("market.prices", [MON]) == first.versions

    # --- merge

    def test_merge_inserts_and_updates_by_key(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.merge("market.stocks", stocks(a="Ping An", b="Vanke"))
        commit = lake.merge("market.stocks", stocks(b="China Vanke", c="Pufa"))
        rows = lakes().sql("SELECT * FROM market.stocks ORDER BY ts_code").to_pylist()
        assert [(r["ts_code"], r["name"]) for r in rows] == [
            ("a", "Ping An"),
            ("b", "China Vanke"),
            ("c", "Pufa"),
        ]
        assert commit.versions == {ALL: lake.version("market.stocks", ALL)}

    def test_merging_what_is_there_already_changes_nothing(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.merge("market.stocks", stocks(a="Ping An", b="Vanke"))
        assert not lake.merge("market.stocks", stocks(b="Vanke")).changed

    def test_merge__key_that_does_not_name_the_partition__is_refused(self, lakes: Lakes) -> None:
        by_id = replace(BY_KIND, key=("id",))
        with pytest.raises(InvalidInput, match="cannot be merged"):
            lakes(tables=(by_id,)).merge("refs.papers", papers((1, "draft", "one")))

    # --- partitions of every kind

    def test_year_category_and_whole_tables_are_replaced_by_partition(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace("carbon.factors", "2025", factors(2025, coal="2.4100", gas="1.9"))
        lake.replace("carbon.factors", "2026", factors(2026, coal="2.5"))
        lake.replace("carbon.factors", "2025", factors(2025, coal="2.4"))
        lake.replace("market.stocks", ALL, stocks(a="x"))
        assert lake.partitions("carbon.factors") == ["2025", "2026"]
        assert lake.partitions("market.stocks") == [ALL]
        assert sorted(str(v) for v in lake.scan("carbon.factors").read_all()["factor"].to_pylist()) == [
            "2.4000",
            "2.5000",
        ]

    @pytest.mark.parametrize("kind", ["with space", "a/b=c", "50%?#*", "中文", "it's", '"quoted"', "[x]"])
    def test_any_text_may_be_a_category(self, lakes: Lakes, kind: str) -> None:
        lake = lakes()
        commit = lake.replace("refs.papers", kind, papers((1, kind, "one")))
        assert lakes().versions("refs.papers", [kind]) == commit.versions
        assert lake.partitions("refs.papers") == [kind]
        assert lake.sql("SELECT id, body FROM refs.papers").to_pylist() == [{"id": 1, "body": b"one"}]

    @pytest.mark.parametrize(
        ("table", "partition"),
        [
            ("market.prices", "20261116"),
            ("market.prices", ALL),
            ("carbon.factors", "26.0"),
            ("market.stocks", "x"),
        ],
    )
    def test_a_key_of_the_wrong_kind_is_refused(self, lakes: Lakes, table: str, partition: str) -> None:
        with pytest.raises(InvalidInput, match="partition key"):
            lakes().versions(table, [partition])

    # --- versions

    def test_the_version_of_a_frame_is_known_before_it_is_committed(self, lakes: Lakes) -> None:
        lake = lakes()
        foreseen = lake.version_of("market.prices", prices(MON).take([2, 0, 1, 3]))
        assert lake.version("market.prices", MON) == ABSENT
        commit = lake.replace("market.prices", MON, prices(MON))
        assert commit.versions[MON] == foreseen == lake.version("market.prices", MON)
        assert foreseen.rows == len(CODES)

    def test_versions_are_computed_alike_without_any_cache(self, lakes: Lakes) -> None:
        days = days_from("2026-10-28", 8)
        commit = lakes().replace_range("market.prices", days, prices(*days))
        assert lakes(fresh_home=True).versions("market.prices", days) == commit.versions

    def test_several_tables_are_held_against_each_other_at_one_moment(
        self, lakes: Lakes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lake = lakes()
        lake.replace_range("market.prices", [MON, TUE], prices(MON, TUE))
        lake.merge("market.stocks", stocks(a="Ping An"))
        before = {"market.prices": lake.versions("market.prices", [MON, TUE])}
        before["market.stocks"] = lake.versions("market.stocks", [ALL])
        versions = VersionReader.versions

        def meanwhile(*given: object) -> object:
            monkeypatch.undo()
            lakes().replace("market.prices", MON, prices(MON, scale=2))
            lakes().merge("market.stocks", stocks(a="another"))
            return versions(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(VersionReader, "versions", meanwhile)
        named = {"market.prices": [WED], "market.stocks": []}
        found = lakes().holdings(named, and_present=True)
        assert found == {**before, "market.prices": {**before["market.prices"], WED: ABSENT}}
        after = lakes().holdings({"market.prices": [WED, MON], "market.stocks": []})
        assert after["market.stocks"] == {}
        assert list(after["market.prices"]) == [MON, WED]
        assert after["market.prices"][MON] != before["market.prices"][MON]

    def test_absent_is_what_was_never_written(self, lakes: Lakes) -> None:
        lake = lakes()
        assert lake.versions("market.prices", [MON, TUE]) == {MON: ABSENT, TUE: ABSENT}
        assert lake.partitions("market.prices") == []
        lake.replace("market.prices", MON, prices(MON))
        assert lake.version("market.prices", TUE) == ABSENT

    # --- frames

    @pytest.mark.parametrize(
        ("frame", "said"),
        [
            (prices(MON).drop_columns(["close"]), r"missing \['close'\]"),
            (prices(MON).append_column("extra", pa.array([1] * 4)), r"unexpected \['extra'\]"),
            (
                prices(MON).set_column(3, "volume", pa.array([1.0, 2.0, 2.5, 3.0])),
                r"market.prices.volume.*2.5",
            ),
            (
                prices(MON).set_column(2, "close", pa.array(["1", "2", "x", "y"])),
                r"market.prices.close.*'[xy]'",
            ),
            (
                prices(MON).set_column(1, "ts_code", pa.array(["a", None, "b", None])),
                "ts_code: 2 values.*row 1",
            ),
            (pa.concat_tables([prices(MON), prices(MON)]), r"key .* not unique.*2026-11-16.*000001.SZ"),
            (prices(MON, TUE), "rows of 2026-11-17"),
        ],
        ids=["missing", "unexpected", "truncation", "no number", "null", "repeated key", "other partition"],
    )
    def test_a_wrong_frame_is_refused_by_name(self, lakes: Lakes, frame: pa.Table, said: str) -> None:
        lake = lakes()
        with pytest.raises(InvalidInput, match=said):
            lake.replace("market.prices", MON, frame)
        assert lake.snapshot_id("market.prices") is None

    def test_columns_may_come_in_any_order_and_in_castable_types(self, lakes: Lakes) -> None:
        frame = pa.table(
            {
                "volume": pa.array([1, 2], pa.int32()),
                "ts_code": pa.array(["b", "a"]).dictionary_encode(),
                "close": pa.array([1, 2], pa.int64()),
                "trade_date": pa.array([MON, MON]),
            }
        )
        lake = lakes()
        lake.replace("market.prices", MON, frame)
        stored = lake.scan("market.prices").read_all()
        assert stored.schema.types == DAILY.schema.types
        assert stored.column("ts_code").to_pylist() == ["a", "b"], "sorted by the table's order"

    # --- reading

    def test_scan_filters_projects_and_streams(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace_range("market.prices", [MON, TUE], prices(MON, TUE))
        reader = lake.scan("market.prices", where=f"trade_date = DATE '{TUE}'", columns=["close", "ts_code"])
        assert reader.schema.names == ["close", "ts_code"]
        assert reader.read_all().num_rows == len(CODES)
        with pytest.raises(InvalidInput, match="no columns"):
            lake.scan("market.prices", columns=["open"])

    def test_sql_joins_tables_and_given_relations(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace("market.prices", MON, prices(MON))
        lake.replace("market.stocks", ALL, stocks(**{CODES[0]: "Ping An"}))
        freshness = pa.table({"ts_code": [CODES[0]], "age": [3]})
        rows = lake.sql(
            "SELECT s.name, p.close, f.age FROM market.prices p JOIN market.stocks s USING (ts_code) "
            'JOIN "market"."freshness" f USING (ts_code) WHERE p.close > $least',
            params={"least": 1},
            extra={"market.freshness": freshness},
        ).to_pylist()
        assert rows == [{"name": "Ping An", "close": 10.16, "age": 3}]

    def test_tables_not_yet_there_are_empty_with_their_columns(self, lakes: Lakes) -> None:
        lake = lakes()
        empty = lake.sql("SELECT * FROM market.prices p LEFT JOIN refs.papers r ON p.volume = r.id")
        assert empty.num_rows == 0
        assert empty.schema.types == [*DAILY.schema.types, *BY_KIND.schema.types]
        assert lake.scan("carbon.factors").read_all().num_rows == 0

    def test_the_catalogue_can_be_asked(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace("market.prices", MON, prices(MON))
        tables = lake.sql("SHOW ALL TABLES").to_pylist()
        assert {f"{t['schema']}.{t['name']}" for t in tables} == {t.name for t in TABLES}
        named = lake.sql("SELECT column_name FROM information_schema.columns WHERE table_name = 'prices'")
        assert named.column(0).to_pylist() == DAILY.schema.names
        assert lake.sql("DESCRIBE market.prices").num_rows == 4
        assert lake.sql("SUMMARIZE market.prices").num_rows == 4

    # --- as of

    def test_reading_as_of_a_moment_or_a_snapshot(self, lakes: Lakes) -> None:
        lake = lakes()
        empty = datetime.now(UTC) - timedelta(seconds=1)
        first = lake.replace("market.prices", MON, prices(MON))
        moment = datetime.now(UTC)
        while datetime.now(UTC) - moment < timedelta(milliseconds=2):
            pass  # Iceberg counts in milliseconds
        lake.replace("market.prices", MON, prices(MON, scale=2))
        other = lakes()
        assert close_of(other, MON) == 20.32
        assert close_of(other, MON, as_of=moment) == 10.16
        assert close_of(other, MON, as_of={"market.prices": first.snapshot_id}) == 10.16
        assert close_of(other, MON, as_of={"market.stocks": 1}) == 20.32, (
            "tables not mentioned are read as they are"
        )
        assert (
            other.scan("market.prices", as_of=first.snapshot_id).read_all().column("close")[0].as_py()
            == 10.16
        )
        assert close_of(other, MON, as_of=empty) is None

    def test_a_moment_or_snapshot_that_cannot_be_is_an_error(self, lakes: Lakes) -> None:
        lake = lakes()
        lake.replace("market.prices", MON, prices(MON))
        with pytest.raises(SnapshotGone, match=r"market.prices: snapshot 7 is no longer kept"):
            lake.scan("market.prices", as_of=7)
        with pytest.raises(InvalidInput, match="time zone"):
            lake.sql("SELECT * FROM market.prices", as_of=datetime(2026, 1, 1))  # noqa: DTZ001
        with pytest.raises(InvalidInput, match=r"no table 'market.nothing'"):
            lake.sql("SELECT 1", as_of={"market.nothing": 1})

    # --- evolution

    def test_a_column_added_to_the_definition_is_null_in_old_rows_and_kept_in_new_ones(
        self, lakes: Lakes
    ) -> None:
        old = lakes()
        before = old.replace_range("market.prices", [MON, TUE], prices(MON, TUE)).versions
        wider = with_columns(DAILY, *DAILY.columns, Column("turnover", pa.float64(), "turnover"))
        lake = lakes(tables=(wider, WHOLE))
        assert lake.sql("SELECT count(*) AS n, count(turnover) AS t FROM market.prices").to_pylist() == [
            {"n": 8, "t": 0}
        ]
        frame = prices(WED).append_column("turnover", pa.array([1.5, 2.5, math.inf, None]))
        lake.replace("market.prices", WED, frame)
        lake.replace("market.prices", TUE, prices(TUE).append_column("turnover", pa.array([9.0] * 4)))
        again = lakes(tables=(wider, WHOLE))
        rows = again.sql(
            "SELECT trade_date AS d, sum(turnover) AS t FROM market.prices GROUP BY 1 ORDER BY 1"
        ).to_pylist()
        assert [r["t"] for r in rows] == [None, 36.0, math.inf]
        assert again.version("market.prices", MON) == before[MON], "a column that is NULL changes no version"

    def test_old_snapshots_are_read_with_the_new_columns(self, lakes: Lakes) -> None:
        first = lakes().replace("market.prices", MON, prices(MON))
        wider = with_columns(DAILY, *DAILY.columns, Column("turnover", pa.float64(), "turnover"))
        lake = lakes(tables=(wider,))
        lake.replace(
            "market.prices", MON, prices(MON, scale=2).append_column("turnover", pa.array([1.0] * 4))
        )
        rows = lake.sql(
            "SELECT close, turnover FROM market.prices", as_of={"market.prices": first.snapshot_id}
        )
        assert rows.to_pylist()[0] == {"close": 10.16, "turnover": None}

    def test_a_column_renamed_by_another_engine_keeps_its_values(self, lakes: Lakes) -> None:
        from resources.lake.location import CATALOG_NAME

        lake = lakes()
        lake.replace("market.stocks", ALL, stocks(a="Ping An"))
        stored = lake._writer.catalog.load("market.stocks")
        assert stored.catalog.name == CATALOG_NAME
        with stored.update_schema() as update:
            update.rename_column("name", "title")
        renamed = with_columns(WHOLE, WHOLE.columns[0], Column("title", pa.string(), "title"))
        assert lakes(tables=(renamed,)).sql("SELECT * FROM market.stocks").to_pylist() == [
            {"ts_code": "a", "title": "Ping An"}
        ]

    @pytest.mark.parametrize(
        ("columns", "said"),
        [
            (DAILY.columns[:3], r"columns \['volume'\] that the definition lacks"),
            (
                (*DAILY.columns[:3], Column("volume", pa.string(), "v")),
                "market.prices.volume: stored as long",
            ),
            ((*DAILY.columns, Column("x", pa.int64(), "x", nullable=False)), r"\['x'\] must be nullable"),
        ],
        ids=["removed", "retyped", "required"],
    )
    def test_a_definition_that_contradicts_the_stored_table_is_an_error(
        self, lakes: Lakes, columns: tuple[Column, ...], said: str
    ) -> None:
        lakes().replace("market.prices", MON, prices(MON))
        with pytest.raises(InvalidInput, match=said):
            lakes(tables=(with_columns(DAILY, *columns),)).sql("SELECT * FROM market.prices")

    # --- maintenance

    def test_compaction_makes_one_file_of_a_closed_month_and_keeps_every_version(self, lakes: Lakes) -> None:
        lake = lakes()
        days = [*days_from("2026-10-26", 10), MON]
        for day in days:
            lake.replace("market.prices", day, prices(day))
        before = lake.versions("market.prices", days)
        report = lake.maintain("market.prices", now=datetime.now(UTC), compact_before="2026-11")
        assert report.compacted_files == 6
        assert lake.versions("market.prices", days) == before
        assert lakes(fresh_home=True).versions("market.prices", days) == before
        again = lake.maintain("market.prices", now=datetime.now(UTC), compact_before="2026-11")
        assert again.compacted_files == 0

    def test_expiry_keeps_the_current_the_young_and_the_exempt(self, lakes: Lakes) -> None:
        lake = lakes()
        made = [lake.replace("market.prices", MON, prices(MON, scale=n)).snapshot_id for n in range(1, 5)]
        between = datetime.now(UTC)
        made.append(lake.replace("market.prices", MON, prices(MON, scale=5)).snapshot_id)
        later = datetime.now(UTC) + timedelta(days=8)
        report = lake.maintain(
            "market.prices", now=later, compact_before=None, keep_snapshots=[made[1], 12345]
        )
        assert report.expired_snapshots == 3
        other = lakes(fresh_home=True)
        assert close_of(other, MON, as_of={"market.prices": made[1]}) == pytest.approx(20.32)
        assert close_of(other, MON) == pytest.approx(50.8)
        with pytest.raises(SnapshotGone, match="no longer kept"):
            other.scan("market.prices", as_of=made[0])
        with pytest.raises(SnapshotGone, match="no longer kept"):
            other.scan("market.prices", as_of=datetime.now(UTC) - timedelta(hours=1))
        with pytest.raises(
            SnapshotGone, match="no longer kept"
        ):  # an expired one was current then, not the exempt one
            other.scan("market.prices", as_of=between)

    def test_maintaining_a_table_that_does_not_exist_is_nothing(self, lakes: Lakes) -> None:
        report = lakes().maintain("market.prices", now=datetime.now(UTC), compact_before="2026-11")
        assert (report.deleted_files, report.expired_snapshots) == (0, 0)

    def test_a_long_history_stays_one_short_list_of_manifests(self, lakes: Lakes) -> None:
        lake = lakes()
        for n in range(50):
            lake.replace("market.stocks", ALL, stocks(a=str(n)))
        stored = lake._writer.catalog.load("market.stocks")
        assert len(stored.current_snapshot().manifests(stored.io)) <= 21

    # --- two dimensions

    def test_a_partition_of_two_dimensions_is_replaced_and_its_neighbours_are_not(self, lakes: Lakes) -> None:
        lake = lakes()
        name = BY_KIND_AND_YEAR.name
        all_of_it = [entries(kind, year, 1.0, 2.0) for kind in ("plane", "train") for year in (2024, 2025)]
        lake.replace_range(
            name, ["plane|2024", "plane|2025", "train|2024", "train|2025"], pa.concat_tables(all_of_it)
        )
        before = lakes().versions(name, lake.partitions(name))
        commit = lakes().replace(name, "plane|2025", entries("plane", 2025, 3.0))
        after = lakes().versions(name, lakes().partitions(name))
        assert after == before | {"plane|2025": commit.versions["plane|2025"]}
        assert lakes().partitions(name) == ["plane|2024", "plane|2025", "train|2024", "train|2025"]
        [row] = lakes().sql(f"SELECT * FROM {name} WHERE kind = 'plane' AND year = 2025").to_pylist()
        assert row["amount"] == 3.0

    def test_rows_of_another_partition_of_two_dimensions_are_refused(self, lakes: Lakes) -> None:
        frame = pa.concat_tables([entries("plane", 2025, 1.0), entries("plane", 2024, 1.0)])
        with pytest.raises(InvalidInput, match=r"kind, year has rows of plane\|2024"):
            lakes().replace(BY_KIND_AND_YEAR.name, "plane|2025", frame)

    @pytest.mark.parametrize("key", ["plane", "plane|", "|2025", "plane|20x5", "plane|02025", "2025|plane"])
    def test_what_is_no_key_of_two_dimensions_is_refused(self, lakes: Lakes, key: str) -> None:
        with pytest.raises(InvalidInput, match="is no category_year partition key"):
            lakes().versions(BY_KIND_AND_YEAR.name, [key])

    def test_a_merge_touches_only_the_partitions_of_its_rows(self, lakes: Lakes) -> None:
        name = BY_KIND_AND_YEAR.name
        lakes().replace(name, "plane|2025", entries("plane", 2025, 1.0, 2.0))
        lakes().replace(name, "train|2025", entries("train", 2025, 5.0))
        before = lakes().version(name, "train|2025")
        lakes().merge(name, entries("plane", 2025, 9.0))
        rows = lakes().sql(f"SELECT amount FROM {name} ORDER BY kind, id").to_pylist()
        assert [row["amount"] for row in rows] == [9.0, 2.0, 5.0]
        assert lakes().version(name, "train|2025") == before

    def test_compaction_keeps_partitions_of_two_dimensions(self, lakes: Lakes) -> None:
        name = BY_KIND_AND_YEAR.name
        for n in range(12):
            lakes().merge(name, entries("plane", 2025, *range(n + 1)))
        before = lakes().version(name, "plane|2025")
        lakes().maintain(name, now=datetime.now(UTC) + timedelta(days=30), compact_before=None)
        assert lakes().version(name, "plane|2025") == before
        assert lakes().partitions(name) == ["plane|2025"]
