# SPDX-License-Identifier: PostgreSQL
#
# A thin front: Meson builds, tests/run tests. SANITIZE=1 does both with ASan and UBSan, in a
# build directory of its own; WERROR=1 makes warnings errors; PREFIX is for install.

BUILD := $(if $(SANITIZE),build-asan,build)
export SANITIZE WERROR PREFIX
export MR_BUILD := $(BUILD)

.DEFAULT_GOAL := build
.PHONY: run stop build build-tests check test soak fuzz bench lint format install clean help
# The targets drive parallel tools themselves.
.NOTPARALLEL:

run: ## start a private PostgreSQL and the daemon, show a demo; leaves them running
	@tools/deps build run
	@tools/build $(BUILD)
	@tools/run start

stop: ## stop what make run has started
	@tools/run stop

build: ## compile the program to build/millrace (the default)
	@tools/deps build
	@tools/build $(BUILD)

build-tests:
	@tools/deps build test
	@tools/build $(BUILD) --tests
	@tools/npm $(BUILD)

check: build-tests ## fast tests: unit, sql, isolation, integration
	@tests/run --fast

test: build-tests ## every test but the soak
	@tests/run

soak: build-tests ## the tests that run for long
	@tests/run soak

fuzz: build ## run the fuzz targets, 30 seconds each
	@tools/deps fuzz
	@tools/fuzz

ifneq ($(wildcard bench/run),)
bench: build-tests ## benchmarks, also of the peers; writes docs/benchmarks.md
	@tools/deps bench
	@tools/deps --optional peers
	@bench/run
endif

lint: ## formatting, static analysis, house rules
	@tools/deps build test lint
	@tools/build $(BUILD) --tests
	@tools/lint

format: ## rewrite the C files in the house style
	@tools/deps lint
	@tools/lint-c --fix

install: build ## install below PREFIX (default: Meson's, /usr/local)
	@meson install -C $(BUILD)

clean: ## remove what was built
	rm -rf build build-asan

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile
