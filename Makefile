# SPDX-License-Identifier: Apache-2.0
# The words for work, the same by hand and in CI. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV ?= .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PYTHON ?= $(firstword $(foreach each,python3.11 python3.12 python3.13 python3.14 python3,$(shell command -v $(each) 2>/dev/null)))
DEBIAN := apt-get install python3 python3-venv make
WORKERS ?= 2
DECIDED := src/muster/domain/*,src/muster/formats/*,src/muster/adapters/*/parse_*.py
TESTS := $(PY) -m pytest -q -n $(WORKERS)
STORED := tests/cases tests/services tests/store/test_evidence.py $(addprefix tests/interfaces/,$(addsuffix .py,$(addprefix api/test_,cards columns conditions lists writing) cli/test_get cli/test_acts))

.PHONY: help setup check form lint types contracts reference house format test both test-quick cover conform bench sim faults fuzz mutate demo docs serve lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.ready ## the environment that everything below uses, from the locks

$(VENV)/.ready: requirements-dev.lock pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo "no python3 here: $(DEBIAN)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: $(DEBIAN), or make setup PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make a virtual environment: $(DEBIAN)" >&2; exit 1; }
	@[ -x $(PY) ] || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r requirements-dev.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation --editable .
	@$(PY) -m compileall -q src
	@touch $@
	@echo "ready: $(BIN)/muster --help"

check: form lint types contracts reference house ## format, lint, types, contracts, vendor words, budgets, docs

$(VENV)/.installed: requirements.lock pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo "no python3 here: $(DEBIAN)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: $(DEBIAN), or make demo PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make a virtual environment: $(DEBIAN)" >&2; exit 1; }
	@[ -x $(PY) ] || $(PYTHON) -m venv $(VENV)
	@echo "installing what Muster stands on into $(VENV) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input --require-hashes -r requirements.lock
	@$(PY) -m pip install --quiet --disable-pip-version-check --no-input --no-deps --no-build-isolation --editable .
	@$(PY) -m compileall -q src
	@touch $@

form: setup
	@$(BIN)/ruff format --check --quiet --output-format concise . || { echo "make format puts this right" >&2; exit 1; }

lint: setup
	@$(BIN)/ruff check --quiet --output-format concise .

types: setup
	@$(BIN)/mypy

contracts: setup
	@$(BIN)/lint-imports --no-logo

reference: setup
	@$(PY) tools/gen_reference.py --check
	@$(PY) tools/gen_support.py --check
	@$(PY) tools/gen_metrics.py --check
	@$(PY) tools/gen_dashboard.py --check

house: setup
	@$(TESTS) tests/house

format: setup ## puts the form of the code right
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

test: check cover both ## everything that CI runs

cover: setup # all tests, with the branches of what decides and parses counted
	@$(TESTS) --cov --cov-report= --ignore=tests/house
	@$(BIN)/coverage report --include='$(DECIDED)' --skip-covered --fail-under=95

both: setup # what is kept in memory in those tests is kept in PostgreSQL; skipped where that is lacking, but not in CI
	@$(TESTS) -p tests.on_postgres $(STORED)

test-quick: setup ## all but the slow tests, without coverage
	@$(TESTS) -x -m 'not slow'

conform: setup ## every adapter against the conformance suite
	@for folder in src/muster/adapters/*/manifest.toml; do echo "$$(dirname $$folder)"; $(BIN)/muster adapter check "$$(dirname $$folder)"; done

bench: setup ## figures of this machine beside those of peers, half an hour (ONLY='cli merge' for some; see bench/README.md)
	@for each in $(or $(ONLY),cli merge agent segments api ingest site); do with=; [ $$each = ingest ] && with=--server; echo "== $$each $$with"; $(PY) bench/$$each.py $$with || echo "a limit was missed"; done

sim: setup ## machines, network and server of no substance, for hours of theirs (ARGS='--seed 7 --machines 500 --hours 168', ARGS=--help)
	@$(PY) -m tests.sim.run $(ARGS)

faults: setup ## breaks the real thing, 200 times each; an hour or two (RUNS=20 for fewer)
	@MUSTER_FAULT_RUNS=$(or $(RUNS),200) $(PY) -m pytest -q -rs -s tests/faults

fuzz: setup ## the properties of formats, parsers and merge, with many more examples
	@$(TESTS) --hypothesis-profile=fuzz -m hypothesis
	@$(TESTS) --hypothesis-profile=fuzz -m slow tests/fuzz

mutate: setup ## mutation score of domain/decide; hours, by hand (ONLY='muster.domain.decide.choose*' for a part)
	@$(BIN)/mutmut run $(if $(ONLY),'$(ONLY)') && $(BIN)/mutmut results && $(BIN)/mutmut export-cicd-stats >/dev/null
	@$(PY) -c 'import json; s = json.load(open("mutants/mutmut-cicd-stats.json")); print("{killed} mutants killed, {survived} survived, {timeout} timed out, {no_tests} without a test".format(**s))'

demo: $(VENV)/.installed ## a small site of recorded machines on this machine, told step by step
	@$(BIN)/muster demo

docs: setup ## writes docs/reference from the code
	@$(PY) tools/gen_reference.py
	@$(PY) tools/gen_support.py
	@$(PY) tools/gen_metrics.py
	@$(PY) tools/gen_dashboard.py

serve: setup ## the server, on this machine
	@$(BIN)/muster server

lock: setup # new versions of what we stand on
	@$(PYTHON) -m venv $(VENV)/lock && $(VENV)/lock/bin/pip install --quiet --disable-pip-version-check uv
	@$(VENV)/lock/bin/uv pip compile --quiet --upgrade pyproject.toml --all-extras --group build --generate-hashes --universal --python-version 3.11 --no-emit-index-url --custom-compile-command "make lock" -o requirements.lock
	@$(VENV)/lock/bin/uv pip compile --quiet --upgrade pyproject.toml --all-extras --group dev -c requirements.lock --generate-hashes --universal --python-version 3.11 --no-emit-index-url --custom-compile-command "make lock" -o requirements-dev.lock

clean: # what the words above leave behind
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage* mutants dist build
