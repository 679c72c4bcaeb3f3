"""The asset checks of the fetched daily tables: whole days, unique keys, a source that answers."""

from collections.abc import Iterator, Sequence

import dagster as dg

from assets.policies.definition import asset_key
from assets.policies.event_metadata import judged
from domain.market.catalogue import Endpoint
from domain.market.completeness import EXPLAINED_AFTER
from services.partitions import PartitionReport

WHOLE = "whole_day"
UNIQUE = "unique_key"
FRESH = "fresh"


class DailyChecks:
    """What the checks of one table say: of each day at its commit, and of all days of a run together."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.key = asset_key(endpoint.table)
        self.unique = ", ".join(endpoint.table.key)

    @property
    def specs(self) -> list[dg.AssetCheckSpec]:
        whole = "Every stock that should have a row has one: 99 %, or the source says so."
        fresh = "Its source answers. A sensor turns this red when it no longer does."
        return [
            dg.AssetCheckSpec(WHOLE, asset=self.key, description=whole),
            dg.AssetCheckSpec(FRESH, asset=self.key, description=fresh),
            dg.AssetCheckSpec(UNIQUE, asset=self.key, description=f"{self.unique} is unique."),
        ]

    def of(self, report: PartitionReport) -> dg.AssetCheckEvaluation | None:
        """Per day only what may differ from day to day. A refused day must not stay green."""
        if report.outcome not in ("committed", "refused"):
            return None
        refused = report.outcome == "refused"
        found = {"refused": report.reason} if refused else {"rows": report.version.rows, **judged(report)}
        return dg.AssetCheckEvaluation(
            asset_key=self.key,
            check_name=WHOLE,
            passed=not refused and _is_whole(report),
            severity=dg.AssetCheckSeverity.ERROR if refused else dg.AssetCheckSeverity.WARN,
            metadata=found,
            partition=report.partition,
        )

    def totals(self, reports: Sequence[PartitionReport]) -> Iterator[dg.AssetCheckResult]:
        """Of a run that wrote nothing and refused nothing there is nothing to say."""
        refused = [one.partition for one in reports if one.outcome == "refused"]
        written = [one for one in reports if one.outcome in ("committed", "earlier")]
        if not written and not refused:
            return
        thin = [one.partition for one in written if not _is_whole(one)]
        yield dg.AssetCheckResult(
            asset_key=self.key,
            check_name=WHOLE,
            passed=not thin and not refused,
            severity=dg.AssetCheckSeverity.ERROR if refused else dg.AssetCheckSeverity.WARN,
            metadata={
                **_completeness(written),
                "days": len(written),
                "thin_days": ", ".join(thin) or "none",
                "refused_days": ", ".join(refused) or "none",
            },
        )
        if not written:
            return
        rows = sum(one.version.rows for one in written)
        answered = {"reason": "the source answered this run"}
        yield dg.AssetCheckResult(asset_key=self.key, check_name=FRESH, passed=True, metadata=answered)
        # The lake refuses rows with a duplicated key, so a commit is the proof.
        yield dg.AssetCheckResult(asset_key=self.key, check_name=UNIQUE, passed=True, metadata={"rows": rows})


def _completeness(written: Sequence[PartitionReport]) -> dict[str, float]:
    """The share of the expected rows that is there, over all days whose expected rows are known."""
    counted = [(one.version.rows, n) for one in written if (n := one.detail.get("expected"))]
    if not counted:
        return {}
    return {"completeness": round(sum(rows for rows, _ in counted) / sum(n for _, n in counted), 4)}


def _is_whole(report: PartitionReport) -> bool:
    status = report.detail.get("status", "complete")
    return status in ("complete", "asked") or (status == "partial" and report.seen_count >= EXPLAINED_AFTER)
