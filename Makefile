# Every target builds what it needs; the environment is .venv, nothing outside the checkout is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NODE   := contracts/node_modules/.package-lock.json
# Extras that a target of their name adds to the environment.
ADDED  := models telegram web mcp exchanges postgres feather cluster mesh milvus lightrag
# Tests start hundreds of processes; without bytecode each of them compiles the whole package anew.
unexport PYTHONDONTWRITEBYTECODE

# A worker more than there are cores, for tests that wait for processes and clocks; a worker takes up to a gigabyte.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2) + 1)
PYTEST := $(BIN)/pytest -n $(WORKERS) --maxprocesses 8 --dist worksteal -q

.PHONY: demo help check test soak lint types layers unit world collect suite format docs pictures licences platforms bench study rebalances crash crash-cycle $(ADDED) devnet constraints clean

demo: $(VENV)/.web  ## install with the page, then run the tour on the simulated chain
	$(BIN)/zuno demo

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

check: lint layers types unit  ## what to run after an edit: everything quick, in under two minutes

# Types run beside the devnet's world, each on one core: both take a minute or two where nothing is kept yet.
test:  ## everything that must be green before a change is merged, in about eleven minutes
	$(MAKE) -j2 lint layers world types collect
	$(MAKE) suite

soak: $(VENV)/.dev $(NODE)  ## what takes longer: all mesh seeds, small models, a thousand examples a property, every crash
	$(PYTEST) -m soak -o timeout=1800
	HYPOTHESIS_PROFILE=deep $(PYTEST) -m hypothesis -o timeout=1800
	$(MAKE) crash crash-cycle

lint: $(VENV)/.dev  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

layers: $(VENV)/.dev  ## import-linter: which package may import which
	$(BIN)/lint-imports

types: $(VENV)/.dev  ## mypy: strict over src, benchmarks and studies, not strict over tests
	$(BIN)/mypy

unit: $(VENV)/.dev $(NODE)  ## the quick tests: unit, devnet, architecture, and our pool against the contracts
	HYPOTHESIS_PROFILE=quick $(PYTEST) -n auto -m "not soak and not slow" tests/unit tests/devnet tests/architecture tests/differential/test_pool_differential.py

world: $(VENV)/.dev $(NODE)  ## the devnet's world of the default seed, which takes a minute and is kept for the tests
	$(BIN)/python -m tests.wire.devnet_world

collect: $(VENV)/.collected  ## once in a new environment: workers that begin together would each compile all tests and .venv

$(VENV)/.collected: $(VENV)/.dev
	@unset ZUNO_TEST_STRICT; $(BIN)/pytest -p no:xdist --collect-only -qq > $(VENV)/collected.txt 2>&1 || { cat $(VENV)/collected.txt; exit 1; }
	@touch $@

suite: $(VENV)/.dev $(NODE)  ## every test that is not left to soak
	$(PYTEST)

format: $(VENV)/.dev  ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev  ## write docs/commands.md from the command tree
	$(BIN)/python -m tools.commands_page

pictures: $(VENV)/.dev  ## take the pictures of the page in docs/ anew, with the system's Chromium
	$(BIN)/python -m tools.page_pictures

licences: $(VENV)/.dev  ## write docs/licences.md from what the installed packages say of themselves
	$(BIN)/python -m tools.licences_page

platforms: $(VENV)/.dev  ## write docs/platforms.md from the package index, in some ten minutes
	$(BIN)/python -m tools.platforms_page

bench: $(VENV)/.dev $(VENV)/.peers $(VENV)/.vectorbt $(NODE)  ## ratios against yardsticks measured in the same run; fails when a bar is missed
	$(BIN)/python -m benchmarks

study: $(VENV)/.dev  ## what the trading desk rules without a model: 400 moments of ten synthetic markets, in ten minutes
	$(BIN)/zuno lab study

rebalances: $(VENV)/.dev $(NODE)  ## six rebalances with ±6 % moves on the real contracts, and what each leaves over
	$(BIN)/python -m studies.rebalances

crash: $(VENV)/.dev $(NODE)  ## kill -9 at every persisted step of two rebalances, of a trade at every wire, of learning from it and of a chat, and recover
	$(BIN)/python -m tests.crash.matrix
	$(BIN)/python -m tests.crash.orders
	$(BIN)/python -m tests.crash.learning
	$(BIN)/python -m tests.crash.chat

crash-cycle: $(VENV)/.dev  ## kill -9 a trading cycle at every durable write and at every node, resume, and compare
	$(BIN)/python -m tests.crash.cycle

telegram: $(VENV)/.telegram  ## the Telegram bot's library, for `zuno telegram run`

web: $(VENV)/.web  ## what `zuno web` needs: FastAPI and uvicorn

