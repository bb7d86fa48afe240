/* Tests the reuse of prompts. A prompt must skip the ids that it shares with an earlier prompt. Its ids must be those
 * of a session alone, and its logits must have the same bits. This must hold whatever ran before, and for any number of
 * sessions. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/sizes.h"
#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { CONTEXT = 256, CHUNK = 24, SAID = 12, LEAST = 16, ROWS_THAT_WAIT = 7 };

/* These models together have all kinds of attention (full, sliding, latent), recurrent states and convolutions. Some of
 * the drafters have a KV cache of their own, and one reads the target's cache. */
static const struct {
    /* drafter: a folder inside the model's folder; "" means the model's own layer, NULL means none */
    const char *name, *drafter;
} models[] = {{"llama", NULL},         {"gemma4-e", "assistant"}, {"gemma3-odd", NULL},     {"gpt-oss-odd", NULL},
              {"deepseek-v3-own", ""}, {"glm4-moe-odd", ""},      {"cohere2-window", NULL}, {"qwen35-odd", ""},
              {"qwen35-odd", NULL},    {"qwen3-next-odd", NULL},  {"lfm2-long", NULL},      {"qwen35-moe-odd", ""}};
enum { MODELS = sizeof models / sizeof *models };

typedef struct subject {
    const char *name;
    fr_model *model;
    fr_drafter *drafter;
    fr_options *options;
    fr_engine *engine;
    bool follows, states;
    uint32_t chance;
} subject;

static size_t below(subject *s, size_t n) {
    s->chance = s->chance * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)s->chance * n) >> 32);
}

static void set(subject *s, fr_option option, int64_t value) {
    require(fr_options_set(s->options, option, value));
}

static subject open_subject(size_t model, size_t sessions, bool sampled) {
    subject s = {.name = models[model].name, .options = fr_options_new(), .chance = (uint32_t)model + 1};
    char path[256];
    set(&s, FR_OPT_THREADS, 1);
    set(&s, FR_OPT_CONTEXT, CONTEXT);
    set(&s, FR_OPT_CHUNK, CHUNK);
    set(&s, FR_OPT_IGNORE_EOS, 1);
    set(&s, FR_OPT_DRAFT_MAX, 3);
    if (sampled) require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, 0.8));
    snprintf(path, sizeof path, FR_TEST_MODELS "%s", s.name);
    require(fr_model_open(path, s.options, &s.model));
    snprintf(path, sizeof path, FR_TEST_MODELS "%s/%s", s.name, models[model].drafter ? models[model].drafter : "");
    if (models[model].drafter)
        require(fr_drafter_open(*models[model].drafter ? path : NULL, s.model, s.options, &s.drafter));
    s.follows = s.drafter && !*models[model].drafter;
    s.states = s.model->trunk.recurrent_count > 0;
    require(fr_engine_open(s.model, s.drafter, s.options, sessions, &s.engine));
    return s;
}

static void close_subject(subject *s) {
    fr_engine_close(s->engine);
    fr_drafter_close(s->drafter);
    fr_model_close(s->model);
    fr_options_free(s->options);
}

/* Appends random ids, but no id that ends a message. */
static void add_ids(subject *s, int32_t *ids, size_t *count, size_t more) {
    size_t vocab = (size_t)fr_model_fact(s->model, FR_FACT_VOCAB);
    for (size_t end = *count + more; *count < end;) {
        int32_t id = (int32_t)below(s, vocab);
        if (!fr_model_is_eos(s->model, id) && id != fr_model_fact(s->model, FR_FACT_IMAGE_TOKEN)) ids[(*count)++] = id;
    }
}

static void end_message(const subject *s, int32_t *ids, size_t *count) {
    ids[(*count)++] = s->model->eos[0];
}

/* The ids of a reply, and a hash of the logits from which these ids were chosen. The hash does not include the logits
 * of the first id. */
typedef struct said {
    int32_t ids[SAID];
    uint64_t logits;
} said;

