# You can type the commands of every target by hand. "make run" first, then "make test".

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed-from-pyproject
DEV := $(VENV)/installed-for-tests
RUN := $(BIN)/mpirun -n 4 $(BIN)/python -m apps.bfs

# The longest first: a process that begins with it last would keep the others waiting.
BY_CPU := $(foreach what,card bursts partition_gpu ladder peers priority trace build_gpu gpu translate_rules own_algorithm limits arrays,tests/*/test_$(what).py)
GPU_PYTHON ?= $(BIN)/python

.PHONY: run test check one-rank types gpu-check bench clean

run: $(STAMP)  ## breadth-first search on 4 ranks
	@echo '$(RUN)'
	@$(RUN)

test: $(DEV)  ## every test at 1, 2, 3 and 4 ranks
	$(BIN)/python -m scripts.test

check: $(DEV)  ## lint, format, types, all but slow tests at 1 and 2 ranks, and the GPU code, run by a CPU, at 1 and 2
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --jobs=2 one-rank types
	$(BIN)/python -m scripts.test --ranks 2 -m 'not slow'
	$(BIN)/python -m scripts.test --device gpu --ranks 1,2 -m 'not slow' $(BY_CPU)

one-rank:
	$(BIN)/python -m scripts.test --ranks 1 -m 'not slow'

types:
	$(BIN)/mypy

gpu-check:  ## the tests of the GPU code on a GPU, then compute-sanitizer; GPU_PYTHON is a Python that has CuPy
	@$(GPU_PYTHON) -c 'import cusp.runtime.devices as devices; exit(devices._use_gpu(0)[1])'
	$(GPU_PYTHON) -m scripts.test --device gpu --ranks 1,2,4
	$(GPU_PYTHON) -m scripts.sanitize

bench: $(DEV)  ## the benchmarks that need no GPU
	$(BIN)/python -m scripts.bench cpu

clean:  ## remove all generated files
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

$(STAMP): pyproject.toml | $(BIN)/pip
	@echo 'installing NumPy, numba, h5py, mpi4py and MPICH into $(VENV): about 360 MB'
	$(BIN)/python -m pip install -e '.[mpich]'
	@touch $@

$(DEV): pyproject.toml | $(BIN)/pip
	@echo 'installing what tests need besides: about 1 GB more'
	$(BIN)/python -m pip install --no-compile -e '.[mpich,dev]'
	@touch $(STAMP) $@

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo 'error: "$(PYTHON)" is not Python 3.11 or later; install one and say: make $(MAKECMDGOALS) PYTHON=/path/to/it'; exit 1; }
	@echo '$(PYTHON) -m venv $(VENV)'; $(PYTHON) -m venv $(VENV) || { \
	  echo 'error: no venv module; on Debian or Ubuntu: apt install python3-venv, then say make again'; exit 1; }
