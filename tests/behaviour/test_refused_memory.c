/* Tests that memory may be refused anywhere. Each call of fr_arena_take that opens a model, a drafter, a session, a
 * picture, or an engine and its sessions fails in turn. The opening call must then end with FR_MEMORY and one error
 * line.
 *
 * Each call of fr_kv_claim in the rounds of two sessions fails in turn too, and the session must continue unharmed.
 * Only a page that the round needs may be reported as missing. If a session's drafter gets no page, the session just
 * does not draft. A page for later positions is not needed yet.
 *
 * The linker replaces fr_arena_take and fr_kv_claim by the functions below (wraps= below). Calls that only measure are
 * never refused. */
/* suite: wraps=fr_arena_take wraps=fr_kv_claim */
#include <check.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "forerun_lab.h"
#include "src/engine/cache/kv.h"
#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/suite.h"

void *__real_fr_arena_take(fr_arena *arena, size_t count, size_t item);
void *__wrap_fr_arena_take(fr_arena *arena, size_t count, size_t item);

static size_t takes, refused_take;

void *__wrap_fr_arena_take(fr_arena *arena, size_t count, size_t item) {
    bool refuse = arena->base && ++takes == refused_take;
    return __real_fr_arena_take(arena, refuse ? SIZE_MAX : count, refuse ? 2 : item);
}

fr_status __real_fr_kv_claim(fr_kv *kv, size_t rows);
fr_status __wrap_fr_kv_claim(fr_kv *kv, size_t rows);

static size_t claims, refused_claim;
/* true: claims for the drafter's own layers are refused; false: claims for the target's layers are refused */
static bool drafters;
static size_t own_layers; /* number of the drafter's layers */
static bool beyond;       /* true: the refused claim was for several rows, and some of these rows need a further page */

fr_status __wrap_fr_kv_claim(fr_kv *kv, size_t rows) {
    if ((kv->count == own_layers) != drafters || ++claims != refused_claim) return __real_fr_kv_claim(kv, rows);
    beyond = kv->length % FR_KV_PAGE + rows > FR_KV_PAGE;
    return fr_fail_memory("a page", rows);
}

static const struct {
    const char *target, *drafter, *spec_type, *picture;
    size_t own; /* number of the drafter's layers that keep keys and values; 0 means one */
} subjects[] = {
    {"tests/data/models/gemma4-e", "tests/data/models/gemma4-e/assistant", "mtp", NULL, 0},
    {"tests/data/models/gemma4-moe-odd", "tests/data/models/gemma4-moe-odd/assistant", "ngram,mtp", NULL, 0},
    {"tests/data/gguf/e-q4_0.gguf", NULL, "none", NULL, 0},
    {"tests/data/glm-ocr", NULL, "mtp", "tests/data/glm-ocr/image/digits.png", 0},
    {"tests/data/models/llama", "tests/data/llama/eagle3", "eagle3", NULL, 0},
    {"tests/data/models/qwen35-odd", NULL, "mtp", NULL, 0},
    {"tests/data/dflash/v2-qwen3", "tests/data/dflash/v2-qwen3/drafter", "dflash2", NULL, 2},
    {"tests/data/dflash/dspark-qwen3", "tests/data/dflash/dspark-qwen3/drafter", "dspark", NULL, 2},
    {"tests/data/models/deepseek-v3-odd", NULL, "mtp", NULL, 0},
    {"tests/data/models/glm-ocr-odd", NULL, "mtp", "tests/data/models/glm-ocr-odd/image/digits.png", 0},
};

static fr_status look(fr_session *session, const fr_model *model, const char *path) {
    fr_picture *picture;
    fr_status status = fr_picture_open(path, model, &picture);
    if (status != FR_OK) return status;
    status = fr_session_show(session, (const fr_picture *const[]){picture}, 1);
    fr_picture_close(picture);
    return status;
}

