# The front door: `make help` lists the targets. The build itself is CMake's (CMakeLists.txt).
#   CMAKE_FLAGS   more flags for every configuration, for example -DVARVE_WITH_CURL=OFF
#   JOBS          parallel jobs (default: one to a processor)

PREFIX       ?= /usr/local
DESTDIR      ?=
FUZZ_SECONDS ?= 60
JOBS         ?= $(shell nproc 2>/dev/null || echo 2)
CMAKE_FLAGS  ?=

MAKEFLAGS += --no-print-directory

# `make CC=clang`; make's own default for CC says nothing about what the user wants
compiler  = $(if $(filter command,$(firstword $(origin CC))),-DCMAKE_C_COMPILER=$(CC))
# of a new build tree; one that is there keeps its own
generator = $(or $(CMAKE_GENERATOR),$(if $(shell command -v ninja 2>/dev/null),Ninja,Unix Makefiles))
configure = CMAKE_GENERATOR='$(generator)' cmake -S . --log-level=NOTICE $(compiler) $(CMAKE_FLAGS)
compile   = cmake --build
suite     = ctest --no-label-summary --output-on-failure --no-tests=error -j$(JOBS) --test-dir

.PHONY: all setup configure build demo train check test bench bench-full asan tsan fuzz site install uninstall clean help

all: build

help:
	@echo "make            build the library, the command (build/varve), the examples and the benchmarks"
	@echo "make setup      install the Debian packages of packages.txt that are missing (tools/setup build: only those of the build)"
	@echo "make demo       packages of the build, build, run examples/demo"
	@echo "make train      the same with examples/train/demo: a training is killed and resumed, on a GPU where there is one"
	@echo "make check      build and run the unit tests, less than a minute of tests; installs nothing"
	@echo "make test       setup, build, run the test suite"
	@echo "make bench      setup, build, run all benchmarks, 15 minutes (bench/run NAME for one): build/bench.json"
	@echo "make bench-full the same at the sizes of the papers, hours: build/bench-full.json"
	@echo "make asan       the suite under AddressSanitizer and UBSan (build-asan)"
	@echo "make tsan       the suite under ThreadSanitizer (build-tsan)"
	@echo "make fuzz       each fuzzer for FUZZ_SECONDS=$(FUZZ_SECONDS) (build-fuzz, clang)"
	@echo "make site       docs/ as pages to read in a browser, with no network: build/site/index.html"
	@echo "make install    PREFIX=$(PREFIX), DESTDIR honoured"
	@echo "make uninstall  remove the files and folders of make install: the same PREFIX and DESTDIR"
	@echo "make clean      remove the build trees"

setup:
	@tools/setup

configure:
	@$(configure) -B build >/dev/null

build: configure
	@$(compile) build -j$(JOBS)

demo:
	@tools/setup build
	@$(MAKE) configure
	@$(compile) build -j$(JOBS) --target demo
	@examples/demo

train:
	@tools/setup build
	@$(MAKE) configure
	@$(compile) build -j$(JOBS) --target demo
	@examples/train/demo

check: configure
	@$(compile) build -j$(JOBS) --target quick
	@$(suite) build -L quick

test: setup
	@$(MAKE) build
	@$(suite) build

bench: setup
	@$(MAKE) build
	@bench/run --out build/bench.json all

bench-full: setup
	@$(MAKE) build
	@bench/run --full --out build/bench-full.json all

asan: setup
	@$(configure) -B build-asan '-DVARVE_SANITIZE=address;undefined' >/dev/null
	@$(compile) build-asan -j$(JOBS)
	@UBSAN_OPTIONS=print_stacktrace=1 $(suite) build-asan -LE 'meta|packaging'

# Address randomisation wider than ThreadSanitizer's shadow layout stops it at start: without randomisation where allowed.
tsan: setup
	@$(configure) -B build-tsan -DVARVE_SANITIZE=thread >/dev/null
	@$(compile) build-tsan -j$(JOBS)
	@if setarch -R true 2>/dev/null; then fixed='setarch -R'; else fixed=; fi; \
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1 $$fixed $(suite) build-tsan -LE 'meta|packaging'

# What a fuzzer finds goes into the build tree; copy what deserves to stay into fuzz/corpus/<name>/.
fuzz: setup
	@CMAKE_GENERATOR='$(generator)' cmake -S . --log-level=NOTICE -DCMAKE_C_COMPILER=clang $(CMAKE_FLAGS) -B build-fuzz \
		-DVARVE_FUZZ=ON '-DVARVE_SANITIZE=address;undefined' >/dev/null
	@$(compile) build-fuzz -j$(JOBS)
	@set -e; for source in fuzz/fuzz_*.c; do \
		[ -e "$$source" ] || { echo "no fuzz/fuzz_*.c to run"; break; }; \
		target=$$(basename "$$source" .c); name=$${target#fuzz_}; found=build-fuzz/found/$$name; \
		seeds=fuzz/corpus/$$name; [ -d "$$seeds" ] || seeds=; mkdir -p "$$found"; \
		echo "== $$name: $(FUZZ_SECONDS) s"; \
		build-fuzz/fuzz/$$target -max_total_time=$(FUZZ_SECONDS) -timeout=25 -rss_limit_mb=4096 \
			-print_final_stats=1 -verbosity=0 -artifact_prefix="$$found-" "$$found" $$seeds; \
	done

site: configure
	@tools/setup docs
	@$(compile) build -j$(JOBS) --target manuals
	@mkdocs build --strict
	@echo "build/site/index.html"

install: configure
	@$(compile) build -j$(JOBS) --target installed
	@DESTDIR="$(DESTDIR)" tools/install build "$(PREFIX)"

uninstall:
	@DESTDIR="$(DESTDIR)" tools/install --remove build "$(PREFIX)"

clean:
	rm -rf build build-asan build-tsan build-fuzz build-clang build-minimal build-debug
