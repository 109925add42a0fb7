# SPDX-License-Identifier: MIT

# Debian packages: build dependencies of the library; tools of `make test`; the servers and tools of `make check` and of
# the benchmarks; tools of the benchmarks only; further servers of `make interop`.
LIBRARY_PACKAGES := libcurl4-openssl-dev libssl-dev pkg-config
TOOL_PACKAGES := curl iproute2 openssl python3
TEST_PACKAGES := python3-venv nginx libnginx-mod-stream tinyproxy-bin microsocks apache2 haproxy caddy libvips-dev \
	libvips-tools
BENCH_PACKAGES := aria2
INTEROP_PACKAGES := lighttpd lighttpd-mod-openssl lighttpd-mod-deflate varnish h2o squid-openssl nghttp2-server nodejs

# Whether `make interop` installs missing servers, and the options of `make interop` and `make mutants`:
# make interop OPTIONS='--only node', make mutants OPTIONS='--only ANCurl'.
INSTALL :=
OPTIONS :=
# What `make mutants` changes. The default seed is the date.
SEED ?= $(shell date +%F)
COUNT ?= 80
# The number of exchanges of `make endurance`.
EXCHANGES := 1000000
# The number of processes that `make check-kills` kills.
KILLS := 1000
# What `make fuzz` tests, by default all targets, and for how long each, and for how long `make simulate` runs.
TARGET :=
SECONDS ?= 180
# The first seed and the number of seeds of `make simulate`, by default the time and no limit, if given on the command
# line or in the environment; and the families of programs, separated by commas, by default all.
SIMULATION_SEED = $(if $(filter file,$(origin SEED)),,$(SEED))
SIMULATION_COUNT = $(if $(filter file,$(origin COUNT)),,$(COUNT))
FAMILY ?=

# The URL for the demo; if empty, it runs its own server.
URL :=
ROUNDS := 5
# The Debian releases of `make matrix`.
SUITES := bookworm trixie sid
WORKLOAD :=

# The maximum number of public symbols; see scripts/symbols.
PUBLIC_SYMBOLS := 1415

SHELL := /bin/bash
SERVERS := scripts/servers/servers
SERVERS_DIR := .build/servers
INTEROP_DIR := .build/interop
export AN_VENV := $(CURDIR)/.build/venv

# All debug builds use the same flags, so that none rebuilds everything. Images are decoded where libvips is installed.
FLAGS := -Xswiftc -warnings-as-errors --explicit-target-dependency-import-check error \
	$(if $(shell pkg-config --exists vips 2>/dev/null && command -v vips),--traits ImageDecoding)
SWIFT_FILES := $(wildcard Package.swift Sources Tests Examples Benchmarks)
# Progress is shown on a terminal only.
QUIET := $(if $(MAKE_TERMOUT),,--quiet)
# Sanitizers make tests slow; with eight at a time, the default here, some would exceed their time limits.
FEW_AT_ONCE := --experimental-maximum-parallelization-width 4

.PHONY: help setup setup-library build format flags check-format samples test check check-servers check-examples \
	check-observability check-docs check-kills slow-readers slowest interop interop-buffers endurance matrix demo tsan asan mutants fuzz simulate plants bench bench-loops bench-instructions docs symbols clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: setup-library ## Install the dependencies of all checks and of the benchmarks
	@$(call install,$(TEST_PACKAGES) $(BENCH_PACKAGES))
	@$(SERVERS) setup

setup-library: ## Install the build dependencies of the library, and the tools of its tests
	@$(call install,$(LIBRARY_PACKAGES) $(TOOL_PACKAGES))

build: setup-library ## Build the library and the tests
	swift build --build-tests $(QUIET) $(FLAGS)

format: samples ## Format all Swift files in place, and write the samples into the documentation
	swift format --in-place --recursive --parallel $(SWIFT_FILES)

samples:
	@scripts/samples

# For CONTRIBUTING.md.
flags:
	@echo '$(FLAGS)'

check-format:
	swift format lint --strict --recursive --parallel $(SWIFT_FILES)
	@scripts/samples --check

test: setup-library check-format build ## Check the format and the samples, and run all tests that need no installed server
	@scripts/typecheck "$$(swift build --show-bin-path $(FLAGS))/Modules"
	@Tests/Simulation/Plants/plants --check
	@$(call test,swift test --skip-build $(FLAGS) --skip RealServerTests)

check: setup ## Run the slower checks: real servers, logs and metrics, the examples without image decoding, the documentation in a browser
	@$(MAKE) --no-print-directory check-servers check-observability check-examples check-docs

check-servers: build
	@$(call test,$(SERVERS) run $(SERVERS_DIR) -- swift test --skip-build $(FLAGS) --filter RealServerTests)