static said say(fr_session *session, const int32_t *prompt, size_t count) {
    said s = {0};
    size_t vocab = session->model->trunk.spec.vocab;
    require(fr_session_set_prompt(session, prompt, count));
    for (size_t made = 0, got, accepted; made < SAID; made += got) {
        bool first = session->phase == FR_PHASE_PREDICTED;
        require(fr_session_step(session, s.ids + made, SAID - made, &got, &accepted));
        for (size_t i = 0; i < got && !first; i++)
            s.logits = fr_hash(s.logits, session->result.logits + i * vocab, vocab * sizeof *session->result.logits);
    }
    return s;
}

/* Runs a prompt in a session of the engine. Compares the ids and logits with those of a session alone. Sets *reused to
 * the number of prompt ids that were found in the cache. The session stays open in *place until the next call with the
 * same `place`. */
static said ask(const subject *s, fr_session **place, const int32_t *prompt, size_t count, size_t *reused) {
    fr_session *alone;
    fr_session_close(*place);
    require(fr_engine_session(s->engine, s->options, place));
    require(fr_session_open(s->model, s->drafter, s->options, &alone));
    said got = say(*place, prompt, count), expected = say(alone, prompt, count);
    /* the drafters of this session and of the session alone have the same rows, so they must make and accept equally
     * many drafts */
    for (fr_stat stat = FR_STAT_DRAFTED; s->follows && stat <= FR_STAT_ACCEPTED; stat++)
        ck_assert_msg(fr_session_stat(*place, stat) == fr_session_stat(alone, stat), "%s: other drafts", s->name);
    fr_session_close(alone);
    ck_assert_msg(memcmp(got.ids, expected.ids, sizeof got.ids) == 0, "%s: other ids than alone", s->name);
    ck_assert_msg(got.logits == expected.logits, "%s: other logits than alone", s->name);
    *reused = (size_t)fr_session_stat(*place, FR_STAT_REUSED_TOKENS);
    ck_assert(*reused + (size_t)fr_session_stat(*place, FR_STAT_PROMPT_TOKENS) == count);
    return got;
}

static void expect(const subject *s, size_t reused, size_t least, size_t most, const char *what) {
    ck_assert_msg(reused >= least && reused <= most, "%s: %s: %zu ids were found, not %zu to %zu", s->name, what,
                  reused, least, most);
}

/* Returns the position where the next prompt can begin if recurrent states or a drafter's rows were kept at `position`.
 * This is the same position, except at the end of a page, where it is one position earlier. */
static size_t within_page(size_t position) {
    return position - (position % FR_KV_PAGE == 0);
}

/* The prompt of each turn consists of the previous turn's prompt, its reply and more ids. All of this must be reused
 * except two parts: the reply's last id, which has not been run, and the last rows if the drafter has not run them.
 * With recurrent states, less of the reply may be reused. Such states are kept only at an id that can't be rejected any
 * more, never at a draft. The test runs with one and with three sessions, greedy and sampled. */
START_TEST(a_grown_conversation_goes_on) {
    size_t sessions = _i % 2 ? 3 : 1;
    subject s = open_subject((size_t)_i / 4, sessions, _i % 4 / 2);
    fr_session *places[3] = {0};
    int32_t ids[CONTEXT];
    size_t count = 0, before = 0, reused;
    add_ids(&s, ids, &count, 35);
    end_message(&s, ids, &count);
    for (size_t turn = 0; turn < 5; turn++) {
        add_ids(&s, ids, &count, 8 + below(&s, 30));
        said reply = ask(&s, &places[turn % sessions], ids, count, &reused);
        if (turn == 0)
            expect(&s, reused, 0, 0, "the first turn");
        else if (s.states)
            expect(&s, reused, before - 1 - SAID - 1, before - 1, "a grown conversation");
        else
            expect(&s, reused, before - 1 - (s.follows ? ROWS_THAT_WAIT : 0), before - 1, "a grown conversation");
        memcpy(ids + count, reply.ids, sizeof reply.ids);
        before = count += SAID;
    }
    for (size_t i = 0; i < 3; i++) fr_session_close(places[i]);
    close_subject(&s);
}
END_TEST

