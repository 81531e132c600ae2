# Muster's front door: each target does all it needs, also on a clean Debian 12 with git and make.
.NOTPARALLEL:
.DEFAULT_GOAL := build

JOBS := $(shell nproc)
SEEDS ?= 2000
SECONDS_EACH ?= 60
N ?= 200
SEED ?= 1
PREFIX ?= /usr/local
CMAKE := cmake -G Ninja -S .
CLANG := -DCMAKE_C_COMPILER=clang
# How far a build is: on a terminal in one line, elsewhere not at all.
NINJA := ninja -j $(JOBS) $(if $(MAKE_TERMOUT),,--quiet)

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name text; do \
		printf 'make %-14s %s\n' "$$name" "$$text"; done

deps: ## install the Debian packages that are missing (packages.txt)
	@sh packaging/deps packages.txt

build: deps ## build/muster (the default)
	@$(CMAKE) -B build -DCMAKE_C_COMPILER=gcc >/dev/null
	@$(NINJA) -C build

# The demo needs no tests, which are most of what there is to build.
run: deps ## the demo: a control plane, six game servers, a match every second
	@$(CMAKE) -B build -DCMAKE_C_COMPILER=gcc >/dev/null
	@$(NINJA) -C build muster muster-shim arena
	@build/muster dev

test: build build-asan ## what must hold before a change is accepted; with test-cluster it is everything
	@JOBS=$(JOBS) /usr/bin/python3 tests/all

build-asan: deps
	@$(CMAKE) -B build-asan $(CLANG) -DMUSTER_SANITIZE=ON >/dev/null
	@$(NINJA) -C build-asan

asan: build-asan ## unit tests and fuzz corpora under ASan and UBSan
	@ctest --test-dir build-asan -j $(JOBS) --output-on-failure

sim: build ## simulation, SEEDS=2000
	@build/muster sim --seeds $(SEEDS)

fuzz: deps build-asan ## fuzz every target and every door, SECONDS_EACH=60; new inputs stay in build-fuzz/corpus
	@$(CMAKE) -B build-fuzz $(CLANG) -DMUSTER_FUZZ=ON >/dev/null
	@$(NINJA) -C build-fuzz fuzzers
	@sh tests/fuzz/run build-fuzz $(SECONDS_EACH)
	@/usr/bin/python3 tests/fuzz/doors.py --seconds $(SECONDS_EACH)

bench: build ## every benchmark beside its yardstick, about four minutes; writes bench/RESULTS.md
	@build/muster bench all --commit "$$(git describe --always --dirty)"

lint: build ## format, include arrow, named tests, assertions, purity of core, clang-tidy
	@sh tests/lint/format && sh tests/lint/includes && sh tests/lint/coverage
	@/usr/bin/python3 tests/lint/assertions
	@sh tests/lint/purity build
	@JOBS=$(JOBS) sh tests/lint/tidy build

test-cluster: build ## two nodes on PostgreSQL under load, every kind of failover, and the functional suite there
	@JOBS=$(JOBS) /usr/bin/python3 tests/cluster/run

test-busy: build ## the tests beside four busy loops, and on a single core: none depends on a fast machine
	@JOBS=$(JOBS) /usr/bin/python3 tests/busy

test-planted: build ## build once with each planted bug and show that it is caught
	@JOBS=$(JOBS) sh tests/planted

test-mutants: deps ## change N=200 places of api, agent and shim, one at a time: do the tests notice? SEED=1
	@tests/mutants -n $(N) --seed $(SEED) --jobs $(JOBS)

deb: build ## build/muster_VERSION_ARCH.deb; install it with apt install ./FILE
	@rm -f build/muster_*.deb
	@cd build && cpack >cpack.log 2>&1 || { cat cpack.log; exit 1; }
	@ls build/muster_*.deb

install: build ## programs below PREFIX=/usr/local, configuration in /etc/muster; DESTDIR= is honoured
	@DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX) --strip

clean: ## remove every build folder
	@rm -rf build build-*

.PHONY: help deps build run test build-asan asan sim fuzz bench lint test-cluster test-busy test-planted test-mutants deb install clean
