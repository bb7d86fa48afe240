/* Tests the drafts of eight sessions in one engine. They must generate the ids that each generates alone without
 * drafts. Meanwhile the engine cuts their chains of drafts, because only some of the rows of a forward pass are cheap.
 *
 * Before each round the test makes the controller believe three things: drafts are mostly accepted; most chains end
 * early; and rows are free up to a certain number and expensive beyond it. This number changes from round to round. So
 * the draft methods propose more drafts than there is room for. */
/* suite: threads native */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { CROWD = 8, CONTEXT = 192, PROMPT = 40, IDS = 80 };

static const struct {
    const char *fixture, *words;
    double temperature;
} subjects[] = {
    {"llama", "ngram", 0},
    {"gemma4-dense", "mtp", 0},
    {"gemma4-dense", "ngram,mtp", 0},
    {"gemma4-e-odd", "mtp", 0.8},
    {"qwen35-odd", "mtp", 0},
    {"qwen35-odd", "ngram,mtp", 0.8},
    {"deepseek-v3-own", "mtp", 0},
    {"../dflash/qwen3", "dflash", 0},
    {"../dflash/v2-qwen3.5", "ngram,dflash2", 0},
    {"../dflash/dspark-qwen3", "dspark", 0.8},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static uint32_t state = 1;

static size_t below(size_t n) {
    state = state * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)state * n) >> 32);
}

/* Makes the controller believe three things: drafts are mostly accepted; most chains end early; and rows are free up to
 * a random number and expensive beyond it. */
static void tell_controller(fr_engine *engine) {
    fr_draft_depth *d = &engine->draft_depth;
    size_t cheap = CROWD + below(12);
    fr_draft_depth_reset(d);
    d->round = 10;
    d->next_try = UINT64_MAX;
    for (size_t rows = 1; rows <= FR_DRAFT_DEPTH_ROWS; rows++) {
        double seconds = rows <= cheap ? 1 : 1 + 0.5 * (double)(rows - cheap);
        d->verify[rows] = (fr_draft_depth_timing){.readings = {seconds}, .count = 1, .usual = seconds, .when = 10};
    }
    d->by[0].draft[1] = (fr_draft_depth_timing){.readings = {1e-3}, .count = 1, .usual = 1e-3, .when = 10};
    d->by[0].share = (fr_draft_depth_timing){.readings = {0.1}, .count = 1, .usual = 0.1, .when = 10};
    for (size_t depth = 0; depth < FR_DRAFT_GAIN_DEPTHS; depth++)
        for (size_t bin = 0; bin < FR_DRAFT_GAIN_BINS; bin++)
            d->by[0].calibration.bins[depth][bin] = (fr_draft_rate){.hits = 900, .tries = 1000};
    for (size_t i = 0; i < engine->capacity; i++) {
        fr_draft_depth_drafts *t = engine->sessions[i] ? &engine->sessions[i]->drafting.depth.by[0] : NULL;
        for (size_t depth = 1; t && depth < FR_STEP_MAX; depth++) {
            t->stood[depth] = (fr_draft_rate){.hits = 900, .tries = 1000};
            t->came[depth] = t->made[depth] = (fr_draft_rate){.hits = 100, .tries = 1000};
            t->tells = true;
        }
    }
}

static void write_ids(fr_session **sessions, size_t count, int32_t (*ids)[IDS], size_t *cut, size_t *accepted) {
    static int32_t given[CROWD][FR_STEP_MAX];
    size_t made[CROWD] = {0}, done = 0;
    while (done < count) {
        fr_round rounds[CROWD];
        size_t going = 0, whose[CROWD];
        for (size_t i = 0; i < count; i++) {
            if (made[i] == IDS) continue;
            size_t limit = IDS - made[i] < FR_STEP_MAX ? IDS - made[i] : FR_STEP_MAX;
            rounds[going] = (fr_round){.session = sessions[i], .ids = given[i], .limit = limit};
            whose[going++] = i;
        }
        tell_controller(sessions[0]->engine);
        require(fr_engine_step(sessions[0]->engine, rounds, going));
        for (size_t r = 0; r < going; r++) {
            size_t i = whose[r];
            require(rounds[r].status);
            memcpy(ids[i] + made[i], rounds[r].ids, rounds[r].count * sizeof **ids);
            made[i] += rounds[r].count;
            done += made[i] == IDS;
            *accepted += rounds[r].accepted;
            if (sessions[i]->round.stage == FR_STAGE_VERIFY && sessions[i]->round.proposal)
                *cut += sessions[i]->round.drafts.left_out;
        }
    }
}

