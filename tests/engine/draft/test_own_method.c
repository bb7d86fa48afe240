/* Tests a draft method that the caller of the library implements. Whatever the method proposes, the text must be the
 * target's. The method may pass on drafts of the engine's drafter; the statistics count these as the drafter's. An
 * invalid proposal gives one error line and leaves the session intact.
 *
 * With rejection sampling the text must have the target's distribution, whichever method drafts. The test counts pairs
 * of ids and compares the counts with the target's own logits. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/session/state.h"
#include "tests/support/brief.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

#define LLAMA  FR_TEST_MODELS "llama"
#define DFLASH "tests/data/dflash/"

enum { PROMPT = 20, TEXT = 80 };

typedef struct subject {
    fr_options *options;
    fr_model *model;
    fr_drafter *drafter; /* NULL: none */
    int32_t prompt[PROMPT];
    int32_t vocab;
} subject;

static subject open_subject(const char *target, const char *drafter) {
    subject s = {.options = fr_options_new()};
    require(fr_options_set(s.options, FR_OPT_CONTEXT, 192));
    require(fr_options_set(s.options, FR_OPT_THREADS, 1));
    require(fr_options_set(s.options, FR_OPT_IGNORE_EOS, 1));
    require(fr_model_open(target, s.options, &s.model));
    if (drafter) require(fr_drafter_open(drafter, s.model, s.options, &s.drafter));
    s.vocab = (int32_t)fr_model_fact(s.model, FR_FACT_VOCAB);
    for (int32_t i = 0; i < PROMPT; i++) s.prompt[i] = 5 + i * 37 % (s.vocab - 20);
    return s;
}

static void close_subject(subject *s) {
    fr_drafter_close(s->drafter);
    fr_model_close(s->model);
    fr_options_free(s->options);
}

static fr_session *open_session(const subject *s, int64_t depth) {
    fr_session *session;
    require(fr_options_set(s->options, FR_OPT_DRAFT_MAX, depth));
    require(fr_session_open(s->model, s->drafter, s->options, &session));
    return session;
}

static void write_text(fr_session *session, int32_t *text) {
    int32_t ids[FR_STEP_MAX];
    for (size_t made = 0, got, accepted; made < TEXT; made += got) {
        require(fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted));
        memcpy(text + made, ids, (got < TEXT - made ? got : TEXT - made) * sizeof *text);
    }
}

static void write_plain(const subject *s, int32_t *text) {
    fr_session *session = open_session(s, 0);
    require(fr_session_prompt(session, s->prompt, PROMPT));
    write_text(session, text);
    fr_session_close(session);
}

/* ---------------------------------------------------------------------------------------------------------- answers */

/* A draft method that knows the text and makes one wrong draft in every second round. The session reports to the method
 * how many drafts were accepted, and the method adds up these numbers. */
typedef struct knower {
    const int32_t *text;
    size_t wrong, rounds, proposed, accepted, closed;
    int32_t vocab;
} knower;

static size_t know(void *context, fr_drafting *d) {
    knower *k = context;
    size_t at = d->length - PROMPT, count = 0;
    for (; count < d->count && at + count < TEXT; count++) {
        bool wrong = k->rounds % 2 && count == k->wrong;
        d->drafts[count] = wrong ? (k->text[at + count] + 1) % k->vocab : k->text[at + count];
    }
    ck_assert(at == 0 || d->ids[d->length - 1] == k->text[at - 1]);
    k->rounds++;
    return count;
}

static void hear(void *context, const int32_t *ids, size_t length, size_t proposed, size_t accepted) {
    knower *k = context;
    ck_assert_uint_le(accepted, proposed);
    ck_assert_int_eq(ids[length - 1], length - PROMPT > TEXT ? ids[length - 1] : k->text[length - PROMPT - 1]);
    k->proposed += proposed;
    k->accepted += accepted;
}

static void end(void *context) {
    ((knower *)context)->closed++;
}

/* Tests greedy and sampled text at several depths, with and without a drafter. One draft of the chain is wrong, at a
 * different position in each run. */
