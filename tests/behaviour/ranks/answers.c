/* Prints one line of hashes per model. The hashes cover four things. The first is the logits and the inputs of the
 * layers. The second is the ids that a session generates with drafts. The third is the session's saved bytes, and the
 * ids that it gives after it is restored from them. The fourth is four texts that are generated together. In a job of
 * several processes (mpirun) all processes run each model together, and rank 0 prints.
 *
 * In: answers [--alone | --mixed | --uneven | --layers | --auto]... [--cache TYPE] MODEL[,DRAFTER]...
 * --alone: there is one process, with two threads. Without it, every second rank has two threads, and the others have
 * one.
 * --mixed: every second rank uses the scalar instruction set.
 * --uneven: the share of the work of every second rank is three times as large as that of the others.
 * --layers: ranks split models by layers.
 * --auto: ranks split models by layers if the network is declared slow.
 * --cache: the type of cached keys and values.
 * If no drafter follows a comma, the drafter is the model's own drafting layer. Out: the lines. If something fails, a
 * line says why, and the exit status is 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab_ranks.h"

enum { PROMPT = 40, TEXT = 24, SESSIONS = 4, CONTEXT = 96, CHUNK = 16, DRAFTS = 3, TIMEOUT = 60 };

#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

typedef struct asked {
    const char *path;
    bool alone, mixed, first;
    bool layers;       /* ranks split the model by layers, so each rank sends rows only after its last layer */
    const char *cache; /* the type of cached keys and values; NULL: the model's default */
    uint64_t logits, ids, saved, together;
} asked;

#define TRY(call)                                   \
    do {                                            \
        fr_status try_status = (call);              \
        if (try_status != FR_OK) return try_status; \
    } while (0)

static void hash(uint64_t *to, const void *bytes, size_t size) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++) *to = (*to ^ byte[i]) * FNV_PRIME;
}

static fr_status hash_rows(void *context, const float *logits, size_t rows, size_t vocab) {
    hash(context, logits, rows * vocab * sizeof *logits);
    return FR_OK;
}

static fr_status hash_layers(void *context, const float *values, size_t rows, size_t width) {
    hash(context, values, rows * width * sizeof *values);
    return FR_OK;
}

static void make_prompt(const fr_model *model, size_t number, int32_t *ids) {
    int64_t vocab = fr_model_fact(model, FR_FACT_VOCAB), image = fr_model_fact(model, FR_FACT_IMAGE_TOKEN);
    for (int64_t i = 0; i < PROMPT; i++) {
        ids[i] = (int32_t)((vocab / 4 + 7919 * (i + 11 * (int64_t)number)) % vocab);
        if (ids[i] == image) ids[i]--;
    }
}

static fr_status say(fr_session *session, const int32_t *prompt, uint64_t *to) {
    int32_t ids[FR_STEP_MAX];
    TRY(fr_session_prompt(session, prompt, PROMPT));
    for (size_t done = 0, count = 1; done < TEXT && count > 0; done += count) {
        size_t limit = TEXT - done < FR_STEP_MAX ? TEXT - done : FR_STEP_MAX;
        TRY(fr_session_step(session, ids, limit, &count, NULL));
        hash(to, ids, count * sizeof *ids);
    }
    return FR_OK;
}

/* Hashes the session's saved bytes, and the ids that the session gives after restoring them. Two kinds of sessions
 * can't be saved and are skipped. They are sessions with recurrent states, and sessions whose text has the id of a
 * picture's token. */
static fr_status save(fr_session *session, uint64_t *to) {
    void *bytes = NULL;
    size_t size = 0, count;
    int32_t ids[FR_STEP_MAX];
    if (fr_session_stat(session, FR_STAT_STATE_BYTES) > 0) return FR_OK;
    fr_status saved = fr_session_save_bytes(session, &bytes, &size);
    if (saved == FR_INPUT && strstr(fr_last_error(), "a session with pictures can't be saved")) return FR_OK;
    TRY(saved);
    hash(to, bytes, size);
    fr_session_reset(session);
    fr_status status = fr_session_restore_bytes(session, bytes, size);
    free(bytes);
    if (status == FR_OK) status = fr_session_step(session, ids, FR_STEP_MAX, &count, NULL);
    if (status == FR_OK) hash(to, ids, count * sizeof *ids);
    return status;
}