# In a build of its own, because another trait would build everything again.
check-observability: export TESTS_OF := AsyncNetworkingObservability
check-observability: OBSERVED := --scratch-path .build-observability --traits Observability -Xswiftc -warnings-as-errors
check-observability:
	@env -u TESTS_OF scripts/graph
	@swift build --build-tests $(QUIET) $(OBSERVED)
	@$(call test,swift test --skip-build $(OBSERVED))

check-examples:
	@swift build --package-path Examples --build-tests $(QUIET) -Xswiftc -warnings-as-errors
	@$(call test,swift test --package-path Examples --skip-build -Xswiftc -warnings-as-errors)

check-docs: docs
	@$(call install,chromium)
	scripts/site check .build/docs

slowest: build ## List the slowest tests that need no real servers
	@swift test --skip-build $(FLAGS) --quiet --no-parallel --skip RealServerTests --xunit-output .build/tests.xml >/dev/null
	@sed -n 's/.*classname="\(.*\)" name="\(.*\)" time="\(.*\)".*/\3 \1 \2/p' .build/tests-swift-testing.xml \
		| sort -rg | head -20

# Without INSTALL, missing servers are listed and skipped.
interop: setup ## Compare with the curl tool on many servers: make interop INSTALL=1
ifneq ($(INSTALL),)
	@$(call install,$(INTEROP_PACKAGES))
	@$(SERVERS) setup --interop
endif
	@swift build --package-path Tests/Interop --product InteropClient $(QUIET)
	$(SERVERS) run $(INTEROP_DIR) --only installed -- Tests/Interop/interop $(OPTIONS)

# In a network namespace, whose sockets are full after 4 KB; as root.
interop-buffers: setup ## The same where sockets are always full: make interop-buffers OPTIONS='--only node'
	@$(call install,iproute2 procps)
	@swift build --package-path Tests/Interop --product InteropClient $(QUIET)
	unshare --net sh -c 'ip link set lo up && sysctl -qw net.ipv4.tcp_wmem="4096 4096 4608" && exec "$$0" "$$@"' \
		$(SERVERS) run $(INTEROP_DIR) --only installed -- Tests/Interop/interop $(OPTIONS)

endurance: setup ## Perform many exchanges of all kinds, and compare each body: make endurance EXCHANGES=30000
	@$(call install,nodejs)
	@swift build --package-path Tests/Interop --configuration release --product Endurance $(QUIET)
	$(SERVERS) run $(INTEROP_DIR) --only node -- sh -c '"$$0" "$$AN_NODE_TLS" "$$AN_CA" $(EXCHANGES)' \
		Tests/Interop/.build/release/Endurance

slow-readers: setup-library ## Measure the memory of 1,000 slow readers, without and with a memory budget
	@swift build --package-path Tests/Interop --configuration release --product SlowReaders $(QUIET)
	@ulimit -n 10000 && Tests/Interop/.build/release/SlowReaders

# The programs of the servers are those of each release, the Python packages those of this machine.
matrix: setup ## Run the tests with the libcurl of other Debian releases, as root: make matrix SUITES='trixie sid'
	@$(call install,bubblewrap debootstrap)
	scripts/matrix $(SUITES) $(OPTIONS) \
		--packages '$(LIBRARY_PACKAGES) $(TOOL_PACKAGES) $(filter-out python3-venv libvips%,$(TEST_PACKAGES))'

demo: setup-library ## Demonstrate the library, optionally with a URL: make demo URL=https://…
	@swift build --product Fetch $(QUIET) $(FLAGS)
	@"$$(swift build --show-bin-path $(FLAGS))/Fetch" demo $(URL)

# FetchTests are skipped: ThreadSanitizer does not support Synchronization.Mutex, which protects the state of Fetch.
# The run-time library of ThreadSanitizer does not work with a limit on the size of files, which one test sets.
tsan: setup-library ## Run the tests under ThreadSanitizer
	TSAN_OPTIONS=suppressions=$(CURDIR)/Tests/ThreadSanitizer.suppressions \
		swift test --sanitize=thread --scratch-path .build-tsan $(QUIET) $(FEW_AT_ONCE) \
		--skip 'RealServerTests|FetchTests|refuses larger files'

# Leak detection is off: LeakSanitizer does not find references in payloads of Swift enums, and reports every static
# Data as a leak. The lifetime test suites count objects instead.
asan: setup-library ## Run the tests under AddressSanitizer
	ASAN_OPTIONS=detect_leaks=0 swift test --sanitize=address --scratch-path .build-asan $(QUIET) $(FEW_AT_ONCE) \
		--skip RealServerTests

mutants: setup-library ## Count changes of the library that no test notices: make mutants SEED=7 COUNT=80
	Tests/Mutants/mutants --seed $(SEED) --count $(COUNT) $(OPTIONS)

