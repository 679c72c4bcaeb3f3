"""The code location. Everything it needs to know comes from the settings."""

from orchestration.build import build_definitions
from orchestration.environments import load_settings, prepare_process

prepare_process()
defs = build_definitions(load_settings())
