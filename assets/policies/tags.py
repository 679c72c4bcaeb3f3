"""The run tags that tie runs to the ledger. Dagster's UI hides those that begin with `.dagster/`."""

DISPATCH = ".dagster/perennial_dispatch"
"""The dispatch that the run was started for."""
PULLS = "perennial/pulls"
"""The pulled kind of work whose due rows the run leases: while it is unfinished, no other run is started for
them."""
ONLY = "perennial/only"
ONLY_NEEDED = "needed"
"""The tag, and its value, of a run that leaves alone what is complete."""
ACCEPT = "perennial/accept"
ACCEPT_THINNER = "thinner"
"""The tag, and its value, of a run that replaces a whole day by fewer rows if the source has no more."""
PIPELINE = ".dagster/perennial_pipeline"
"""The pipeline that the run belongs to; of several the newest. All of them the ledger knows, by the work."""
REASON = "perennial/reason"
"""Why the run was started, in a few words: the tag of ours that people read."""
LONGEST_REASON = 200
BY_A_PERSON = {REASON: "requested by a person"}
