# Thin verbs; CMakePresets.json says how things are built, deploy/setup.sh what they need.
.DEFAULT_GOAL := help
PY_TOOLS := .venv-dev/bin
JOBS ?= $(shell nproc)

.PHONY: help run build test bench soak demo tables check-style check-code fuzz classes \
	limits-v2 memcheck format lock clean

help: ## list the verbs
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

run: ## set up what is missing, build, serve http://127.0.0.1:8000/mcp
	@deploy/setup.sh run
	@$(MAKE) --no-print-directory build
	@exec build/vivarium $(ARGS)

build: ## build the program: build/vivarium (JOBS=2: with two compilers at a time)
	@[ -f build/build.ninja ] || cmake --preset release >/dev/null
	@[ -z "$$(find CMakeLists.txt wire kernelmgr mcp api -newer build/.ninja_log -print -quit 2>&1)" ] \
	  || echo 'building build/vivarium (the first time: about a minute)' >&2
	@bash -o pipefail -c \
	  "ninja -C build -j $(JOBS) --quiet | sed -u '/^ninja: no work to do/d'"

test: ## set up what is missing, build, run every test (20 minutes on two processors)
	@deploy/setup.sh test
	@tests/run

demo: ## play the README's tour with the official MCP client (set up if missing)
	@deploy/setup.sh demo
	@$(MAKE) --no-print-directory build
	@$(PY_TOOLS)/python tests/demo.py build/vivarium

bench: ## measure against peers in the same run, write docs/bench.md (about 15 minutes)
	@deploy/setup.sh bench
	@$(MAKE) --no-print-directory build
	@PYTHONPATH=tests/e2e $(PY_TOOLS)/python bench/run.py build

soak: ## random calls, kills and restarts under ASan for SOAK_MINUTES (30)
	@deploy/setup.sh test
	@[ -n "$$SOAK_BUILD" ] || { cmake --preset asan >/dev/null && ninja -C build-asan --quiet; }
	@PYTHONPATH=tests/e2e $(PY_TOOLS)/python tests/soak.py

tables: build ## write the generated tables of the documents anew
	@python3 docs/tables.py build/vivarium --write

check-style: ## clang-format, ruff and mypy, without changing anything
	@tests/check_style

check-code: ## -fanalyzer, clang-tidy, cppcheck, clang, banned calls
	@deploy/setup.sh test
	@tests/check_code

fuzz: ## fuzz each parser for FUZZ_SECONDS (60); or only some: make fuzz ARGS="jmsg rpc"
	@deploy/setup.sh test
	@tests/fuzz/run $(ARGS)

classes: ## which objects of which library come back after a restart (a large environment first)
	@deploy/setup.sh test
	@[ -x .venv-classes/bin/python ] || /usr/bin/python3 -m venv .venv-classes
	@$(PY_TOOLS)/uv pip sync -q --python .venv-classes/bin/python --require-hashes \
	  tests/classes/requirements.txt
	@$(PY_TOOLS)/python tests/classes/run.py --python .venv-classes/bin/python $(ARGS)

limits-v2: ## the limits of kernels with control groups of version 2, in user-mode Linux (10 minutes)
	@deploy/setup.sh test
	@deploy/setup.sh uml
	@$(MAKE) --no-print-directory build
	@tests/uml/run

memcheck: ## valgrind over the C tests and a session with a kernel (about 3 minutes)
	@deploy/setup.sh test
	@tests/valgrind/run

format: ## rewrite C and Python in the house format
	@git ls-files '*.c' '*.h' | xargs clang-format -i
	@$(PY_TOOLS)/ruff format -q . && $(PY_TOOLS)/ruff check -q --fix .

LOCK := uv pip compile -q --generate-hashes --python-version 3.11 \
  --no-header --no-emit-index-url --no-emit-find-links

lock: ## write all lock files anew, with the newest versions only after ARGS=--upgrade
	@deploy/setup.sh test
	$(PY_TOOLS)/$(LOCK) --universal $(ARGS) --extra data -o requirements.txt pyproject.toml
	$(PY_TOOLS)/$(LOCK) --universal $(ARGS) --extra plots -c requirements.txt \
	  -o requirements-plots.txt pyproject.toml
	$(PY_TOOLS)/$(LOCK) --universal $(ARGS) --extra dev -c requirements.txt \
	  -o requirements-dev.txt pyproject.toml
	for room in tests/clients bench; do \
	  (cd $$room && $(CURDIR)/$(PY_TOOLS)/$(LOCK) --universal $(ARGS) \
	    -o requirements.txt requirements.in) || exit; \
	done
	$(PY_TOOLS)/$(LOCK) $(ARGS) -o tests/classes/requirements.txt tests/classes/requirements.in
	for room in tests/clients tests/conformance tests/agents bench; do \
	  .venv-clients/bin/npm $(if $(findstring upgrade,$(ARGS)),update,install) \
	    --prefix $$room --package-lock-only --omit-lockfile-registry-resolved \
	    --ignore-scripts --no-fund --no-audit --loglevel error || exit; \
	done

clean: ## remove what was built (environments stay)
	rm -rf build build-asan build-analyze build-fuzz