/* A chat template drops the reasoning of an earlier reply, so the reply has other ids in the next prompt. Everything
 * before the first different id must be reused. */
START_TEST(a_rewritten_reply_is_run_from_where_it_differs) {
    size_t sessions = _i % 2 ? 3 : 1;
    subject s = open_subject((size_t)_i / 2, sessions, false);
    fr_session *places[3] = {0};
    int32_t ids[CONTEXT];
    size_t count = 0, asked = 0, reused;
    for (size_t turn = 0; turn < 4; turn++) {
        size_t stands = asked;
        add_ids(&s, ids, &count, 20 + below(&s, 20));
        end_message(&s, ids, &count);
        asked = count;
        add_ids(&s, ids, &count, 3); /* the opening of the reply */
        ids[count] = 7;              /* this id represents the reasoning, which the next turn drops */
        ask(&s, &places[turn % sessions], ids, count + 1, &reused);
        expect(&s, reused, turn ? within_page(s.states ? stands : stands + 3 - s.follows) : 0, stands + 3, "a reply");
        ids[count++] = 8;
        add_ids(&s, ids, &count, 6);
    }
    for (size_t i = 0; i < 3; i++) fr_session_close(places[i]);
    close_subject(&s);
}
END_TEST

/* Two prompts share a first message and then differ. The test tries many lengths of this message, from 14 ids on,
 * because the engine reuses 16 ids or more. */
START_TEST(any_length_is_enough) {
    static const size_t lengths[] = {14, 15, 16, 17, 30, 45, 51, 62, 63, 64, 65, 66, 90, 115, 127, 128, 129};
    subject s = open_subject((size_t)_i, 2, false);
    int32_t ids[CONTEXT];
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        fr_session *places[2] = {0};
        size_t n = lengths[i], count = 0, common, reused;
        add_ids(&s, ids, &count, n - 1);
        end_message(&s, ids, &count);
        for (size_t second = 0; second < 2; second++) {
            common = count;
            ids[count++] = 5; /* if a drafter's row depends on the next id too, the last shared id must run again */
            ids[count] = (int32_t)second + 8;
            ask(&s, &places[second], ids, count + 1, &reused);
            count = common;
        }
        size_t found = s.states || s.follows ? within_page(n) : n + 1;
        if (found < LEAST) found = 0;
        expect(&s, reused, found, n + 1 < LEAST ? 0 : n + 1, "another question");
        for (size_t place = 0; place < 2; place++) fr_session_close(places[place]);
    }
    close_subject(&s);
}
END_TEST

/* Two prompts have the same beginning and differ from a position at which no message ends. Recurrent states are kept
 * only at regular positions. So the second prompt begins at the last regular position before the branch, and runs at
 * most half of the shared ids again. It keeps its states at the branch, so that a third prompt can begin there. */
START_TEST(a_first_branch_is_reused) {
    static const struct {
        size_t branch, regular;
    } cases[] = {{20, 0}, {40, 31}, {62, 31}, {70, 63}, {126, 63}, {150, 127}, {200, 191}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        subject s = open_subject((size_t)_i, 3, false);
        fr_session *places[3] = {0};
        int32_t ids[CONTEXT];
        size_t count = 0, reused, branch = cases[i].branch;
        add_ids(&s, ids, &count, branch + 20);
        for (size_t place = 0; place < 3; place++) {
            ids[branch] = 8 + (int32_t)place;
            ask(&s, &places[place], ids, count, &reused);
            size_t least = s.states && place == 1 ? cases[i].regular : within_page(branch - s.follows);
            expect(&s, reused, place ? least : 0, place ? branch : 0, "a branch");
        }
        for (size_t place = 0; place < 3; place++) fr_session_close(places[place]);
        close_subject(&s);
    }
}
END_TEST

/* A short request (a chat program asks for a title, for example) runs in the only session. Afterwards the long
 * conversation must still be in the cache. */