static fr_status say_alone(const fr_model *model, const fr_drafter *drafter, const fr_options *options, asked *a) {
    fr_session *session = NULL;
    int32_t prompt[PROMPT];
    make_prompt(model, 0, prompt);
    fr_status status = fr_session_open(model, drafter, options, &session);
    if (status == FR_OK) status = fr_session_logits(session, prompt, PROMPT, 0, hash_rows, &a->logits);
    if (status == FR_OK && !drafter) {
        size_t last = (size_t)fr_model_fact(model, FR_FACT_LAYERS), layers[] = {0, last / 2, last};
        status = fr_session_rows(session, prompt, PROMPT, layers, 3, hash_layers, &a->logits);
    }
    if (status == FR_OK) fr_session_reset(session);
    if (status == FR_OK) status = say(session, prompt, &a->ids);
    if (status == FR_OK) status = save(session, &a->saved);
    fr_session_close(session);
    return status;
}

/* Runs rounds until every session has generated its text. */
static fr_status step_all(fr_engine *engine, fr_session *const *sessions, uint64_t *to) {
    int32_t ids[SESSIONS][FR_STEP_MAX];
    size_t done[SESSIONS] = {0};
    for (int round = 0; round < 2 * TEXT; round++) {
        fr_round rounds[SESSIONS];
        for (size_t i = 0; i < SESSIONS; i++) {
            size_t left = TEXT - done[i];
            rounds[i] = (fr_round){.session = sessions[i], .ids = ids[i], .limit = left < 1 ? 1 : left};
            if (rounds[i].limit > FR_STEP_MAX) rounds[i].limit = FR_STEP_MAX;
        }
        TRY(fr_engine_step(engine, rounds, SESSIONS));
        for (size_t i = 0; i < SESSIONS; i++) {
            if (rounds[i].status != FR_OK) return rounds[i].status;
            hash(to, ids[i], rounds[i].count * sizeof *ids[i]);
            done[i] = done[i] + rounds[i].count < TEXT ? done[i] + rounds[i].count : TEXT;
        }
    }
    return FR_OK;
}

static fr_status say_together(const fr_model *model, const fr_drafter *drafter, const fr_options *options, asked *a) {
    fr_engine *engine = NULL;
    fr_session *sessions[SESSIONS] = {NULL};
    fr_status status = fr_engine_open(model, drafter, options, SESSIONS, &engine);
    for (size_t i = 0; i < SESSIONS && status == FR_OK; i++) {
        int32_t prompt[PROMPT];
        make_prompt(model, i / 2, prompt);
        status = fr_engine_session(engine, options, &sessions[i]);
        if (status == FR_OK) status = fr_session_prompt(sessions[i], prompt, PROMPT - 3 * i);
    }
    if (status == FR_OK) status = step_all(engine, sessions, &a->together);
    for (size_t i = 0; i < SESSIONS; i++) fr_session_close(sessions[i]);
    fr_engine_close(engine);
    return status;
}

