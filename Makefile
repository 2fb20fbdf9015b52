# Two commands do all the set-up: `make demo` and `make test`. Needs Python 3.11 or newer, and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles what it imports: all 13,000 files of the packages would take 40 seconds
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile -c constraints.txt
# Empty, whatever the environment says: each of many processes would compile anew what it imports
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test suite bench docs lint format clean
.DEFAULT_GOAL := help

help:  ## what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# torch first and by its exact version, so that the build at hand is taken and nothing larger is pulled in later
$(VENV)/installed: pyproject.toml constraints.txt
	@echo "installing gtx into $(VENV): torch (about 200 MB), RDKit and others, one to two minutes"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) torch==$$(sed -n 's/^torch==//p' constraints.txt)
	@echo "torch is installed, the others follow"
	@$(PIP) -e '.[serve]'
	@touch $@

$(VENV)/tested: $(VENV)/installed
	$(PIP) -e '.[test]'
	$(PIP) --no-deps soltrannet==1.0.0  # published weights to compare with; what it asks for breaks Python 3
	touch $@

demo: $(VENV)/installed  ## install gtx into .venv and train a first model (about three minutes)
	$(BIN)/gtx demo

lint: $(VENV)/tested  ## style, format, plain code and types (a minute; with a cache, seconds)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/plain_code.py
	$(BIN)/mypy

test: $(VENV)/tested  ## lint and the whole test suite, side by side
	$(MAKE) --no-print-directory --jobs=2 lint suite

# imports and loops are compiled once, and not in each of two workers
$(VENV)/warm: $(VENV)/tested
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.training.warm
	@touch $@

suite: $(VENV)/warm  ## the whole test suite
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(VENV)/tested  ## measure speed, write experiments/results/speed.md (hours; BENCH='--device cuda': a GPU, 10 minutes)
	$(BIN)/python -m experiments.speed $(BENCH)

docs: $(VENV)/tested  ## build the documentation site into site/, without a network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

format: $(VENV)/tested  ## let ruff rewrite
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove the environment and what tests left
	rm -rf $(VENV) build site .pytest_cache .ruff_cache .mypy_cache
