"""A Dagster home of our configuration, or with the storage as Dagster ships it, to compare with."""

from pathlib import Path

import dagster as dg

from orchestration.instance import embedded_config, write_yaml


def opened(folder: Path, *, shipped: bool = False) -> dg.DagsterInstance:
    config = embedded_config(str(folder))
    if shipped:
        for part in ("run_storage", "event_log_storage", "schedule_storage"):
            del config[part]
        config["storage"] = {"sqlite": {"base_dir": str(folder)}}
    write_yaml(folder / "dagster.yaml", config)
    return dg.DagsterInstance.from_config(str(folder))
