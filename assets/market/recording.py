"""How a run tells Dagster what it committed: events, metadata, checks and a plot. No rules here."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import dagster as dg

from assets.policies.charts import column_chart
from assets.policies.definition import asset_key
from assets.policies.events import written_together
from domain.market.catalogue import Endpoint
from domain.shared.table import Table
from services.market.passes import DayReport

WHOLE = "whole_day"
UNIQUE = "unique_key"
FRESH = "fresh"


def check_specs(endpoint: Endpoint) -> list[dg.AssetCheckSpec]:
    key = asset_key(endpoint.table)
    return [
        dg.AssetCheckSpec(
            WHOLE,
            asset=key,
            description="Every stock that should have a row has one: 99 %, or the source says so.",
        ),
        dg.AssetCheckSpec(
            FRESH,
            asset=key,
            description="Its source answers. A sensor turns this red when it no longer does.",
        ),
        dg.AssetCheckSpec(UNIQUE, asset=key, description=f"{', '.join(endpoint.table.key)} is unique."),
    ]


class Recorder:
    """Takes the reports of one run and tells them as they come. `checked` tables tell checks."""

    def __init__(self, context: dg.AssetExecutionContext, table: Table, *, checked: bool = False) -> None:
        self.context = context
        self.key = asset_key(table)
        self.checked = checked
        self.reports: list[DayReport] = []

    def __call__(self, reports: Sequence[DayReport]) -> None:
        with written_together(self.context.instance):
            for report in reports:
                self._tell(report)

    def _tell(self, report: DayReport) -> None:
        if report.outcome == "refused":
            self._refused(report)
            return
        self.reports.append(report)
        metadata = day_metadata(report)
        if not (report.announced or self._is_shown(report)):
            # Told at once, so that a killed run shows exactly what it committed: nobody does it later.
            self.context.log_event(
                dg.AssetMaterialization(self.key, partition=str(report.day), metadata=metadata)
            )
        self.context.add_asset_metadata(metadata, asset_key=self.key, partition_key=str(report.day))
        if self.checked and report.outcome == "committed" and not report.announced:
            self._check(report)

    def _is_shown(self, report: DayReport) -> bool:
        """Of days that are kept, a killed run need show only those that this instance never saw."""
        return report.outcome == "kept" and str(report.day) in self._shown

    @cached_property
    def _shown(self) -> set[str]:
        return self.context.instance.get_materialized_partitions(self.key)

    def _refused(self, report: DayReport) -> None:
        """Not data, so no materialization; but the check of that day must not stay green."""
        self.context.log_event(
            dg.AssetCheckEvaluation(
                asset_key=self.key,
                check_name=WHOLE,
                passed=False,
                severity=dg.AssetCheckSeverity.ERROR,
                metadata={"refused": report.why},
                partition=str(report.day),
            )
        )

    def _check(self, report: DayReport) -> None:
        """Per day only what may differ from day to day: the other checks are told once for the run."""
        self.context.log_event(
            dg.AssetCheckEvaluation(
                asset_key=self.key,
                check_name=WHOLE,
                passed=_whole(report),
                severity=dg.AssetCheckSeverity.WARN,
                metadata={"judgement": str(report.judgement)},
                partition=str(report.day),
            )
        )

    def result(self, recent: Sequence[tuple[str, int]] = ()) -> dg.MaterializeResult:
        """The end of the run. `recent` are the rows of the table's newest days: its plot."""
        committed = [r for r in self.reports if r.outcome == "committed"]
        if committed and recent:
            newest = max(r.day for r in committed)
            self.context.add_asset_metadata(
                {"rows_of_recent_days": dg.MetadataValue.md(column_chart(recent))},
                asset_key=self.key,
                partition_key=str(newest),
            )
        return dg.MaterializeResult(
            asset_key=self.key, check_results=list(self._aggregates(committed)) if self.checked else []
        )

    def _aggregates(self, committed: Sequence[DayReport]) -> Iterator[dg.AssetCheckResult]:
        days = len(committed)
        thin = [str(r.day) for r in committed if not _whole(r)]
        yield dg.AssetCheckResult(
            check_name=WHOLE,
            passed=not thin,
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"days": days, "thin_days": ", ".join(thin)},
        )
        yield dg.AssetCheckResult(check_name=FRESH, passed=True, metadata={"days": days})
        # The lake refuses a frame with a doubled key, so a commit is the proof.
        yield dg.AssetCheckResult(check_name=UNIQUE, passed=True, metadata={"days": days})


def _whole(report: DayReport) -> bool:
    return report.judgement is None or report.explained or report.judgement.status in ("complete", "asked")


def day_metadata(report: DayReport) -> dict[str, dg.MetadataValue]:
    if report.outcome == "closed":
        return {"closed": dg.MetadataValue.bool(True)}
    told: dict[str, dg.MetadataValue] = {
        "dagster/partition_row_count": dg.MetadataValue.int(report.version.rows),
        "content": dg.MetadataValue.text(str(report.version)),
    }
    if report.outcome == "kept":
        told["kept"] = dg.MetadataValue.bool(True)
    else:
        told["seconds"] = dg.MetadataValue.float(round(report.seconds, 3))
        told["retries"] = dg.MetadataValue.int(report.retries)
    if report.snapshot_id is not None:
        told["snapshot"] = dg.MetadataValue.text(str(report.snapshot_id))
    if report.judgement is not None:
        told["status"] = dg.MetadataValue.text(report.judgement.status)
        if report.judgement.expected is not None:
            told["expected"] = dg.MetadataValue.int(report.judgement.expected)
        if report.judgement.ratio is not None:
            told["ratio"] = dg.MetadataValue.float(round(report.judgement.ratio, 4))
    return told
