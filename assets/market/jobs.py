"""The jobs of the market that people start by hand."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.policies.tags import BY_A_PERSON, ONLY, ONLY_NEEDED

BACKFILL_TAGS = {"dagster/priority": "-10", "dagster/max_runtime": str(7 * 24 * 3600)}
"""Of runs that may last for days and must not delay those of today."""


def market_jobs(by_day: dg.AssetSelection) -> Sequence[Any]:
    return [
        dg.define_asset_job(
            "market_daily_job",
            by_day,
            description="Fetches one trading day anew: every daily table, and what derives from them.",
            tags=BY_A_PERSON,
        ),
        dg.define_asset_job(
            "market_backfill_job",
            by_day,
            description="Fills a range of days in one run, month by month, after the runs of today. "
            "Complete days are left alone.",
            tags={**BY_A_PERSON, **BACKFILL_TAGS, ONLY: ONLY_NEEDED},
        ),
    ]
