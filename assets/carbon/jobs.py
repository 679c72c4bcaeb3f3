"""The jobs of carbon that people start by hand."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from assets.policies.definition import asset_key
from assets.policies.tags import BY_A_PERSON
from domain.carbon.tables import EMISSIONS, REPORTS


def carbon_jobs() -> Sequence[Any]:
    return [
        dg.define_asset_job(
            "carbon_recalculate_job",
            dg.AssetSelection.assets(asset_key(EMISSIONS)),
            description="Calculates the emissions of types and years again from their entries and factors; "
            "the sums and the report follow by themselves if anything changed.",
            tags=BY_A_PERSON,
        ),
        dg.define_asset_job(
            "carbon_report_job",
            dg.AssetSelection.assets(asset_key(REPORTS)),
            description="Sums up the report of a year again.",
            tags=BY_A_PERSON,
        ),
    ]
