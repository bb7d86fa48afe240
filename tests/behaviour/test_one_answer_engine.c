/* Tests texts that several sessions of an engine generate together. Each text must be the same as if its session ran
 * alone, to the last bit of the logits. This must hold for any other sessions (neighbours), for any order in which they
 * run, and for any origin of the pages of the text.
 *
 * The factors are:
 *   - the model and drafter;
 *   - how ids are sampled;
 *   - the number of neighbours, which have other prompts; some of these begin like the prompt of the text;
 *   - the order in which rounds name the sessions;
 *   - whether the prompt was run before; if so, whether it is found in the cache again or was evicted meanwhile;
 *   - the draft method, including scripted drafts, which are wrong at one depth after the other;
 *   - depth, threads, chunk and instruction set.
 *
 * The reference is decoding without drafts, with each text in a session that runs alone; other suites compare that with
 * transformers. There are three kinds of runs. In the runs of a pairwise cover, any two values of two factors occur
 * together at least once. In further runs each drafter's drafts are rejected at every depth, with greedy and with
 * sampled text. In the last run a kernel rounds wrongly, and the comparison must notice this. GLM's texts are about
 * pictures.
 *
 * A text has 140 ids. With FULL in the environment it has 400 ids. With scalar instructions, which are much slower, it
 * has fewer. The case "product", which is split into parts (tests/support/parts.h), takes all combinations of the first
 * six factors. The other factors get random values in each combination. */
/* suite: alone native no-valgrind */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sizes.h"
#include "forerun_lab.h"
#include "src/engine/session/batch.h"
#include "src/engine/session/timeline.h"
#include "tests/support/answer.h"
#include "tests/support/changed_folder.h"
#include "tests/support/least_kv.h"
#include "tests/support/pairs.h"
#include "tests/support/parts.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { TEXT = 400, SCALAR_TEXT = 64, CONTEXT = 640, PROMPT = 150, MOST = 16, FILL = 600, PICTURE_AT = 70 };

#define MODELS "tests/data/models/"
#define LLAMA  "tests/data/llama/"
#define GLM    "tests/data/glm-ocr"

static fr_changed_folder llama; /* a copy of the fixture whose context is large enough for the longest text */

static const struct {
    const char *target, *drafter, *word; /* drafter: NULL if the target has an MTP layer */
    const char *picture;                 /* the picture in the prompts; NULL: none */
} subjects[] = {{MODELS "gemma4-e", MODELS "gemma4-e/assistant", "mtp", NULL},
                {MODELS "gemma4-dense", MODELS "gemma4-dense/assistant", "mtp", NULL},
                {MODELS "gemma4-moe", MODELS "gemma4-moe/assistant", "mtp", NULL},
                {GLM, NULL, "mtp", GLM "/image/digits.png"},
                {llama.path, LLAMA "eagle3", "eagle3", NULL},
                {llama.path, LLAMA "eagle3-layers", "eagle3", NULL},
                {llama.path, LLAMA "eagle", "eagle", NULL},
                {llama.path, LLAMA "q4_0.gguf", "draft", NULL}};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

/* ---------------------------------------------------------------------------------------------------------- factors */

typedef enum factor {
    WHO,
    DRAWN,
    NEIGHBOURS,
    ORDER,
    SHARED,
    METHOD, /* the case "product" combines all values of the factors up to and including this one */
    DEPTH,
    THREADS,
    CHUNK,
    WORD,
    FACTORS
} factor;

enum { GIVEN, REVERSED, TURNING, ORDERS };
enum { NOTHING_SHARED, FOUND, EVICTED, WAYS_OF_SHARING };

static const size_t neighbours[] = {0, 1, 7, 15};
static const int64_t depths[] = {0, 1, 2, 3, 8, 15, FR_DRAFT_AUTO},
                     chunks[] = {7, 64, 512}; /* a depth of 0 means a run without drafts */
enum { DEPTH_15 = 5 };

static size_t values[FACTORS] = {
    [WHO] = SUBJECTS,           [DRAWN] = 2, [NEIGHBOURS] = 4, [ORDER] = ORDERS, [SHARED] = WAYS_OF_SHARING,
    [METHOD] = FR_TEST_METHODS, [DEPTH] = 7, [THREADS] = 3,    [CHUNK] = 3};
static const char *words[FR_PAIRS_VALUES];

static void find_words(void) {
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++)
        if (fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) words[values[WORD]++] = fr_lab_word(FR_LAB_ISA, i);
}

static bool is_scalar(const char *word) {
    return word[0] == 's';
}

