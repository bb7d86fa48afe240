# Suites and checks: a part of the Makefile, which includes it.
#
# A suite is a file in the folder of the room that it tests: tests/ROOM/test_NAME.c is built as build/tests/test_NAME,
# and `make t-NAME` runs it. A check_NAME.c is a program without the Check library, a test_NAME.sh a script.
# tests/support/ has functions for all of the programs. A line "suite: WORD..." below the head of a suite's file says
# how it is built and when it runs, if that differs from most suites. The words:
#
#   quick         finds much within a minute: `make quick` runs it
#   hostile       reads hostile bytes: `make check` runs it under the sanitizers too (`make hostile` builds it)
#   damaged       of its cases only "damaged" run under the sanitizers, all of them with FULL=1
#   threads       shares something among threads: `make tsan` runs it, and tests/run does not bind it to one core
#   alone         runs after the others, one at a time: its threads would wait for each other while another suite has
#                 their core
#   speed         asserts a time: only `make check-speed` runs it
#   neon          depends on instructions: `make check` runs it as AArch64 too, under an emulator on other machines
#   native        depends on files or time, or repeats another suite: with FULL=1 `make check` runs all but these as
#                 AArch64
#   hosts         depends on the processor: `make check` runs it on other x86 processors too, emulated
#   hosts-hour    the same, but for `make check-hosts` alone
#   no-valgrind   runs other suites' code in a thousand combinations or for its speed, or asks for what valgrind lacks
#   needs=        hwloc or openblas: exists only in a native build that has the library
#   links=        command, bench or server-answer: looks inside these, so that their objects are linked into it; or
#                 condition: its threads sleep on condition variables; or tiles: AMX's instructions are emulated
#   wraps=        a function of the library, calls of which go to the suite's own __wrap_FUNCTION
#
# tests/source_rules refuses other words.

SUITE_FILES := $(foreach form,test_*.c check_*.c test_*.sh,$(wildcard tests/*/$(form) tests/*/*/$(form)))
# The list has NAME:WORD for each word of each suite and of each of libFuzzer's targets.
SUITE_WORDS := $(shell awk '/^..? suite: / { name = FILENAME; gsub(/.*\/|\.[a-z]*$$/, "", name); \
  for (i = 3; i <= NF && $$i != "*/"; i++) print name ":" $$i; nextfile }' $(SUITE_FILES) tests/fuzz/fuzz_*.c)
suites_with = $(patsubst %:$(1),%,$(filter %:$(1),$(SUITE_WORDS)))

# The C suites of a build with this topology; plain is a build without hwloc and OpenBLAS. Only x86 emulates tiles.
test_sources = $(filter-out $(if $(filter amx,$(LEVELS)),,$(patsubst %,\%/%.c,$(call suites_with,links=tiles))) \
  $(if $(filter plain,$(1)), \
  $(foreach n,$(call suites_with,needs=hwloc) $(call suites_with,needs=openblas),%/$n.c)),$(filter %.c,$(SUITE_FILES)))
test_names = $(basename $(notdir $(call test_sources,$(1))))
TEST_PROGRAMS := $(addprefix $(BUILD)/tests/,$(call test_names,$(TOPOLOGY)))
TEST_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(call test_sources,$(TOPOLOGY)))
TEST_HELPERS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))
TEST_SCRIPTS := $(filter %.sh,$(SUITE_FILES))
# The mutators are programs that damage files again and again. libFuzzer's targets are one for each parser; a build
# without libFuzzer runs them with the inputs in tests/data/fuzz.
MUTATORS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/mutate_*.c))
FUZZERS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_PARTS := $(addprefix $(BUILD)/tests/fuzz/,harness.o model_tables.o made_schema.o grammar_walk.o)
FUZZ_MAIN := $(BUILD)/tests/fuzz/replay.o

.PHONY: programs
programs: all $(TEST_PROGRAMS)

