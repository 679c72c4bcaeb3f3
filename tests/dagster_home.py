"""A Dagster home of our configuration, or with the storage that Dagster ships: what ours is measured by."""

from pathlib import Path

import dagster as dg

from orchestration.instance import embedded_config, write_yaml


def opened(folder: Path, *, shipped: bool = False) -> dg.DagsterInstance:
    config = embedded_config(str(folder))
    if shipped:
        config["storage"] = {"sqlite": {"base_dir": str(folder)}}
    write_yaml(folder / "dagster.yaml", config)
    return dg.DagsterInstance.from_config(str(folder))
