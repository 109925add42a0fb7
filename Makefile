# SPDX-License-Identifier: MIT

# Debian packages: what the library is built with; what its tests and benchmarks run against.
LIBRARY_PACKAGES := libcurl4-openssl-dev libssl-dev pkg-config
TEST_PACKAGES := curl iproute2 openssl python3-venv nginx libnginx-mod-stream tinyproxy-bin microsocks
INTEROP_PACKAGES := apache2 haproxy caddy lighttpd lighttpd-mod-openssl lighttpd-mod-deflate varnish h2o \
	squid-openssl nghttp2-server nodejs

# Whether `make interop` installs the servers that are missing, and its options: make interop OPTIONS='--only node'.
INSTALL :=
OPTIONS :=

# What the demo is run on; empty for a server inside it.
URL :=
ROUNDS := 5
WORKLOAD :=

SHELL := /bin/bash
SERVERS := Tests/Servers/servers
SERVERS_DIR := .build/servers
INTEROP_DIR := .build/interop
export AN_VENV := $(CURDIR)/.build/venv

# The same flags for every debug build, so that none of them has to begin anew.
FLAGS := -Xswiftc -warnings-as-errors --explicit-target-dependency-import-check error
SWIFT_FILES := $(wildcard Package.swift Sources Tests Examples Benchmarks)
# A log gets errors only; a terminal gets the progress too.
QUIET := $(if $(MAKE_TERMOUT),,--quiet)
# A sanitizer makes tests slow; all of them at once would make each so slow that its time limit ends it.
FEW_AT_ONCE := --experimental-maximum-parallelization-width 4

.PHONY: help setup setup-library build format check-format check-hints check-transports test interop demo tsan asan bench docs clean

help: ## Show these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: setup-library ## Install what the tests and benchmarks need
	@$(call install,$(TEST_PACKAGES))
	@$(SERVERS) setup

setup-library: ## Install what the library is built with
	@$(call install,$(LIBRARY_PACKAGES))

build: setup-library ## Build the library, the example and the tests
	swift build --build-tests $(QUIET) $(FLAGS)

format: ## Format all Swift files in place
	swift format --in-place --recursive --parallel $(SWIFT_FILES)

check-format: ## Fail if a Swift file is not formatted
	swift format lint --strict --recursive --parallel $(SWIFT_FILES)

# The callers of AFNetworking's verbs are warned where the trait is on, and only there: the build above has no warnings.
check-hints: setup-library ## Fail if the trait MigrationHints does not say what to call instead
	@# What was compiled before would give no warnings again.
	@rm -rf .build-hints
	@verbs="$$(swift build --traits MigrationHints --scratch-path .build-hints --target AFNetworkingCallSites 2>&1 \
		| grep -o 'CallSites/.*deprecated: Await it: try await manager\.[a-z]*' | sed 's/.*\.//' | sort -u | tr '\n' ' ')"; \
	[ "$$verbs" = 'delete get head patch post put ' ] || { echo "only these verbs give a hint: $$verbs"; exit 1; }

# The source of each check, the feature that it is compiled with, and whether it compiles.
check-transports: build ## Fail if a type can be a transport without an exchange of its own
	@check() { \
		swiftc -typecheck -swift-version 6 $$2 -I "$$(swift build --show-bin-path)/Modules" Tests/TransportChecks/$$1.swift \
			>/dev/null 2>&1 && result=yes || result=no; \
		[ "$$result" = "$$3" ] || { echo "$$1.swift$${2:+ with $$2} compiles: $$result"; exit 1; }; \
	}; \
	nonsending='-enable-upcoming-feature NonisolatedNonsendingByDefault'; \
	check NoPerform '' no; check NoPerform "$$nonsending" no; \
	check PlainPerform '' no; check PlainPerform "$$nonsending" yes; \
	check SpelledPerform '' yes; check SpelledPerform "$$nonsending" yes

test: setup check-format build check-hints check-transports ## Check everything: format, warnings, all tests, against real servers
	$(SERVERS) run $(SERVERS_DIR) -- swift test --skip-build $(FLAGS)

# Without INSTALL the servers that are missing are named, and left out.
interop: setup ## Compare with the curl tool at many servers: make interop INSTALL=1
ifneq ($(INSTALL),)
	@$(call install,$(INTEROP_PACKAGES))
	@$(SERVERS) setup --interop
endif
	@swift build --product InteropClient $(QUIET) $(FLAGS)
	$(SERVERS) run $(INTEROP_DIR) --only installed -- Tests/Interop/matrix $(OPTIONS)

demo: setup-library ## Show what the library does; on a URL of yours: make demo URL=https://…
	@swift build --product Fetch $(QUIET) $(FLAGS)
	@"$$(swift build --show-bin-path)/Fetch" demo $(URL)

# Not the example: it guards its state by Synchronization.Mutex, which ThreadSanitizer does not see.
tsan: setup-library ## Run the tests under ThreadSanitizer
	swift test --sanitize=thread --scratch-path .build-tsan $(QUIET) $(FEW_AT_ONCE) --skip 'RealServerTests|FetchTests'

# Leaks are not looked for: LeakSanitizer does not see the references in the payloads of Swift's enums, and takes every
# static Data for one. The suites of lifetimes count what is left.
asan: setup-library ## Run the tests under AddressSanitizer
	ASAN_OPTIONS=detect_leaks=0 swift test --sanitize=address --scratch-path .build-asan $(QUIET) $(FEW_AT_ONCE) \
		--skip RealServerTests

bench: setup ## Compare with other clients: make bench ROUNDS=5 WORKLOAD=h1-64
	swift run --configuration release $(QUIET) RouteBench
	swift build --package-path Benchmarks --configuration release $(QUIET)
	$(SERVERS) run $(SERVERS_DIR) --only nginx -- Benchmarks/.build/release/Bench \
		--rounds $(ROUNDS) --output .build/bench.json $(if $(WORKLOAD),--workload $(WORKLOAD))
	Benchmarks/.build/release/PipelineCost
	Benchmarks/.build/release/ShimCost
	Benchmarks/.build/release/SerializationCost

docs: setup-library ## Build the documentation into .build/docs
	swift package $(QUIET) dump-symbol-graph --minimum-access-level public --skip-synthesized-members
	docc convert Sources/AsyncNetworking/Documentation.docc --warnings-as-errors --transform-for-static-hosting \
		--additional-symbol-graph-dir "$$(swift build --show-bin-path)/../symbolgraph" --output-path .build/docs

clean: ## Remove everything that was built
	-@if [ -d $(SERVERS_DIR) ]; then $(SERVERS) stop $(SERVERS_DIR); fi
	-@if [ -d $(INTEROP_DIR) ]; then $(SERVERS) stop $(INTEROP_DIR); fi
	rm -rf .build .build-tsan .build-asan .build-hints Benchmarks/.build

# Installs the packages of $(1) that are missing; asks for no rights when there are none.
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