START_TEST(a_title_costs_no_conversation) {
    subject s = open_subject((size_t)_i, 1, false);
    fr_session *place = NULL;
    int32_t ids[CONTEXT], title[40];
    size_t count = 0, reused, before = 0;
    add_ids(&s, ids, &count, 60);
    end_message(&s, ids, &count);
    add_ids(&s, ids, &count, 60);
    end_message(&s, ids, &count);
    for (size_t turn = 0; turn < 4; turn++) {
        size_t length = 0;
        add_ids(&s, ids, &count, 10);
        ask(&s, &place, ids, count, &reused);
        expect(&s, reused, turn ? before - 1 - s.follows - s.states : 0, turn ? before : 0, "a conversation");
        before = count;
        add_ids(&s, title, &length, 40);
        ask(&s, &place, title, length, &reused);
        expect(&s, reused, 0, 0, "a title");
    }
    fr_session_close(place);
    close_subject(&s);
}
END_TEST

/* A session that does not want reuse runs its whole prompt. Other sessions may still reuse the pages that it fills. */
START_TEST(who_wants_none_has_none) {
    subject s = open_subject((size_t)_i, 2, false);
    fr_session *places[2] = {0};
    int32_t ids[CONTEXT];
    size_t count = 0, reused;
    add_ids(&s, ids, &count, 70);
    for (size_t i = 0; i < 3; i++) {
        set(&s, FR_OPT_PROMPT_REUSE, i == 2);
        ask(&s, &places[i % 2], ids, count, &reused);
        expect(&s, reused, i == 2 ? count - 1 : 0, i == 2 ? count - 1 : 0, "the same again");
    }
    for (size_t i = 0; i < 2; i++) fr_session_close(places[i]);
    close_subject(&s);
}
END_TEST

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* When a session's prompt was already run for another session, the draft model must not run it again. In this test the
 * draft model is as slow as the target, so running it again would cost much. */
START_TEST(a_draft_model_goes_on_too) {
    enum { LONG = 230 };
    static const size_t which[] = {0, 8}; /* a model without recurrent states, and a model with them */
    subject s = open_subject(which[_i], 1, false);
    char path[256];
    double seconds[2];
    int32_t ids[CONTEXT];
    size_t count = 0;
    fr_engine_close(s.engine);
    snprintf(path, sizeof path, FR_TEST_MODELS "%s", s.name);
    require(fr_drafter_open(path, s.model, s.options, &s.drafter));
    require(fr_engine_open(s.model, s.drafter, s.options, 1, &s.engine));
    add_ids(&s, ids, &count, LONG);
    for (size_t i = 0; i < 2; i++) {
        fr_session *session;
        require(fr_engine_session(s.engine, s.options, &session));
        double start = cpu_seconds();
        require(fr_session_set_prompt(session, ids, count));
        seconds[i] = cpu_seconds() - start;
        fr_session_close(session);
    }
    ck_assert_msg(seconds[1] < 0.3 * seconds[0], "%g s, then %g s", seconds[0], seconds[1]);
    size_t reused;
    fr_session *place = NULL;
    ids[200] = ids[200] == 5 ? 6 : 5;
    ask(&s, &place, ids, count, &reused);
    expect(&s, reused, s.states ? 191 : 200, 200, "another text");
    fr_session_close(place);
    close_subject(&s);
}
END_TEST

FR_SUITE("prompt_reuse") {
    TCase *cases = tcase_create("prompts");
    tcase_set_timeout(cases, 120);
    fr_test_add_loop(cases, a_grown_conversation_goes_on, 4 * MODELS, 6);
    fr_test_add_loop(cases, a_rewritten_reply_is_run_from_where_it_differs, 2 * MODELS, 6);
    fr_test_add_loop(cases, any_length_is_enough, MODELS, 3);
    fr_test_add_loop(cases, a_first_branch_is_reused, MODELS, 3);
    fr_test_add_loop(cases, a_title_costs_no_conversation, MODELS, 3);
    fr_test_add_loop(cases, who_wants_none_has_none, MODELS, 3);
    tcase_add_loop_test(cases, a_draft_model_goes_on_too, 0, 2);
    suite_add_tcase(suite, cases);
}
