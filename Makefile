# Short names for people. The build itself is CMake (CMakeLists.txt, CMakePresets.json).
PREFIX ?= /usr/local
DESTDIR ?=

.PHONY: all demo pictures test interop haproxy soak torture torture-mistakes check abi statements bench coverage mutants model fuzz install dist deb moved clean help
.DEFAULT_GOAL := all

define build
	@command -v cmake ninja >/dev/null || { echo "cmake or ninja is missing: run scripts/setup"; exit 1; }
	@cmake --preset $(1) $(2) >/dev/null
	@cmake --build --preset $(1) $(3)
endef

# A build that was copied or moved here with its sources is configured anew.
all demo pictures test interop soak torture torture-mistakes check abi statements bench coverage mutants fuzz install: moved
moved:
	@scripts/moved

all:
	$(call build,release)

# What it plays is recorded and drawn, too: build/takeover.svg. `make pictures` does that for the README.
demo:
	@scripts/setup demo
	$(call build,release,,--target examples_demo simba_command)
	@scripts/demo --record build/takeover.txt build/simba
	@tools/draw takeover build/takeover.txt >build/takeover.svg
	@echo; echo "The same as a picture: build/takeover.svg. The library, and what else can happen to an owner:"
	@build/examples/demo
	@examples/command.sh build/simba

pictures:
	@scripts/setup demo
	$(call build,release,,--target simba_command)
	@scripts/demo --record docs/images/takeover.txt build/simba
	@tools/draw takeover docs/images/takeover.txt >docs/images/takeover.svg
	@tools/draw idea >docs/images/idea.svg

test:
	@scripts/setup test
	@scripts/test

check:
	@scripts/setup check
	@scripts/check

# After a change that docs/abi.md allows.
abi:
	@scripts/setup check
	$(call build,release,,--target libsimba.so)
	@scripts/abi --record build

# After a change of a statements.sql: each statement as a whole, for people.
statements:
	@cmake --preset release >/dev/null
	@cp build/generated/statements/*.sql docs/statements/

# OUT=file.json: gathers the figures there, and goes on where an earlier run was ended; ONLY="scale list": those.
bench:
	@scripts/setup bench
	@scripts/bench $(if $(OUT),--out "$(OUT)") $(ONLY)

# A branch of an assert is one that no test can take.
GCOVR = gcovr --root . --filter src/core/ --filter src/base/text --filter src/base/rng.h --exclude-branches-by-pattern '.*\bassert\(.*' build-coverage
coverage:
	@scripts/setup check
	$(call build,coverage)
	@find build-coverage -name '*.gcda' -delete
	@ctest --preset coverage --label-regex unit --no-tests=error
	@$(GCOVR) --branches
	@$(GCOVR) --fail-under-line 100 --fail-under-branch 100

# Long runs, not part of `make test`.
TIMES ?= 20
soak:
	@scripts/setup test
	@scripts/soak -n $(TIMES) $(or $(STORES),memory sqlite redis mariadb postgres zookeeper)

ROUNDS ?= 12
JOBS ?= 4
torture:
	@scripts/setup test
	$(call build,release)
	@scripts/torture --rounds $(ROUNDS) --jobs $(JOBS) $(if $(SEED),--seed $(SEED)) --markdown build/torture.md $(STORES)

# Beside clients of the JVM, which Maven brings.
interop:
	@scripts/setup interop
	$(call build,release)
	@tests/interop/run

# HAProxy in front of candidates that are struck.
haproxy:
	@scripts/haproxy $(FAULTS)

torture-mistakes:
	@scripts/setup test
	@mkdir -p build
	@scripts/torture-mistakes --markdown build/torture-mistakes.md $(if $(SEED),--seed $(SEED)) $(MISTAKES)

mutants:
	@scripts/setup test
	@scripts/mutants $(MISTAKES)

model:
	@scripts/setup model
	@model/run
	@model/run-guard

SECONDS ?= 60
fuzz:
	@scripts/setup fuzz
	@scripts/fuzz $(SECONDS)

install:
	$(call build,release,-DCMAKE_INSTALL_PREFIX="$(abspath $(PREFIX))")
	@DESTDIR="$(DESTDIR)" cmake --install build

# The sources of the current commit, and its Debian packages; TWICE=1 compares two builds.
dist:
	@scripts/dist

deb:
	@scripts/setup deb
	@scripts/deb $(if $(TWICE),--twice)

clean:
	@rm -rf build build-*/

help:
	@echo "make            build simba, libsimba and the examples into build/"
	@echo "make demo       install what is missing, build, and watch an owner being killed and replaced"
	@echo "make pictures   play the demo, record it, and draw the pictures of the README again"
	@echo "make test       install what is missing, build, run all tests; the last line is the sum"
	@echo "make interop    fleets of ours and of JVM Simba and Curator on the same mutexes, not part of make test"
	@echo "make check      format, static analysis, warnings of gcc and clang, house rules, facts in the docs"
	@echo "make abi        record the binary interface anew, after a change that docs/abi.md allows"
	@echo "make statements write docs/statements anew, after a change of a statements.sql"
	@echo "make bench      [OUT=file.json] [ONLY=scale]  build and run the benchmarks, 16 min; scripts/report draws them"
	@echo "make coverage   unit tests must reach every line and branch of src/core"
	@echo "make soak       [STORES=redis] [TIMES=20]  the tests on each store again and again"
	@echo "make torture    [STORES=redis-aof] [ROUNDS=12] [JOBS=4] [SEED=N]  kill, freeze and cut off owners on each store"
	@echo "make torture-mistakes  [MISTAKES='redis-*']  plant mistakes in a copy of the sources: the torture must catch each"
	@echo "make mutants    [MISTAKES='LATCH_*']  plant mistakes in a copy of the core: the simulator must catch each"
	@echo "make model      check a model of the protocol exhaustively with spin"
	@echo "make fuzz       [SECONDS=60] feed parsers and machines with whatever breaks them"
	@echo "make install    [PREFIX=/usr/local] [DESTDIR=]  command, manual, library, headers"
	@echo "make dist       the sources of the current commit: build/dist/simba-VERSION.tar.xz, and its sha256"
	@echo "make deb        [TWICE=1]  Debian packages of the current commit in build/deb, and what lintian says"
	@echo "make clean      remove all build folders"
