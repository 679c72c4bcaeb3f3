"""What Dagster shows of a partition that a run writes: its event after the commit, checks, a line of log."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Protocol

import dagster as dg

from assets.policies.charts import column_chart
from assets.policies.dagster_private import PartitionKeyFilter
from assets.policies.data_versions import Provenance
from assets.policies.definition import asset_key
from assets.policies.event_metadata import report_metadata
from domain.shared.partition_words import partitions_in_words, reason_in_words
from domain.shared.table import Table
from services.partitions import PartitionReport

WITHOUT_EVENT = {"__source_asset_observation__": True}
"""Metadata of an output for which Dagster logs no event by itself, as those of its partitions are there.

An output that is missing would have all steps skipped that come after it in the run. The key is Dagster's own
and private (`SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION`): a test counts the events of a run.
"""

LOOKED_BACK = 50
"""Runs among which the last evaluation of a check is looked up: one that was killed only planned it."""
_SAID = {
    "committed": "{rows:,} rows committed in {seconds:.1f} s ({reasons})",
    "kept": "complete already, {rows:,} rows are kept",
    "closed": "nothing is due: a closed day",
}
"""What became of partitions, in words."""


class Checks(Protocol):
    """What the asset checks of a table say."""

    @property
    def specs(self) -> Sequence[dg.AssetCheckSpec]: ...

    def of(self, report: PartitionReport) -> dg.AssetCheckEvaluation | None: ...

    def totals(self, reports: Sequence[PartitionReport]) -> Iterable[dg.AssetCheckResult]:
        """What the checks say of all these reports together. A check that cannot say is left out."""


def written_together(instance: dg.DagsterInstance) -> AbstractContextManager[None]:
    """Events logged inside are in the event log at its end, also if the body raises."""
    together: AbstractContextManager[None] = getattr(
        instance.event_log_storage, "one_transaction", nullcontext
    )()
    return together


class Recorder:
    """Logs one event per partition at once, so that a killed run shows exactly what it committed."""

    def __init__(
        self,
        context: dg.AssetExecutionContext,
        tables: Sequence[Table],
        checks: Checks | None = None,
    ) -> None:
        self.context = context
        self.tables = tables
        self.checks = checks
        self.recent: dict[str, int] = {}
        """The rows of the newest partitions, for the plot."""
        self.reports: list[PartitionReport] = []

    def __call__(self, reports: Sequence[PartitionReport]) -> None:
        self.recent |= {one.partition: one.version.rows for one in reports if one.outcome == "committed"}
        newest = max((one.partition for one in reports if one.outcome in ("committed", "kept")), default="")
        with written_together(self.context.instance):
            for one in reports:
                self._log(one, plotted=one.partition == newest)
        for line in lines(reports):
            self.context.log.info(line)

    def results(self) -> Iterator[dg.AssetCheckResult | dg.Output]:
        """The end of the run's step: the checks of all its partitions together."""
        yield from self.check_results()
        for table in self.tables:
            name = asset_key(table).to_python_identifier()
            yield dg.Output(None, output_name=name, metadata=WITHOUT_EVENT)

    def check_results(self) -> Iterator[dg.AssetCheckResult]:
        """One result of each check, also at the end of a step that failed.

        Dagster shows a check that was planned and says nothing as failed: what cannot be judged by this run
        is said again as it was judged last.
        """
        if self.checks is None:
            return
        said = {one.check_name: one for one in self.checks.totals(self.reports)}
        for spec in self.checks.specs:
            yield said.get(spec.name) or self._said_last(spec)

    def _said_last(self, spec: dg.AssetCheckSpec) -> dg.AssetCheckResult:
        storage = self.context.instance.event_log_storage
        # One run may have an evaluation for each of hundreds of partitions, beside the one of all together.
        for record in storage.get_asset_check_execution_history(
            spec.key, limit=LOOKED_BACK, partition_filter=PartitionKeyFilter(key=None)
        ):
            event = record.event.dagster_event if record.event else None
            if event and event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
                last = event.asset_check_evaluation_data
                return dg.AssetCheckResult(
                    passed=last.passed,
                    asset_key=spec.asset_key,
                    check_name=spec.name,
                    metadata=last.metadata,
                    severity=last.severity,
                )
        return dg.AssetCheckResult(
            passed=False,
            severity=dg.AssetCheckSeverity.WARN,
            asset_key=spec.asset_key,
            check_name=spec.name,
            metadata={"note": "not judged yet: no run has written anything that this check judges"},
        )

    def _log(self, report: PartitionReport, *, plotted: bool) -> None:
        self.reports.append(report)
        if self._is_news(report):
            key = asset_key(report.table)
            event = dg.AssetMaterialization(
                key,
                partition=None if report.table.partition_kind == "none" else report.partition,
                metadata=self._metadata(report, plotted=plotted),
                tags=self._provenance.tags(key, report.version),
            )
            self.context.log_event(event)
        if self.checks is not None and (evaluation := self.checks.of(report)) is not None:
            self.context.log_event(evaluation)

    def _is_news(self, report: PartitionReport) -> bool:
        """A partition that is kept is news where Dagster never saw it, as after the loss of its storage."""
        shown = report.outcome == "kept" and report.partition in self._shown
        return report.outcome in ("committed", "closed", "kept") and not shown

    @cached_property
    def _shown(self) -> set[str]:
        return self.context.instance.get_materialized_partitions(asset_key(self.tables[0]))

    @cached_property
    def _provenance(self) -> Provenance:
        return Provenance(self.context.instance, self.context.assets_def.specs)

    def _metadata(self, report: PartitionReport, *, plotted: bool) -> dict[str, Any]:
        if report.outcome == "closed":
            return {"closed": True}
        before = sorted((p, r) for p, r in self.recent.items() if p <= report.partition) if plotted else []
        return report_metadata(report, column_chart(before))


def lines(reports: Sequence[PartitionReport]) -> Iterator[str]:
    """What happened to partitions, for the run's log: one line, and one for each that was refused."""
    for one in reports:
        if one.outcome == "refused":
            yield f"{one.partition} is refused: {one.reason}"
    for outcome, said in _SAID.items():
        if of := [one for one in reports if one.outcome == outcome]:
            which = (
                of[0].table.table
                if of[0].table.partition_kind == "none"
                else partitions_in_words([r.partition for r in of])
            )
            rows = sum(one.version.rows for one in of)
            reasons = ", ".join(sorted({reason_in_words(one.reason) for one in of}))
            seconds = sum(one.seconds for one in of)
            yield f"{which}: " + said.format(rows=rows, reasons=reasons, seconds=seconds)
