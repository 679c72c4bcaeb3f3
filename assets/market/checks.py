"""The asset checks of the fetched daily tables: whole days, unique keys, a source that answers."""

from collections.abc import Iterator, Sequence

import dagster as dg

from assets.policies.definition import asset_key
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
        judged = {
            name: report.detail[name] for name in ("status", "expected", "ratio") if name in report.detail
        }
        return dg.AssetCheckEvaluation(
            asset_key=self.key,
            check_name=WHOLE,
            passed=not refused and _is_whole(report),
            severity=dg.AssetCheckSeverity.ERROR if refused else dg.AssetCheckSeverity.WARN,
            metadata={"refused": report.reason} if refused else {"rows": report.version.rows, **judged},
            partition=report.partition,
        )

    def totals(self, reports: Sequence[PartitionReport]) -> Iterator[dg.AssetCheckResult]:
        written = [one for one in reports if one.outcome in ("committed", "earlier")]
        thin = [one.partition for one in written if not _is_whole(one)]
        days = len(written)
        yield dg.AssetCheckResult(
            asset_key=self.key,
            check_name=WHOLE,
            passed=not thin,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"days": days, "thin_days": ", ".join(thin)},
        )
        yield dg.AssetCheckResult(asset_key=self.key, check_name=FRESH, passed=True, metadata={"days": days})
        # The lake refuses rows with a duplicated key, so a commit is the proof.
        yield dg.AssetCheckResult(asset_key=self.key, check_name=UNIQUE, passed=True, metadata={"days": days})


def _is_whole(report: PartitionReport) -> bool:
    status = report.detail.get("status", "complete")
    return status in ("complete", "asked") or (status == "partial" and report.seen_count >= EXPLAINED_AFTER)