# Release builds, because libFuzzer needs speed. lld, because GNU gold fails on the debug information of libFuzzer.
# Inputs that extend the coverage are kept in the build folder, for the next run.
fuzz: setup-library ## Test parsers with libFuzzer: make fuzz TARGET=json SECONDS=600
	@swift build --configuration release --product Fuzz --scratch-path .build-fuzz $(QUIET) --sanitize=address \
		-Xswiftc -sanitize=fuzzer -Xswiftc -DFUZZING -Xswiftc -use-ld=lld
	@scripts/fuzz .build-fuzz $(SECONDS) $(TARGET)

# In release builds, because speed counts. Hashes are the same in each run, so that a seed gives the same trace.
simulate: setup-library ## Run simulated programs: make simulate SECONDS=600 SEED=1 COUNT=1000 FAMILY=cache
	@swift build --configuration release --product Simulate $(QUIET) $(FLAGS)
	@SWIFT_DETERMINISTIC_HASHING=1 SECONDS=$(SECONDS) SEED=$(SIMULATION_SEED) COUNT=$(SIMULATION_COUNT) FAMILY=$(FAMILY) \
		"$$(swift build --configuration release --show-bin-path)/Simulate"

check-kills: setup-library ## Kill downloads at random moments, and compare their files: make check-kills KILLS=1000 SEED=1
	@swift build --product DownloadKills $(QUIET) $(FLAGS)
	@"$$(swift build --show-bin-path $(FLAGS))/DownloadKills" $(KILLS) $(SIMULATION_SEED)

plants: setup-library ## Plant defects, and count those that the simulation finds: make plants OPTIONS='--seconds 60'
	Tests/Simulation/Plants/plants .build-plants $(OPTIONS)

bench: setup ## Compare with other clients: make bench ROUNDS=5 WORKLOAD=h1-64
	swift run --configuration release $(QUIET) RouteBench
	swift build --package-path Benchmarks --configuration release $(QUIET)
	$(SERVERS) run $(SERVERS_DIR) --only nginx -- Benchmarks/.build/release/Bench \
		--rounds $(ROUNDS) --output .build/bench.json $(if $(WORKLOAD),--workload $(WORKLOAD))
	@for cost in Pipeline Metrics Snapshot Shim Serialization Stream WebSocket Cache Image; do \
		Benchmarks/.build/release/$${cost}Cost || exit 1; \
	done

bench-loops: setup ## Compare sessions with one and with several event loops: make bench-loops ROUNDS=7
	swift build --package-path Benchmarks --configuration release $(QUIET) --product BenchServer
	swift build --package-path Benchmarks --configuration release $(QUIET) --product LoopCost
	$(SERVERS) run $(SERVERS_DIR) --only nginx -- Benchmarks/.build/release/LoopCost $(ROUNDS)

bench-instructions: setup ## Count the instructions of a request with callgrind, and the bytes of its frames
	@$(call install,valgrind)
	swift build --package-path Benchmarks --configuration release $(QUIET) --product RawCurl
	swift build --package-path Benchmarks --configuration release $(QUIET) --product OurClient
	scripts/frames Benchmarks/.build/release/OurClient
	$(SERVERS) run $(SERVERS_DIR) --only nginx -- scripts/instructions

docs: setup-library ## Build the documentation into .build/docs
	scripts/site build .build/docs $(FLAGS)

symbols: setup-library ## Count the public symbols of the library, and fail if there are too many
	@swift package $(QUIET) dump-symbol-graph --minimum-access-level public --skip-synthesized-members >/dev/null
	@scripts/symbols "$$(swift build --show-bin-path)/../symbolgraph" $(PUBLIC_SYMBOLS)

clean: ## Remove all build products
	-@if [ -d $(SERVERS_DIR) ]; then $(SERVERS) stop $(SERVERS_DIR); fi
	-@if [ -d $(INTEROP_DIR) ]; then $(SERVERS) stop $(INTEROP_DIR); fi
	rm -rf .build .build-* Benchmarks/.build Examples/.build Tests/Interop/.build

# Runs the command of tests in $(1), whose temporary files are removed. The failures are repeated at the end, because the
# output is long.
define test
set -o pipefail; mkdir -p .build; files="$$(mktemp -d)"; trap 'rm -rf "$$files"' EXIT; \
    TMPDIR="$$files" $(1) 2>&1 | tee .build/test.log \
    || { echo; grep -A 4 '✘ Test .* recorded an issue' .build/test.log | cut -c -300 | head -40; exit 1; }
endef

# Installs the packages in $(1) that are missing. Requires no privileges if all are installed.
define install
missing="$$(for package in $(1); do \
    dpkg-query --show --showformat '$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || echo $$package; \
done)"; \
if [ -n "$$missing" ]; then \
    echo "Installing" $$missing; \
    sudo=; if [ "$$(id -u)" != 0 ]; then sudo=sudo; fi; \
    $$sudo apt-get update -qq && \
    $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends \
        -o Dpkg::Use-Pty=0 $$missing >/dev/null; \
fi
endef
