# Everything a newcomer needs: `make run`, then `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORE := CMakeLists.txt pyproject.toml $(wildcard src/limes/_core/*.cpp src/limes/_core/*.hpp)

.PHONY: run test test-slow lint clean

run: $(VENV)/.run
	$(BIN)/limes demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -n auto -m slow

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp a set of tools: it is made again when the core or the requirements change.
$(VENV)/.run: $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	@touch $@

$(VENV)/.test: $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable ".[test,lint]"
	@touch $@

clean:
	rm -rf $(VENV) build dist src/limes/_core/*.so
