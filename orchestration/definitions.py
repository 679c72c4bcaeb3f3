"""The code location. Everything it needs to know comes from the settings."""

from orchestration.build import build_definitions
from orchestration.environments import batch_events, load_settings

batch_events()
defs = build_definitions(load_settings())
