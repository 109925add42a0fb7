# SPDX-License-Identifier: MIT

# Debian packages: build dependencies of the library; dependencies of tests and benchmarks; further servers of `make interop`.
LIBRARY_PACKAGES := libcurl4-openssl-dev libssl-dev pkg-config
TEST_PACKAGES := curl iproute2 openssl python3-venv nginx libnginx-mod-stream tinyproxy-bin microsocks \
	apache2 haproxy caddy libvips-dev libvips-tools
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

# The maximum number of public symbols; see Tests/PublicSymbols/symbols.
PUBLIC_SYMBOLS := 1374

SHELL := /bin/bash
SERVERS := Tests/Servers/servers
SERVERS_DIR := .build/servers
INTEROP_DIR := .build/interop
export AN_VENV := $(CURDIR)/.build/venv

# All debug builds use the same flags, so that none rebuilds everything.
FLAGS := -Xswiftc -warnings-as-errors --explicit-target-dependency-import-check error
SWIFT_FILES := $(wildcard Package.swift Sources Tests Examples Benchmarks)
# Progress is shown on a terminal only.
QUIET := $(if $(MAKE_TERMOUT),,--quiet)
# Sanitizers make tests slow; with eight at a time, the default here, some would exceed their time limits.
FEW_AT_ONCE := --experimental-maximum-parallelization-width 4

.PHONY: help setup setup-library build format check-format check-hints check-transports check-samples test test-images slowest interop endurance matrix demo tsan asan mutants fuzz simulate plants bench bench-instructions docs check-docs symbols clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: setup-library ## Install the dependencies of the tests and benchmarks
	@$(call install,$(TEST_PACKAGES))
	@$(SERVERS) setup

setup-library: ## Install the build dependencies of the library
	@$(call install,$(LIBRARY_PACKAGES))

build: setup-library ## Build the library, the examples and the tests
	swift build --build-tests $(QUIET) $(FLAGS)

format: ## Format all Swift files in place
	swift format --in-place --recursive --parallel $(SWIFT_FILES)

check-format: ## Fail if a Swift file is not formatted
	swift format lint --strict --recursive --parallel $(SWIFT_FILES)

# Callers of AFNetworking's verbs get warnings only if the trait is enabled: `make build` has none.
check-hints: setup-library ## Fail if the trait MigrationHints lacks a warning, or gives one in the library itself
	@# Files that are not recompiled give no warnings.
	@rm -rf .build-hints
	@log="$$(swift build --traits MigrationHints --scratch-path .build-hints --target AFNetworkingCallSites 2>&1)"; \
	verbs="$$(grep -o 'CallSites/.*deprecated: Use try await manager\.[a-z]*' <<< "$$log" | sed 's/.*\.//' | sort -u \
		| tr '\n' ' ')"; \
	[ "$$verbs" = 'delete get head patch post put ' ] || { echo "only these verbs give a hint: $$verbs"; exit 1; }; \
	tasks="$$(grep -oE "CallSites/.*warning: '(data|upload|download)(Task|Image)[^']*' is dep" <<< "$$log" | sed "s/.*: '//" \
		| sort -u)"; \
	[ "$$(wc -l <<< "$$tasks")" = 8 ] || { echo "only these functions give a hint: $$tasks"; exit 1; }; \
	! grep '/Sources/.*: warning:' <<< "$$log" | sort -u | grep .

# Each check has a source file, a compiler option, and whether it compiles.
check-transports: build ## Fail if a transport without an implementation, or a block with a data race, compiles
	@check() { \
		swiftc -typecheck -swift-version 6 $$2 -I "$$(swift build --show-bin-path)/Modules" \
			$(foreach module,CCurl CDecoders CLinux COpenSSL CZlib,-Xcc -fmodule-map-file=Sources/$(module)/module.modulemap) \
			Tests/TransportChecks/$$1.swift \
			>/dev/null 2>&1 && result=yes || result=no; \
		[ "$$result" = "$$3" ] || { echo "$$1.swift$${2:+ with $$2} compiles: $$result"; exit 1; }; \
	}; \
	check MainActorProgress -warnings-as-errors no; check MainActorProgress '-swift-version 5' yes

