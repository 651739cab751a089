# Everything a newcomer, a developer or a technician types. Needs make, Python 3.11 or later, and the usual package
# registry the first time; nothing here needs root, except `install` where PREFIX does.

PYTHON  ?= python3
VENV    ?= .venv
GAME    ?= roulette
COUPS   ?=
SPEED   ?=
SEED    ?=
ARGS    ?=
PREFIX  ?= /opt/table-controller
DESTDIR ?=

CONFIG  ?= $(firstword $(wildcard config/$(GAME).toml config/$(GAME)-launcher.toml))
BIN      = $(VENV)/bin
STAMP    = $(VENV)/installed
TARGET   = $(DESTDIR)$(PREFIX)
SHARE    = $(TARGET)/share/table-controller

.DEFAULT_GOAL = help
.PHONY: help run test check bench proof docs install clean venv venv-fill installable

help:
	@echo 'make run      play a table: wheel, posts, broker, journal      GAME=roulette | CONFIG=FILE  COUPS=20  SPEED=10  SEED=7'
	@echo 'make test     all tests, in random order                       ARGS="tests/games -k stake"'
	@echo 'make check    style, types, layers, and whether the documents are up to date'
	@echo 'make bench    how fast and how large, each figure beside its yardstick'
	@echo 'make proof    crashes, power cuts, faults, attacks: each claim tried   ARGS="crash-states flips"'
	@echo 'make docs     write the documents that are made from the code'
	@echo 'make install  a table of its own under PREFIX=/opt/table-controller (DESTDIR= for a package)'
	@echo 'make clean    remove what make made, and all that was played'
	@echo
	@echo 'PYTHON=python3.13 chooses the interpreter. What is needed is installed into $(VENV) the first time.'

run: venv
	@test -n '$(CONFIG)' || { \
	  echo "There is no game '$(GAME)'. Choose GAME or CONFIG among:"; ls config/*.toml; exit 2; }
	@$(BIN)/tablectl demo --config '$(CONFIG)' $(if $(COUPS),--coups $(COUPS)) $(if $(SPEED),--speed $(SPEED)) $(if $(SEED),--seed $(SEED))

test: venv
	@$(BIN)/python -m pytest $(ARGS)

check: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --explicit-package-bases docs/make_docs.py
	$(BIN)/lint-imports
	$(BIN)/python docs/make_docs.py --check

bench: venv
	@$(BIN)/python -m bench $(ARGS)

proof: venv
	@$(BIN)/python -m proof $(ARGS)

docs: venv
	@$(BIN)/python docs/make_docs.py

clean:
	rm -rf $(VENV) var build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ── The environment: made once, and again when the interpreter, pyproject.toml or requirements.lock changed ──────────

installable:
	@'$(PYTHON)' -c '' 2>/dev/null || { \
	  echo "There is no '$(PYTHON)' here. Install Python 3.11 or later, or name one: make PYTHON=python3.13"; exit 1; }
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$$('$(PYTHON)' --version 2>&1) is too old: Python 3.11 or later is needed. Name another: make PYTHON=python3.13"; exit 1; }
	@'$(PYTHON)' -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$$('$(PYTHON)' --version) has no venv module. On Debian or Raspberry Pi OS: apt install python3-venv"; exit 1; }

venv: installable
	@key="$$('$(PYTHON)' --version) $$(cat pyproject.toml requirements.lock | cksum)"; \
	  test "$$(cat $(STAMP) 2>/dev/null)" = "$$key" || $(MAKE) --no-print-directory venv-fill KEY="$$key"

venv-fill:
	@echo "[1/3] Setting up $(VENV) with $$('$(PYTHON)' --version); this happens once"
	@'$(PYTHON)' -m venv $$(test "$$('$(PYTHON)' --version)" = "$$($(BIN)/python --version 2>&1)" || echo --clear) $(VENV)
	@echo "[2/3] Fetching $$(grep -c == requirements.lock) libraries, a minute or so"
	@{ $(BIN)/python -m pip install --disable-pip-version-check -r requirements.lock 2>&1 && touch $(VENV)/fetched; } \
	  | tee $(VENV)/setup.log | sed -n 's/^Collecting \([^ ]*\).*/      \1/p'
	@rm $(VENV)/fetched 2>/dev/null || { tail -n 20 $(VENV)/setup.log; \
	  echo "The libraries could not be installed: see the last lines above, and all of it in $(VENV)/setup.log"; exit 1; }
	@echo "[3/3] Installing this project"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable . \
	  >> $(VENV)/setup.log 2>&1 || { tail -n 20 $(VENV)/setup.log; exit 1; }
	@echo '$(KEY)' > $(STAMP)

# ── A table ───────────────────────────────────────────────────────────────────────────────────────────────────────────

install: installable
	@case '$(TARGET)' in /*) ;; *) echo "PREFIX and DESTDIR must be absolute paths, not '$(TARGET)'"; exit 2;; esac
	@mkdir -p '$(SHARE)' 2>/dev/null && test -w '$(TARGET)' || { \
	  echo "$(TARGET) cannot be written. Run this as root, or choose another place: make install PREFIX=\$$HOME/table"; exit 1; }
	@echo "[1/3] A Python of its own in $(TARGET)"
	@'$(PYTHON)' -m venv '$(TARGET)'
	@echo "[2/3] The table, and only the libraries it needs, at the versions of requirements.lock"
	@rm -rf build/lib build/bdist.*
	@'$(TARGET)/bin/python' -m pip install --disable-pip-version-check --constraint requirements.lock . \
	  > '$(SHARE)/install.log' 2>&1 || { tail -n 20 '$(SHARE)/install.log'; exit 1; }
	@test -z '$(DESTDIR)' || sed -i 's|$(TARGET)|$(PREFIX)|g' \
	  $$(grep -rIl '$(TARGET)' '$(TARGET)/bin' '$(TARGET)/pyvenv.cfg')
	@echo "[3/3] Examples of configuration, and units, in $(SHARE)"
	@rm -rf '$(SHARE)/config' '$(SHARE)/systemd' && cp -r config systemd '$(SHARE)/'
	@find '$(SHARE)/systemd' -type f -exec sed -i 's|/opt/table-controller|$(PREFIX)|g' {} +
	@echo
	@cat '$(SHARE)/systemd/INSTALL.txt'
