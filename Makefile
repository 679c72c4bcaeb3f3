# Needs Python 3.11–3.13 (with venv) and make. Everything is installed into .venv.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup up demo test test-fast test-e2e test-chaos chaos lint arch bench docs lock clean

VENV := .venv
BIN := $(VENV)/bin
MODELS := tests/integration/services/carbon/test_carbon_model.py
STAMP := $(VENV)/.installed
# Some tests wait for processes of their own: one worker more than there are cores.
JOBS = $$(($$(getconf _NPROCESSORS_ONLN) + 1))

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## build .venv from requirements.lock; the command is .venv/bin/perennial

# The interpreter is tried, not only found: a python3 may be too old, a version manager's stub, or
# Debian's without ensurepip. A venv that was cut short has no stamp and is finished.
$(STAMP): requirements.lock pyproject.toml
	@set -e; found=; \
	for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	  if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1; \
	  then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
	  echo "No Python 3.11-3.13 with venv and ensurepip found." >&2; \
	  echo "Install one (Debian, Ubuntu: apt-get install python3 python3-venv) or name it: make setup PYTHON=/path/to/python" >&2; \
	  exit 1; \
	fi; \
	[ -x $(BIN)/python ] && $(BIN)/python -c 'import pip' 2>/dev/null || "$$found" -m venv --clear $(VENV)
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes --only-binary :all: \
	  --requirement requirements.lock
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip --disable-pip-version-check check
	@touch $@

up: setup ## start the UI, the HTTP API, the daemon and the sandbox; Ctrl-C stops them
	@exec $(BIN)/perennial up

demo: setup ## a gap that heals, a university's carbon report, references scraped; exits by itself
	@exec $(BIN)/perennial demo

test: setup ## unit and integration tests; says how long it took and which ten were slowest
	$(BIN)/python -m pytest -q --durations=10 -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "not e2e and not chaos"

test-fast: setup ## without the slow and the end-to-end tests
	$(BIN)/python -m pytest -m "not slow and not e2e and not chaos"

test-e2e: setup ## the whole product, as a person has it: `up`, its daemon, a browser
	$(BIN)/python -m pytest -m e2e

test-chaos: setup ## faults, kills, races, models and planted secrets in short, at random
	$(BIN)/python -m pytest -n 2 --dist loadfile -rA --show-capture=stdout -m chaos

chaos: setup ## faults, unsteady, kills, races, carbon for two hours; each prints the seed that plays it again
	@found=0; for what in faults unsteady kills races carbon; do $(BIN)/python -m tests.chaos $$what || found=1; done; \
	$(BIN)/python -m pytest --hypothesis-profile=chaos -m chaos --timeout 0 $(MODELS) || found=1; exit $$found

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

arch: setup ## who may import whom
	$(BIN)/lint-imports

bench: setup ## the side-by-side measurements of benchmarks/
	$(BIN)/python -m benchmarks

docs: setup ## write the generated pages of docs/ anew
	$(BIN)/python -m orchestration.pages docs
	$(BIN)/python -m typer orchestration.cli.main utils docs --name perennial > docs/cli.md.new
	@mv docs/cli.md.new docs/cli.md

lock: setup ## resolve requirements.lock anew, keeping the versions it holds
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-config --no-header --no-annotate --no-strip-extras --quiet --output-file requirements.lock

clean: ## remove .venv and every cache; the data in .perennial stays
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