START_TEST(the_text_is_the_targets) {
    static int32_t plain[TEXT], text[TEXT];
    subject s = open_subject(LLAMA, _i / 2 ? "tests/data/llama/eagle3" : NULL);
    if (_i % 2) require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, 0.9));
    write_plain(&s, plain);
    for (int64_t depth = 1; depth < FR_STEP_MAX; depth += 1 + depth / 3) {
        for (size_t wrong = 0; wrong < (size_t)depth; wrong += 1 + (size_t)depth / 3) {
            knower k = {.text = plain, .wrong = wrong, .vocab = s.vocab};
            fr_session *session = open_session(&s, depth);
            require(fr_session_set_proposer(session, &(fr_proposer){know, hear, end, &k}));
            require(fr_session_prompt(session, s.prompt, PROMPT));
            write_text(session, text);
            ck_assert_mem_eq(text, plain, sizeof plain);
            ck_assert_double_eq(fr_session_stat(session, FR_STAT_DRAFTED), (double)k.proposed);
            ck_assert_double_eq(fr_session_stat(session, FR_STAT_ACCEPTED), (double)k.accepted);
            ck_assert(k.accepted > 0 && k.proposed > k.accepted);
            fr_session_close(session);
            ck_assert_uint_eq(k.closed, 1);
        }
    }
    close_subject(&s);
}
END_TEST

static size_t hand_on(void *context, fr_drafting *d) {
    size_t most = *(size_t *)context, count = d->suggestions < most ? d->suggestions : most;
    memcpy(d->drafts, d->suggested, count * sizeof *d->drafts);
    return count;
}

/* A method that passes on all drafts of the drafter must draft as the drafter does alone. A method that passes on only
 * the first two drafts must draft as the drafter does at depth 2. */
START_TEST(what_is_handed_on_is_the_drafters) {
    static int32_t text[3][TEXT];
    static const char *const drafters[] = {"tests/data/llama/eagle3", "tests/data/llama/eagle",
                                           "tests/data/llama/q4_0.gguf"};
    subject s = open_subject(LLAMA, drafters[_i / 2]);
    if (_i % 2) require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, 0.9));
    double drafted[3], accepted[3];
    for (size_t way = 0; way < 3; way++) {
        size_t most = way == 1 ? 99 : 2;
        fr_session *session = open_session(&s, way == 2 ? 2 : 4);
        if (way == 1) require(fr_session_set_proposer(session, &(fr_proposer){.propose = hand_on, .context = &most}));
        require(fr_session_prompt(session, s.prompt, PROMPT));
        write_text(session, text[way]);
        drafted[way] = fr_session_stat(session, FR_STAT_DRAFTED);
        accepted[way] = fr_session_stat(session, FR_STAT_ACCEPTED);
        fr_session_close(session);
    }
    ck_assert_mem_eq(text[0], text[1], sizeof *text);
    ck_assert_mem_eq(text[0], text[2], sizeof *text);
    ck_assert_double_eq(drafted[0], drafted[1]);
    ck_assert_double_eq(accepted[0], accepted[1]);
    size_t most = 2;
    fr_session *session = open_session(&s, 4);
    require(fr_session_set_proposer(session, &(fr_proposer){.propose = hand_on, .context = &most}));
    require(fr_session_prompt(session, s.prompt, PROMPT));
    write_text(session, text[1]);
    ck_assert_mem_eq(text[0], text[1], sizeof *text);
    ck_assert_double_eq(fr_session_stat(session, FR_STAT_DRAFTED), drafted[2]);
    ck_assert_double_eq(fr_session_stat(session, FR_STAT_ACCEPTED), accepted[2]);
    fr_session_close(session);
    close_subject(&s);
}
END_TEST

/* A fork does not inherit the caller's draft method, but its drafter has seen all rows. So the fork drafts like a
 * session that never had the caller's method. */
START_TEST(a_fork_goes_on_without_it) {
    static int32_t text[2][TEXT];
    subject s = open_subject(LLAMA, _i ? "tests/data/llama/eagle3" : "tests/data/llama/q4_0.gguf");
    fr_engine *engine;
    fr_session *session, *fork;
    size_t most = 2, before, accepted;
    require(fr_options_set(s.options, FR_OPT_DRAFT_MAX, 4));
    require(fr_engine_open(s.model, s.drafter, s.options, 2, &engine));
    require(fr_engine_session(engine, s.options, &session));
    require(fr_session_set_proposer(session, &(fr_proposer){.propose = hand_on, .context = &most}));
    require(fr_session_prompt(session, s.prompt, PROMPT));
    for (size_t round = 0; round < 5; round++)
        require(fr_session_step(session, text[0], FR_STEP_MAX, &before, &accepted));
    require(fr_session_fork(session, NULL, &fork));
    ck_assert_uint_eq(fr_session_waiting(fork), 0);
    write_text(session, text[0]);
    write_text(fork, text[1]);
    ck_assert_mem_eq(text[0], text[1], sizeof *text);
    ck_assert_double_gt(fr_session_stat(fork, FR_STAT_DRAFTED), fr_session_stat(fork, FR_STAT_DRAFT_CALLS) * 2);
    fr_session_close(fork);
    fr_session_close(session);
    fr_engine_close(engine);
    close_subject(&s);
}
END_TEST