# As in a program: another package, with the language mode's default settings.
check-samples: build ## Fail if a sample of the documentation does not compile outside this package
	@swiftc -typecheck -wmo -swift-version 6 -I "$$(swift build --show-bin-path)/Modules" \
		$(foreach module,CCurl CDecoders CLinux COpenSSL CZlib,-Xcc -fmodule-map-file=Sources/$(module)/module.modulemap) \
		Examples/Snippets/*.swift

# A package of its own, so that the other tests are not built a second time.
test-images: setup ## Run the tests of image decoding, with the trait ImageDecoding
	swift test --package-path Tests/ImageDecoding --scratch-path .build-images $(QUIET) -Xswiftc -warnings-as-errors

test: setup check-format build check-hints check-transports check-samples check-docs test-images ## Run all checks and all tests, including those with real servers
	@# The failures are repeated at the end, because the output is long.
	@set -o pipefail; \
	$(SERVERS) run $(SERVERS_DIR) -- swift test --skip-build $(FLAGS) | tee .build/test.log \
		|| { echo; grep -A 4 '✘ Test .* recorded an issue' .build/test.log | cut -c -300 | head -40; exit 1; }

slowest: build ## List the ten slowest tests that need no real servers
	@swift test --skip-build $(FLAGS) --quiet --no-parallel --skip RealServerTests \
		--event-stream-output-path .build/events.json --event-stream-version 6.3 >/dev/null
	@Tests/slowest .build/events.json

# Without INSTALL, missing servers are listed and skipped.
interop: setup ## Compare with the curl tool on many servers: make interop INSTALL=1
ifneq ($(INSTALL),)
	@$(call install,$(INTEROP_PACKAGES))
	@$(SERVERS) setup --interop
endif
	@swift build --product InteropClient $(QUIET) $(FLAGS)
	$(SERVERS) run $(INTEROP_DIR) --only installed -- Tests/Interop/matrix $(OPTIONS)

endurance: setup ## Perform many exchanges of all kinds, and compare each body: make endurance EXCHANGES=30000
	@$(call install,nodejs)
	@swift build --configuration release --product Endurance $(QUIET) $(FLAGS)
	$(SERVERS) run $(INTEROP_DIR) --only node -- sh -c '"$$0" "$$AN_NODE_TLS" "$$AN_CA" $(EXCHANGES)' \
		"$$(swift build --configuration release --show-bin-path)/Endurance"

# The programs of the servers are those of each release, the Python packages those of this machine.
matrix: setup ## Run the tests with the libcurl of other Debian releases, as root: make matrix SUITES='trixie sid'
	@$(call install,debootstrap)
	Tests/Matrix/matrix $(SUITES) $(OPTIONS) \
		--packages '$(LIBRARY_PACKAGES) $(filter-out python3-venv libvips%,$(TEST_PACKAGES))'

demo: setup-library ## Demonstrate the library, optionally with a URL: make demo URL=https://…
	@swift build --product Fetch $(QUIET) $(FLAGS)
	@"$$(swift build --show-bin-path)/Fetch" demo $(URL)

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
	@Tests/Fuzz/run .build-fuzz $(SECONDS) $(TARGET)

# In release builds, because speed counts. Hashes are the same in each run, so that a seed gives the same trace.
simulate: setup-library ## Run simulated programs: make simulate SECONDS=600 SEED=1 COUNT=1000 FAMILY=cache
	@swift build --configuration release --product Simulate $(QUIET) $(FLAGS)
	@SWIFT_DETERMINISTIC_HASHING=1 SECONDS=$(SECONDS) SEED=$(SIMULATION_SEED) COUNT=$(SIMULATION_COUNT) FAMILY=$(FAMILY) \
		"$$(swift build --configuration release --show-bin-path)/Simulate"

plants: setup-library ## Plant defects, and count those that the simulation finds: make plants OPTIONS='--seconds 60'
	Tests/Simulation/Plants/plants .build-plants $(OPTIONS)

bench: setup ## Compare with other clients: make bench ROUNDS=5 WORKLOAD=h1-64
	swift run --configuration release $(QUIET) RouteBench
	swift build --package-path Benchmarks --configuration release $(QUIET)
	$(SERVERS) run $(SERVERS_DIR) --only nginx -- Benchmarks/.build/release/Bench \
		--rounds $(ROUNDS) --output .build/bench.json $(if $(WORKLOAD),--workload $(WORKLOAD))
	Benchmarks/.build/release/PipelineCost
	Benchmarks/.build/release/ShimCost
	Benchmarks/.build/release/SerializationCost
	Benchmarks/.build/release/StreamCost
	Benchmarks/.build/release/WebSocketCost
	Benchmarks/.build/release/CacheCost
	Benchmarks/.build/release/ImageCost

bench-instructions: setup ## Count the instructions of a request with callgrind
	@$(call install,valgrind)
	swift build --package-path Benchmarks --configuration release $(QUIET) --product RawCurl
	swift build --package-path Benchmarks --configuration release $(QUIET) --product OurClient
	$(SERVERS) run $(SERVERS_DIR) --only nginx -- Benchmarks/instructions

docs: setup-library ## Build the documentation into .build/docs
	Tests/Documentation/site build .build/docs $(FLAGS)

check-docs: docs ## Fail if a page of the documentation does not open in Chromium
	@$(call install,chromium)
	Tests/Documentation/drawing --check
	Tests/Documentation/site check .build/docs

symbols: setup-library ## Count the public symbols of the library, and fail if there are too many
	@swift package $(QUIET) dump-symbol-graph --minimum-access-level public --skip-synthesized-members >/dev/null
	@Tests/PublicSymbols/symbols "$$(swift build --show-bin-path)/../symbolgraph" --limit $(PUBLIC_SYMBOLS)

clean: ## Remove all build products
	-@if [ -d $(SERVERS_DIR) ]; then $(SERVERS) stop $(SERVERS_DIR); fi
	-@if [ -d $(INTEROP_DIR) ]; then $(SERVERS) stop $(INTEROP_DIR); fi
	rm -rf .build .build-tsan .build-asan .build-hints .build-images .build-matrix .build-mutants .build-fuzz Benchmarks/.build

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
