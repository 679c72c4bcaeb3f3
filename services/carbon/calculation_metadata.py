"""What people want to see of a calculation: its sum, what is missing, and the factors it used."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

SHOWN = 50
"""Factors of a calculation: the largest."""
_FACTOR = ("factor_id", "factor_version", "emission_type")


def told(groups: pa.Table, factors: pa.Table) -> dict[str, Any]:
    """`groups`: what its results come to, by what decided them."""
    rows = groups.to_pylist()
    counted: Counter[str] = Counter()
    by_kind: Counter[str] = Counter()
    for row in rows:
        counted[row["status"]] += row["results"]
        by_kind[row["emission_type"]] += row["results"] if row["status"] != "overridden" else 0
    return {
        "tonnes": _tonnes(rows),
        # An entry has one result of each kind that is counted, or a single one if its mass was measured.
        "entries": counted["overridden"] + max(by_kind.values(), default=0),
        "unmatched": counted["unmatched"],
        "overridden": counted["overridden"],
        "factors_used": _used(rows, factors),
    }


def _used(rows: Sequence[Mapping[str, Any]], factors: pa.Table) -> list[dict[str, Any]]:
    """The factors behind most of it, the largest first."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["factor_id"] is not None:
            groups[tuple(row[name] for name in _FACTOR)].append(row)
    largest = sorted(groups.items(), key=lambda group: (-_tonnes(group[1]), *group[0]))[:SHOWN]
    ids = pa.array([group[0] for group, _ in largest], pa.int64())
    known = factors.filter(pc.is_in(factors.column("factor_id"), ids))
    words = {row["factor_id"]: row for row in known.to_pylist()}
    return [
        {
            "factor_id": group[0],
            "version": group[1],
            "emission_type": group[2],
            **{name: words[group[0]][name] for name in ("classification", "value", "unit", "source")},
            "entries": sum(row["results"] for row in of),
            "tonnes": _tonnes(of),
        }
        for group, of in largest
    ]


def _tonnes(rows: Iterable[Mapping[str, Any]]) -> float:
    return int(sum(row["mg_co2e"] or 0 for row in rows)) / 1e9
