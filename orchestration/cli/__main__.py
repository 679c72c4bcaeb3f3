"""`python -m orchestration.cli`: the command where its console script is not on the path."""

from orchestration.cli.start import main

main()