/* ------------------------------------------------------------------------------------------- reported probabilities */

/* A draft method that knows the text and makes every third draft wrong. If `tells` is true, the method also reports a
 * probability for each draft. */
typedef struct oracle {
    int32_t text[PROMPT + TEXT + FR_STEP_MAX], vocab;
    float wrong; /* the probability that the method reports for a wrong draft */
    bool tells;
} oracle;

static size_t foretell(void *context, fr_drafting *d) {
    oracle *o = context;
    ck_assert_ptr_nonnull(d->odds);
    size_t count = 0;
    for (; count < d->count && d->length + count < PROMPT + TEXT; count++) {
        size_t at = d->length + count;
        bool wrong = at % 3 == 0;
        d->drafts[count] = wrong ? (o->text[at] + 1) % o->vocab : o->text[at];
        d->odds[count] = wrong ? o->wrong : 0.99F;
    }
    d->tells_odds = o->tells;
    return count;
}

/* Generates a text with the method's drafts. Returns true if the session's depth controller received the probabilities
 * that the method reports. The controller uses them to decide how many drafts are verified; test_draft_cut.c tests this
 * decision. */
static bool odds_arrive(const subject *s, oracle *o) {
    static int32_t text[TEXT];
    int32_t ids[FR_STEP_MAX];
    bool arrive = false;
    fr_session *session = open_session(s, FR_DRAFT_AUTO);
    require(fr_session_set_proposer(session, &(fr_proposer){.propose = foretell, .context = o}));
    require(fr_session_prompt(session, s->prompt, PROMPT));
    for (size_t made = 0, got, accepted; made < TEXT; made += got) {
        size_t length = session->length;
        require(fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted));
        memcpy(text + made, ids, (got < TEXT - made ? got : TEXT - made) * sizeof *text);
        const fr_draft_depth_part *drafts = &session->round.drafts;
        for (size_t i = 0; drafts->tells && i < drafts->made; i++) {
            ck_assert_float_eq(drafts->chances[i], (length + i) % 3 == 0 ? o->wrong : 0.99F);
            arrive = true;
        }
    }
    ck_assert_mem_eq(text, o->text + PROMPT, sizeof text);
    ck_assert_double_gt(fr_session_stat(session, FR_STAT_ACCEPTED), 0);
    fr_session_close(session);
    return arrive;
}

START_TEST(odds_tell_which_drafts_to_verify) {
    static oracle o;
    subject s = open_subject(LLAMA, "tests/data/llama/q4_0.gguf");
    o = (oracle){.vocab = s.vocab, .wrong = 0.01F};
    memcpy(o.text, s.prompt, sizeof s.prompt);
    write_plain(&s, o.text + PROMPT);
    ck_assert(!odds_arrive(&s, &o));
    o.tells = true;
    ck_assert(odds_arrive(&s, &o));
    close_subject(&s);
}
END_TEST

START_TEST(odds_are_numbers_from_0_to_1) {
    static const float odds[] = {NAN, -0.1F, 1.5F, INFINITY};
    static oracle o;
    subject s = open_subject(LLAMA, NULL);
    int32_t ids[FR_STEP_MAX];
    size_t got, accepted;
    fr_status status = FR_OK;
    o = (oracle){.vocab = s.vocab, .tells = true, .wrong = odds[_i]};
    memcpy(o.text, s.prompt, sizeof s.prompt);
    write_plain(&s, o.text + PROMPT);
    require(fr_options_set_text(s.options, FR_OPT_SPEC_TYPE, "ngram"));
    fr_session *session = open_session(&s, FR_DRAFT_AUTO);
    require(fr_session_set_proposer(session, &(fr_proposer){.propose = foretell, .context = &o}));
    require(fr_session_prompt(session, s.prompt, PROMPT));
    for (size_t round = 0; round < TEXT && status == FR_OK; round++)
        status = fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted);
    ck_assert_int_eq(status, FR_USAGE);
    ck_assert_msg(strstr(fr_last_error(), "its odds are") != NULL, "%s", fr_last_error());
    fr_session_close(session);
    close_subject(&s);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ invalid proposals */

