# `make demo` and `make test` are all a new user needs: they make .venv when it is missing.
ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c "$(ENOUGH)" 2>/dev/null && echo $$p && break; done)
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
	@test -x $(BIN)/python -o -n "$(PYTHON)" || { echo "expclr needs Python 3.11 or newer with venv and pip: on Debian" \
		"and Ubuntu, apt-get install python3-venv; or make PYTHON=/path/to/python3"; exit 1; }
	@echo "Installing into $(VENV): a few minutes, once"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $(READY)

clean:
	rm -rf $(VENV) expclr-demo