# The command is linked with MPI from the same objects, so that tests of ranks don't need a build of their own.
RANKS_COMMAND := $(BUILD)/forerun-mpi
$(RANKS_COMMAND): $(TOOL_OBJECTS) $(BENCH_PARTS) $(BUILD)/base/ranks_mpi.o $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $^ $(LIBS) $(COMMAND_LIBS) $(LIBS_mpi) -o $@

RANKS_ANSWERS := $(addprefix $(BUILD)/tests/behaviour/ranks/,answers led)

.PHONY: ranks-programs
ranks-programs: $(RANKS_COMMAND) $(RANKS_ANSWERS) ## what tests of ranks run, with OpenMPI

$(RANKS_ANSWERS): %: %.o $(BUILD)/base/ranks_mpi.o $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $^ $(LIBS) $(LIBS_mpi) -o $@

# The kernels of AMX with its instructions in C, and a machine that has them: these objects take the place of the
# library's, and no other program than a suite is linked with them.
EMULATED_TILES := $(if $(filter amx,$(LEVELS)),$(BUILD)/tests/emulated/tiles.o \
  $(patsubst kernels/%.c,$(BUILD)/tests/emulated/%.o,$(wildcard kernels/*_amx.c)))
$(EMULATED_TILES): private override SANITIZE := $(filter -fsanitize=thread,$(SANITIZE))
$(BUILD)/tests/emulated/%_amx.o: kernels/%_amx.c $(BUILD)/flags | $(BUILD)/needs
	@mkdir -p $(@D)
	$(call SAY,CC,$@)
	$(QUIET)$(COMPILE) -iquote tests/emulated $(FLAGS_avx512vnni) -c $< -o $@

# The command with emulated tiles, which test_answers runs.
TILES_COMMAND := $(if $(EMULATED_TILES),$(BUILD)/tests/forerun_tiles)
$(TILES_COMMAND): $(TOOL_OBJECTS) $(BENCH_PARTS) $(EMULATED_TILES) $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $^ $(LIBS) $(COMMAND_LIBS) -o $@
$(BUILD)/tests/test_answers: | $(TILES_COMMAND)

# Suites and libFuzzer's targets that call functions of the command or of the bench are linked with their objects.
linked_with = $(filter $(addprefix %/,$(call suites_with,links=$(1))),$(TEST_PROGRAMS) $(FUZZERS))
$(call linked_with,bench): $(BENCH_PARTS)
$(call linked_with,command): $(filter-out %/forerun.o,$(TOOL_OBJECTS)) $(BENCH_PARTS)
$(call linked_with,condition): $(BUILD)/base/sleep_condition.o
$(call linked_with,tiles): $(EMULATED_TILES)
# These suites are linked with the objects of a server's answers, and replace some functions that these call.
$(call linked_with,server-answer): $(filter-out %/forerun.o $(BUILD)/tools/serve/%,$(TOOL_OBJECTS)) $(BENCH_PARTS) \
  $(filter $(BUILD)/tools/serve/answer% %/answer_items.o %_answer.o \
  %/fault.o %/notes.o %/settings.o %/timings.o %/tool_kinds.o %/turns.o,\
  $(TOOL_OBJECTS))

of_command = $(if $(filter $(BUILD)/tools/%,$^),$(COMMAND_LIBS))
wraps = $(patsubst $(@F):wraps=%,-Wl$(comma)--wrap=%,$(filter $(@F):wraps=%,$(SUITE_WORDS)))

$(foreach object,$(TEST_OBJECTS),$(eval $(BUILD)/tests/$(basename $(notdir $(object))): $(object)))
$(TEST_PROGRAMS): $(TEST_HELPERS) $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $(filter %.o,$^) $(LIBRARY) $(call blas,$(patsubst $(BUILD)/%.o,%.c,$(filter %/$(@F).o,$^))) \
	  $(wraps) $(CHECK_LIBS) $(LIBS) $(of_command) -o $@

$(MUTATORS): %: %.o $(FUZZ_PARTS) $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $^ $(LIBS) -o $@

$(FUZZERS): %: %.o $(FUZZ_PARTS) $(if $(findstring fuzzer,$(SANITIZE)),,$(FUZZ_MAIN)) $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $(if $(findstring fuzzer,$(SANITIZE)),-fsanitize=fuzzer) $(filter %.o,$^) $(LIBRARY) $(LIBS) \
	  $(of_command) -o $@

-include $(patsubst %.o,%.d,$(TEST_HELPERS) $(TEST_OBJECTS) $(EMULATED_TILES) $(FUZZ_PARTS) $(FUZZ_MAIN) \
  $(addsuffix .o,$(MUTATORS) $(FUZZERS)))

# ---------------------------------------------------------------------------------------------- the suites that are run

# tests/run takes each suite as its name and its command. It starts several at once; suites whose threads would wait
# for each other while another suite has their core run alone, at the end. Suites that measure time are in check-speed.
SPEED := $(addprefix $(BUILD)/tests/,$(call suites_with,speed))
TESTS := $(if $(SANITIZE),,$(TEST_SCRIPTS)) $(filter-out $(SPEED),$(TEST_PROGRAMS))
ALONE := $(filter $(foreach n,$(call suites_with,alone),%/$n %/$n.sh),$(TESTS))
suites = $(foreach t,$(1),'$(notdir $t) $(if $(filter %.sh,$t),,$(RUN)) $t')
RUN_SUITES = BUILD=$(BUILD) JOBS=$(JOBS) ALL_CORES='$(call suites_with,threads)' tests/run
TOGETHER = $(call suites,$(filter-out $(ALONE),$(TESTS)))
THEN_ALONE = -- $(call suites,$(ALONE))

# These tests combine all factors that must not change the answer. They are divided into so many parts that each takes
# much less than a suite's time limit. The number of parts is prime, so that each part has every value of every factor.
# Thousands of random calls, one model in each part, are also tested in parts.
parts = $(if $(FULL),$(foreach i,$(shell seq $(3)), \
  '$(1)/$(2)/$i env CK_RUN_CASE=$(2) SHARD=$i/$(3) $(BUILD)/tests/test_$(1)'))
PARTS := $(call parts,one_answer,product,23) $(call parts,one_answer_engine,product,23) $(call parts,engine,calls,8) \
  $(call parts,allocations,allocations,7)

# These suites also run as AArch64 programs, under an emulator on other machines: those that depend on instructions,
# and with FULL all except those that depend on files or time.
QEMU := qemu-aarch64-static
ARM64_BUILD := $(BUILD)/arm64
ifneq ($(HOST),aarch64)
  NEON := neon
  NEON_CORE := $(addprefix tests/,$(call suites_with,neon))
  NEON_MORE := $(filter-out $(NEON_CORE) $(addprefix tests/,$(call suites_with,native) $(call suites_with,speed)), \
    $(addprefix tests/,$(call test_names,plain)))
  NEON_TESTS := $(NEON_CORE) $(if $(FULL),$(NEON_MORE))
  NEON_PROGRAMS := $(if $(FULL),programs,all $(NEON_CORE:%=$(ARM64_BUILD)/%))
  BRIEF_test_answers := -u FULL
  NEON_SUITES := $(foreach t,$(NEON_TESTS), \
    'neon/$(notdir $t) env $(BRIEF_$(notdir $t)) FORERUN_EMULATOR=$(QEMU) CK_TIMEOUT_MULTIPLIER=20 \
      $(QEMU) $(ARM64_BUILD)/$t') \
    $(if $(FULL),'neon.sh tests/neon.sh')
endif

# The suites and the command also run on other x86 processors that the emulator has: one without AVX; one with AVX, and
# one with F16C too, both without FMA; two with AVX2, of two makers; and one with everything that the emulator has,
# which excludes AVX-512. All of it would take hours in the emulator. So suites run in their short forms there, and
# only the machine itself compares all stored answers. LESS: features of a processor that the emulator lacks and would
# warn of at each run.
X86_QEMU := qemu-x86_64-static
HOSTS := Nehalem SandyBridge IvyBridge Haswell EPYC max
LESS_SandyBridge := ,-tsc-deadline,-x2apic
LESS_IvyBridge := $(LESS_SandyBridge)
LESS_Haswell := $(LESS_SandyBridge),-pcid,-invpcid,-hle,-rtm
LESS_EPYC := ,-rdseed,-sha-ni,-xsavec,-3dnowprefetch,-misalignsse,-osvw,-topoext,-fxsr-opt,-nrip-save
host_suites = $(foreach cpu,$(1),$(foreach t,$(2),'$(cpu)/$t env -u FULL FORERUN_BRIEF=1 QEMU_CPU=$(cpu)$(LESS_$(cpu)) \
    FORERUN_EMULATOR=$(X86_QEMU) CK_TIMEOUT_MULTIPLIER=20 $(X86_QEMU) $(BUILD)/tests/$t'))
HOST_SUITES := $(if $(filter x86_64,$(ARCH)),$(call host_suites,$(HOSTS),$(call suites_with,hosts)))

# Suites that read hostile bytes also run under the sanitizers. Of those with the word "damaged" only the cases of that
# name run, because the others take long there and read no damaged bytes; with FULL all cases run. The mutators damage
# each file fewer times than `make fuzz` does.
HOSTILE_BUILD := $(BUILD)/hostile
HOSTILE_TESTS := $(addprefix tests/,$(call suites_with,hostile))
HOSTILE := $(HOSTILE_TESTS:%=$(HOSTILE_BUILD)/%) $(MUTATORS:$(BUILD)/%=$(HOSTILE_BUILD)/%)
HOSTILE_CASE = $(if $(FULL),,$(if $(filter $(1),$(call suites_with,damaged)),CK_RUN_CASE=damaged))
COUNT_mutate_models := $(if $(FULL),,40)
COUNT_mutate_tables := $(if $(FULL),,15)
HOSTILE_SUITES := $(foreach t,$(HOSTILE), \
  'hostile/$(notdir $t) env CK_TIMEOUT_MULTIPLIER=20 $(call HOSTILE_CASE,$(notdir $t)) $t $(COUNT_$(notdir $t))')

# Each target runs with its stored inputs, which are libFuzzer's seeds and its earlier findings, and with mutations of
# each. The mutations are always the same.
SEEDS := tests/data/fuzz
REPLAYS := 50
FUZZ_NAMES := $(FUZZERS:$(BUILD)/tests/fuzz/fuzz_%=%)
FUZZ_SUITES := $(foreach n,$(FUZZ_NAMES),'fuzz/$n $(HOSTILE_BUILD)/tests/fuzz/fuzz_$n $(REPLAYS) $(SEEDS)/$n')
SANITIZE_hostile := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

.PHONY: check
check: ## set-up, then all that must hold: source rules, tests, hostile input, other processors under an emulator
	@tools/setup check
	@$(MAKE) programs bench-programs ranks-programs hostile $(NEON)
	@$(RUN_SUITES) $(NEON_SUITES) $(HOST_SUITES) $(HOSTILE_SUITES) $(FUZZ_SUITES) $(TOGETHER) \
	  'source_rules tests/source_rules' $(THEN_ALONE) $(PARTS)

.PHONY: check-day
MINUTES ?= 30
check-day: $(COMMAND) ## chats, batches and texts under random signals, kills and full disks: MINUTES=30, SEED=
	@tools/day --forerun $(COMMAND) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

.PHONY: check-all
check-all: ## check with the full products, then hosts, speed, clang, sanitizers, failing calls, fuzzing ... (hours)
	@FULL=1 $(MAKE) check
	@$(MAKE) -j1 check-hosts check-speed clang asan ubsan tsan valgrind fuzz msan failing-calls coverage

.PHONY: check-hosts
check-hosts: programs ## the command, dispatch and one answer on other x86 processors, emulated (an hour)
	@LIMIT=3600 $(RUN_SUITES) $(call host_suites,$(HOSTS),$(call suites_with,hosts) $(call suites_with,hosts-hour))

.PHONY: check-speed
check-speed: $(SPEED) ## what asserts a time or a speed, on a machine that is quiet
	@$(RUN_SUITES) -- $(call suites,$(SPEED))

# The suites that find most errors within a minute, to be run after an edit.
QUICK_TESTS := $(addprefix $(BUILD)/tests/,$(call suites_with,quick))
.PHONY: quick
quick: all $(QUICK_TESTS) $(BUILD)/tests/check_blocks ## the suites that find most within a minute, after an edit
	@$(RUN_SUITES) $(call suites,$(QUICK_TESTS)) 'check_blocks $(BUILD)/tests/check_blocks --one-in 8' \
	  'source_rules tests/source_rules'

t-%: all ## a suite by its name: t-kv, t-check_blocks, t-install
	@$(MAKE) $(if $(filter %/test_$*.sh,$(TEST_SCRIPTS)),$(if $(filter ranks%,$*),ranks-programs,all), \
	  $(call program_of,$*))
	@$(RUN_SUITES) $(call suites,$(or $(filter %/test_$*.sh,$(TEST_SCRIPTS)),$(call program_of,$*)))
program_of = $(BUILD)/tests/$(if $(filter $(BUILD)/tests/test_$(1),$(TEST_PROGRAMS)),test_)$(1)

.PHONY: answers
answers: all $(BUILD)/tests/test_answers ## writes tests/data/answers anew: a change of numerics, and of their version
	$(BUILD)/tests/test_answers --write

.PHONY: test
test: $(if $(SANITIZE),,ranks-programs)
test: programs ## every test of this build, none of speed: no set-up, no source rules, no NEON
	@$(RUN_SUITES) $(TOGETHER) $(THEN_ALONE)

.PHONY: tidy
tidy: $(LIBRARY) ## the source rules: what files may say, include, call and export
	@BUILD=$(BUILD) CC='$(CC)' tests/source_rules

# SYNTAX_BUT names files to leave out. Kernels of an instruction set are left out too, because they call no function of
# the C library.
SYNTAX_SOURCES := $(filter-out $(ALL_LEVELS:%=bench/\%_%.c),$(ENGINE_SOURCES) \
  $(patsubst $(BUILD)/%.o,%.c,$(TOOL_OBJECTS) $(BENCH_PARTS)))
.PHONY: syntax
syntax: ## the compiler's errors and warnings in the library and the command, without objects: CC=, CPPFLAGS=
	@printf '%s\n' $(filter-out $(SYNTAX_BUT),$(SYNTAX_SOURCES)) | \
	  xargs -n 8 -P $(JOBS) $(CC) -std=c11 $(WARN) $(INCLUDE) $(CPPFLAGS) $(CFLAGS) -pthread -fsyntax-only

.PHONY: neon
neon: ## the AArch64 build, in build/arm64
	@$(MAKE) ARCH=aarch64 CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar BUILD=$(ARM64_BUILD) CFLAGS= LDFLAGS= \
		RANKS=none \
		$(NEON_PROGRAMS)

.PHONY: hostile hostile-programs
hostile:
	@$(MAKE) BUILD=$(HOSTILE_BUILD) SANITIZE='$(SANITIZE_hostile)' hostile-programs
hostile-programs: $(COMMAND) $(MUTATORS) $(FUZZERS) $(HOSTILE_TESTS:%=$(BUILD)/%)

SANITIZE_asan := -fsanitize=address -fno-omit-frame-pointer
SANITIZE_ubsan := -fsanitize=undefined,float-cast-overflow -fno-sanitize-recover=all
SANITIZE_tsan := -fsanitize=thread
SANITIZED = $(MAKE) test BUILD=$(BUILD)/$@ SANITIZE='$(SANITIZE_$@)' CK_TIMEOUT_MULTIPLIER=20
.PHONY: asan ubsan tsan
asan ubsan: ## every test under that sanitizer
	@$(SANITIZED)

# In these suites threads share data: the pool's work, asynchronous drafts, models of several sessions, signals. The
# other suites run in one thread, or run the same code for hours.
THREADED := $(call suites_with,threads)
tsan: ## tests of what threads share, under that sanitizer
	@LIMIT=3600 $(SANITIZED) TESTS='$(THREADED:%=$(BUILD)/tsan/tests/%)'

.PHONY: clang
clang: ## every test of a build by clang with CFLAGS that would change numbers if they could
	@$(MAKE) test BUILD=$(BUILD)/clang CC=clang CFLAGS='-O3 -march=native -ffast-math'

# Left out are suites that repeat others' code in a thousand combinations or for its speed: they would take hours and
# read no other memory. test_isa is left out because valgrind does not emulate its rounding and flushing. Two checks of
# kernels have a short form, and FORERUN_BRIEF makes suites repeat the same code fewer times.
VALGRIND_BRIEF := check_kernels check_blocks
VALGRIND_TESTS := $(filter-out $(addprefix $(BUILD)/tests/,$(VALGRIND_BRIEF) $(call suites_with,no-valgrind)) \
  $(TEST_SCRIPTS) $(SPEED),$(TESTS))
VALGRIND_SUITES = $(call suites,$(VALGRIND_TESTS)) \
  $(foreach t,$(VALGRIND_BRIEF),'$t $(RUN) $(BUILD)/tests/$t --one-in 8 --either-zero')
.PHONY: valgrind
valgrind: RUN := valgrind -q --error-exitcode=99 --leak-check=full --suppressions=tests/valgrind.supp
valgrind: programs ## test programs under valgrind
	@CK_FORK=no FORERUN_BRIEF=1 LIMIT=3600 $(RUN_SUITES) $(VALGRIND_SUITES)

# The command runs as a whole, and each of its system calls fails in turn.
FAILING_CALLS := $(BUILD)/tests/failing_calls.so
$(FAILING_CALLS): tests/failing_calls/shim.c
	@mkdir -p $(@D)
	$(QUIET)$(CC) -std=c11 $(WARN) $(INCLUDE) -O1 -shared -fPIC $< -o $@ -ldl

.PHONY: failing-calls
failing-calls: all $(FAILING_CALLS) ## runs with every system call failed in turn: CALLS='--most 6 --only quantize'
	@tests/failing_calls/run $(COMMAND) $(FAILING_CALLS) $(CALLS)

# Reports which lines the suites of COVERED run. By default these are all suites.
COVERAGE_BUILD := $(BUILD)/coverage
.PHONY: coverage
coverage: ## lines that the suites run, room by room, and error paths that none does: COVERED='test_formats', ERRORS=1
	@find $(COVERAGE_BUILD) -name '*.gcda' -delete 2>/dev/null || true
	@$(MAKE) BUILD=$(COVERAGE_BUILD) SANITIZE=--coverage OPT=-O1 CK_TIMEOUT_MULTIPLIER=20 \
	  $(or $(COVERED:test_%=t-%),test); status=$$?; \
	  tests/coverage $(COVERAGE_BUILD) $(if $(ERRORS),--errors); exit $$status

# MemorySanitizer takes data for uninitialized if a library wrote them that is not instrumented, such as jansson. So
# only those targets of libFuzzer that use no such library run under it, with their stored inputs and mutations of
# these.
MSAN_BUILD := $(BUILD)/msan
MSAN_NAMES := gguf imatrix
.PHONY: msan
msan: ## parsers that need no other library, under MemorySanitizer (clang): MSAN_REPLAYS=
	@$(MAKE) BUILD=$(MSAN_BUILD) CC=clang OPT=-O1 RANKS=none SANITIZE='-fsanitize=memory -fno-omit-frame-pointer' \
	  $(MSAN_NAMES:%=$(MSAN_BUILD)/tests/fuzz/fuzz_%)
	@$(RUN_SUITES) $(foreach n,$(MSAN_NAMES),'msan/$n $(MSAN_BUILD)/tests/fuzz/fuzz_$n $(MSAN_REPLAYS) $(SEEDS)/$n')
MSAN_REPLAYS ?= 200

MUTATIONS ?= 5000
FUZZ_SECONDS ?= 600
LIBFUZZER_BUILD := $(BUILD)/libfuzzer
.PHONY: fuzz libfuzzer libfuzzer-programs
fuzz: hostile ## damaged files by thousands, then each libFuzzer target, under sanitizers: MUTATIONS=, FUZZ_SECONDS=
	@! command -v clang >/dev/null || $(MAKE) libfuzzer
	@JOBS=$(JOBS) MUTATIONS=$(MUTATIONS) FUZZ_SECONDS=$(FUZZ_SECONDS) SEEDS=$(SEEDS) tests/fuzz/run \
	  $(MUTATORS:$(BUILD)/%=$(HOSTILE_BUILD)/%) \
	  $(if $(shell command -v clang),$(FUZZERS:$(BUILD)/%=$(LIBFUZZER_BUILD)/%))

libfuzzer:
	@$(MAKE) libfuzzer-programs CC=clang BUILD=$(LIBFUZZER_BUILD) \
	  SANITIZE='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all' \
	  CPPFLAGS='-DFR_IMAGE_PIXELS_MAX=1048576ul -DFR_BUMP_FIRST=1ul -DFR_RENDER_STEPS_MAX=1000000'
libfuzzer-programs: $(FUZZERS)

# -------------------------------------------------------------------------------------- comparisons with other programs

.PHONY: check-real
check-real: all ## published models (2 GB) against transformers and one answer; PEERS=FOLDER: llama.cpp too (an hour)
	@tools/setup real
	@tools/real/fetch $(REAL) >/dev/null
	@PEERS='$(PEERS)' tools/real/check $(BUILD) $(REAL)

.PHONY: check-clients
check-clients: all ## a server asked by its clients: MODEL=, SERVER=URL, PEERS=FOLDER (llama-server too)
	@tools/setup clients
	@MODEL='$(MODEL)' SERVER='$(SERVER)' PEERS='$(PEERS)' tools/clients/check $(BUILD) $(REAL)

.PHONY: check-train
check-train: all ## a drafter trained as tools/train/README.md says, of a tiny model (a minute; fetches torch): PYTHON=
	@mkdir -p $(BUILD)/train
	@PYTHON='$(PYTHON)' tools/train/check $(COMMAND) $(BUILD)/train

.PHONY: check-schemas
check-schemas: all ## texts of 1000 schemas, judged by Python's jsonschema (minutes); PYTHON=one that has it, COUNT=
	@$(or $(PYTHON),python3) tests/schemas/check.py $(COMMAND) $(if $(COUNT),--count $(COUNT))

.PHONY: check-grammars
WALKS := $(BUILD)/tests/walks.json
check-grammars: $(BUILD)/tests/test_grammar ## llama.cpp's grammars, as it follows them: LLAMA=its source, LLAMA_BUILD=
	@$(CXX) -O1 -I '$(LLAMA)/include' -I '$(LLAMA)/ggml/include' tests/references/grammars.cpp -fopenmp \
	  '$(LLAMA_BUILD)/src/libllama.a' '$(LLAMA_BUILD)/ggml/src/'libggml{,-cpu,-base}.a -ldl -o $(WALKS:.json=)
	@$(WALKS:.json=) --whole tests/data/llama/q4_0.gguf '$(LLAMA)'/grammars/*.gbnf tests/data/grammars/*.gbnf >$(WALKS)
	@$(BUILD)/tests/test_grammar $(WALKS)

.PHONY: check-page
check-page: all ## the chat page in a headless Chromium: what it does, keeps and asks for (minutes); CHECKS=NAMES
	@tools/setup page
	@tests/page/check.py $(COMMAND) $(CHECKS)