/* Returns true if value `a` of factor f and value `b` of factor g may be in one run. Depth 0 belongs to runs without
 * drafts, and only to these. Runs with scalar instructions take most of the suite's time. So these runs have few
 * neighbours, and their prompt is never evicted. */
static bool may_meet(size_t f, size_t a, size_t g, size_t b) {
    if (f == METHOD && g == DEPTH) return (a == FR_TEST_NONE) == (b == 0);
    if (g != WORD || !is_scalar(words[b])) return true;
    return f == NEIGHBOURS ? neighbours[a] < 2 : f != SHARED || a != EVICTED;
}

/* Returns the number of ids of a text. 140 ids are enough: after 136 ids, each of 15 drafts has been rejected once. */
static size_t text_length(void) {
    return fr_test_full() ? TEXT : 140;
}

static uint32_t state = 1;

static size_t below(size_t n) {
    state = state * 1664525u + 1013904223u;
    return (size_t)(((uint64_t)state * n) >> 32);
}

/* ------------------------------------------------------------------------------------------------------------ texts */

/* A prompt, and the ids that a session alone generates after the prompt. Each of these ids has a hash of the logits
 * from which it was chosen. */
typedef struct text {
    int32_t ids[CONTEXT];
    size_t prompt, most; /* prompt: number of ids in the prompt. most: number of ids after the prompt */
    bool shows;          /* the prompt contains the picture */
    uint64_t hashes[TEXT];
} text;

typedef struct texts {
    text all[MOST]; /* the first text is that of the session under test */
    size_t vocab;
} texts;

static fr_options *options_of(bool drawn) {
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_CONTEXT, CONTEXT));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_PIN, 0));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, drawn ? 0.8 : 0));
    return options;
}

static fr_picture *picture_of(const fr_model *model, size_t who) {
    fr_picture *picture = NULL;
    if (subjects[who].picture) require(fr_picture_open(subjects[who].picture, model, &picture));
    return picture;
}

static void make_prompt(const fr_model *model, const fr_picture *picture, text *all, size_t index) {
    int32_t image = (int32_t)fr_model_fact(model, FR_FACT_IMAGE_TOKEN);
    size_t tokens = picture ? fr_picture_tokens(picture) : 0;
    text *t = &all[index];
    *t = (text){.prompt = index ? 5 + below(60) : PROMPT, .most = index ? 1 + below(40) : text_length()};
    t->shows = picture && index % 3 == 0;
    /* this prompt is longer, and its beginning is the same as that of the first prompt */
    if (index % 4 == 1) t->prompt += 100;
    if (t->shows) t->prompt += tokens;
    for (size_t i = 0; i < t->prompt; i++) {
        t->ids[i] = (int32_t)below((size_t)fr_model_fact(model, FR_FACT_VOCAB));
        if (t->ids[i] == image) t->ids[i] = 1;
    }
    if (index % 4 == 1) memcpy(t->ids, all[0].ids, (picture ? PICTURE_AT : 100) * sizeof *t->ids);
    size_t at = fr_smaller(PICTURE_AT, t->prompt - tokens);
    for (size_t i = 0; t->shows && i < tokens; i++) t->ids[at + i] = image;
}

static void put(fr_session *session, const fr_picture *picture, const text *t) {
    if (t->shows) require(fr_session_show(session, &picture, 1));
    require(fr_session_put(session, t->ids, t->prompt));
}

static uint64_t hash_row(const fr_session *s, size_t row, size_t vocab) {
    return fr_hash(0, s->result.logits + row * vocab, vocab * sizeof *s->result.logits);
}

static void say_alone(const fr_model *model, const fr_options *options, const fr_picture *picture, text *t,
                      size_t vocab) {
    fr_session *session;
    require(fr_session_open(model, NULL, options, &session));
    put(session, picture, t);
    for (size_t made = 0, count, accepted; made < t->most; made++) {
        require(fr_session_step(session, t->ids + t->prompt + made, 1, &count, &accepted));
        if (made) t->hashes[made] = hash_row(session, 0, vocab);
    }
    fr_session_close(session);
}

