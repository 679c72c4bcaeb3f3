"""How a run tells Dagster what it made: one materialization per partition, with what people want to see."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from assets.policies.charts import bar_chart
from assets.policies.definition import asset_key
from assets.policies.events import written_together
from services.carbon.figures import MEASURES, changes, sentence
from services.carbon.making import Made

_ROWS = 50


class Recorder:
    """Takes what was made and tells it at once, so that a killed run shows exactly what it committed."""

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self.context = context

    def __call__(self, made: Sequence[Made]) -> None:
        with written_together(self.context.instance):
            for one in made:
                self.context.log_event(
                    dg.AssetMaterialization(
                        asset_key(one.table), partition=one.partition, metadata=_metadata(one)
                    )
                )
                how = "" if one.changed else ", as it was"
                rows = one.version.rows
                self.context.log.info("%s %s: %d rows%s", one.table.name, one.partition, rows, how)


def _metadata(made: Made) -> dict[str, Any]:
    told: dict[str, Any] = {
        "dagster/partition_row_count": dg.MetadataValue.int(made.version.rows),
        "content": dg.MetadataValue.text(str(made.version)),
        "changed": dg.MetadataValue.bool(made.changed),
        "seconds": dg.MetadataValue.float(round(made.seconds, 3)),
        **_what_changed(made),
    }
    if made.snapshot_id is not None:
        told["snapshot"] = dg.MetadataValue.text(str(made.snapshot_id))
    for name, value in made.metadata.items():
        told[name] = _shown(value)
        if name in _PLOTS and value:
            labels, number = _PLOTS[name]
            points = [
                (" ".join(str(row[label]) for label in labels), float(row[number] or 0)) for row in value
            ]
            told[f"{name}_plot"] = dg.MetadataValue.md(bar_chart(points))
    return told


_PLOTS = {
    "factors_used": (("factor_id", "version"), "tonnes"),
    "factors_changed": (("data_entry_type",), "touched"),
    "busiest_units": (("unit_id",), "entries"),
}
"""Of a table of metadata, the columns of its plot: labels and number."""


def _what_changed(made: Made) -> dict[str, dg.MetadataValue]:
    """What it comes to beside what it was before, and a picture of it."""
    unit = MEASURES[made.table.name].unit
    told: dict[str, dg.MetadataValue] = {
        "sum": dg.MetadataValue.text(sentence(unit, made.before, made.figures)),
        "what_changed": dg.MetadataValue.md(_table(changes(made.before, made.figures))),
    }
    if made.figures:
        largest = sorted(made.figures.items(), key=lambda part: (-part[1], part[0]))
        told["what_changed_plot"] = dg.MetadataValue.md(bar_chart(largest, made.before, unit))
    return told


def _shown(value: Any) -> dg.MetadataValue:
    if isinstance(value, list):
        return dg.MetadataValue.md(_table(value))
    if isinstance(value, float):
        return dg.MetadataValue.float(value)
    return dg.MetadataValue.int(value) if isinstance(value, int) else dg.MetadataValue.text(str(value))


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "none"
    names = list(rows[0])
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(_cell(row[n]) for n in names)} |" for row in rows[:_ROWS]]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    text = f"{value:,.3f}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
