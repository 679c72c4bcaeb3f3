"""Asset checks of the references: nothing is lost between a source and its documents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import dagster as dg

from assets.policies.definition import asset_key
from domain.shared.table import Table
from services.partitions import PartitionReport


@dataclass(frozen=True)
class SourceCheck:
    """Of each source: how many references lack something, as the reports of a run say. None may."""

    table: Table
    name: str
    description: str
    lacking: str
    """What a report calls the number."""

    @property
    def specs(self) -> list[dg.AssetCheckSpec]:
        return [dg.AssetCheckSpec(self.name, asset=asset_key(self.table), description=self.description)]

    def of(self, report: PartitionReport) -> dg.AssetCheckEvaluation | None:
        lacking = report.metadata.get(self.lacking)
        if lacking is None:
            return None
        return dg.AssetCheckEvaluation(
            asset_key=asset_key(self.table),
            check_name=self.name,
            passed=not lacking,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={self.lacking: lacking, "rows": report.version.rows},
            partition=report.partition,
        )

    def totals(self, reports: Sequence[PartitionReport]) -> Iterator[dg.AssetCheckResult]:
        """Of the last report of each source."""
        last = {one.partition: one.metadata[self.lacking] for one in reports if self.lacking in one.metadata}
        if not last:
            return
        yield dg.AssetCheckResult(
            asset_key=asset_key(self.table),
            check_name=self.name,
            passed=not any(last.values()),
            severity=dg.AssetCheckSeverity.WARN,
            metadata={self.lacking: sum(last.values()), "sources": ", ".join(sorted(last))},
        )