/* Makes all texts of a model. */
static texts *texts_of(size_t who, bool drawn) {
    texts *made = calloc(1, sizeof *made);
    fr_options *options = options_of(drawn);
    fr_model *model;
    require(fr_options_set(options, FR_OPT_THREADS, 1));
    require(fr_model_open(subjects[who].target, options, &model));
    fr_picture *picture = picture_of(model, who);
    made->vocab = (size_t)fr_model_fact(model, FR_FACT_VOCAB);
    state = (uint32_t)who + 1;
    for (size_t i = 0; i < MOST; i++) {
        make_prompt(model, picture, made->all, i);
        require(fr_options_set(options, FR_OPT_SEED, (int64_t)i));
        say_alone(model, options, picture, &made->all[i], made->vocab);
    }
    if (picture) fr_picture_close(picture);
    fr_model_close(model);
    fr_options_free(options);
    return made;
}

/* -------------------------------------------------------------------------------------------------------- a run */

typedef struct speaker {
    fr_session *session;
    const text *text;
    size_t said, most; /* said: number of ids that the session has given. most: number of ids that it must give */
    size_t starts;     /* the round in which the session begins */
    int depth;         /* number of scripted drafts per step */
} speaker;

typedef struct run {
    const size_t *at; /* the index of each factor's value */
    const texts *texts;
    fr_options *options;
    fr_model *model;
    fr_drafter *drafter;
    fr_picture *picture;
    fr_engine *engine;
    fr_session *asker; /* the session that found() uses while the speakers have no sessions yet */
    speaker speakers[MOST];
    size_t count;
    fr_kernels misrounded;
    bool control; /* this run is the negative control: differences don't fail the test, but are counted in `wrong` */
    size_t wrong;
} run;

static void differ(run *r, const char *what, size_t index) {
    char factors[128] = "";
    r->wrong++;
    if (r->control) return;
    for (size_t f = 0, end = 0; f < FACTORS; f++)
        end += (size_t)snprintf(factors + end, sizeof factors - end, " %zu", r->at[f]);
    ck_abort_msg("%s, text %zu: other %s than alone; factors%s", subjects[r->at[WHO]].target, index, what, factors);
}

/* Compares the ids that a session gives with those of its text. If `hashed` is true, also compares the logits from
 * which each id was chosen. */
static void check(run *r, speaker *s, const int32_t *ids, size_t count, bool hashed) {
    size_t index = (size_t)(s - r->speakers);
    const text *t = s->text;
    if (memcmp(ids, t->ids + t->prompt + s->said, count * sizeof *ids) != 0) differ(r, "ids", index);
    for (size_t i = 0; hashed && i < count; i++)
        if (hash_row(s->session, i, r->texts->vocab) != t->hashes[s->said + i]) differ(r, "logits", index);
    s->said += count;
}

/* Returns true if the draft at this depth must be right. In each round the drafts are wrong at one depth, which is one
 * deeper than in the round before. Once per cycle all drafts are right. */
static bool reject_in_turn(void *context, size_t round, size_t depth) {
    int asked = *(int *)context, drafts = asked == FR_DRAFT_AUTO ? FR_STEP_MAX - 1 : asked;
    return depth != round % ((size_t)drafts + 1);
}

static bool is_scripted(const run *r) {
    return r->at[METHOD] == FR_TEST_SCRIPTED || r->at[METHOD] == FR_TEST_REPLACED;
}

static fr_session *open_session(const run *r, size_t seed) {
    fr_session *session;
    require(fr_options_set(r->options, FR_OPT_SEED, (int64_t)seed));
    require(fr_engine_session(r->engine, r->options, &session));
    return session;
}

/* Limits the memory for keys and values. All texts of the run fit into it. They do not fit together with the texts that
 * ran before. */
static void limit_memory(const run *r) {
    double least = (double)fr_test_least_kv(r->model, r->drafter, r->options, 2);
    double timelines = 2 + 0.6 * (double)neighbours[r->at[NEIGHBOURS]];
    require(fr_options_set(r->options, FR_OPT_KV_MEMORY, (int64_t)(least * timelines)));
}

static void set_manner(const run *r) {
    static const char *const forms[] = {"none", "%s", "ngram", "ngram,%s", "none", "%s"};
    char methods[64];
    snprintf(methods, sizeof methods, forms[r->at[METHOD]], subjects[r->at[WHO]].word);
    require(fr_options_set_text(r->options, FR_OPT_SPEC_TYPE, methods));
    require(fr_options_set(r->options, FR_OPT_DRAFT_MAX, depths[r->at[DEPTH]] ? depths[r->at[DEPTH]] : 1));
    require(fr_options_set(r->options, FR_OPT_THREADS, 1 + (int64_t)r->at[THREADS]));
    require(fr_options_set(r->options, FR_OPT_CHUNK, chunks[r->at[CHUNK]]));
    require(fr_options_set_text(r->options, FR_OPT_ISA, words[r->at[WORD]]));
}