/* A session that runs alone is greedy. Sessions that run together sample. */
static fr_status set_options(fr_options *options, const asked *a) {
    TRY(fr_options_set(options, FR_OPT_THREADS, a->alone ? 2 : 1 + (int64_t)fr_rank() % 2));
    TRY(fr_options_set(options, FR_OPT_CONTEXT, CONTEXT));
    TRY(fr_options_set(options, FR_OPT_CHUNK, CHUNK));
    TRY(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    TRY(fr_options_set(options, FR_OPT_DRAFT_MAX, DRAFTS));
    if (a->cache) TRY(fr_options_set_text(options, FR_OPT_KV_K, a->cache));
    if (a->cache) TRY(fr_options_set_text(options, FR_OPT_KV_V, a->cache));
    if (a->mixed && fr_rank() % 2) TRY(fr_options_set_text(options, FR_OPT_ISA, "scalar"));
    return FR_OK;
}

/* Counts the layers for which this rank has sent messages. */
static size_t layers_told(void) {
    size_t told = 0;
    for (size_t i = 0; i < FR_LAB_RANKS_ELSEWHERE; i++) told += fr_lab_ranks_sent(i).messages > 0;
    return told;
}

static fr_status answer(asked *a, fr_options *options) {
    char path[512];
    snprintf(path, sizeof path, "%s", a->path);
    char *comma = strchr(path, ',');
    if (comma) *comma = '\0';
    fr_model *model = NULL;
    fr_drafter *drafter = NULL;
    fr_status status = set_options(options, a);
    if (status == FR_OK) status = fr_model_open(path, options, &model);
    if (status == FR_OK && comma) status = fr_drafter_open(comma[1] ? comma + 1 : NULL, model, options, &drafter);
    if (status == FR_OK && !comma) status = fr_options_set_text(options, FR_OPT_SPEC_TYPE, "ngram");
    if (status == FR_OK) status = say_alone(model, drafter, options, a);
    if (status == FR_OK) status = fr_options_set_number(options, FR_OPT_TEMPERATURE, 0.8);
    if (status == FR_OK) status = say_together(model, drafter, options, a);
    fr_drafter_close(drafter);
    fr_model_close(model);
    if (status == FR_OK && a->first && a->layers && layers_told() > 1) {
        fprintf(stderr, "%s: rank %zu sends in %zu layers\n", a->path, fr_rank(), layers_told());
        return FR_USAGE;
    }
    return status;
}

static fr_status answer_all(asked *a, char **paths) {
    char **first = paths;
    for (; *paths; paths++) {
        fr_options *options = fr_options_new();
        a->path = *paths;
        a->first = paths == first;
        a->logits = a->ids = a->saved = a->together = FNV_BASIS;
        fr_status status = options ? answer(a, options) : FR_MEMORY;
        fr_options_free(options);
        if (status != FR_OK) return status;
        if (fr_rank() == 0)
            printf("%s %016llx %016llx %016llx %016llx\n", a->path, (unsigned long long)a->logits,
                   (unsigned long long)a->ids, (unsigned long long)a->saved, (unsigned long long)a->together);
    }
    return FR_OK;
}

static fr_status deal_unevenly(void) {
    uint32_t parts[FR_LAB_MOST_RANKS];
    for (size_t r = 0; r < fr_rank_count(); r++) parts[r] = r % 2 ? 3 : 1;
    return fr_lab_ranks_deal(parts, fr_rank_count());
}

typedef struct flags {
    bool alone, mixed, uneven, layers, automatic;
    const char *cache;
} flags;

/* Returns a pointer to the first argument after the flags. */
static char **read_flags(char **at, flags *given) {
    for (; *at && strncmp(*at, "--", 2) == 0; at++) {
        given->alone |= strcmp(*at, "--alone") == 0;
        given->mixed |= strcmp(*at, "--mixed") == 0;
        given->uneven |= strcmp(*at, "--uneven") == 0;
        given->layers |= strcmp(*at, "--layers") == 0;
        given->automatic |= strcmp(*at, "--auto") == 0;
        if (strcmp(*at, "--cache") == 0 && at[1]) given->cache = *++at;
    }
    return at;
}

int main(int argc, char **argv) {
    flags given = {0};
    char **paths = read_flags(argv + (argc > 0), &given);
    asked a = {
        .alone = given.alone, .mixed = given.mixed, .layers = given.layers || given.automatic, .cache = given.cache};
    fr_status status = a.alone ? FR_OK : fr_ranks_join(TIMEOUT);
    if (status == FR_OK && given.uneven) status = deal_unevenly();
    if (status == FR_OK && given.layers) status = fr_lab_ranks_split(FR_LAB_SPLIT_LAYERS, 0, 0);
    if (status == FR_OK && given.automatic) status = fr_lab_ranks_split(FR_LAB_SPLIT_AUTO, 0.01, 1e9);
    if (status == FR_OK) status = answer_all(&a, paths);
    if (status != FR_OK && fr_rank() == 0) fprintf(stderr, "%s\n", fr_last_error());
    fflush(NULL);
    return fr_ranks_part(status != FR_OK, fr_last_error(), NULL);
}
