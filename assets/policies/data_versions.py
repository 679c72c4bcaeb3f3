"""The versions that Dagster compares to call a partition outdated: of its content, its inputs and its code.

Dagster notes them by itself only for outputs; ours are events, one for each partition.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import dagster as dg

from domain.shared.hashing import digest
from domain.shared.table import Table, Version

VERSION = "dagster/data_version"
CODE = "dagster/code_version"
INPUT_VERSION, INPUT_EVENT = "dagster/input_data_version", "dagster/input_event_pointer"
UNKNOWN, NO_EVENT = "INITIAL", "NULL"
"""What Dagster writes for an input without a version, and without an event."""

_DOMAINS = Path(__file__).parents[2] / "domain"


def code_version(table: Table, rules: Iterable[str]) -> str:
    """A digest of what decides a table's content: its columns, its key, and these SQL files of its domain.

    No Python files: each tidying up would call the whole history outdated.
    """
    columns = [f"{c.name} {c.type} {c.nullable}" for c in table.columns]
    texts = [(_DOMAINS / table.namespace / rule).read_text(encoding="utf-8") for rule in rules]
    return digest([*columns, *table.key, table.sums, *texts])[:12]


class Provenance:
    """The tags of the events of a step. Inputs are looked up once, when its first event is logged."""

    def __init__(self, instance: dg.DagsterInstance, specs: Iterable[dg.AssetSpec]) -> None:
        self._instance = instance
        self._specs = {spec.key: spec for spec in specs}
        self._inputs = cache(self._look_up)

    def tags(self, key: dg.AssetKey, version: Version) -> Mapping[str, str]:
        spec = self._specs[key]
        tags = {VERSION: str(version), CODE: spec.code_version or ""}
        for dep in spec.deps:
            tags |= self._inputs(dep.asset_key)
        return tags

    def _look_up(self, key: dg.AssetKey) -> Mapping[str, str]:
        name = key.to_user_string()
        newest = self._instance.fetch_materializations(key, limit=1).records
        event = newest[0].asset_materialization if newest else None
        version = ((event.tags or {}) if event else {}).get(VERSION, UNKNOWN)
        pointer = str(newest[0].storage_id) if newest else NO_EVENT
        return {f"{INPUT_VERSION}/{name}": version, f"{INPUT_EVENT}/{name}": pointer}