static void open_run(run *r, const size_t *at, const texts *of) {
    size_t who = at[WHO];
    *r = (run){.at = at, .texts = of, .options = options_of(at[DRAWN]), .count = 1 + neighbours[at[NEIGHBOURS]]};
    set_manner(r);
    require(fr_model_open(subjects[who].target, r->options, &r->model));
    if (strstr(r->options->spec_type, subjects[who].word))
        require(fr_drafter_open(subjects[who].drafter, r->model, r->options, &r->drafter));
    r->picture = picture_of(r->model, who);
    if (at[SHARED] == EVICTED) limit_memory(r);
}

static void open_engine(run *r) {
    require(fr_engine_open(r->model, r->drafter, r->options, r->count + 1, &r->engine));
    r->asker = open_session(r, 0);
}

static void close_run(run *r) {
    for (size_t i = 0; i < r->count; i++) fr_session_close(r->speakers[i].session);
    fr_session_close(r->asker);
    fr_engine_close(r->engine);
    if (r->picture) fr_picture_close(r->picture);
    fr_drafter_close(r->drafter);
    fr_model_close(r->model);
    fr_options_free(r->options);
}

/* Counts the ids of the first session's prompt whose keys and values are still in the engine. */
static size_t found(const run *r) {
    const fr_session *s = r->speakers[0].session;
    const fr_kv_content content = {.ids = r->texts->all[0].ids};
    return fr_kv_prefixes_find(&r->engine->prefixes, content, PROMPT, s->drafting.draft->follows);
}

static void say_before(run *r, const text *t, size_t count) {
    int32_t ids[FR_STEP_MAX];
    fr_session *session = open_session(r, 0);
    put(session, r->picture, t);
    for (size_t made = 0, got, accepted; made < count; made += got)
        require(fr_session_step(session, ids, fr_smaller(FR_STEP_MAX, count - made), &got, &accepted));
    fr_session_close(session);
}

/* Runs the first session's prompt before the texts. Depending on the factor SHARED, other prompts then evict it from
 * the cache. */
static void prepare(run *r) {
    text other = {.prompt = FILL};
    if (r->at[SHARED] == NOTHING_SHARED) return;
    say_before(r, &r->texts->all[0], 30);
    for (size_t n = 0; r->at[SHARED] == EVICTED && found(r); n++) {
        ck_assert_uint_lt(n, 40);
        for (size_t i = 0; i < FILL; i++) other.ids[i] = (int32_t)(2 + (i * (n + 3) + n) % 400);
        say_before(r, &other, 1);
    }
}

static void begin(run *r, speaker *s) {
    put(s->session, r->picture, s->text);
    if (s == r->speakers && r->at[SHARED] == FOUND)
        ck_assert_double_gt(fr_session_stat(s->session, FR_STAT_REUSED_TOKENS), 0);
}

static void open_speakers(run *r) {
    for (size_t i = 0; i < r->count; i++) {
        speaker *s = &r->speakers[i];
        const text *t = &r->texts->all[i];
        *s = (speaker){.session = open_session(r, i), .text = t, .depth = (int)depths[r->at[DEPTH]]};
        s->most = fr_smaller(t->most, is_scalar(words[r->at[WORD]]) ? SCALAR_TEXT : TEXT);
        s->starts = i ? below(30) : 0;
        if (is_scripted(r))
            require(fr_lab_session_script(s->session, t->ids, t->prompt + t->most, reject_in_turn, &s->depth));
    }
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

static size_t place_of(const run *r, size_t turn, size_t i) {
    if (r->at[ORDER] == GIVEN) return i;
    return r->at[ORDER] == REVERSED ? r->count - 1 - i : (i + turn) % r->count;
}

/* Runs one round. Returns how many sessions took part. */
static size_t turn_around(run *r, size_t turn) {
    static int32_t ids[MOST][FR_STEP_MAX];
    fr_round rounds[MOST];
    speaker *whose[MOST];
    bool waited[MOST];
    size_t n = 0, left = 0;
    for (size_t i = 0; i < r->count; i++) {
        speaker *s = &r->speakers[place_of(r, turn, i)];
        if (turn == s->starts) begin(r, s);
        left += s->said < s->most;
        if (turn < s->starts || s->said == s->most) continue;
        whose[n] = s;
        waited[n] = s->session->phase == FR_PHASE_PENDING; /* the first id is not chosen yet. Other rows of the round
                                                            * may overwrite the logits for it */
        rounds[n] =
            (fr_round){.session = s->session, .ids = ids[n], .limit = fr_smaller(FR_STEP_MAX, s->most - s->said)};
        n++;
    }
    if (n) require(fr_engine_step(r->engine, rounds, n));
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(rounds[i].status == FR_OK, "%s", rounds[i].error);
        check(r, whose[i], ids[i], rounds[i].count, !waited[i] && whose[i]->said > 0);
    }
    return left;
}

