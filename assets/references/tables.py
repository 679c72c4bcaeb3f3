"""The assets of the references: what sources hold, its hand-off, and the documents that are made of it."""

from collections.abc import Sequence

import dagster as dg

from assets.policies.definition import asset_key
from assets.policies.table_asset import table_asset
from assets.references.checks import SourceCheck
from assets.references.handoffs import HANDOFFS_KEY, handoffs
from domain.references.tables import DOCUMENTS, REFERENCES
from services.references.ingest_sources import WITHOUT_DOCUMENT, ingest_sources
from services.references.scrape import WITHOUT_HANDOFF, scrape_sources


def references_assets(sources: Sequence[str]) -> list[dg.AssetsDefinition]:
    # Sorted: a run of several sources is a range of partitions.
    partitions = dg.StaticPartitionsDefinition(sorted(sources))
    return [
        table_asset(
            [REFERENCES],
            scrape_sources,
            kinds={"iceberg"},
            partitions=partitions,
            checks=SourceCheck(
                REFERENCES,
                "handed_off",
                "Every reference was handed to ingestion, or is about to be.",
                WITHOUT_HANDOFF,
            ),
        ),
        handoffs(),
        table_asset(
            [DOCUMENTS],
            ingest_sources,
            kinds={"iceberg", "python"},
            deps=[dg.AssetDep(asset_key(REFERENCES)), dg.AssetDep(HANDOFFS_KEY)],
            partitions=partitions,
            checks=SourceCheck(
                DOCUMENTS,
                "ingested",
                "Every content that was handed over has a document, or a job that is to make it.",
                WITHOUT_DOCUMENT,
            ),
        ),
    ]
