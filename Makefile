# Everything a person needs: `make demo` shows it, `make test` checks it.
# A fresh machine needs Python 3.11+ and make; the rest is installed into .venv once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
RUNS := $(wildcard experiments/*/run.py)

# Benchmark data: the folder beside the checkout, unless DUBITO_DATA says otherwise.
ifeq ($(origin DUBITO_DATA), undefined)
DUBITO_DATA := $(abspath $(wildcard ../shared/data))
endif
export DUBITO_DATA

.PHONY: demo test test-all torch oldest lint format bench experiments docs clean

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

demo: $(READY)  ## Calibrate three ways, write the report, say what is worth knowing
	@$(BIN)/python examples/demo.py

# The workers use every core already; threads of linear algebra below them only queue.
test test-all oldest: export OPENBLAS_NUM_THREADS := 1
test test-all oldest: export OMP_NUM_THREADS := 1

test: $(READY)  ## The short run: every behaviour, fewer combinations
	$(BIN)/python -m pytest -n auto --dist loadfile --quick

test-all: $(READY)  ## Every test, with coverage and the slowest 30
	$(BIN)/python -m pytest -n auto --dist loadfile --cov --cov-report=term --durations=30

torch: $(READY)  ## PyTorch, for dubito.evidence.torch; its tests skip without it
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "torch==2.13.0"

oldest: ## The test suite with the oldest versions pyproject.toml allows
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check \
		--editable ".[dev]" --constraint tests/oldest.txt
	.venv-oldest/bin/python -m pytest -n auto

lint: $(READY)  ## Format, lint, types, import order
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: export OPENBLAS_NUM_THREADS := 1
bench: $(READY)  ## Quality and speed against named rivals, to the tables beside the scripts
	$(BIN)/python benchmarks/quality.py
	$(BIN)/python benchmarks/quality_maps.py
	$(BIN)/python benchmarks/quality_fusion.py
	$(BIN)/python benchmarks/quality_conformal.py
	$(BIN)/python benchmarks/quality_novelty.py
	$(BIN)/python benchmarks/quality_reading.py
	$(BIN)/python benchmarks/quality_reject.py
	$(BIN)/python benchmarks/quality_discriminant.py
	$(BIN)/python benchmarks/run.py

experiments: $(READY)  ## Reproductions of the papers' tables, one folder each
	@$(if $(RUNS),,echo "no experiments yet: they come with the papers' methods")
	@set -e; for run in $(RUNS); do echo "== $$run"; $(BIN)/python $$run; done

docs: export OPENBLAS_NUM_THREADS := 1
docs: $(READY)  ## The documentation, every gallery example run, to docs/_build/html
	rm -rf docs/reference/api  # generated: a name that is gone must leave no page
	$(BIN)/sphinx-build -E -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

clean:
	rm -rf $(VENV) .venv-oldest .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .coverage dist docs/_build docs/reference/api docs/gallery
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