static const struct {
    int32_t id;          /* id of the second draft */
    size_t extra;        /* number of drafts that are proposed beyond the requested number */
    float chance, other; /* the probabilities that the method reports for `id` and for id 7 */
    const char *line;
} nonsense[] = {{-1, 0, 1, 1, "draft 1 of the caller's method is id -1, outside the vocabulary of 512"},
                {512, 0, 1, 1, "is id 512, outside"},
                {INT32_MAX, 0, 1, 1, "is id 2147483647, outside"},
                {3, 1, 1, 1, "proposed 5 drafts where at most 4 were wanted"},
                {3, SIZE_MAX / 2, 1, 1, "drafts where at most 4 were wanted"},
                {3, 0, NAN, 1, "the chance of id 3 is nan"},
                {3, 0, 0, 1, "is id 3, which it gives no chance"},
                {3, 0, 1, -0.5F, "the chance of id 7 is -0.5"},
                {3, 0, 1, INFINITY, "the chance of id 7 is inf"}};

static size_t talk_nonsense(void *context, fr_drafting *d) {
    int *which = context;
    if (*which < 0) return 0;
    for (size_t i = 0; i < d->count; i++) {
        d->drafts[i] = i == 1 ? nonsense[*which].id : 3;
        if (d->chances) d->chances[i * 512 + 7] = i == 1 ? nonsense[*which].other : 1;
        if (d->chances) d->chances[i * 512 + 3] = i == 1 ? nonsense[*which].chance : 1;
    }
    d->tells_chances = true;
    return d->count + nonsense[*which].extra;
}

START_TEST(nonsense_is_one_line) {
    subject s = open_subject(LLAMA, NULL);
    int32_t text[FR_STEP_MAX];
    int which = _i;
    size_t got, accepted;
    require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, 1));
    require(fr_options_set_text(s.options, FR_OPT_ACCEPT, "rejection"));
    fr_session *session = open_session(&s, 4);
    require(fr_session_set_proposer(session, &(fr_proposer){.propose = talk_nonsense, .context = &which}));
    require(fr_session_prompt(session, s.prompt, PROMPT));
    require(fr_session_step(session, text, FR_STEP_MAX, &got, &accepted));
    size_t length = fr_session_length(session);
    ck_assert_int_eq(fr_session_step(session, text, FR_STEP_MAX, &got, &accepted), FR_USAGE);
    ck_assert_msg(strstr(fr_last_error(), nonsense[_i].line) != NULL, "%s", fr_last_error());
    ck_assert_uint_eq(fr_session_length(session), length);
    which = -1;
    require(fr_session_step(session, text, FR_STEP_MAX, &got, &accepted));
    ck_assert_uint_eq(got, 1);
    fr_session_close(session);
    ck_assert_int_eq(fr_session_set_proposer(NULL, NULL), FR_USAGE);
    close_subject(&s);
}
END_TEST

/* ---------------------------------------------------------------------------------------- the distribution of texts */

enum { TOP = 3 };

static int64_t draws(void) {
    return fr_test_brief() ? 200 : 1000;
}

static const struct {
    const char *target, *drafter;
    /* Where the drafts come from. 0: the drafter makes them. 1: this test samples them from a few ids. 2: this test
     * makes them and reports each with probability 1. 3: a method passes on the drafter's drafts. */
    int own;
    bool least; /* true: FR_OPT_DRAFT_P_MIN is between the probabilities of the two likeliest drafts */
} laws[] = {{LLAMA, "tests/data/llama/eagle3", 0, false},
            {LLAMA, "tests/data/llama/eagle", 0, false},
            {LLAMA, "tests/data/llama/q4_0.gguf", 0, false},
            {LLAMA, "tests/data/llama/q4_0.gguf", 0, true},
            {LLAMA, NULL, 1, false},
            {LLAMA, NULL, 2, false},
            {LLAMA, "tests/data/llama/eagle3", 2, false},
            {LLAMA, "tests/data/llama/eagle3", 3, false},
            {DFLASH "qwen3", DFLASH "qwen3/drafter", 0, false},
            {DFLASH "qwen3", DFLASH "qwen3/drafter", 0, true},
            {DFLASH "v2-qwen3", DFLASH "v2-qwen3/drafter", 0, false},
            {DFLASH "v2-qwen3.5", DFLASH "v2-qwen3.5/drafter", 3, false},
            {DFLASH "dspark-qwen3", DFLASH "dspark-qwen3/drafter", 0, false},
            {DFLASH "dspark-dense-qwen3", DFLASH "dspark-dense-qwen3/drafter.gguf", 0, false}};

