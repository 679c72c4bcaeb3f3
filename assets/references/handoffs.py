"""The asset of hand-offs: a run hands over whatever waits for it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg

from assets.policies.charts import bar_chart
from assets.policies.definition import asset_key, tableless
from assets.policies.failure import classified
from assets.policies.tags import BY_A_PERSON, REASON
from domain.references.jobs import HANDOFFS
from domain.references.tables import REFERENCES
from domain.shared.partition_words import reason_in_words
from services.references.handoff import drain_handoffs
from services.references.ingest_sources import RUN_SECONDS
from services.references.resource import ReferencesResource

HANDOFFS_KEY = dg.AssetKey([REFERENCES.namespace, HANDOFFS])


def handoffs() -> dg.AssetsDefinition:
    """It writes no table: a hand-off makes sure that an ingestion job exists."""

    @dg.multi_asset(
        name=HANDOFFS_KEY.to_python_identifier(),
        specs=[
            tableless(
                HANDOFFS_KEY,
                "Contents of references on their way to ingestion: each is handed over once.",
                "sql",
                "none",
            ).replace_attributes(deps=[dg.AssetDep(asset_key(REFERENCES))])
        ],
    )
    def made(
        context: dg.AssetExecutionContext, refs_service: ReferencesResource
    ) -> Iterator[dg.MaterializeResult]:
        total: Counter[str] = Counter()

        def report(counts: Mapping[str, int]) -> None:
            total.update(counts)
            said = ", ".join(f"{reason_in_words(reason)}: {n:,}" for reason, n in sorted(counts.items()))
            context.log.info("%s hand-offs (%s)", f"{sum(counts.values()):,}", said)

        why = {**BY_A_PERSON, **context.run.tags}[REASON]
        try:
            with classified():
                drain_handoffs(refs_service.open(), context.run_id, RUN_SECONDS, report)
        finally:
            context.log_event(dg.AssetMaterialization(HANDOFFS_KEY, metadata=_metadata(total, why)))
        yield from ()

    return made


def _metadata(counts: Mapping[str, int], why: str) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "reason": dg.MetadataValue.text(why),
        "handed_over": dg.MetadataValue.int(sum(counts.values())),
        **{reason: dg.MetadataValue.int(count) for reason, count in counts.items()},
    }
    if counts:
        values = [(reason_in_words(reason), count) for reason, count in sorted(counts.items())]
        shown["outcomes"] = dg.MetadataValue.md(bar_chart(values))
    return shown
