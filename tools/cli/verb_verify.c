/* Implements forerun verify: prints hashes of a model's results for a fixed prompt. The hashes are the same on every
 * machine.
 *
 * The prompt has 64 ids from the middle half of the vocabulary, where there are no special tokens. Its id number i is
 * vocab/4 + (7919 * i) mod (vocab/2 + 1), where vocab is the number of ids in the vocabulary. There is a hash of each
 * of the following, all little-endian:
 *   - the float32 logits of every row;
 *   - the drafter's float32 logits at 4 steps, each of which takes the draft of the step before as its input;
 *   - the int32 ids of 64 greedy tokens;
 *   - the int32 ids of 400 sampled tokens.
 *
 * The sampling is that of --temp 1 --top-k 64 --top-p 0.95 --min-p 0.001 --repeat-penalty 1.1 --seed 1. The version of
 * the numerics is printed before the hashes: only hashes of the same version can be compared. */
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"

enum { PROMPT = 64, DRAFT_STEPS = 4, GREEDY = 64, SAMPLED = 400 };

/* FNV-1a, 64 bits: the hash starts with the basis, and is multiplied by the prime after each byte. */
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

static fr_status print_text(const char *name, fr_session *session, const int32_t *prompt, size_t length) {
    uint64_t hash = FNV_BASIS;
    fr_session_reset(session);
    fr_status status = fr_session_prompt(session, prompt, PROMPT);
    size_t done = 0;
    for (size_t count = 1, accepted; status == FR_OK && done < length && count > 0; done += count) {
        int32_t ids[FR_STEP_MAX];
        size_t room = length - done;
        status = fr_session_step(session, ids, room < FR_STEP_MAX ? room : FR_STEP_MAX, &count, &accepted);
        if (status == FR_OK) hash_bytes(&hash, ids, count * sizeof(*ids));
    }
    /* this note is printed even with --quiet, because a hash of fewer ids can't be compared with the usual hash */
    if (status == FR_OK && done < length)
        fr_note("%s: the context of %zu has room for %zu of %zu, and the hash is of these", name,
                fr_session_context(session), done, length);
    if (status == FR_OK) print_hash(name, hash);
    return status;
}

static fr_status set_sampling(fr_options *options) {
    static const struct {
        fr_option option;
        double value;
    } numbers[] = {{FR_OPT_TEMPERATURE, 1}, {FR_OPT_TOP_P, 0.95}, {FR_OPT_MIN_P, 0.001}, {FR_OPT_REPEAT_PENALTY, 1.1}};
    fr_status status = fr_options_set(options, FR_OPT_TOP_K, 64);
    if (status == FR_OK) status = fr_options_set(options, FR_OPT_SEED, 1);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers) && status == FR_OK; i++)
        status = fr_options_set_number(options, numbers[i].option, numbers[i].value);
    return status;
}

/* Prints the hash of sampled ids. The sampling is set when a session is opened, so a second session is needed. This
 * function first closes the first session, so that its memory is free. */
static fr_status print_sampled(fr_loaded *loaded, const int32_t *prompt) {
    fr_session_close(loaded->session);
    loaded->session = NULL;
    fr_status status = set_sampling(loaded->options);
    if (status == FR_OK) status = fr_session_open(loaded->model, loaded->drafter, loaded->options, &loaded->session);
    if (status == FR_OK) status = fr_adapters_use(&loaded->adapters, NULL, loaded->session);
    return status == FR_OK ? print_text("sampled-ids", loaded->session, prompt, SAMPLED) : status;
}

static fr_status run(fr_loaded *loaded) {
    int64_t vocab = fr_model_fact(loaded->model, FR_FACT_VOCAB);
    int32_t prompt[PROMPT];
    for (int64_t i = 0; i < PROMPT; i++) prompt[i] = (int32_t)(vocab / 4 + 7919 * i % (vocab / 2 + 1));

    printf("%-12s %d\n", "numerics", FR_NUMERICS_VERSION);
    uint64_t logits = FNV_BASIS, draft = FNV_BASIS;
    fr_status status = fr_session_logits(loaded->session, prompt, PROMPT, 0, hash_rows, &logits);
    if (status != FR_OK) return status;
    print_hash("logits", logits);
    if (loaded->drafter) {
        status = fr_session_draft_logits(loaded->session, prompt, PROMPT, DRAFT_STEPS, hash_rows, &draft);
        if (status != FR_OK) return status;
        print_hash("draft-logits", draft);
    }
    status = print_text("greedy-ids", loaded->session, prompt, GREEDY);
    return status == FR_OK ? print_sampled(loaded, prompt) : status;
}

int fr_verb_verify(const fr_arguments *args) {
    fr_loaded loaded = {0};
    int code = fr_loaded_open(&loaded, args);
    /* end-of-sequence tokens are ignored, so that the number of generated tokens is always the same */
    if (!code) code = fr_exit_status(fr_options_set(loaded.options, FR_OPT_IGNORE_EOS, 1));
    if (!code) code = fr_loaded_start(&loaded, args, PROMPT, SAMPLED);
    if (!code && !args->given[FR_ARG_QUIET]) {
        fr_note("isa %s, threads %d", fr_model_isa(loaded.model), loaded.threads);
    }
    if (!code) code = fr_exit_status(run(&loaded));
    fr_loaded_close(&loaded);
    return code;
}