/* The target's three likeliest ids after a text, with their probabilities, calculated in double precision. */
typedef struct choices {
    int32_t id[TOP];
    double chance[TOP];
} choices;

static choices after(const subject *s, const int32_t *ids, size_t count) {
    fr_rows rows = {.capacity = (size_t)s->vocab};
    rows.values = malloc(rows.capacity * sizeof *rows.values);
    fr_session *session = open_session(s, 0);
    require(fr_session_logits(session, ids, count, count - 1, fr_rows_collect, &rows));
    choices c;
    double sum = 0;
    for (size_t k = 0; k < TOP; k++) {
        c.id[k] = 0;
        for (int32_t i = 0; i < s->vocab; i++)
            if (rows.values[i] > rows.values[c.id[k]]) c.id[k] = i;
        c.chance[k] = (double)rows.values[c.id[k]];
        rows.values[c.id[k]] = -INFINITY;
    }
    for (size_t k = TOP; k-- > 0;) sum += c.chance[k] = exp(c.chance[k] - c.chance[0]);
    for (size_t k = 0; k < TOP; k++) c.chance[k] /= sum;
    fr_session_close(session);
    free(rows.values);
    return c;
}

/* Returns a probability between those of the drafter's two likeliest ids. */
static double halfway(const subject *s, const int32_t *ids, size_t count) {
    fr_rows rows = {.capacity = (size_t)s->vocab};
    rows.values = malloc(rows.capacity * sizeof *rows.values);
    fr_session *session = open_session(s, 1);
    require(fr_session_draft_logits(session, ids, count, 1, fr_rows_collect, &rows));
    double best = -INFINITY, next = -INFINITY, sum = 0;
    for (int32_t i = 0; i < s->vocab; i++) {
        double value = (double)rows.values[i];
        next = fmax(next, fmin(best, value));
        best = fmax(best, value);
    }
    for (int32_t i = 0; i < s->vocab; i++) sum += exp((double)rows.values[i] - best);
    fr_session_close(session);
    free(rows.values);
    return (1 + exp(next - best)) / sum / 2;
}

/* A draft method that samples its drafts from five ids. The target never generates one of these five. If `tells` is
 * false, the method always drafts the first of the ids and reports no probabilities. */
typedef struct gambler {
    uint64_t state;
    int32_t id[5];
    bool tells;
} gambler;

static size_t gamble(void *context, fr_drafting *d) {
    static const float chance[5] = {0.4F, 0.25F, 0.05F, 0.2F, 0.1F};
    gambler *g = context;
    for (size_t i = 0; i < d->count; i++) {
        size_t pick = 0;
        g->state = g->state * 6364136223846793005u + 1442695040888963407u;
        double u = (double)(g->state >> 11) / 9007199254740992.0;
        if (!g->tells) u = 0;
        while (pick < 4 && u >= (double)chance[pick]) u -= (double)chance[pick++];
        d->drafts[i] = g->id[pick];
        for (size_t k = 0; g->tells && d->chances && k < 5; k++) d->chances[i * 512 + (size_t)g->id[k]] = 3 * chance[k];
    }
    d->tells_chances = g->tells;
    return d->count;
}

static size_t index_of(const choices *c, int32_t id) {
    for (size_t k = 0; k < TOP; k++)
        if (c->id[k] == id) return k;
    ck_abort_msg("id %d is none of the likeliest", id);
}

/* Reads the prompt of the reference after which every drafter makes drafts. Returns the number of ids. */
static size_t read_prompt(const char *target, int32_t *ids) {
    char path[128];
    snprintf(path, sizeof path, "%s/reference.json", target);
    json_t *all = json_load_file(path, 0, NULL);
    const json_t *prompt = json_array_get(json_object_get(all, "prompts"), 2);
    size_t count;
    int32_t *read = fr_json_ids_of(json_is_array(prompt) ? prompt : json_object_get(prompt, "ids"), &count);
    memcpy(ids, read, count * sizeof *ids);
    free(read);
    json_decref(all);
    return count;
}

