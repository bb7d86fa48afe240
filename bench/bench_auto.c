/* Measures the speed of --draft-max auto. On the demo's models it is compared with every fixed depth. On a model of 1.1
 * GB it is compared with decoding without drafts. The drafts of that model are simulated: they are accepted as often as
 * on the demo's prose and code.
 *
 * In: the parts to run, `demo` or `big` (both if none is named); or "record mtp|ngram", which prints the demo's drafts
 * for tests/data/depth. The big model is the one that bench_float writes. Out: markdown. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/drafting.h"
#include "bench/limits.h"
#include "bench/measure.h"
#include "forerun_lab.h"

#define PAIRS    FR_BENCH_PAIRS
#define TEXT_IDS 400
#define BIG_IDS  120
#define CONTEXT  128
#define MOST     (FR_STEP_MAX - 1)
#define LARGEST  8 /* the largest fixed depth that is measured */

static const char *const prompts[] = {"1-parser", "2-lock", "3-modules", "4-iterators", "5-collector"};
#define PROMPTS (sizeof prompts / sizeof *prompts)

/* ----------------------------------------------------------------------------------------------------------- record */

/* Counts, for each position after a prompt, the drafts that were made there (came), and how many of these drafts were
 * accepted (stood). */
typedef struct drafts_at {
    uint8_t stood[TEXT_IDS], came[TEXT_IDS];
} drafts_at;

/* Records which drafts a text would get. The text is first generated with drafts. Then it is generated again, one token
 * at a time. At each position, drafts are made, but only compared with the first text. */
static void record(const fr_bench_engine *e, const char *words, const char *name, drafts_at *out) {
    int32_t text[TEXT_IDS + FR_STEP_MAX], drafts[FR_STEP_MAX], id;
    size_t count;
    int32_t *prompt = fr_bench_demo_prompt(e->model, name, &count);
    fr_session *session = fr_bench_engine_session(e, words, MOST);
    fr_bench_require(fr_session_prompt(session, prompt, count));
    fr_bench_generate(session, text, TEXT_IDS + FR_STEP_MAX);
    fr_session_reset(session);
    fr_bench_require(fr_session_prompt(session, prompt, count));
    for (size_t p = 0; p < TEXT_IDS; p++) {
        fr_bench_generate(session, &id, 1);
        size_t row = session->drafting.hidden_row * session->model->trunk.spec.hidden;
        fr_draft_view view = {.ids = session->ids,
                              .length = session->length,
                              .kv = &session->cache.kv,
                              .hidden = session->drafting.hidden + row,
                              .pool = session->engine->pool};
        size_t stood = 0;
        fr_proposal proposal = {.draft = session->drafting.draft, .view = &view, .count = MOST, .ids = drafts};
        fr_bench_require(fr_draft_propose_one(&proposal));
        while (stood < proposal.proposed && drafts[stood] == text[p + 1 + stood]) stood++;
        out->stood[p] = (uint8_t)stood;
        out->came[p] = (uint8_t)proposal.proposed;
    }
    fr_session_close(session);
    fr_free(prompt);
}

static void print_record(const char *words) {
    fr_bench_engine e = fr_bench_engine_open("tools/demo/target", "tools/demo/assistant");
    for (size_t i = 0; i < PROMPTS; i++) {
        drafts_at d;
        record(&e, words, prompts[i], &d);
        for (size_t p = 0; p < TEXT_IDS; p++) printf("%s%d/%d", p ? " " : "", d.stood[p], d.came[p]);
        putchar('\n');
    }
    fr_bench_engine_close(&e);
}

/* ------------------------------------------------------------------------------------------------------------- demo */

/* Measures the tokens per second of each setting over the prompts. The settings are 0 to LARGEST drafts, and auto. With
 * each setting all prompts run in one session, as a user would run them. */
static void bench_demo(void) {
    enum { MANNERS = LARGEST + 2, AUTO = LARGEST + 1 };
    static int32_t text[TEXT_IDS], first[TEXT_IDS];
    double rates[MANNERS][PAIRS], ratios[PAIRS], best = 0;
    fr_session *sessions[MANNERS];
    size_t best_depth = 0;
    bool same = true;
    fr_bench_engine e = fr_bench_engine_open("tools/demo/target", "tools/demo/assistant");
    for (int m = 0; m < MANNERS; m++) sessions[m] = fr_bench_engine_session(&e, "mtp", m == AUTO ? FR_DRAFT_AUTO : m);
    for (size_t pair = 0; pair < PAIRS; pair++) {
        size_t count;
        int32_t *prompt = fr_bench_demo_prompt(e.model, prompts[pair % PROMPTS], &count);
        for (size_t m = 0; m < MANNERS; m++) {
            fr_session_reset(sessions[m]);
            fr_bench_require(fr_session_prompt(sessions[m], prompt, count));
            fr_bench_generate(sessions[m], m ? text : first, TEXT_IDS);
            same = same && (m == 0 || memcmp(text, first, sizeof text) == 0);
            rates[m][pair] = fr_bench_tokens_per_second(sessions[m]);
        }
        fr_free(prompt);
    }
    printf("\n## The demo, %d ids after each of its prompts\n\n| drafts | tokens/s over none |\n| --- | --- |\n",
           TEXT_IDS);
    for (size_t m = 0; m < MANNERS; m++) {
        for (size_t pair = 0; pair < PAIRS; pair++) ratios[pair] = rates[m][pair] / rates[0][pair];
        double ratio = fr_bench_median(ratios, PAIRS);
        if (m < AUTO && ratio > best) best_depth = m, best = ratio;
        if (m == AUTO)
            printf("| auto | %.2f |\n", ratio);
        else
            printf("| %zu | %.2f |\n", m, ratio);
        fr_session_close(sessions[m]);
    }
    for (size_t pair = 0; pair < PAIRS; pair++) ratios[pair] = rates[AUTO][pair] / rates[best_depth][pair];
    printf("\nauto over the best fixed depth, %zu: **%.2f** (target 0.92). Ids: %s.\n", best_depth,
           fr_bench_median(ratios, PAIRS), same ? "same" : "**differ**");
    fr_bench_engine_close(&e);
}

