# Each target sets up everything it needs in .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SOURCES := src tests benchmarks examples
EXTRAS ?= dev
# What is imported is compiled once, not in every process.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test bytecode lint format bench bench-quick docs dist clean

demo: $(READY)
	$(BIN)/python examples/demo.py

test: $(READY)
	@# Lint uses one core; meanwhile the other one makes the bytecode that both workers would make.
	@$(MAKE) --no-print-directory --jobs=2 lint bytecode
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

# What it finds wrong, the tests will say.
bytecode: $(READY)
	@$(BIN)/python -m pytest --collect-only --quiet >/dev/null 2>&1 || true

lint: $(READY)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: $(READY)
	$(BIN)/pip install --quiet -e ".[bench]"
	$(BIN)/python -m benchmarks

# Under two minutes; fails if a goal of speed is missed by more than a fifth.
bench-quick: $(READY)
	$(BIN)/pip install --quiet -e ".[bench]"
	$(BIN)/python -m benchmarks.speed --quick

docs: $(READY)
	$(BIN)/pip install --quiet -e ".[docs]"
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

dist: $(READY)
	$(BIN)/pip install --quiet build
	rm -rf dist
	$(BIN)/python -m build

clean:
	rm -rf docs/_build docs/auto_examples docs/generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	@# What is never imported need not be compiled: half of the time. The rest is, when it is imported.
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -e ".[$(EXTRAS)]"
	touch $@
