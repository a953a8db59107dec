# make setup      the environment: .venv, exact versions
# make demo       set up, run the whole pipeline on the small models, rebuild the paper's core tables
# make test       set up, run all tests; make test-fast leaves out the slow ones and those that run Snakemake
# make report     the page about a run; runs what is missing (RUN=demo, paper-counts, paper-published, ...)
# make lint       style, types, workflow lint
# make help       this list
# make bench      measure speed and memory
# make lock       write requirements.lock anew from pyproject.toml
# make clean      remove what the runs made
# PYTHON=...      the Python 3.11 to build the environment with
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Paths are taken from the environment that `make` builds, not from the caller's shell.
export PATH := $(CURDIR)/$(BIN):$(PATH)
SNAKEMAKE := snakemake all --cores 2 --quiet rules --configfile

RUN ?= demo
RUNS := paper $(filter-out config models templates datasets,$(notdir $(basename $(wildcard config/*.yaml))))
# A run's file: the paper's is config/config.yaml, and yours may lie in this folder.
CONFIG = $(firstword $(wildcard $(if $(filter paper,$(RUN)),config/config.yaml,$(RUN).yaml config/$(RUN).yaml)))

.PHONY: help setup demo report test test-fast lint lock bench clean

setup: $(STAMP)

help:
	@sed -n '/^#/!q; s/^# //p' Makefile

# The stamp is written last: an environment that was interrupted is built again.
$(STAMP): pyproject.toml requirements.lock
	@echo "Installing about 2.5 GB of Python packages into $(VENV); this takes minutes."
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(STAMP)

demo: $(STAMP)
	$(SNAKEMAKE) config/demo.yaml
	$(SNAKEMAKE) config/paper-counts.yaml
	@readout-audit headline demo paper-counts

report: $(STAMP)
	@test -n "$(CONFIG)" || { echo "error: $(RUN).yaml is neither here nor in config/; choose one of $(RUNS)." >&2; exit 1; }
	snakemake page --cores 2 --configfile $(CONFIG)
	@echo "the page: results/$(RUN)/report.html"

test: $(STAMP)
	pytest

test-fast: $(STAMP)
	pytest -m "not slow and not dag"

lint: $(STAMP)
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	snakemake --lint

bench: $(STAMP)
	for script in benchmarks/*.py; do echo "== $$script"; python "$$script"; done

# The exact versions that pyproject.toml asks for, with everything they need, as they install here.
lock:
	rm -rf $(VENV).lock && $(PYTHON) -m venv $(VENV).lock
	$(VENV).lock/bin/pip install --quiet torch==2.13.0 setuptools
	$(VENV).lock/bin/pip install --quiet '.[models,slurm,dev]'
	{ echo '# Every package that `make setup` installs, exact; made by `make lock` from pyproject.toml.'; \
	  $(VENV).lock/bin/pip freeze --all --exclude readout-audit --exclude pip | sed 's/+cpu$$//'; } > requirements.lock
	rm -rf $(VENV).lock

# What the runs made; the environment and fetched files stay.
clean:
	rm -rf results figures paper_tables logs
