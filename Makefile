# Everything a newcomer needs: `make run`, then `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CORE := CMakeLists.txt core/CMakeLists.txt pyproject.toml $(wildcard core/*.[ch]pp bindings/*.[ch]pp)

.PHONY: run test test-slow fuzz lint sanitize valgrind check-arm64 clean

run: $(VENV)/.run
	$(BIN)/limes demo

test: $(VENV)/.test
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: $(VENV)/.test
	$(BIN)/python -m pytest -s -m slow

# A million damaged files for each reader.
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz/fuzz_limes.py 1000000
	$(BIN)/python tests/fuzz/fuzz_source.py 1000000
	$(BIN)/python tests/fuzz/fuzz_libagf.py 1000000
	$(BIN)/python tests/fuzz/fuzz_libsvm_model.py 1000000
	$(BIN)/python tests/fuzz/fuzz_rows.py 1000000

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The core built with AddressSanitizer and UBSan beside the ordinary one, through its tests. Without
# `site` (-S) the editable install stays out of the way. Python itself leaks by design. What the
# sanitizers say goes past Python, and must not be captured.
SANITIZED := $(CURDIR)/build/sanitized
sanitize: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(SANITIZED) \
	  -C build-dir=$(SANITIZED)-objects -C cmake.build-type=RelWithDebInfo -C install.strip=false \
	  -C cmake.define.LIMES_SANITIZE=address,undefined .
	LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 \
	  PYTHONPATH="$(SANITIZED):$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')" \
	  $(BIN)/python -S -m pytest -q -p no:cacheprovider --capture=sys tests/core tests/test_rules.py

# Memory that is read before it is written, which the sanitizers do not see: a short run. CPython and
# NumPy have reports of their own; one that passes through the core is an error.
VALGRIND_LOG := build/valgrind.log
valgrind: $(VENV)/.test
	PYTHONMALLOC=malloc OPENBLAS_NUM_THREADS=1 valgrind --error-limit=no --track-origins=yes \
	  --log-file=$(VALGRIND_LOG) $(BIN)/python tests/core/short_run.py
	! grep -C 12 _native $(VALGRIND_LOG)

# The kernel for arm64, in an emulator. Debian: g++-aarch64-linux-gnu and qemu-user.
check-arm64:
	mkdir -p build
	aarch64-linux-gnu-g++ -std=c++17 -O3 -ffp-contract=off -static -DLIMES_PATH=generic -Isrc/limes/_core \
	  tests/core/check_kernel.cpp src/limes/_core/kernel.cpp -o build/check_kernel_arm64
	qemu-aarch64 build/check_kernel_arm64

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# One stamp a set of tools: it is made again when the core or the requirements change.
$(VENV)/.run: $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	@touch $@

$(VENV)/.test: $(CORE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	@touch $@

$(VENV)/.lint: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --editable ".[test,lint]"
	@touch $@

clean:
	rm -rf $(VENV) build dist src/limes/_core/*.so
