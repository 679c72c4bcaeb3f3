"""What a partition adds up to, compared with what it added up to before, as metadata."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from assets.policies.charts import bar_chart
from services.partitions import Figures

ROWS_SHOWN = 50


def figure_metadata(figures: Figures, before: Mapping[str, float] | None) -> dict[str, dg.MetadataValue]:
    """The sum, each part that changed, and a plot. `before` is None if nothing was recorded."""
    shown: dict[str, dg.MetadataValue] = {
        "sum": dg.MetadataValue.text(sum_of(figures, before)),
        "what_changed": dg.MetadataValue.md(markdown_table(changes(before, figures.parts))),
    }
    if figures.parts:
        largest = sorted(figures.parts.items(), key=lambda part: (-part[1], part[0]))
        shown["what_changed_plot"] = dg.MetadataValue.md(bar_chart(largest, before, figures.unit))
    return shown


def changes(before: Mapping[str, float] | None, after: Mapping[str, float]) -> list[dict[str, Any]]:
    """Part by part, the largest change first. Where nothing is known of before, nothing is said of it."""
    if before is None:
        largest = sorted(after.items(), key=lambda part: (-abs(part[1]), part[0]))
        return [{"part": part, "before": "", "after": number, "change": ""} for part, number in largest]
    pairs = {part: (before.get(part, 0), after.get(part, 0)) for part in before.keys() | after.keys()}
    rows = [{"part": p, "before": old, "after": new, "change": new - old} for p, (old, new) in pairs.items()]
    return sorted(rows, key=lambda row: (-abs(row["change"]), -abs(row["after"]), row["part"]))


def sum_of(figures: Figures, before: Mapping[str, float] | None) -> str:
    """The sum in words: "9,364.639 → 9,811.931 t CO2e (+4.8 %)"."""
    new = sum(figures.parts.values())
    if before is None:
        return f"{_number(new)} {figures.unit}; nothing is known from before"
    old = sum(before.values())
    if before == figures.parts:
        return f"{_number(new)} {figures.unit}, as before"
    share = f" ({(new / old - 1) * 100:+.1f} %)" if old else ""
    return f"{_number(old)} → {_number(new)} {figures.unit}{share}"


def markdown_table(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return "none"
    names = list(rows[0])
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    lines += [f"| {' | '.join(_field(row[n]) for n in names)} |" for row in rows[:ROWS_SHOWN]]
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.3f}" if isinstance(value, float) else f"{value:,}"


def _field(value: Any) -> str:
    text = f"{value:,.3f}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")
