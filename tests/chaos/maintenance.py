"""`python -m tests.chaos.maintenance KEPT SEED`: lake maintenance again and again, until SIGTERM.

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
from orchestration.build import build_definitions
from orchestration.domains.market import open_market
from orchestration.environments import load_settings
from orchestration.instance import open_instance
from orchestration.settings import Settings
from tests.chaos.companions import report, run_until_stopped

NIGHTLY = [dg.AssetKey(["ops", "lake_maintenance"]), dg.AssetKey(["ops", "run_retention"])]
SHARE_NIGHTLY = 0.25
"""The rest does without Dagster, which makes it slow."""
EVERY_MONTH_CLOSED = "9999-12"
PAUSE = 1.0


def nightly(settings: Settings) -> Callable[[], Counter[str]]:
    """What the nightly schedule runs, and a click."""
    job = build_definitions(settings).resolve_implicit_global_asset_job_def()
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}

    def once() -> Counter[str]:
        with open_instance(settings) as instance:
            ended = job.execute_in_process(instance=instance, asset_selection=NIGHTLY, run_config=quiet)
        return Counter(nights=int(ended.success))

    return once


def hurried(settings: Settings, kept: timedelta) -> Callable[[], Counter[str]]:
    """The same in seconds."""
    market = open_market(settings, write=True)

    def once() -> Counter[str]:
        counts = Counter(maintained=1)
        for name in market.lake.tables:
            done = market.lake.maintain(
                name,
                now=machine_clock(),
                compact_before=EVERY_MONTH_CLOSED,
                keep_snapshots=market.provenance.pinned_snapshots(name),
                expire_after=kept,
                orphan_age=kept,
            )
            counts.update(
                expired=done.expired_snapshots, compacted=done.compacted_files, deleted=done.deleted_files
            )
        return counts

    return once


def main() -> None:
    kept, luck = timedelta(seconds=float(sys.argv[1])), random.Random(sys.argv[2])
    settings, counts, complaints = load_settings(), Counter[str](), list[str]()
    by_night, in_seconds = nightly(settings), hurried(settings, kept)

    def maintain(stop: threading.Event) -> None:
        while not stop.wait(luck.uniform(0, PAUSE)):
            try:
                counts.update(by_night() if luck.random() < SHARE_NIGHTLY else in_seconds())
            except Exception as error:  # noqa: BLE001 - any error of maintenance is a complaint
                complaints.append(f"maintenance raised {type(error).__name__}: {str(error)[:600]}")

    run_until_stopped(maintain)
    report(counts, complaints)


if __name__ == "__main__":
    main()