/* Opens `count` sessions and lets them generate. Their prompts and seeds are those from number `first` on. */
static void write_crowd(const fr_model *model, const fr_drafter *drafter, const fr_options *options, size_t first,
                        size_t count, int32_t (*prompts)[PROMPT], int32_t (*ids)[IDS], size_t *cut, size_t *accepted) {
    fr_engine *engine;
    fr_session *sessions[CROWD];
    require(fr_engine_open(model, drafter, options, count, &engine));
    for (size_t i = 0; i < count; i++) {
        fr_options *own = fr_options_copy(options);
        require(fr_options_set(own, FR_OPT_SEED, (int64_t)(first + i)));
        require(fr_engine_session(engine, own, &sessions[i]));
        require(fr_session_prompt(sessions[i], prompts[first + i], PROMPT - first - i));
        fr_options_free(own);
    }
    write_ids(sessions, count, ids, cut, accepted);
    for (size_t i = 0; i < count; i++) fr_session_close(sessions[i]);
    fr_engine_close(engine);
}

START_TEST(a_crowd_that_loses_tails_writes_what_each_writes_alone) {
    static int32_t prompts[CROWD][PROMPT], together[CROWD][IDS], alone[1][IDS];
    size_t cut = 0, accepted = 0, none = 0;
    char path[256];
    fr_model *model;
    fr_drafter *drafter = NULL;
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_THREADS, 2));
    require(fr_options_set(options, FR_OPT_CONTEXT, CONTEXT));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, subjects[_i].temperature));
    snprintf(path, sizeof path, FR_TEST_MODELS "%s", subjects[_i].fixture);
    require(fr_model_open(path, options, &model));
    bool block = strstr(subjects[_i].fixture, "dflash") != NULL;
    snprintf(path, sizeof path, FR_TEST_MODELS "%s/%s", subjects[_i].fixture, block ? "drafter" : "assistant");
    bool has_drafter = access(path, F_OK) == 0, own = !has_drafter && fr_model_fact(model, FR_FACT_MTP_LAYERS) > 0;
    if (has_drafter || own) require(fr_drafter_open(own ? NULL : path, model, options, &drafter));
    for (size_t i = 0; i < CROWD; i++)
        for (size_t p = 0; p < PROMPT; p++)
            prompts[i][p] = 1 + (int32_t)below(below(2) ? 8 : (size_t)fr_model_fact(model, FR_FACT_VOCAB) - 1);

    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, subjects[_i].words));
    write_crowd(model, drafter, options, 0, CROWD, prompts, together, &cut, &accepted);
    ck_assert_msg(cut > 20, "%zu drafts cut, %zu accepted", cut, accepted);
    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, "none"));
    for (size_t i = 0; i < CROWD; i++) {
        write_crowd(model, NULL, options, i, 1, prompts, alone, &none, &none);
        ck_assert_msg(memcmp(alone[0], together[i], sizeof alone[0]) == 0, "session %zu, %zu drafts cut", i, cut);
    }
    fr_drafter_close(drafter);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

FR_SUITE("drafting") {
    TCase *cases = tcase_create("drafting");
    tcase_set_timeout(cases, 240);
    fr_test_add_loop(cases, a_crowd_that_loses_tails_writes_what_each_writes_alone, SUBJECTS, 3);
    suite_add_tcase(suite, cases);
}
