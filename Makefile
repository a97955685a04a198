# `make demo` and `make test` are all a new user needs: they make .venv when it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check format clean

demo: $(READY)
	$(BIN)/expclr demo

test: $(READY)
	$(BIN)/python -m pytest -n auto --doctest-modules src tests

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) expclr-demo
