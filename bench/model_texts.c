/* Measures the gain of speculation on whole texts of several classes, with real drafts or with drafts of which a chosen
 * share is right.
 *
 * In: an opened model, a draft method. Out: a table with a line for each class of texts and number of drafts in a
 * round. A line has the speed with and without drafts, the share of drafts that were accepted at each depth, and a
 * verdict. The first run of each setting is a warm-up and is not timed. Its ids and logits are compared, by hash, with
 * those of plain decoding. If they differ, no speed is reported. Then runs with drafts and runs without are timed in
 * turn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "bench/measure.h"
#include "bench/model_prompts.h"
#include "bench/model_run.h"
#include "forerun_lab.h"

enum { SYNTHETIC_PROMPT = 128, DRAFTS_MAX = FR_STEP_MAX - 1 };

/* Holds a prompt, and the ids that plain decoding gives after it. */
typedef struct passage {
    int32_t *ids; /* [prompt + tokens] */
    size_t prompt;
    uint64_t ids_hash, logits_hash;
} passage;

/* Describes a class of prompts, such as prose or code. */
typedef struct text_class {
    const char *name;
    passage *texts;
    size_t count;
    /* Number of tokens after each prompt. The first token comes from the forward of the prompt, so only the other
     * tokens are timed. */
    size_t tokens;
    size_t context; /* context of the sessions that run this class */
} text_class;

/* Counts drafts, generated tokens, and the target's calls. compared and accepted count drafts by depth; drafted (drafts
 * that were made) and stood (drafts that were accepted) are totals. */
typedef struct draft_counts {
    double compared[DRAFTS_MAX], accepted[DRAFTS_MAX], drafted, stood, generated, calls;
} draft_counts;

/* Holds the results of one way to decode, summed over a class of texts. */
typedef struct outcome {
    /* seconds: the time with drafts; plain: the time of plain decoding just before that; ratio: plain / seconds */
    double seconds[FR_BENCH_TIMINGS], plain[FR_BENCH_TIMINGS], ratio[FR_BENCH_TIMINGS];
    size_t count;        /* number of timings */
    draft_counts drafts; /* drafts of the timed runs; if speculation changed the text, drafts of the untimed run */
    uint64_t ids_hash, logits_hash;
    bool same;
} outcome;

/* -------------------------------------------------------------------------------------------------- a run of a text */

/* Holds the text that a run generated, and hashes of the text's ids and logits if `hashed`. */
typedef struct said {
    int32_t *ids; /* [tokens] */
    bool hashed;
    uint64_t ids_hash, logits_hash;
} said;

static fr_status run_text(fr_session *session, const text_class *class, const passage *text, said *answer) {
    size_t vocab = session->model->trunk.spec.vocab;
    fr_session_reset(session);
    FR_TRY(fr_session_prompt(session, text->ids, text->prompt));
    for (size_t made = 0, count, accepted; made < class->tokens; made += count) {
        FR_TRY(fr_session_step(session, answer->ids + made, class->tokens - made, &count, &accepted));
        if (answer->hashed)
            for (size_t r = 0; r < count; r++)
                answer->logits_hash = fr_hash(answer->logits_hash, session->result.logits + r * vocab,
                                              vocab * sizeof *session->result.logits);
    }
    if (answer->hashed) answer->ids_hash = fr_hash(0, answer->ids, class->tokens * sizeof *answer->ids);
    return FR_OK;
}

static void count_drafts(const fr_session *session, draft_counts *o) {
    for (size_t d = 0; d < DRAFTS_MAX; d++) {
        o->compared[d] += fr_session_depth_stat(session, d, FR_DEPTH_COMPARED);
        o->accepted[d] += fr_session_depth_stat(session, d, FR_DEPTH_ACCEPTED);
    }
    o->drafted += fr_session_stat(session, FR_STAT_DRAFTED);
    o->stood += fr_session_stat(session, FR_STAT_ACCEPTED);
    o->generated += fr_session_stat(session, FR_STAT_GENERATED_TOKENS) - 1;
    o->calls += fr_session_stat(session, FR_STAT_TARGET_CALLS);
}

/* Runs every text of the class once. *seconds: the time of the timed tokens. *same becomes false if an id differs from
 * plain decoding. Counts of drafts are added to `drafts`, if it is not NULL. */
