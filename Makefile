# Every target builds what it needs; the environment is .venv, nothing outside the checkout is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NODE   := contracts/node_modules/.package-lock.json

.PHONY: demo test lint types layers unit bench crash crash-cycle devnet constraints clean

demo: $(VENV)/.base  ## install, then show the embedded world
	$(BIN)/zuno demo

test: lint types layers unit  ## everything that must be green

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

unit: $(VENV)/.dev $(NODE)
	$(BIN)/pytest -n 2 --dist worksteal -q

bench: $(VENV)/.dev $(NODE)  ## ratios against yardsticks measured in the same run; fails when a bar is missed
	$(BIN)/python -m benchmarks

study: $(VENV)/.dev  ## what the trading desk rules without a model: 200 cycles over ten invented markets, and the mix
	$(BIN)/python studies/rulings.py

crash: $(VENV)/.dev $(NODE)  ## kill -9 at every persisted step of two rebalances on the real contracts, and recover
	$(BIN)/python tests/crash/matrix.py

crash-cycle: $(VENV)/.dev  ## kill -9 a trading cycle at every durable write and at every node, resume, and compare
	$(BIN)/python tests/crash/cycle.py

devnet: $(VENV)/.devnet $(NODE)  ## what `zuno devnet up` needs: py-evm and the official contract packages

# One install routine: uv where it can be had (seconds), pip where it cannot (a minute). An environment that is half
# made or too old is made anew, and nothing is left of one that could not be made.
SOUND = import pip, sys; print(sys.version_info >= (3, 11))
ABLE  = import ensurepip, sys, venv; print(sys.version_info >= (3, 11))
define install
	@test "$$($(BIN)/python -c '$(SOUND)' 2>/dev/null)" = True || { \
	  test "$$($(PYTHON) -c '$(ABLE)' 2>/dev/null)" = True || { \
	    echo "Zuno needs Python 3.11 or newer with its venv module (Debian: python3-venv), which PYTHON=$(PYTHON) is not" >&2; exit 1; }; \
	  trap 'rm -rf $(VENV)' EXIT; trap 'exit 1' INT TERM HUP; \
	  $(PYTHON) -m venv --clear $(VENV) && test "$$($(BIN)/python -c '$(SOUND)')" = True && trap - EXIT; }
	@test -x $(BIN)/uv || $(BIN)/python -m pip install -q --disable-pip-version-check uv || true
	@echo "installing zuno$(EXTRAS) into $(VENV)"
	@if test -x $(BIN)/uv; then $(BIN)/uv pip install -q --python $(BIN)/python -c constraints.txt -e '.$(EXTRAS)'; \
	else $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.$(EXTRAS)'; fi
	@touch $@
endef

$(VENV)/.base $(VENV)/.devnet $(VENV)/.dev: pyproject.toml constraints.txt
	$(install)

$(VENV)/.devnet: EXTRAS := [devnet]
$(VENV)/.dev: EXTRAS := [devnet,models,dev]

$(NODE): contracts/package.json contracts/package-lock.json
	@command -v npm >/dev/null || { echo "npm is needed for the contract packages: install Node.js 18 or newer" >&2; exit 1; }
	cd contracts && npm ci --ignore-scripts --omit=dev --no-audit --no-fund --loglevel=error

constraints: $(VENV)/.dev  ## refresh the tested versions
	$(BIN)/uv pip compile -q --universal --all-extras --no-header --no-annotate -o constraints.txt pyproject.toml

clean:
	rm -rf $(VENV) contracts/node_modules
