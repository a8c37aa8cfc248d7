# `make demo` and `make test` need Python 3.11 or newer and nothing else; everything goes into .venv.
# PYTHON=/path/to/python3 chooses the interpreter, ARGS="-k topic" is handed on to pytest.

VENV := .venv
BIN := $(VENV)/bin
# Setuptools explains at length what an editable installation is.
INSTALL := PYTHONWARNINGS=ignore $(BIN)/pip install --quiet --disable-pip-version-check

.PHONY: help setup demo test test-all test-docs test-quick test-thorough test-lowest test-newest bridge parts parity integration cluster check docs dist bench calibrate changelog clean distclean

help:
	@echo "make demo    install, make a sample log, compare four candidates over it"
	@echo "make test    install, run the quick tests and one real path each through Spark, server, browser, plug-in and docs"
	@echo "make test-all  run the rest of the suite as well"
	@echo "make test-docs  run the pages whose commands start programs"
	@echo "make test-quick  run the tests without Spark, browser, other processes and long sums"
	@echo "make test-thorough  compute the figures of the pages anew, calibrate a little, replay a whole trace"
	@echo "make test-lowest, make test-newest  run the quick tests with the oldest releases that setup.cfg permits, or with the newest"
	@echo "make integration  run the tests that need a Pulsar cluster: its jars from Maven Central, three brokers on this machine; ARGS=--pulsar=4.0.7 for another release"
	@echo "make cluster  run the tests that need a Spark cluster: a master and two workers on this machine, and YARN"
	@echo "make parity  compare the policies with Pulsar's own classes, 4.0.8, 4.2.4 and 5.0.1: jars from Maven Central; ARGS='--states 5000 --scenarios 200 --write' for docs/pulsar-parity.md"
	@echo "make bridge  build the jar for Pulsar's brokers: plugins/pulsar_bridge/target/pulsar-bridge.jar"
	@echo "make parts   build the program that runs policies in Java: ~/.cache/pulsar-lookup/pulsar-parts.jar"
	@echo "make check   format, lint, types, contracts, docs"
	@echo "make docs    build the pages as a site, docs/_build/html; VERSION=COMMIT, or a tag, builds those of another version beside it"
	@echo "make dist    build dist/, install its wheel into an environment of its own and do the demo with it"
	@echo "make bench   measure the figures of docs/benchmarks.md"
	@echo "make calibrate  measure how often verdicts are false, three quarters of an hour; ARGS=--write keeps docs/calibration.md"
	@echo "make changelog  put docs/changes into CHANGELOG.md, for a release"
	@echo "make clean   remove what demo, test, check and bench left behind; make distclean removes the environments as well"

$(BIN)/pip:
	@scripts/make-venv.sh $(VENV)

$(VENV)/.installed-demo: setup.cfg pyproject.toml | $(BIN)/pip
	@echo "Installing pulsar-lookup and Spark into $(VENV); the first time this takes some minutes."
	@$(INSTALL) --editable '.[report,spark]'
	@touch $@

$(VENV)/.installed-test: setup.cfg pyproject.toml | $(BIN)/pip
	@echo "Installing pulsar-lookup, Spark and the tools into $(VENV); the first time this takes some minutes."
	@$(INSTALL) --editable '.[connect,report,serve,spark,topics,test,docs]'
	@touch $@

setup: $(VENV)/.installed-test

demo: $(VENV)/.installed-demo
	@JAVA_HOME=$$(scripts/ensure-java.sh) && export JAVA_HOME && \
	{ [ -e sample ] || $(BIN)/lookup generate --output sample; } && \
	$(BIN)/lookup evaluate configs/evaluation.toml --output report --force

# Tests of one file run in one process: they share what is costly. Each process may start a Spark of its own, of 1.5 GiB.
# Files go in the order of tests/conftest.py, the long ones first: no process is left to compute alone at the end.
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder --durations 10

# Without a browser its tests are skipped, with what the script said.
test test-all: $(VENV)/.installed-test
	@scripts/ensure-browser.sh >/dev/null || true
	@JAVA_HOME=$$(scripts/ensure-java.sh) && export JAVA_HOME && \
	$(BIN)/python -m pytest $(if $(filter test,$@),-m "quick or path") $(SIDE_BY_SIDE) $(ARGS)