mcp: $(VENV)/.mcp  ## what `zuno mcp` needs: the Model Context Protocol's own library

models: $(VENV)/.models  ## the language models' libraries; a vendor's key in the environment does the rest

exchanges: $(VENV)/.exchanges  ## what real markets and accounts need: ccxt and websockets

postgres: $(VENV)/.postgres  ## the driver for `ZUNO_DATABASE_URL`

feather: $(VENV)/.feather  ## pyarrow, for feather files in `zuno data import`

cluster: $(VENV)/.cluster  ## Dask, for `zuno lab` with `--cluster`

mesh: $(VENV)/.mesh  ## iroh where the base leaves it out: on a Mac with an Intel processor it is built

milvus: $(VENV)/.milvus  ## memories in Milvus

lightrag: $(VENV)/.lightrag  ## memories as a knowledge graph

devnet: $(VENV)/.devnet $(NODE)  ## what `zuno devnet up` and `python -m zuno_devnet up` need: py-evm and the official contract packages

# One install routine: uv where it can be had (seconds), pip where it cannot (a minute). An environment that is half
# made or too old is made anew, and nothing is left of one that could not be made. Before it was called zuno-desk the
# distribution was zuno: what is left of that goes first, for its removal would take the command of the new one along.
SOUND = import pip, sys; print(sys.version_info >= (3, 11))
ABLE  = import ensurepip, sys, venv; print(sys.version_info >= (3, 11))
define install
	@test "$$($(BIN)/python -c '$(SOUND)' 2>/dev/null)" = True || { \
	  test "$$($(PYTHON) -c '$(ABLE)' 2>/dev/null)" = True || { \
	    echo "Zuno needs Python 3.11 or newer with its venv module (Debian: python3-venv), which PYTHON=$(PYTHON) is not" >&2; exit 1; }; \
	  trap 'rm -rf $(VENV)' EXIT; trap 'exit 1' INT TERM HUP; \
	  $(PYTHON) -m venv --clear $(VENV) && test "$$($(BIN)/python -c '$(SOUND)')" = True && trap - EXIT; }
	@test -x $(BIN)/uv || $(BIN)/python -m pip install -q --disable-pip-version-check uv || true
	@for old in $(VENV)/lib/python3*/site-packages/zuno-*.dist-info; do \
	  test ! -d "$$old" || $(BIN)/python -m pip uninstall -q -y --disable-pip-version-check zuno; done
	@echo "installing zuno-desk$(EXTRAS) $(GROUPS) into $(VENV)"
	@if test -x $(BIN)/uv; then $(BIN)/uv pip install -q --python $(BIN)/python -c constraints.txt -e '.$(EXTRAS)' $(GROUPS:%=--group %); \
	else $(if $(GROUPS),$(BIN)/python -m pip install -q --disable-pip-version-check 'pip>=25.1' && )$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.$(EXTRAS)' $(GROUPS:%=--group %); fi
	@touch $@
endef

$(VENV)/.base $(ADDED:%=$(VENV)/.%) $(VENV)/.devnet $(VENV)/.dev $(VENV)/.peers: pyproject.toml constraints.txt
	$(install)

$(ADDED:%=$(VENV)/.%): EXTRAS = [$(@:$(VENV)/.%=%)]
$(VENV)/.devnet: EXTRAS := [devnet]
$(VENV)/.dev: EXTRAS := [devnet,models]
$(VENV)/.dev: GROUPS := dev
$(VENV)/.peers: EXTRAS := [devnet,models]
$(VENV)/.peers: GROUPS := dev peers

# In an environment of its own: it needs a pandas that nautilus_trader refuses.
$(VENV)/.vectorbt: $(VENV)/.dev
	$(BIN)/python -m venv --clear $(VENV)/vectorbt
	@if test -x $(BIN)/uv; then $(BIN)/uv pip install -q --python $(VENV)/vectorbt/bin/python vectorbt==1.2.0; \
	else $(VENV)/vectorbt/bin/python -m pip install -q --disable-pip-version-check vectorbt==1.2.0; fi
	@touch $@

$(NODE): contracts/package.json contracts/package-lock.json
	@command -v npm >/dev/null || { echo "npm is needed for the contract packages: install Node.js 18 or newer" >&2; exit 1; }
	cd contracts && npm ci --ignore-scripts --omit=dev --no-audit --no-fund --loglevel=error

constraints: $(VENV)/.dev  ## refresh the tested versions
	$(BIN)/uv pip compile -q --universal --all-extras --group dev --group peers --no-header --no-annotate -o constraints.txt pyproject.toml

clean:  ## remove the environment and the contract packages
	rm -rf $(VENV) contracts/node_modules