/* -------------------------------------------------------------------------------------------------------------- big */

/* Gives, for each depth, the share of drafts that were accepted in the recorded texts of one class of prompts. */
static fr_bench_replay rates_of(const char *const *names, size_t count) {
    size_t reached[FR_STEP_MAX] = {0}, stood[FR_STEP_MAX] = {0};
    fr_bench_replay r = {.random = 1};
    fr_bench_engine e = fr_bench_engine_open("tools/demo/target", "tools/demo/assistant");
    for (size_t i = 0; i < count; i++) {
        drafts_at d;
        record(&e, "mtp", names[i], &d);
        for (size_t p = 0; p < TEXT_IDS; p++)
            for (size_t depth = 0; depth < d.came[p] && depth <= d.stood[p]; depth++) {
                reached[depth]++;
                stood[depth] += depth < d.stood[p];
            }
    }
    for (size_t depth = 0; depth < MOST; depth++)
        r.at[depth] = reached[depth] ? (double)stood[depth] / (double)reached[depth] : 0;
    fr_bench_engine_close(&e);
    return r;
}

static void bench_class(const fr_bench_engine *e, const char *class, const char *const *names, size_t count,
                        size_t pairs) {
    static int32_t script[CONTEXT + BIG_IDS], text[BIG_IDS];
    fr_bench_replay measured = rates_of(names, count);
    double ratios[PAIRS], drafted = 0, calls = 0;
    bool same = true;
    fr_bench_prompt(e->model, script, CONTEXT, 0);
    for (size_t pair = 0; pair < pairs; pair++) {
        fr_bench_replay r = measured;
        r.random = pair + 1;
        fr_session *none = fr_bench_engine_session(e, "none", 0);
        fr_session *adaptive = fr_bench_engine_session(e, "mtp", FR_DRAFT_AUTO);
        fr_bench_require(fr_session_prompt(none, script, CONTEXT));
        fr_bench_generate(none, script + CONTEXT, BIG_IDS);
        fr_bench_require(fr_lab_session_script(adaptive, script, CONTEXT + BIG_IDS, fr_bench_replay_accepts, &r));
        fr_bench_require(fr_session_prompt(adaptive, script, CONTEXT));
        fr_bench_generate(adaptive, text, BIG_IDS);
        same = same && memcmp(text, script + CONTEXT, sizeof text) == 0;
        ratios[pair] = fr_bench_tokens_per_second(adaptive) / fr_bench_tokens_per_second(none);
        drafted += fr_session_stat(adaptive, FR_STAT_DRAFTED);
        calls += fr_session_stat(adaptive, FR_STAT_TARGET_CALLS);
        fr_session_close(none);
        fr_session_close(adaptive);
    }
    printf("| %s | %.2f %.2f %.2f | %.1f | %.2f | **%.2f** (target 1.30) | %s |\n", class, measured.at[0],
           measured.at[1], measured.at[2], drafted / calls, (double)pairs * (BIG_IDS - 1) / calls,
           fr_bench_median(ratios, pairs), same ? "same" : "**differ**");
}

static void bench_big(size_t pairs) {
    static const char *const prose[] = {"3-modules", "4-iterators", "5-collector"}, *const code[] = {"1-parser",
                                                                                                     "4-iterators"};
    fr_bench_engine e = fr_bench_engine_open("build/bench/target", "build/bench/assistant");
    printf("\n## 1.1 GB of BF16 weights, drafts accepted at the demo's rates, auto over none, %zu pairs\n\n"
           "| text | acceptance, depth 1 2 3 | drafts a call | tokens a call | tokens/s over none | ids |\n"
           "| --- | --- | --- | --- | --- | --- |\n",
           pairs);
    bench_class(&e, "prose", prose, sizeof prose / sizeof *prose, pairs);
    bench_class(&e, "code", code, sizeof code / sizeof *code, pairs);
    fr_bench_engine_close(&e);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && strcmp(argv[1], "record") == 0) {
        print_record(argv[2]);
        return 0;
    }
    printf("# forerun, the depth that pays\n");
    if (argc == 1 || strcmp(argv[1], "demo") == 0) bench_demo();
    if (argc == 1 || strcmp(argv[1], "big") == 0) bench_big(argc > 2 ? strtoul(argv[2], NULL, 10) : PAIRS);
    return 0;
}