/* Opens an engine, and a session in it that generates some ids. Then forks that session. */
static fr_status open_engine(const fr_model *model, const fr_drafter *drafter, const fr_options *options) {
    static const int32_t prompt[] = {5, 6, 7};
    fr_engine *engine = NULL;
    fr_session *session = NULL, *fork = NULL;
    fr_status status = fr_engine_open(model, drafter, options, 2, &engine);
    if (status == FR_OK) status = fr_engine_session(engine, options, &session);
    if (status == FR_OK) status = fr_session_prompt(session, prompt, 3);
    if (status == FR_OK) status = fr_session_fork(session, NULL, &fork);
    if (fork) fr_session_close(fork);
    if (session) fr_session_close(session);
    if (engine) fr_engine_close(engine);
    return status;
}

/* Opens everything that takes memory from an arena. */
static fr_status open_all(size_t which, const fr_options *options) {
    fr_model *model = NULL;
    fr_drafter *drafter = NULL;
    fr_session *session = NULL;
    bool drafts = strcmp(subjects[which].spec_type, "none") != 0;
    fr_status status = fr_model_open(subjects[which].target, options, &model);
    if (status == FR_OK && drafts) status = fr_drafter_open(subjects[which].drafter, model, options, &drafter);
    if (status == FR_OK) status = fr_session_open(model, drafter, options, &session);
    if (status == FR_OK && subjects[which].picture) status = look(session, model, subjects[which].picture);
    if (status == FR_OK) status = open_engine(model, drafter, options);
    if (session) fr_session_close(session);
    if (drafter) fr_drafter_close(drafter);
    if (model) fr_model_close(model);
    return status;
}

START_TEST(every_refusal_is_told) {
    fr_options *options = fr_options_new();
    ck_assert_int_eq(fr_options_set(options, FR_OPT_CONTEXT, 64), FR_OK);
    ck_assert_int_eq(fr_options_set(options, FR_OPT_THREADS, 1), FR_OK);
    ck_assert_int_eq(fr_options_set_number(options, FR_OPT_REPEAT_PENALTY, 1.1), FR_OK);
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_SPEC_TYPE, subjects[_i].spec_type), FR_OK);
    refused_take = takes = 0;
    ck_assert_msg(open_all((size_t)_i, options) == FR_OK, "%s", fr_last_error());
    size_t all = takes;
    ck_assert_uint_gt(all, 40);
    for (refused_take = 1; refused_take <= all; refused_take += fr_test_brief() ? 5 : 1) {
        takes = 0;
        ck_assert_msg(open_all((size_t)_i, options) == FR_MEMORY, "piece %zu of %zu", refused_take, all);
        ck_assert_msg(strstr(fr_last_error(), "memory"), "%s", fr_last_error());
    }
    refused_take = 0;
    fr_options_free(options);
}
END_TEST

enum { TALKS = 2, PROMPT = 120, SAID = 20 };

/* Forks the session, and steps the fork while no claim is refused. The fork's drafter must have rows if the session's
 * drafter has some, and only then. */
static void go_on_forked(fr_session *session) {
    int32_t ids[FR_STEP_MAX];
    size_t count, accepted;
    fr_session *fork;
    size_t claimed = claims, refused = refused_claim;
    refused_claim = 0;
    ck_assert_int_eq(fr_session_fork(session, NULL, &fork), FR_OK);
    ck_assert_int_eq(fr_session_step(fork, ids, FR_STEP_MAX, &count, &accepted), FR_OK);
    fr_kv *own[FR_DRAFTERS_MAX], *forks[FR_DRAFTERS_MAX];
    fr_session_draft_kv(session, own);
    fr_session_draft_kv(fork, forks);
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++)
        if (own[i]) ck_assert_int_eq(own[i]->length > 0, forks[i]->length > 0);
    fr_session_close(fork);
    claims = claimed;
    refused_claim = refused;
}

