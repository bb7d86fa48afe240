/* forerun verify: hashes of what a model computes for a fixed prompt, the same on every machine.
 *
 * The prompt is 64 ids from the middle half of the vocabulary, away from the special tokens at both ends: id i is
 * vocab/4 + 7919 * i mod (vocab/2 + 1). Hashed are the bytes of the float32 logits of every row, of the drafter's
 * logits at 4 chained steps, and of the int32 ids of 64 greedy tokens, all little-endian. */
#include "engine.h"
#include "output.h"
#include "verbs.h"

enum { PROMPT = 64, DRAFT_STEPS = 4, GREEDY = 64 };

/* FNV-1a, 64 bits: the offset basis, then a multiplication by the prime per byte. */
#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

static void hash_bytes(uint64_t *hash, const void *bytes, size_t length) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < length; i++) *hash = (*hash ^ byte[i]) * FNV_PRIME;
}

static fr_status hash_rows(void *context, const float *logits, size_t rows, size_t vocab) {
    hash_bytes(context, logits, rows * vocab * sizeof(*logits));
    return FR_OK;
}

static void print_hash(const char *name, uint64_t hash) {
    printf("%-12s fnv1a64:%016llx\n", name, (unsigned long long)hash);
    fr_flush_output();
}

static fr_status hash_greedy(const fr_engine *engine, const int32_t *prompt, uint64_t *hash) {
    fr_session_reset(engine->session);
    fr_status status = fr_session_prompt(engine->session, prompt, PROMPT);
    for (size_t done = 0, count = 1, accepted; status == FR_OK && done < GREEDY && count > 0; done += count) {
        int32_t ids[FR_STEP_MAX];
        size_t room = GREEDY - done;
        status = fr_session_step(engine->session, ids, room < FR_STEP_MAX ? room : FR_STEP_MAX, &count, &accepted);
        if (status == FR_OK) hash_bytes(hash, ids, count * sizeof(*ids));
    }
    return status;
}

static fr_status run(const fr_engine *engine) {
    int64_t vocab = fr_model_fact(engine->model, FR_FACT_VOCAB);
    int32_t prompt[PROMPT];
    for (int64_t i = 0; i < PROMPT; i++) prompt[i] = (int32_t)(vocab / 4 + 7919 * i % (vocab / 2 + 1));

    uint64_t logits = FNV_BASIS, draft = FNV_BASIS, greedy = FNV_BASIS;
    fr_status status = fr_session_logits(engine->session, prompt, PROMPT, 0, hash_rows, &logits);
    if (status != FR_OK) return status;
    print_hash("logits", logits);
    if (engine->drafter) {
        status = fr_session_draft_logits(engine->session, prompt, PROMPT, DRAFT_STEPS, hash_rows, &draft);
        if (status != FR_OK) return status;
        print_hash("draft-logits", draft);
    }
    status = hash_greedy(engine, prompt, &greedy);
    if (status == FR_OK) print_hash("greedy-ids", greedy);
    return status;
}

int fr_verb_verify(const fr_arguments *args) {
    fr_engine engine = {0};
    int code = fr_engine_open(&engine, args);
    /* The number of tokens is fixed, whatever they are. */
    if (!code) code = fr_exit_status(fr_options_set(engine.options, FR_OPT_IGNORE_EOS, 1));
    if (!code) code = fr_engine_start(&engine, args, PROMPT, GREEDY);
    if (!code && !args->given[FR_ARG_QUIET]) {
        fr_note("isa %s, threads %d", fr_model_isa(engine.model), engine.threads);
    }
    if (!code) code = fr_exit_status(run(&engine));
    fr_engine_close(&engine);
    return code;
}
