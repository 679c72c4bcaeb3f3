"""The metadata of the event of one partition."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from assets.policies.charts import bar_chart, column_chart
from assets.policies.figures import figure_metadata, markdown_table
from domain.shared.partition_words import reason_in_words
from domain.shared.state import FIGURES
from services.partitions import PartitionReport, Series


def report_metadata(report: PartitionReport, plot: str = "") -> dict[str, Any]:
    """What people look for first comes first, with a plot of the partitions before."""
    of_all = report.table.partition_kind == "none"
    kept = report.outcome == "kept"
    shown: dict[str, Any] = {
        "reason": "kept: complete already" if kept else reason_in_words(report.reason),
        "dagster/row_count" if of_all else "dagster/partition_row_count": report.version.rows,
        **judged(report),
    }
    if plot:
        shown["rows_of_recent_days"] = dg.MetadataValue.md(plot)
    if report.figures is not None:
        shown |= figure_metadata(report.figures, report.before.detail.get(FIGURES))
    for name, value in report.metadata.items():
        shown[name] = _value(value)
        if name in _PLOTS and value:
            shown[f"{name}_plot"] = dg.MetadataValue.md(bar_chart(_points(value, *_PLOTS[name])))
    shown["version"] = str(report.version)
    if not kept:
        shown |= {
            "changed": report.version != report.before.version,
            "seconds": round(report.seconds, 3),
            "attempts": report.attempts,
            "inputs": dg.MetadataValue.json(dict(report.inputs)),
        }
    if report.snapshot_id is not None:
        shown["snapshot"] = str(report.snapshot_id)
    return shown


def _value(value: Any) -> Any:
    if isinstance(value, Series):
        return dg.MetadataValue.md(column_chart(value.values) or "none")
    return dg.MetadataValue.md(markdown_table(value)) if isinstance(value, list) else value


def judged(report: PartitionReport) -> dict[str, Any]:
    """How a partition was judged: rows expected, the share of them that is there, the status in a word."""
    found = {shown: report.detail.get(name) for name, shown in _JUDGED.items()}
    return {k: round(v, 4) if isinstance(v, float) else v for k, v in found.items() if v is not None}


_JUDGED = {"status": "status", "expected": "expected", "ratio": "completeness"}
_PLOTS = {
    "factors_used": (("factor_id", "version"), "tonnes"),
    "factors_changed": (("data_entry_type",), "touched"),
    "busiest_units": (("unit_id",), "entries"),
}
"""Of a table of metadata, the columns of its plot: labels and number."""


def _points(rows: Sequence[Mapping[str, Any]], labels: Sequence[str], number: str) -> list[tuple[str, float]]:
    return [(" ".join(str(row[label]) for label in labels), float(row[number] or 0)) for row in rows]
