"""`python -m hunts.upkeep KEPT SEED`: the care of the lake again and again, until SIGTERM.

Now as the night's run does it, now with every month closed and KEPT seconds in the place of its days.
"""

from __future__ import annotations

import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import dagster as dg

from domain.shared.clock import machine_clock
from hunts.companions import report, until_told
from orchestration.build import build_definitions
from orchestration.environments import load_settings
from orchestration.instance import open_instance
from orchestration.services import open_lake, open_ledger
from orchestration.settings import Settings

NIGHTLY = [dg.AssetKey(["ops", "lake_maintenance"]), dg.AssetKey(["ops", "run_retention"])]
OURS = {"hunts/upkeep": "again"}
"""By this tag nobody who waits for quiet waits for these runs."""
BY_NIGHT = 0.25
"""How many of the rounds are the night's: Dagster makes them slow."""
EVERY_MONTH_CLOSED = "9999-12"
PAUSE = 1.0


def nightly(settings: Settings) -> Callable[[], Counter[str]]:
    """What `upkeep_schedule` runs, and a click."""
    job = build_definitions(settings).resolve_implicit_global_asset_job_def()

    def once() -> Counter[str]:
        quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
        with open_instance(settings) as instance:
            ended = job.execute_in_process(
                instance=instance, asset_selection=NIGHTLY, run_config=quiet, tags=OURS
            )
        return Counter(nights=int(ended.success))

    return once


def hurried(settings: Settings, kept: timedelta) -> Callable[[], Counter[str]]:
    """The same in seconds."""
    lake, ledger = open_lake(settings), open_ledger(settings, write=True)

    def once() -> Counter[str]:
        told = Counter(upkeeps=1)
        for name in lake.tables:
            done = lake.maintain(
                name,
                now=machine_clock(),
                compact_before=EVERY_MONTH_CLOSED,
                keep_snapshots=ledger.provenance.pinned_snapshots(name),
                expire_after=kept,
                orphan_age=kept,
            )
            told.update(
                expired=done.expired_snapshots, compacted=done.compacted_files, deleted=done.deleted_files
            )
        return told

    return once


def main() -> None:
    kept, luck = timedelta(seconds=float(sys.argv[1])), random.Random(sys.argv[2])  # noqa: S311 - luck
    settings, told, complaints = load_settings(), Counter[str](), list[str]()
    by_night, by_the_minute = nightly(settings), hurried(settings, kept)

    def care(stop: threading.Event) -> None:
        while not stop.wait(luck.uniform(0, PAUSE)):
            try:
                told.update(by_night() if luck.random() < BY_NIGHT else by_the_minute())
            except Exception as error:  # noqa: BLE001 - whatever maintenance meets is what is looked for
                complaints.append(f"maintenance met {type(error).__name__}: {str(error)[:600]}")

    until_told(care)
    report(told, complaints)


if __name__ == "__main__":
    main()
