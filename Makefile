# Two commands: `make demo` shows the main job end to end, `make test` proves it. Both set everything up first, with
# uv when it is there and with venv + pip when it is not, to the versions in requirements.lock. After that: offline.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# Many tests wait for other processes, so there is one more than the machine has cores.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

.PHONY: demo test search chaos mutants check venv bench lock format plugins packs agents agents-e2e clean help

help: ## Say what there is
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | sort

venv: $(STAMP) ## Make .venv with everything in it
	@$(BIN)/python -m compileall -q src

$(STAMP): pyproject.toml requirements.lock tools/make_venv.py
	@$(PYTHON) tools/make_venv.py $(VENV)
	@touch $(STAMP)

demo: venv ## Show the main job end to end
	@$(BIN)/python scripts/demo.py

test: venv ## Run all tests
	$(BIN)/python -m pytest --numprocesses $(WORKERS) $(ARGS)

search: venv ## Run all tests with 1,000 new examples of each law (about half an hour)
	HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest --numprocesses $(WORKERS) $(ARGS)

MINUTES ?= 10
SAMPLE ?= 12
mutants: venv ## Put small faults into a copy of the code and list those that no test notices (MINUTES, SAMPLE, SEED, PACKAGES)
	$(BIN)/python tools/mutants.py --minutes $(MINUTES) --sample $(SAMPLE) $(if $(SEED),--seed $(SEED)) $(PACKAGES)

chaos: venv ## Kill, race and feed the program and write docs/CHAOS.md (about ten minutes)
	$(BIN)/python tools/chaos.py $(ARGS)

check: venv ## Format, lint, types: what CI runs before the tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: venv ## Put the format right
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: venv ## Measure everything and write docs/BENCHMARKS.md (about a quarter of an hour)
	$(BIN)/python bench/report.py

lock: venv ## Resolve the dependencies anew into requirements.lock
	uv pip compile --universal --quiet --python-version 3.11 --group dev pyproject.toml -o requirements.lock --no-emit-index-url --custom-compile-command "make lock"

plugins: venv ## Write plugins/ anew from the table that `commonplace setup` uses
	$(BIN)/python tools/build_plugins.py

packs: venv ## Write the packs in the wheel anew from packs/
	$(BIN)/python -m tools.build_packs

agents: ## Install the agents' own programs with npm into .tools (about 1 GB), for the tests that validate with them
	@# With a tag: else npm takes an older version if the newest asks for another Node, which these programs do not need.
	npm install --no-audit --no-fund --prefix .tools @anthropic-ai/claude-code@latest @google/gemini-cli@latest @openai/codex@latest @github/copilot@latest opencode-ai@latest

agents-e2e: venv ## Run the agents' own programs from setup to undo, against a scripted model (AGENT, ARGS)
	$(BIN)/python tools/agents_e2e.py $(AGENT) $(ARGS)

clean: ## Remove everything that was made
	rm -rf $(VENV) .tools dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
