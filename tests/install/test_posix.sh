#!/usr/bin/env bash
# Tests that the sources of the library and of the command need only POSIX of 2008, except for the files listed here. A
# port to a system other than Linux must replace only these.
#
# In: FULL, because the test takes 12 core-seconds. Out: exit 0, or 1 after the compiler's lines, or 77 without FULL.
set -euo pipefail

[ -n "${FULL:-}" ] || { echo "skipped: only with FULL=1"; exit 77; }

# These files use what only Linux has: threads on chosen processors, huge pages, /proc and /sys, locks of open files,
# files in memory, counters.
linux="
    base/topology_sys.c base/pool.c base/arena.c base/ranks_cores.c base/ranks_watch.c base/process_registry.c
    base/cgroup.c base/temporary_file.c base/sleep_futex.c base/file_place.c formats/map.c formats/notes.c
    src/engine/weights/rank_share.c tools/cli/ranks.c tools/cli/output.c tools/cli/terminal/key_wait.c
    bench/counters.c bench/kernel_timing.c bench/memory.c bench/peaks_x86.c
"
# These files use functions that other systems have too, though they are not in POSIX of 2008: memmem, memrchr,
# asprintf, strcasestr, strsep, reallocarray, strtod_l, environ, accept4, pipe2 and additions of X/Open, such as
# memccpy and realpath.
common="
    formats/download.c formats/gguf.c formats/json_read.c src/api/option_words.c src/engine/model/picture_marks.c
    src/language/chat/chat_continue.c src/language/chat/chat_probe.c src/language/chat/chat_templates.c
    src/language/chat/chat_tools.c src/language/chat/reply.c src/language/chat/reply_format.c
    src/language/chat/reply_forms.c src/language/chat/reply_grammar_value.c src/language/chat/reply_harmony.c
    src/language/jinja/template_filters_value.c src/language/jinja/template_functions.c
    src/language/jinja/template_text.c src/language/tokenizer/text_pattern.c src/named/hub.c src/named/llama_cache.c
    src/named/near_name.c src/named/ollama.c src/named/repository.c src/named/stores.c tools/cli/conversation.c
    tools/cli/embedding_texts.c tools/cli/named.c tools/cli/option_notes.c tools/cli/prompt_pictures.c
    tools/cli/terminal/word_wrap.c tools/cli/verb_models.c tools/jobs/job_prompt.c tools/serve/catalog.c
    tools/serve/changing_header.c tools/serve/content_file.c tools/serve/http_exchange.c tools/serve/http_watch.c
    tools/serve/http_work.c tools/serve/request_messages.c tools/serve/routes.c
"
make -s syntax INCLUDE='-Iinclude -I. -D_POSIX_C_SOURCE=200809L' SYNTAX_BUT="$(echo $linux $common)" RANKS=none
