"""The run tags that tie runs to the ledger."""

DISPATCH = "perennial/dispatch"
"""The dispatch that the run was started for."""
ONLY = "perennial/only"
ONLY_NEEDED = "needed"
"""The tag, and its value, of a run that leaves alone what is complete."""
PIPELINE = "perennial/pipeline"
"""The chain that the run belongs to; of several the newest. The newest few have a tag each as well."""
PIPELINES = "perennial/pipelines"
"""How many chains the run belongs to. All of them the ledger knows, by the run's work."""
TAGGED = 20
"""Chains that have a tag each: a run that many files wait for would otherwise have thousands of tags."""


def pipeline_tags(pipelines: list[str]) -> dict[str, str]:
    """Tags by which the runs of a chain are found. The ids sort by age."""
    if not pipelines:
        return {}
    known = sorted(set(pipelines))
    own = {f"{PIPELINE}.{name}": "yes" for name in known[-TAGGED:]}
    return {PIPELINE: known[-1], PIPELINES: str(len(known)), **own}