/* Runs two sessions of an engine in rounds. Each session has its own prompt. Returns how many rounds were refused. */
static size_t talk(const fr_model *model, const fr_drafter *drafter, const fr_options *options,
                   int32_t said[TALKS][SAID]) {
    fr_session *sessions[TALKS];
    fr_engine *engine;
    int32_t prompt[PROMPT];
    size_t length[TALKS] = {0}, refused = 0;
    ck_assert_int_eq(fr_engine_open(model, drafter, options, TALKS + 1, &engine), FR_OK);
    for (size_t i = 0; i < TALKS; i++) {
        for (size_t p = 0; p < PROMPT; p++) prompt[p] = (int32_t)(2 + (p * p + 7 * i) % 50);
        ck_assert_int_eq(fr_engine_session(engine, options, &sessions[i]), FR_OK);
        ck_assert_int_eq(fr_session_put(sessions[i], prompt, PROMPT), FR_OK);
    }
    while (length[0] < SAID || length[1] < SAID) {
        fr_round rounds[TALKS];
        size_t count = 0;
        for (size_t i = 0; i < TALKS; i++)
            if (length[i] < SAID)
                rounds[count++] =
                    (fr_round){.session = sessions[i], .ids = said[i] + length[i], .limit = SAID - length[i]};
        ck_assert_int_eq(fr_engine_step(engine, rounds, count), FR_OK);
        for (size_t i = 0; i < count; i++) {
            ck_assert(rounds[i].status == FR_OK || rounds[i].status == FR_MEMORY);
            refused += rounds[i].status == FR_MEMORY;
            length[rounds[i].session == sessions[1]] += rounds[i].count;
        }
    }
    for (size_t i = 0; i < TALKS; i++) go_on_forked(sessions[i]);
    for (size_t i = 0; i < TALKS; i++) fr_session_close(sessions[i]);
    fr_engine_close(engine);
    return refused;
}

enum { SUBJECTS = sizeof subjects / sizeof *subjects };

START_TEST(a_refused_page_changes_nothing) {
    size_t which = (size_t)_i % SUBJECTS;
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_drafter *drafter = NULL;
    int32_t expected[TALKS][SAID], said[TALKS][SAID];
    bool drafts = strcmp(subjects[which].spec_type, "none") != 0;
    ck_assert_int_eq(fr_options_set(options, FR_OPT_CONTEXT, 256), FR_OK);
    ck_assert_int_eq(fr_options_set(options, FR_OPT_CHUNK, 64), FR_OK);
    ck_assert_int_eq(fr_options_set(options, FR_OPT_IGNORE_EOS, 1), FR_OK);
    ck_assert_int_eq(fr_options_set(options, FR_OPT_DRAFT_MAX, 3), FR_OK);
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_SPEC_TYPE, subjects[which].spec_type), FR_OK);
    ck_assert_int_eq(fr_model_open(subjects[which].target, options, &model), FR_OK);
    if (drafts) ck_assert_int_eq(fr_drafter_open(subjects[which].drafter, model, options, &drafter), FR_OK);
    drafters = _i >= SUBJECTS;
    own_layers = subjects[which].own ? subjects[which].own : 1;
    claims = 0;
    ck_assert_uint_eq(talk(model, drafter, options, expected), 0);
    size_t all = claims, untold = 0;
    size_t step = fr_test_brief() ? 5 : fr_test_full() || !drafters ? 1 : 3;
    for (size_t refused = 1; refused <= all; refused += step) {
        claims = 0;
        refused_claim = refused;
        size_t told = talk(model, drafter, options, said);
        ck_assert_uint_eq(told, drafters || beyond ? 0 : 1);
        untold += !told;
        ck_assert_uint_ge(claims, refused);
        ck_assert_mem_eq(said, expected, sizeof said);
    }
    ck_assert(untold > 0 || drafters);
    refused_claim = 0;
    if (drafter) fr_drafter_close(drafter);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

FR_SUITE("refused_memory") {
    TCase *cases = tcase_create("refused_memory");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, every_refusal_is_told, 0, SUBJECTS);
    tcase_add_loop_test(cases, a_refused_page_changes_nothing, 0, 2 * SUBJECTS);
    suite_add_tcase(suite, cases);
}
