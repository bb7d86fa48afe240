/* Times the cost of a grammar per token (grammar.h). */
#include "bench/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "bench/busy_processes.h"
#include "bench/sample.h"
#include "src/engine/session/constraint.h"

enum { REPETITIONS = 1000, STEPS = 16, WARM_UP = 4 };

static const struct subject {
    const char *name;
    fr_grammar_kind kind;
    const char *grammar, *text;
} SUBJECTS[] = {
    {"any_object", FR_GRAMMAR_JSON_SCHEMA, "{\"type\": \"object\"}",
     "{\"name\": \"Ada Lovelace\", \"born\": 1815, \"fields\": [\"mathematics\", \"computing\"], \"notes\": {\"first "
     "program\": \"Bernoulli numbers, in the notes to Menabrea's paper\", \"ratio\": -12.75e3, \"alive\": false, "
     "\"children\": null}}"},
    {"record", FR_GRAMMAR_JSON_SCHEMA,
     "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"title\", \"when\", \"people\"], "
     "\"properties\": {\"title\": {\"type\": \"string\"}, \"when\": {\"type\": \"string\", \"format\": \"date-time\"}, "
     "\"people\": {\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {\"name\": {\"type\": "
     "\"string\"}, \"role\": {\"enum\": [\"chair\", \"guest\", \"scribe\"]}}, \"required\": [\"name\", \"role\"]}}, "
     "\"minutes\": {\"type\": \"integer\", \"minimum\": 5, \"maximum\": 480}}}",
     "{\"title\": \"Weekly review of what the kernels cost\", \"when\": \"2026-11-28T09:30:00Z\", \"people\": "
     "[{\"name\": "
     "\"Grace\", \"role\": \"chair\"}, {\"name\": \"Edsger\", \"role\": \"scribe\"}], \"minutes\": 45}"},
    {"strings", FR_GRAMMAR_JSON_SCHEMA,
     "{\"type\": \"object\", \"properties\": {\"slug\": {\"type\": \"string\", \"pattern\": \"^[a-z0-9-]+$\", "
     "\"maxLength\": 60}, \"summary\": {\"type\": \"string\", \"minLength\": 10, \"maxLength\": 300}}}",
     "{\"slug\": \"what-a-mask-costs-when-lengths-are-counted\", \"summary\": \"Each place in a string that is counted "
     "is a state of its own, so that a long one has as many masks as it has characters, unless they share what they "
     "have in common.\"}"},
    {"regex", FR_GRAMMAR_REGEX, "(([A-Z][a-z]+ )+is ([a-z]+ )*[a-z]+\\. ?)+",
     "Rain is falling on the old roofs again. The Long Road is empty and quiet. Nobody is surprised by that."},
    {"arithmetic", FR_GRAMMAR_GBNF,
     "root ::= (expr \"=\" ws num \"\\n\")+\nexpr ::= term ([-+*/] ws term)*\nterm ::= num | \"(\" ws expr \")\" ws\n"
     "num ::= [0-9]+ ws\nws ::= [ \\t]*\n",
     "12 + (34 - 5) * 6 = 186\n(1 + 2) * (3 + (4 - 5)) = 6\n1024 / 16 - 7 = 57\n"},
};

typedef struct bench {
    fr_bench_report *report;
    const fr_bench_grammar_plan *plan;
    fr_model *model;
    fr_token_tree *tree;
    float *logits, *masked; /* masked: the logits after the mask */
    int32_t *masked_ids;    /* the ids whose logits are in `masked`, if the mask allows so few ids that `masked` is not
                             * a whole row */
    int32_t *ids;           /* ids of a text that the grammar accepts */
    size_t count, vocab;
    /* seconds of a decode step */
    double step;
    /* Microseconds, one value for each repetition. made: time to make the grammar; fresh: mean time for a token in a
     * new state; known: mean time for a token in a known state; worst: longest time for a token. */
    double made[REPETITIONS], fresh[REPETITIONS], known[REPETITIONS], worst[REPETITIONS];
} bench;

/* ---------------------------------------------------------------------------------------------------- a decode step */