/* Writes a text to `ids`: a prompt and the beginning of the greedy text after it. Returns the number of ids. The end of
 * this beginning is chosen so that the session's next ids contain a certain pair: the target alone generates the first
 * id of the pair, and the second is an accepted draft. If the subject has no drafter, the text is the prompt alone. */
static size_t find_place(const subject *s, const char *target, int32_t *ids) {
    fr_session *session = open_session(s, 1);
    size_t count = read_prompt(target, ids), first = count, got, accepted;
    require(fr_session_prompt(session, ids, count));
    do {
        ck_assert_uint_lt(count, first + TEXT);
        require(fr_session_step(session, ids + count, FR_STEP_MAX, &got, &accepted));
        count += got;
    } while (s->drafter && accepted == 0);
    fr_session_close(session);
    return s->drafter ? count - 3 : first;
}

/* Counts the pairs of ids that follow a text. The first id of a pair is generated without a draft. For the second id a
 * draft is accepted or rejected. The counts must fit the target's probabilities. */
START_TEST(rejection_has_the_targets_law) {
    subject s = open_subject(laws[_i].target, laws[_i].drafter);
    int32_t ids[PROMPT + TEXT + FR_STEP_MAX];
    size_t length = find_place(&s, laws[_i].target, ids);
    require(fr_options_set(s.options, FR_OPT_TOP_K, TOP));
    choices first = after(&s, ids, length), second[TOP];
    for (size_t k = 0; k < TOP; k++) {
        ids[length] = first.id[k];
        second[k] = after(&s, ids, length + 1);
    }
    require(fr_options_set_number(s.options, FR_OPT_TEMPERATURE, 1));
    require(fr_options_set_text(s.options, FR_OPT_ACCEPT, "rejection"));
    ids[length] = first.id[0];
    if (laws[_i].least) require(fr_options_set_number(s.options, FR_OPT_DRAFT_P_MIN, halfway(&s, ids, length + 1)));
    const int32_t *likely = second[0].id;
    gambler g = {.state = 7, .tells = laws[_i].own == 1, .id = {likely[1], likely[0], 500, second[1].id[0], likely[2]}};
    size_t counts[TOP][TOP] = {{0}}, all = 99, stood = 0;
    for (int64_t seed = 0; seed < draws(); seed++) {
        int32_t text[FR_STEP_MAX];
        size_t made = 0, got, accepted;
        require(fr_options_set(s.options, FR_OPT_SEED, seed));
        fr_session *session = open_session(&s, 3);
        fr_proposer own = {.propose = laws[_i].own == 3 ? hand_on : gamble, .context = &g};
        if (laws[_i].own == 3) own.context = &all;
        if (laws[_i].own) require(fr_session_set_proposer(session, &own));
        require(fr_session_prompt(session, ids, length));
        for (; made < 2; made += got, stood += accepted)
            require(fr_session_step(session, text + made, FR_STEP_MAX - made, &got, &accepted));
        size_t k = index_of(&first, text[0]);
        counts[k][index_of(&second[k], text[1])]++;
        fr_session_close(session);
    }
    double sum = 0;
    for (size_t i = 0; i < TOP; i++)
        for (size_t k = 0; k < TOP; k++) {
            double want = (double)draws() * first.chance[i] * second[i].chance[k], off = (double)counts[i][k] - want;
            sum += off * off / want;
        }
    /* with 8 degrees of freedom, the sum exceeds 45 by chance once in 3e6 runs */
    ck_assert_msg(sum < 45, "chi-square %g", sum);
    ck_assert_int_gt((int64_t)stood, draws() / 10);
    close_subject(&s);
}
END_TEST

FR_SUITE("own_method") {
    enum { NONSENSE = sizeof nonsense / sizeof *nonsense, LAWS = sizeof laws / sizeof *laws };
    TCase *tests = tcase_create("tests");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, the_text_is_the_targets, 0, 4);
    fr_test_add_loop(tests, what_is_handed_on_is_the_drafters, 6, 2);
    tcase_add_loop_test(tests, a_fork_goes_on_without_it, 0, 2);
    tcase_add_test(tests, odds_tell_which_drafts_to_verify);
    tcase_add_loop_test(tests, odds_are_numbers_from_0_to_1, 0, 4);
    tcase_add_loop_test(tests, nonsense_is_one_line, 0, NONSENSE);
    fr_test_add_loop(tests, rejection_has_the_targets_law, LAWS, 1);
    suite_add_tcase(suite, tests);
}
