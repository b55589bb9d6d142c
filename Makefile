# make run   evaluate the starter set, report,  make test      every fast test and check
#            gate against the baseline
# make bench the measured ratios               make test-all  the slow tests as well
# make notebooks  open the notebooks           make docs      build the site into site/
#
# Each sets up .venv on its first call; a second call installs nothing.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock

.PHONY: run test test-all bench check docs notebooks clean

run: $(VENV)/.run
	@mkdir -p runs
	$(BIN)/comis-eval evaluate datasets/starter --out runs/starter.json
	$(BIN)/comis-eval report runs/starter.json --dataset datasets/starter --out runs/starter.html
	$(BIN)/comis-eval gate starter runs/starter.json

test: check
	$(BIN)/pytest

test-all: check
	$(BIN)/pytest -m ""
	$(BIN)/pytest tests/benchmarks

bench: $(VENV)/.test
	$(BIN)/pytest tests/benchmarks

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

notebooks: $(VENV)/.notebooks
	$(BIN)/jupyter lab notebooks

clean:
	rm -rf $(VENV) site

$(VENV)/.docs: $(VENV)/.venv pyproject.toml requirements.lock
	$(INSTALL) -e ".[docs]"
	touch $@ $(VENV)/.run

$(VENV)/.notebooks: $(VENV)/.venv pyproject.toml requirements.lock
	$(INSTALL) -e ".[notebooks]"
	touch $@ $(VENV)/.run

$(VENV)/.venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "comis_eval needs Python 3.11 or later, $(PYTHON) is older; say make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.run: $(VENV)/.venv pyproject.toml requirements.lock
	$(INSTALL) -e .
	touch $@

$(VENV)/.test: $(VENV)/.venv pyproject.toml requirements.lock
	$(INSTALL) -e ".[dev]"
	touch $@ $(VENV)/.run