/* Runs one combination and returns the number of differences. If `control` is true, a kernel rounds once too often. */
static size_t try_run(const size_t *at, const texts *of, bool control) {
    static run r;
    state = 7;
    open_run(&r, at, of);
    r.control = control;
    if (control) fr_misround(r.model, &r.misrounded);
    open_engine(&r);
    r.speakers[0].session = r.asker;
    prepare(&r);
    open_speakers(&r);
    size_t turn = 0;
    while (turn_around(&r, turn)) turn++;
    close_run(&r);
    return r.wrong;
}

/* ------------------------------------------------------------------------------------------------------------ tests */

START_TEST(every_two_values_together) {
    static fr_pairs_run runs[FR_PAIRS_RUNS];
    texts *of[] = {texts_of((size_t)_i, false), texts_of((size_t)_i, true)};
    size_t count = fr_pairs_cover(values, FACTORS, may_meet, runs);
    for (size_t i = 0; i < count; i++)
        if (runs[i][WHO] == (size_t)_i) try_run(runs[i], of[runs[i][DRAWN]], false);
    free(of[0]);
    free(of[1]);
}
END_TEST

START_TEST(rejection_at_every_depth) {
    for (size_t drawn = 0; drawn < 2; drawn++) {
        texts *of = texts_of((size_t)_i, drawn);
        const size_t at[FACTORS] = {[WHO] = (size_t)_i,          [DRAWN] = drawn,    [NEIGHBOURS] = 2,
                                    [METHOD] = FR_TEST_REPLACED, [DEPTH] = DEPTH_15, [WORD] = values[WORD] - 1};
        try_run(at, of, false);
        free(of);
    }
}
END_TEST

START_TEST(one_rounding_more_is_told_apart) {
    texts *of = texts_of((size_t)_i, false);
    const size_t at[FACTORS] = {
        [WHO] = (size_t)_i, [NEIGHBOURS] = 1, [METHOD] = FR_TEST_MTP, [WORD] = values[WORD] - 1};
    ck_assert_uint_gt(try_run(at, of, true), 0);
    free(of);
}
END_TEST

/* Takes every combination of the factors before METHOD. The other factors get random values, whose seed is the number
 * of the combination. */
START_TEST(every_combination) {
    enum { FRONT = METHOD - WHO };
    fr_test_part part = fr_test_part_here();
    texts *of[] = {texts_of((size_t)_i, false), texts_of((size_t)_i, true)};
    for (size_t number = part.first; number < fr_pairs_combinations(values + DRAWN, FRONT); number += part.step) {
        size_t at[FACTORS] = {[WHO] = (size_t)_i};
        fr_pairs_combination(number, values + DRAWN, FRONT, at + DRAWN);
        state = (uint32_t)fr_hash(0, at, sizeof at);
        for (size_t f = METHOD + 1; f < FACTORS; f++) at[f] = below(values[f]);
        if (at[DEPTH] == 0) at[DEPTH] = 1;
        try_run(at, of[at[DRAWN]], false);
    }
    free(of[0]);
    free(of[1]);
}
END_TEST

static void make_llama(void) {
    fr_changed_folder_make(&llama, MODELS "llama", "{\"max_position_embeddings\": 1024}");
}

static void remove_llama(void) {
    fr_changed_folder_remove(&llama);
}

FR_SUITE("one answer in an engine") {
    find_words();
    TCase *cases = tcase_create("engine");
    tcase_set_timeout(cases, 0);
    tcase_add_unchecked_fixture(cases, make_llama, remove_llama);
    tcase_add_loop_test(cases, every_two_values_together, 0, SUBJECTS);
    tcase_add_loop_test(cases, rejection_at_every_depth, 0, SUBJECTS);
    tcase_add_loop_test(cases, one_rounding_more_is_told_apart, 0, SUBJECTS);
    TCase *product = tcase_create("product");
    tcase_set_timeout(product, 0);
    tcase_add_unchecked_fixture(product, make_llama, remove_llama);
    tcase_add_loop_test(product, every_combination, 0, fr_test_in_parts() ? SUBJECTS : 0);
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, product);
}