static fr_status time_step(bench *b) {
    fr_bench_decoder decoder = {.model = b->model};
    double times[STEPS];
    fr_status status = fr_bench_decoder_begin(&decoder, b->plan->options);
    for (int i = -WARM_UP; i < STEPS && status == FR_OK; i++) {
        double start = fr_clock();
        status = fr_bench_decoder_step(&decoder);
        if (i >= 0) times[i] = fr_clock() - start;
    }
    fr_session_close(decoder.session);
    if (status == FR_OK) b->step = fr_bench_median(times, STEPS);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- rows */

/* Advances the grammar along the text and computes the mask after each id. *mean and *worst get the mean and the
 * longest time for an id. */
static fr_status follow(bench *b, fr_constraint *c, double *mean, double *worst) {
    double all = 0;
    *worst = 0;
    fr_constraint_begin_at(c, 0);
    for (size_t i = 0; i < b->count; i++) {
        const fr_past past = {.ids = b->ids, .length = i};
        fr_scores scores = {.logits = b->logits, .count = b->vocab};
        bool allowed;
        double start = fr_clock();
        FR_TRY(fr_constraint_mask(c, &past, &scores, b->masked, b->masked_ids));
        double took = (fr_clock() - start) * 1e6;
        FR_TRY(fr_constraint_allows(c, &past, b->ids[i], &allowed));
        if (!allowed) return fr_fail(FR_INPUT, "bench grammar: id %d at %zu is not of the grammar", b->ids[i], i);
        all += took;
        if (took > *worst) *worst = took;
    }
    *mean = all / (double)b->count;
    return FR_OK;
}

static fr_status repeat(bench *b, const struct subject *subject, size_t round) {
    fr_grammar *grammar;
    fr_constraint c = {0};
    double ignored, start = fr_clock();
    FR_TRY(fr_grammar_open(b->tree, subject->kind, subject->grammar, strlen(subject->grammar), &grammar));
    b->made[round] = (fr_clock() - start) * 1e6;
    fr_status status = fr_constraint_set(&c, grammar, b->model, b->vocab, b->count);
    if (status == FR_OK) status = follow(b, &c, &b->fresh[round], &b->worst[round]);
    if (status == FR_OK) status = follow(b, &c, &b->known[round], &ignored);
    fr_constraint_close(&c);
    fr_grammar_close(grammar);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- a table */

static void put(bench *b, double *values) {
    fr_bench_figure figure = fr_bench_figure_of(values, b->plan->repetitions);
    fr_bench_from(b->report, &figure, figure.middle, b->plan->max_spread);
}

static void put_row(bench *b, const struct subject *subject) {
    double parts[2];
    parts[0] = fr_bench_median(b->fresh, b->plan->repetitions) / (b->step * 1e4);
    parts[1] = fr_bench_median(b->known, b->plan->repetitions) / (b->step * 1e4);
    fr_bench_text(b->report, subject->name);
    fr_bench_number(b->report, (double)b->count);
    put(b, b->made);
    put(b, b->fresh);
    put(b, b->worst);
    put(b, b->known);
    fr_bench_number(b->report, parts[0]);
    fr_bench_number(b->report, parts[1]);
}

static fr_status measure(bench *b, const struct subject *subject) {
    fr_status status = fr_tokenize(fr_model_tokenizer(b->model), subject->text, strlen(subject->text), false, false,
                                   &b->ids, &b->count);
    for (size_t i = 0; i < b->plan->repetitions && status == FR_OK; i++) status = repeat(b, subject, i);
    if (status == FR_OK) put_row(b, subject);
    fr_free(b->ids);
    b->ids = NULL;
    return status;
}

static fr_status measure_all(bench *b) {
    static const fr_bench_column columns[] = {{"grammar", "grammar", 0},
                                              {"rows", "rows", 0},
                                              {"made_us", "made, us", 0},
                                              {"new_us", "new row, us", 1},
                                              {"worst_us", "worst new row, us", 0},
                                              {"known_us", "known row, us", 1},
                                              {"new_of_step", "new row, % of a step", 2},
                                              {"known_of_step", "known row, % of a step", 2}};
    FR_TRY(time_step(b));
    b->vocab = fr_tokenizer_count(fr_model_tokenizer(b->model));
    b->logits = malloc(b->vocab * sizeof *b->logits);
    b->masked = calloc(b->vocab, sizeof *b->masked);
    b->masked_ids = calloc(b->vocab, sizeof *b->masked_ids);
    if (!b->logits || !b->masked || !b->masked_ids) return fr_fail_memory("logits", 3 * b->vocab * sizeof *b->logits);
    for (size_t id = 0; id < b->vocab; id++) b->logits[id] = (float)(id % 1000) / 100;
    FR_TRY(fr_token_tree_open(fr_model_tokenizer(b->model), &b->tree));
    fr_bench_table(b->report, "grammar", "masks of grammars", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < sizeof SUBJECTS / sizeof *SUBJECTS; i++) FR_TRY(measure(b, &SUBJECTS[i]));
    fr_bench_remark(b->report, "A decode step: %.2f ms; %zu ids.", b->step * 1e3, b->vocab);
    return FR_OK;
}

fr_status fr_bench_grammar(fr_bench_report *report, const fr_bench_grammar_plan *plan) {
    static bench b;
    b = (bench){.report = report, .plan = plan};
    if (plan->repetitions > REPETITIONS) return fr_fail(FR_USAGE, "at most %d repetitions", REPETITIONS);
    FR_TRY(fr_bench_machine_facts(report, NULL, 0));
    fr_status status = fr_model_open(plan->model, plan->options, &b.model);
    if (status == FR_OK) status = measure_all(&b);
    free(b.logits);
    free(b.masked);
    free(b.masked_ids);
    fr_token_tree_close(b.tree);
    fr_model_close(b.model);
    return status;
}
