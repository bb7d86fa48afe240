/* Implements answer.h: runs a model and hashes its answer. */
#include "tests/support/answer.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "kernels/dispatch.h"
#include "src/engine/session/engine.h"
#include "src/engine/session/state.h"
#include "tests/support/require.h"

#define PROMPT 40 /* longer than the fixtures' windows */

static uint64_t fnv1a(uint64_t hash, const void *data, size_t size) {
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static fr_status hash_logits(void *context, const float *logits, size_t rows, size_t vocab) {
    uint64_t *hash = context;
    *hash = fnv1a(*hash, logits, rows * vocab * sizeof *logits);
    return FR_OK;
}

/* Returns true if the draft at this depth is to be right. In each round the draft at one depth is wrong, and in the
 * next round it is one deeper. Once per cycle all drafts are right. */
static bool reject_in_turn(void *context, size_t round, size_t depth) {
    int asked = *(int *)context, drafts = asked == FR_DRAFT_AUTO ? FR_STEP_MAX - 1 : asked;
    return depth != round % ((size_t)drafts + 1);
}

/* Computes the product wrongly on purpose. For output 0 of each row, it rounds each product before adding it. All other
 * outputs are right. */
static void misrounded_matmul(const fr_matmul *job) {
    const fr_kernels *kernels;
    ck_assert(fr_kernels_select(NULL, &kernels) == FR_OK);
    kernels->matmul[FR_BF16](job);
    for (size_t r = 0; r < job->rows; r++) {
        float p[16] = {0}, row[8192];
        ck_assert_uint_le(job->cols, 8192);
        fr_dtype_decode(FR_BF16, job->w, row, job->cols);
        for (size_t i = 0; i < job->cols; i++) p[i % 16] = row[i] * job->x[r * job->x_stride + i] + p[i % 16];
        for (size_t half = 8; half; half /= 2)
            for (size_t i = 0; i < half; i++) p[i] += p[i + half];
        job->y[r * job->y_stride] = p[0];
    }
}

void fr_misround(fr_model *model, fr_kernels *kernels) {
    *kernels = *model->kernels;
    kernels->matmul[FR_BF16] = misrounded_matmul;
    model->kernels = kernels;
}

static void generate(fr_session *session, int32_t *ids, size_t count) {
    for (size_t made = 0, got, accepted; made < count; made += got) {
        require(fr_session_step(session, ids + made, count - made, &got, &accepted));
        ck_assert_uint_ge(got, 1);
    }
}

typedef struct numbers {
    uint32_t state;
    size_t most;
} numbers;

static size_t draw_number(void *context) {
    numbers *n = context;
    n->state = n->state * 1664525u + 1013904223u;
    return 1 + (n->state >> 16) % n->most;
}

/* Sets the option of the draft method to the method of `manner`. */
static void set_methods(fr_options *options, const fr_manner *manner) {
    static const char *const forms[] = {"none", "%s", "ngram", "ngram,%s", "none", "%s"};
    const char *own = manner->drafts ? manner->drafts : "mtp";
    char words[64];
    snprintf(words, sizeof words, forms[manner->method], own);
    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, words));
}

static fr_options *options_of(const fr_manner *manner) {
    fr_options *options = fr_options_new();
    if (manner->isa) require(fr_options_set_text(options, FR_OPT_ISA, manner->isa));
    require(fr_options_set(options, FR_OPT_THREADS, manner->threads));
    require(fr_options_set(options, FR_OPT_CHUNK, manner->chunk));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, manner->depth));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    set_methods(options, manner);
    if (manner->k) require(fr_options_set_text(options, FR_OPT_KV_K, manner->k));
    if (manner->v) require(fr_options_set_text(options, FR_OPT_KV_V, manner->v));
    const fr_test_draws *draws = &manner->draws;
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, draws->temperature));
    if (draws->top_p > 0) require(fr_options_set_number(options, FR_OPT_TOP_P, draws->top_p));
    if (draws->repeat > 0) require(fr_options_set_number(options, FR_OPT_REPEAT_PENALTY, draws->repeat));
    if (draws->rejection) require(fr_options_set_text(options, FR_OPT_ACCEPT, "rejection"));
    if (draws->set) draws->set(options, draws->which);
    return options;
}

fr_answer fr_answer_of(const char *folder, const char *assistant, const fr_manner *manner, size_t count,
                       const int32_t *script, int32_t *text, bool misround) {
    fr_answer answer = {0xcbf29ce484222325u, 0xcbf29ce484222325u};
    fr_model *model;
    fr_drafter *drafter = NULL;
    fr_session *session;
    fr_kernels misrounded;
    fr_manner how = *manner;
    fr_options *options = options_of(&how);
    int32_t *ids = malloc((PROMPT + count) * sizeof *ids);
    require(fr_model_open(folder, options, &model));
    size_t limit = model->trunk.spec.context_limit;
    require(fr_options_set(options, FR_OPT_CONTEXT, limit < 1024 ? (int64_t)limit : 1024));
    if (how.method == FR_TEST_MTP || how.method == FR_TEST_NGRAM_MTP || how.method == FR_TEST_REPLACED)
        require(fr_drafter_open(assistant, model, options, &drafter));
    if (misround) fr_misround(model, &misrounded);
    for (size_t i = 0; i < PROMPT; i++) {
        ids[i] = (int32_t)((i * i * 31 + 7 * i + 2) % model->trunk.spec.vocab);
        if (ids[i] == model->image_token) ids[i]--;
    }
    require(fr_session_open(model, drafter, options, &session));
    numbers drawn = {.state = (uint32_t)how.depth, .most = (size_t)how.threads};
    if (how.some) fr_pool_choose(session->engine->pool, draw_number, &drawn);
    if (how.method == FR_TEST_SCRIPTED || how.method == FR_TEST_REPLACED) {
        memcpy(ids + PROMPT, script, count * sizeof *ids);
        require(fr_lab_session_script(session, ids, PROMPT + count, reject_in_turn, &how.depth));
    }
    require(fr_session_prompt(session, ids, PROMPT));
    generate(session, ids + PROMPT, count);
    answer.ids = fnv1a(answer.ids, ids + PROMPT, count * sizeof *ids);
    require(fr_session_logits(session, ids, PROMPT + count, 0, hash_logits, &answer.logits));
    if (text) memcpy(text, ids + PROMPT, count * sizeof *ids);
    fr_session_close(session);
    fr_drafter_close(drafter);
    fr_model_close(model);
    fr_options_free(options);
    free(ids);
    return answer;
}