static fr_status run_class(fr_session *session, const text_class *class, int32_t *ids, double *seconds, bool *same,
                           draft_counts *drafts) {
    said answer = {.ids = ids};
    *seconds = 0;
    for (size_t t = 0; t < class->count; t++) {
        const passage *text = &class->texts[t];
        FR_TRY(run_text(session, class, text, &answer));
        *seconds += fr_session_stat(session, FR_STAT_DECODE_SECONDS);
        if (drafts) count_drafts(session, drafts);
        *same = *same && memcmp(ids, text->ids + text->prompt, class->tokens * sizeof *ids) == 0;
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------- synthetic drafts */

/* Holds the state of drafts of which a given share is right. The right drafts come at regular intervals and not at
 * random, so that even short texts have this share. */
typedef struct synthetic {
    const fr_bench_model_plan *plan;
    double owed[DRAFTS_MAX];
    bool stands; /* all drafts of this round so far are right */
} synthetic;

static bool accept_at_rates(void *context, size_t round, size_t depth) {
    synthetic *s = context;
    const fr_bench_model_plan *plan = s->plan;
    (void)round;
    if (depth == 0) s->stands = true;
    if (!s->stands) return false;
    s->owed[depth] += plan->rates[depth < plan->rate_count ? depth : plan->rate_count - 1];
    s->stands = s->owed[depth] >= 1 - 1e-9;
    s->owed[depth] -= s->stands;
    return s->stands;
}

/* ------------------------------------------------------------------------------------------------ one way to decode */

/* Adds the hash of one text to *sum, which is the hash of all texts of a class. */
static void add_hash(uint64_t *sum, uint64_t hash) {
    *sum = fr_hash(*sum, &hash, sizeof hash);
}

/* Does the untimed run, and compares its ids and logits with those of plain decoding. */
static fr_status judge(fr_session *session, const text_class *class, int32_t *ids, outcome *o) {
    o->same = true;
    for (size_t t = 0; t < class->count; t++) {
        said answer = {.ids = ids, .hashed = true};
        FR_TRY(run_text(session, class, &class->texts[t], &answer));
        o->same =
            o->same && answer.ids_hash == class->texts[t].ids_hash && answer.logits_hash == class->texts[t].logits_hash;
        add_hash(&o->ids_hash, answer.ids_hash);
        add_hash(&o->logits_hash, answer.logits_hash);
        count_drafts(session, &o->drafts);
    }
    return FR_OK;
}

static fr_status time_manner(const fr_bench_run *run, fr_session *plain, fr_session *drafting, const text_class *class,
                             int32_t *ids, outcome *o) {
    FR_TRY(judge(drafting, class, ids, o));
    if (o->same) o->drafts = (draft_counts){0};
    for (o->count = 0; o->same && o->count < run->plan->repetitions; o->count++) {
        size_t i = o->count;
        FR_TRY(run_class(plain, class, ids, &o->plain[i], &o->same, NULL));
        FR_TRY(run_class(drafting, class, ids, &o->seconds[i], &o->same, &o->drafts));
        o->ratio[i] = o->plain[i] / o->seconds[i];
    }
    if (!o->same) o->count = 0;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- rows */

static const fr_bench_column own[] = {{"class", "text", 0},
                                      {"texts", NULL, 0},
                                      {"drafts", "drafts", 0},
                                      {"over_none", "over none", 3},
                                      {"over_none_spread", "spread, %", 1},
                                      {"foretold", "foretold", 3},
                                      {"tokens_a_call", "tokens a call", 2},
                                      {"drafted", NULL, 0},
                                      {"accepted", NULL, 0},
                                      {"acceptance", "acceptance", 3},
                                      {"acceptance_by_depth", "by depth", 2},
                                      {"ids_hash", NULL, 0},
                                      {"logits_hash", NULL, 0},
                                      {"answer", "ids and logits", 0}};

static void put_hash(fr_bench_report *report, uint64_t hash) {
    char text[24];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    fr_bench_text(report, text);
}

static void put_hashes(fr_bench_run *run, const text_class *class, const outcome *o) {
    uint64_t ids = 0, logits = 0;
    for (size_t t = 0; t < class->count; t++) {
        add_hash(&ids, class->texts[t].ids_hash);
        add_hash(&logits, class->texts[t].logits_hash);
    }
    put_hash(run->report, o ? o->ids_hash : ids);
    put_hash(run->report, o ? o->logits_hash : logits);
}

static void put_acceptance(fr_bench_run *run, const draft_counts *o) {
    double rates[DRAFTS_MAX];
    size_t depths = 0;
    for (; depths < DRAFTS_MAX && o->compared[depths] > 0; depths++)
        rates[depths] = o->accepted[depths] / o->compared[depths];
    fr_bench_number(run->report, o->drafted);
    fr_bench_number(run->report, o->stood);
    fr_bench_number(run->report, o->drafted > 0 ? o->stood / o->drafted : NAN);
    fr_bench_numbers(run->report, rates, depths);
}

/* Predicts the gain of speculation from T(K + 1), the time of a forward of K + 1 rows, and from the time of a draft
 * step. The gain is the number of tokens of a round divided by the round's cost in decode steps. */
static double foretell(const fr_bench_run *run, int64_t drafts, double tokens_a_call) {
    if (drafts == FR_DRAFT_AUTO) return NAN;
    double draft = run->drafter ? (run->draft_start + (double)drafts * run->draft_step) / run->one : 0;
    return tokens_a_call / (run->ratio[drafts + 1] + draft);
}

/* Adds a line to the table. seconds: the line's timings; drafts: number of drafts in a round, 0 for plain decoding. */
static void put_row(fr_bench_run *run, const text_class *class, int64_t drafts, const double *seconds,
                    const outcome *o) {
    char name[64], words[24] = "none";
    double calls = o->drafts.generated / o->drafts.calls;
    fr_bench_figure ratio = fr_bench_figure_kept(o->ratio, drafts ? o->count : 0);
    size_t prompt = 0;
    for (size_t t = 0; t < class->count; t++) prompt += class->texts[t].prompt;
    snprintf(name, sizeof name, "spec %s", class->name);
    if (drafts) snprintf(words, sizeof words, drafts < 0 ? "auto" : "%lld", (long long)drafts);
    fr_bench_begin_row(run, &(fr_bench_test){.name = name,
                                             .depth = prompt / class->count,
                                             .generate = class->tokens - 1,
                                             .tokens = class->count * (class->tokens - 1),
                                             .seconds = seconds,
                                             .count = o->count});
    fr_bench_text(run->report, class->name);
    fr_bench_number(run->report, (double)class->count);
    fr_bench_text(run->report, words);
    fr_bench_put(run, &ratio, ratio.middle);
    fr_bench_number(run->report, ratio.spread);
    fr_bench_number(run->report, drafts && o->same ? foretell(run, drafts, calls) : NAN);
    fr_bench_number(run->report, drafts ? calls : 1);
    put_acceptance(run, drafts ? &o->drafts : &(draft_counts){0});
    put_hashes(run, class, drafts ? o : NULL);
    fr_bench_text(run->report, !drafts ? "" : o->same ? "same" : "differ");
}

/* ---------------------------------------------------------------------------------------------------------- a class */

static fr_status open_drafting(const fr_bench_run *run, const text_class *class, int64_t drafts, synthetic *rule,
                               fr_session **session) {
    FR_TRY(fr_bench_session(run, drafts, class->context, session));
    if (run->plan->rate_count == 0) return FR_OK;
    fr_status status = fr_lab_session_script(*session, class->texts[0].ids, class->texts[0].prompt + class->tokens,
                                             accept_at_rates, rule);
    if (status == FR_OK) return FR_OK;
    fr_session_close(*session);
    return status;
}

static fr_status bench_manner(fr_bench_run *run, fr_session *plain, const text_class *class, size_t manner,
                              int32_t *ids) {
    int64_t drafts = run->plan->drafts.at[manner];
    synthetic rule = {.plan = run->plan};
    fr_session *drafting;
    char doing[64];
    snprintf(doing, sizeof doing, "speculation: %s, %zu of %zu", class->name, manner + 1, run->plan->drafts.count);
    fr_bench_doing(run, doing);
    outcome *o = calloc(1, sizeof *o);
    if (!o) return fr_fail_memory("timings", sizeof *o);
    fr_status status = open_drafting(run, class, drafts, &rule, &drafting);
    if (status == FR_OK) {
        status = time_manner(run, plain, drafting, class, ids, o);
        fr_session_close(drafting);
    }
    if (status == FR_OK) {
        if (manner == 0) put_row(run, class, 0, o->plain, o);
        put_row(run, class, drafts, o->seconds, o);
        run->differs = run->differs || !o->same;
    }
    free(o);
    return status;
}

/* Generates the texts by plain decoding, and stores their ids and hashes. The session `plain` is used again later for
 * all timed runs without drafts. */
static fr_status write_texts(fr_session *plain, text_class *class) {
    for (size_t t = 0; t < class->count; t++) {
        passage *text = &class->texts[t];
        said answer = {.ids = text->ids + text->prompt, .hashed = true};
        FR_TRY(run_text(plain, class, text, &answer));
        text->ids_hash = answer.ids_hash;
        text->logits_hash = answer.logits_hash;
    }
    return FR_OK;
}

static fr_status bench_class(fr_bench_run *run, text_class *class) {
    fr_session *plain = NULL;
    int32_t *ids = calloc(class->tokens, sizeof *ids);
    fr_status status = ids ? FR_OK : fr_fail_memory("ids", class->tokens * sizeof *ids);
    if (status == FR_OK) status = fr_bench_session(run, 0, class->context, &plain);
    if (status == FR_OK) status = write_texts(plain, class);
    for (size_t m = 0; status == FR_OK && m < run->plan->drafts.count; m++)
        status = bench_manner(run, plain, class, m, ids);
    fr_session_close(plain);
    free(ids);
    return status;
}

/* ------------------------------------------------------------------------------------------------------ the classes */

static void free_class(text_class *class) {
    for (size_t t = 0; t < class->count; t++) free(class->texts[t].ids);
    free(class->texts);
}

/* Adds a text, with memory for a prompt of `count` ids and the tokens after it. */
static fr_status add_text(text_class *class, const int32_t *ids, size_t count) {
    passage *text = &class->texts[class->count];
    text->ids = malloc((count + class->tokens) * sizeof *ids);
    if (!text->ids) return fr_fail_memory("a prompt", (count + class->tokens) * sizeof *ids);
    if (ids) memcpy(text->ids, ids, count * sizeof *ids);
    text->prompt = count;
    class->count++;
    if (count + class->tokens + FR_STEP_MAX > class->context) class->context = count + class->tokens + FR_STEP_MAX;
    return FR_OK;
}

static fr_status tokenize_class(const fr_bench_run *run, const fr_bench_prompt_text *texts, size_t count,
                                text_class *class) {
    class->texts = calloc(count, sizeof *class->texts);
    if (!class->texts) return fr_fail_memory("prompts", count * sizeof *class->texts);
    for (size_t t = 0; t < count; t++) {
        int32_t *ids;
        size_t tokens;
        FR_TRY(fr_tokenize(fr_model_tokenizer(run->model), texts[t].bytes, texts[t].length, true, true, &ids, &tokens));
        fr_status status =
            tokens ? add_text(class, ids, tokens) : fr_fail(FR_INPUT, "%s: a prompt of no tokens", class->name);
        fr_free(ids);
        FR_TRY(status);
    }
    return FR_OK;
}

static fr_status bench_prompts(fr_bench_run *run, const fr_bench_prompts *prompts) {
    for (size_t from = 0, to; from < prompts->count; from = to) {
        text_class class = {.name = prompts->texts[from].class, .tokens = run->plan->text_tokens + 1};
        for (to = from + 1; to < prompts->count && strcmp(prompts->texts[to].class, class.name) == 0;) to++;
        fr_status status = tokenize_class(run, prompts->texts + from, to - from, &class);
        if (status == FR_OK) status = bench_class(run, &class);
        free_class(&class);
        FR_TRY(status);
    }
    return FR_OK;
}

static fr_status bench_synthetic(fr_bench_run *run) {
    text_class class = {.name = "synthetic", .tokens = run->plan->text_tokens + 1, .texts = calloc(1, sizeof(passage))};
    if (!class.texts) return fr_fail_memory("a prompt", sizeof(passage));
    fr_status status = add_text(&class, NULL, SYNTHETIC_PROMPT);
    if (status == FR_OK) {
        fr_bench_prompt(run->model, class.texts[0].ids, SYNTHETIC_PROMPT, 0);
        status = bench_class(run, &class);
    }
    free_class(&class);
    return status;
}

bool fr_bench_drafts_at_all(const fr_bench_run *run) {
    const char *words = run->plan->spec_type;
    return run->plan->rate_count || run->drafter || (words && strstr(words, "ngram"));
}

/* Returns true if the user asked for texts and the run can make drafts. */
static bool are_asked(const fr_bench_run *run) {
    return run->plan->text_tokens && run->plan->drafts.count && fr_bench_drafts_at_all(run);
}

fr_status fr_bench_model_read_texts(fr_bench_run *run) {
    const fr_bench_model_plan *plan = run->plan;
    if (!are_asked(run) || plan->rate_count) return FR_OK;
    if (plan->prompt_folder && !fr_model_tokenizer(run->model))
        return fr_fail(FR_INPUT, "%s has no tokenizer to read prompts with", plan->model);
    return fr_bench_prompts_open(plan->prompt_folder, &run->prompts);
}

fr_status fr_bench_model_texts(fr_bench_run *run) {
    const fr_bench_model_plan *plan = run->plan;
    if (!are_asked(run)) return FR_OK;
    if (plan->rate_count == 0 && !fr_model_tokenizer(run->model)) {
        fr_bench_remark(run->report, "No speculation on texts: the model has no tokenizer.");
        return FR_OK;
    }
    fr_bench_begin(run, "speculation", "Speculation", own, sizeof own / sizeof *own);
    FR_TRY(plan->rate_count ? bench_synthetic(run) : bench_prompts(run, &run->prompts));
    fr_bench_end(run);
    return FR_OK;
}