# Pages of docs whose commands start programs.
test-docs: $(VENV)/.installed-test
	@JAVA_HOME=$$(scripts/ensure-java.sh) && export JAVA_HOME && $(BIN)/python -m pytest -p tests.conftest -m docs $(SIDE_BY_SIDE) README.md docs $(ARGS)

test-quick: $(VENV)/.installed-test
	@$(BIN)/python -m pytest -m quick $(SIDE_BY_SIDE) $(ARGS)

# What failed is kept apart, here and below: another run may go on beside.
test-thorough: $(VENV)/.installed-test
	@scripts/ensure-browser.sh >/dev/null || true
	@JAVA_HOME=$$(scripts/ensure-java.sh) && export JAVA_HOME && \
	$(BIN)/python -m pytest -m thorough -o cache_dir=$(VENV)/pytest_cache $(SIDE_BY_SIDE) \
	tests tests/acceptance README.md docs lookup plugins $(ARGS)

test-lowest test-newest: test-%:
	@python=$$(scripts/ensure-releases.sh $*) && \
	$$python -m pytest -m quick --hypothesis-profile few -o cache_dir=$(VENV)-$*/pytest_cache $(SIDE_BY_SIDE) $(ARGS)

parity: $(VENV)/.installed-test
	@scripts/ensure-bridge.sh 5.0.1
	@$(BIN)/python -m tests.parity $(ARGS)

bridge:
	@scripts/ensure-bridge.sh

# The program that policies in Java run in.
parts:
	@scripts/ensure-parts.sh --jar

# ARGS=--pulsar=4.0.7 is for a cluster of that release.
PULSAR := $(patsubst --pulsar=%,%,$(filter --pulsar=%,$(ARGS)))

# The tests start the cluster; here its jars are got, and what is missing is said in one sentence.
integration: $(VENV)/.installed-test
	@JAVA_HOME=$$(scripts/ensure-java.sh) && export JAVA_HOME && scripts/ensure-pulsar.sh $(PULSAR) >/dev/null && \
	scripts/ensure-bridge.sh >/dev/null && { scripts/ensure-go-clients.sh >/dev/null || true; } && \
	$(BIN)/python -m pytest -m pulsar tests/acceptance/pulsar $(ARGS)

cluster: $(VENV)/.installed-test
	@JAVA_HOME=$$(scripts/ensure-java.sh) && export JAVA_HOME && { scripts/ensure-object-store.sh >/dev/null || true; } && \
	{ scripts/ensure-yarn.sh >/dev/null || true; } && \
	$(BIN)/python -m pytest -m cluster tests $(ARGS)

check: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/python scripts/rooms.py
	$(BIN)/python scripts/prose.py
	$(BIN)/sphinx-build $(SPHINX) docs/_build/html

SPHINX := -q -W --keep-going -b html docs

# Another version's pages describe its own code: it is checked out and installed, and removed afterwards.
docs: $(if $(VERSION),,$(VENV)/.installed-test)
ifdef VERSION
	git worktree add --detach build/docs-$(VERSION) $(VERSION)
	$(MAKE) -C build/docs-$(VERSION) setup VERSION= && \
	(cd build/docs-$(VERSION) && .venv/bin/sphinx-build $(SPHINX) $(CURDIR)/docs/_build/$(VERSION)); \
	code=$$?; git worktree remove --force build/docs-$(VERSION); exit $$code
else
	$(BIN)/sphinx-build $(SPHINX) docs/_build/html
endif

dist: $(VENV)/.installed-test
	@scripts/check-dist.sh

bench: $(VENV)/.installed-test
	@JAVA_HOME=$$(scripts/ensure-java.sh) && export JAVA_HOME && $(BIN)/python benchmarks/run.py $(ARGS)

changelog: $(VENV)/.installed-test
	$(BIN)/towncrier build --yes --version "$$(sed -n "s/^version = //p" setup.cfg)"

calibrate: $(VENV)/.installed-test
	@$(BIN)/python -m tests.acceptance.calibration $(ARGS)

clean:
	rm -rf build dist plugins/pulsar_bridge/target plugins/pulsar_parts/target *.egg-info sample report bench-data docs/_build spark-warehouse metastore_db derby.log
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.venv*/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) .venv-lowest .venv-newest
