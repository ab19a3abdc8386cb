PYTHON ?= python3
JOBS   ?= 3

BIN   := .venv/bin
STAMP := .venv/.installed
PEERS := .venv/.installed-bench
REAL  := .venv/.installed-real
FUZZ  := .venv/.installed-fuzz
CODE  := $(wildcard src tests scripts benchmarks faults examples)
# Most of what is installed is never imported, so nothing is compiled ahead.
PIP   := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

# Byte code is kept when something is first imported, even where the machine says otherwise: else
# every process that the tests start would compile all of it again.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help setup chromium kernel demo test lint types style format docs site examples bench real calibrate faults fuzz clean

help:
	@echo "make setup    create .venv with the locked versions and demix itself"
	@echo "make demo     run the demonstration into demo-output/"
	@echo "make test     lint, types, layers, tests, doctests and README examples"
	@echo "make lint     the static half of 'make test'"
	@echo "make format   rewrite the code in house style"
	@echo "make docs     put the tables under results/ into README.md and docs/"
	@echo "make site     build the documentation into site/, to be opened as files"
	@echo "make examples run examples/ in full into results/examples/ and docs/"
	@echo "make bench    measure everything, about half an hour, into results/bench/ and docs/speed.md"
	@echo "make real     compare the defaults with other tools on real data, about two hours, into results/real/"
	@echo "make calibrate count how often the check-up is right, about eight hours, into results/calibration/"
	@echo "make faults   kill, starve and damage everything, about half an hour, into results/faults/"
	@echo "make fuzz     look for model files that its reader stumbles over, for five minutes"
	@echo "make clean    remove everything the other targets made"

setup: $(STAMP)

# The lock file holds everything, the build backend too: pip has nothing to resolve, and installing
# demix itself downloads nothing. Two at a time unpack a quarter of it each, from the end, where
# torch is. pip check then fails if the lock no longer satisfies pyproject.toml.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("demix needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	grep -v '^#' constraints.txt | sort -r | xargs -P 2 -n 32 $(PIP) --no-deps
	$(PIP) --no-deps --no-build-isolation -e .
	$(BIN)/python -m pip check
	@touch $@

demo: setup
	$(BIN)/demix demo --out demo-output --overwrite

# Each worker keeps to one thread: workers with a thread per core each would only wait for one
# another. One more than there are cores fills the time in which tests wait for other processes.
# Tests of one file share what they set up, so one worker runs them all; short doctests come last.
# Types are checked meanwhile, and told at the end, where they are seen.
test:
	@$(MAKE) --no-print-directory -j2 setup chromium
	@$(MAKE) --no-print-directory -j2 style kernel
	@$(BIN)/mypy >.venv/types.txt 2>&1 & types=$$!; \
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder; \
	failed=$$?; wait $$types || failed=1; cat .venv/types.txt; exit $$failed

chromium:
	@scripts/ensure_chromium.sh

# Else all workers would compile it at once.
kernel: setup
	@$(BIN)/python -c 'from demix._support.kernel.build import library; library()'

lint: setup
	@$(MAKE) --no-print-directory -j2 types style

types: setup
	$(BIN)/mypy

style: setup
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/codespell
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.fill_docs --check

format: setup
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

docs: setup
	$(BIN)/python -m scripts.fill_docs

# Without a warning about other versions of mkdocs than the locked one.
site: setup docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "Open site/index.html"

# Photographs are not part of demix: docs/images.md says where they come from.
examples: setup
	$(BIN)/python examples/time_series.py --out results/examples
	$(BIN)/python examples/class_labels.py --out results/examples
	$(BIN)/python examples/probing.py --out results/examples
	$(if $(DEMIX_COIL100),$(BIN)/python examples/turntable.py --out results/examples,\
		@echo "examples/turntable.py left out: DEMIX_COIL100 does not say where its data are")
	$(BIN)/python -m scripts.fill_docs

# Peers are for measuring only. The first lock file keeps them from moving anything.
$(PEERS): $(STAMP) constraints-bench.txt
	$(PIP) -c constraints.txt -r constraints-bench.txt
	@touch $@

bench: $(PEERS)
	$(BIN)/python -m benchmarks --sections contrast --json results/bench/contrast.json --overwrite
	$(BIN)/python -m benchmarks --sections step,convergence,samplers,scores,scaling \
		--json results/bench/bench.json --overwrite
	$(BIN)/python -m benchmarks --sections estimators --json results/bench/estimators.json --overwrite
	$(BIN)/python -m benchmarks --sections everyday --json results/bench/everyday.json --overwrite
	$(BIN)/python -m benchmarks --sections sweep --json results/bench/sweep.json --overwrite
	$(BIN)/python -m benchmarks --sections distributed --json results/bench/distributed.json --overwrite
	$(BIN)/python scripts/plot_scaling.py
	$(BIN)/python -m scripts.fill_docs

$(REAL): $(STAMP) constraints-real.txt
	$(PIP) --only-binary :all: -c constraints.txt -r constraints-real.txt
	@touch $@

real: $(REAL)
	$(BIN)/python -m benchmarks.real --out results/real
	$(BIN)/python -m scripts.fill_docs

calibrate: setup
	$(BIN)/python -m benchmarks.calibration --seeds 0-19 --out results/calibration
	$(BIN)/python -m scripts.fill_docs

# One thread, so that kills come at moments that are as random as they are meant to be.
faults: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m faults --out results/faults
	$(BIN)/python -m faults.cost --out results/faults/checkpoints
	$(BIN)/python -m scripts.fill_docs

$(FUZZ): $(STAMP) constraints-fuzz.txt
	$(PIP) -c constraints.txt -r constraints-fuzz.txt
	@touch $@

fuzz: $(FUZZ)
	OMP_NUM_THREADS=1 $(BIN)/python -m faults.fuzz_models -max_total_time=300

clean:
	rm -rf .venv demo-output example-output site build dist
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
