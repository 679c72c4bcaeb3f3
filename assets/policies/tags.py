"""The run tags that tie runs to the ledger. Dagster's UI hides those that begin with `.dagster/`."""

DISPATCH = ".dagster/perennial_dispatch"
"""The dispatch that the run was started for."""
ONLY = "perennial/only"
ONLY_NEEDED = "needed"
"""The tag, and its value, of a run that leaves alone what is complete."""
ACCEPT = "perennial/accept"
ACCEPT_THINNER = "thinner"
"""The tag, and its value, of a run that replaces a whole day by fewer rows if the source has no more."""
PIPELINE = ".dagster/perennial_pipeline"
"""The pipeline that the run belongs to; of several the newest. All of them the ledger knows, by the work."""
REASON = "perennial/reason"
"""Why the run was started, in a few words: the one tag of ours that the UI shows."""
LONGEST_REASON = 200
BY_A_PERSON = {REASON: "requested by a person"}
