"""What every asset shows in the catalogue, taken from its lake table: schema, units, names."""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from assets.policies.data_versions import code_version
from domain.shared.table import Table

OWNERS = ["team:data-platform"]
PARTITION = "perennial/partition"
"""The tag that says what one partition is: what shares it can be materialised together."""


def years(first: int, last: int) -> dg.StaticPartitionsDefinition:
    """A partition for each of these years. A yearly time window would lack the current year, and the next."""
    return dg.StaticPartitionsDefinition([str(year) for year in range(first, last + 1)])


def asset_key(table: Table) -> dg.AssetKey:
    return dg.AssetKey([table.namespace, table.table])


def definition_metadata(table: Table) -> Mapping[str, Any]:
    """Table name, primary key and columns with their units, as Dagster's catalogue reads them."""
    columns = [
        dg.TableColumn(
            name=c.name,
            type=str(c.type),
            description=f"{c.description} [{c.unit}]" if c.unit else c.description,
            constraints=dg.TableColumnConstraints(
                nullable=c.nullable,
                unique=table.key == (c.name,),
                other=["key"] if c.name in table.key else [],
            ),
        )
        for c in table.columns
    ]
    return {
        "dagster/table_name": table.name,
        "dagster/column_schema": dg.TableSchema(columns),
        "primary_key": ", ".join(table.key),
        "sorted_by": ", ".join(table.sort_order),
    }


def tableless(
    key: dg.AssetKey,
    description: str,
    kind: str,
    partition: str,
    partitions: dg.PartitionsDefinition | None = None,
) -> dg.AssetSpec:
    """An asset that writes no table: a run may materialize nothing of it."""
    return dg.AssetSpec(
        key,
        description=description,
        group_name=key.path[0],
        owners=OWNERS,
        kinds={kind},
        tags={PARTITION: partition},
        skippable=True,
        partitions_def=partitions,
    )


def asset_arguments(table: Table, group: str, kinds: set[str], rules: Sequence[str] = ()) -> dict[str, Any]:
    """The arguments every asset decorator of ours gets from its table."""
    return {
        "key": asset_key(table),
        "description": table.description,
        "group_name": group,
        "owners": OWNERS,
        "kinds": kinds,
        "tags": {PARTITION: table.partition_kind},
        "metadata": definition_metadata(table),
        "code_version": code_version(table, rules),
    }
