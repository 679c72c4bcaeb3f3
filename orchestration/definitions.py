"""The code location. Everything it needs to know comes from the settings."""

import warnings

import dagster as dg

from orchestration.build import build_definitions
from orchestration.environments import load_settings

with warnings.catch_warnings():
    # Backfill policies are marked beta; that they exist is decided in docs/adr, not news at every start.
    warnings.simplefilter("ignore", dg.BetaWarning)
    defs = build_definitions(load_settings())
