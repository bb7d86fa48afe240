/* Runs sessions and scripted drafts for the programs that measure speculation (drafting.h). */
#include "bench/drafting.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/measure.h"

fr_bench_engine fr_bench_engine_open(const char *target, const char *assistant) {
    fr_bench_engine e = {.options = fr_options_new()};
    fr_bench_require(fr_options_set(e.options, FR_OPT_IGNORE_EOS, 1));
    fr_bench_require(fr_options_set(e.options, FR_OPT_CONTEXT, 1024));
    fr_bench_require(fr_model_open(target, e.options, &e.model));
    fr_bench_require(fr_drafter_open(assistant, e.model, e.options, &e.drafter));
    return e;
}

void fr_bench_engine_close(fr_bench_engine *e) {
    fr_drafter_close(e->drafter);
    fr_model_close(e->model);
    fr_options_free(e->options);
}

fr_session *fr_bench_engine_session(const fr_bench_engine *e, const char *words, int depth) {
    fr_session *session;
    fr_bench_require(fr_options_set(e->options, FR_OPT_DRAFT_MAX, depth));
    fr_bench_require(fr_options_set_text(e->options, FR_OPT_SPEC_TYPE, words));
    fr_bench_require(fr_session_open(e->model, e->drafter, e->options, &session));
    return session;
}

void fr_bench_generate(fr_session *session, int32_t *ids, size_t count) {
    for (size_t made = 0, got, accepted; made < count; made += got)
        fr_bench_require(fr_session_step(session, ids + made, count - made, &got, &accepted));
}

double fr_bench_tokens_per_second(const fr_session *s) {
    return (fr_session_stat(s, FR_STAT_GENERATED_TOKENS) - 1) / fr_session_stat(s, FR_STAT_DECODE_SECONDS);
}

int32_t *fr_bench_demo_prompt(const fr_model *model, const char *name, size_t *count) {
    char path[96], text[2048];
    int32_t *ids;
    snprintf(path, sizeof path, "tools/demo/prompts/%s.txt", name);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    if (length == 0) {
        fprintf(stderr, "bench: can't read %s\n", path);
        exit(1);
    }
    fclose(file);
    fr_bench_require(fr_tokenize(fr_model_tokenizer(model), text, length, true, true, &ids, count));
    return ids;
}

bool fr_bench_replay_accepts(void *replay, size_t round, size_t depth) {
    fr_bench_replay *r = replay;
    (void)round;
    r->random = r->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(r->random >> 11) * 0x1p-53 < r->at[depth];
}
