"""What Dagster shows of a partition that a run writes: its event right after the commit, checks, a plot."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, Protocol

import dagster as dg

from assets.policies.charts import bar_chart, column_chart
from assets.policies.definition import asset_key
from assets.policies.figures import figure_metadata, markdown_table
from domain.shared.state import FIGURES
from domain.shared.table import Table
from services.partitions import PartitionReport

WITHOUT_EVENT = {"__source_asset_observation__": True}
"""Metadata of an output for which Dagster logs no event by itself, as those of its partitions are there.

An output that is missing would have all steps skipped that come after it in the run. The key is Dagster's own
and private (`SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION`): a test counts the events of a run.
"""


class Checks(Protocol):
    """What the asset checks of a table say."""

    @property
    def specs(self) -> Sequence[dg.AssetCheckSpec]: ...

    def of(self, report: PartitionReport) -> dg.AssetCheckEvaluation | None: ...

    def totals(self, reports: Sequence[PartitionReport]) -> Iterable[dg.AssetCheckResult]: ...


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
        recent: Mapping[str, int] | None = None,
    ) -> None:
        """`recent`: the rows of a table's newest partitions, for its plot."""
        self.context = context
        self.tables = tables
        self.checks = checks
        self.recent = dict(recent or {})
        self.reports: list[PartitionReport] = []

    def __call__(self, reports: Sequence[PartitionReport]) -> None:
        self.recent |= {one.partition: one.version.rows for one in reports if one.outcome == "committed"}
        newest = max((one.partition for one in reports if one.outcome == "committed"), default="")
        with written_together(self.context.instance):
            for one in reports:
                self._log(one, plotted=one.partition == newest)

    def results(self) -> Iterator[dg.AssetCheckResult | dg.Output]:
        """The end of the run's step: the checks of all its partitions together."""
        if self.checks is not None:
            yield from self.checks.totals(self.reports)
        for table in self.tables:
            name = asset_key(table).to_python_identifier()
            yield dg.Output(None, output_name=name, metadata=WITHOUT_EVENT)

    def _log(self, report: PartitionReport, *, plotted: bool) -> None:
        if report.outcome != "refused":
            self.reports.append(report)
        if self._is_news(report):
            metadata = self._metadata(report, plotted=plotted)
            partition = None if report.table.partition_kind == "none" else report.partition
            key = asset_key(report.table)
            self.context.log_event(dg.AssetMaterialization(key, partition=partition, metadata=metadata))
        if self.checks is not None and (evaluation := self.checks.of(report)) is not None:
            self.context.log_event(evaluation)

    def _is_news(self, report: PartitionReport) -> bool:
        """A partition that is kept is news where Dagster never saw it, as after the loss of its storage."""
        shown = report.outcome == "kept" and report.partition in self._shown
        return report.outcome in ("committed", "closed", "kept") and not shown

    @cached_property
    def _shown(self) -> set[str]:
        return self.context.instance.get_materialized_partitions(asset_key(self.tables[0]))

    def _metadata(self, report: PartitionReport, *, plotted: bool) -> dict[str, Any]:
        if report.outcome == "closed":
            return {"closed": True}
        shown = report_metadata(report)
        if plotted and len(self.recent) > 1:
            shown["rows_of_recent_days"] = dg.MetadataValue.md(column_chart(sorted(self.recent.items())))
        return shown


def report_metadata(report: PartitionReport) -> dict[str, Any]:
    of_all = report.table.partition_kind == "none"
    shown: dict[str, Any] = {
        "dagster/row_count" if of_all else "dagster/partition_row_count": report.version.rows,
        "version": str(report.version),
    }
    if report.outcome == "kept":
        shown["kept"] = True
    else:
        shown |= {
            "changed": report.version != report.before.version,
            "seconds": round(report.seconds, 3),
            "attempts": report.attempts,
            "reason": report.reason,
            "inputs": dg.MetadataValue.json(dict(report.inputs)),
        }
    if report.snapshot_id is not None:
        shown["snapshot"] = str(report.snapshot_id)
    for name in ("status", "expected", "ratio"):
        if (value := report.detail.get(name)) is not None:
            shown[name] = round(value, 4) if isinstance(value, float) else value
    if report.figures is not None:
        shown |= figure_metadata(report.figures, report.before.detail.get(FIGURES))
    for name, value in report.metadata.items():
        shown[name] = dg.MetadataValue.md(markdown_table(value)) if isinstance(value, list) else value
        if name in _PLOTS and value:
            shown[f"{name}_plot"] = dg.MetadataValue.md(bar_chart(_points(value, *_PLOTS[name])))
    return shown


_PLOTS = {
    "factors_used": (("factor_id", "version"), "tonnes"),
    "factors_changed": (("data_entry_type",), "touched"),
    "busiest_units": (("unit_id",), "entries"),
}
"""Of a table of metadata, the columns of its plot: labels and number."""


def _points(rows: Sequence[Mapping[str, Any]], labels: Sequence[str], number: str) -> list[tuple[str, float]]:
    return [(" ".join(str(row[label]) for label in labels), float(row[number] or 0)) for row in rows]
