"""The run tags that tie runs to the ledger."""

DISPATCH = "perennial/dispatch"
"""Names what a look sent the run for."""
PIPELINE = "perennial/pipeline"
"""The chain that the run belongs to; of several the newest. Each of them is a tag of its own as well."""


def pipeline_tags(pipelines: list[str]) -> dict[str, str]:
    """Tags by which the runs of a chain are found. The ids sort by age."""
    if not pipelines:
        return {}
    return {PIPELINE: max(pipelines)} | {f"{PIPELINE}.{name}": "yes" for name in pipelines}
