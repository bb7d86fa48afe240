/* Prints statistics for programs and for people (figures.h). */
#include "tools/cli/figures.h"

#include <math.h>

#include "tools/cli/figures_ranks.h"
#include "tools/cli/output.h"

fr_figures fr_figures_take(const fr_session *session) {
    fr_figures figures;
    for (int stat = 0; stat < FR_STAT_COUNT; stat++) figures.of[stat] = fr_session_stat(session, (fr_stat)stat);
    for (size_t d = 0; d < FR_STEP_MAX - 1; d++)
        for (int stat = 0; stat < FR_DEPTH_COUNT; stat++)
            figures.depth[d][stat] = fr_session_depth_stat(session, d, (fr_depth_stat)stat);
    return figures;
}

fr_figures fr_figures_since(fr_figures now, const fr_figures *before) {
    for (int stat = 0; stat < FR_STAT_TARGET_WEIGHT_BYTES; stat++) now.of[stat] -= before->of[stat];
    for (size_t d = 0; d < FR_STEP_MAX - 1; d++)
        for (int stat = 0; stat < FR_DEPTH_COUNT; stat++) now.depth[d][stat] -= before->depth[d][stat];
    return now;
}

fr_figures fr_figures_plus(fr_figures now, const fr_figures *before) {
    for (int stat = 0; stat < FR_STAT_TARGET_WEIGHT_BYTES; stat++) now.of[stat] += before->of[stat];
    for (size_t d = 0; d < FR_STEP_MAX - 1; d++)
        for (int stat = 0; stat < FR_DEPTH_COUNT; stat++) now.depth[d][stat] += before->depth[d][stat];
    return now;
}

static double ratio(double part, double whole) {
    return whole > 0 ? part / whole : 0;
}

static double acceptance(const fr_figures *f) {
    return ratio(f->of[FR_STAT_ACCEPTED], f->of[FR_STAT_DRAFTED]);
}

/* Gives the mean number of tokens per forward of the target. The first token is not counted, because it comes from the
 * prompt's own forward. */
static double tokens_per_call(const fr_figures *f) {
    return ratio(f->of[FR_STAT_GENERATED_TOKENS] - 1, f->of[FR_STAT_TARGET_CALLS]);
}

static double tokens_per_second(const fr_figures *f) {
    return ratio(f->of[FR_STAT_GENERATED_TOKENS] - 1, f->of[FR_STAT_DECODE_SECONDS]);
}

/* Gives the seconds of decoding that are left if the times of drafting, verifying and accepting are subtracted. */
static double other_seconds(const fr_figures *f) {
    const double *of = f->of;
    return fmax(0, of[FR_STAT_DECODE_SECONDS] - of[FR_STAT_DRAFT_SECONDS] - of[FR_STAT_VERIFY_SECONDS] -
                       of[FR_STAT_ACCEPT_SECONDS]);
}

/* Gives the largest depth at which drafts were made. */
static size_t deepest(const fr_figures *f) {
    size_t depths = FR_STEP_MAX - 1;
    while (depths > 0 && f->depth[depths - 1][FR_DEPTH_DRAFTED] == 0) depths--;
    return depths;
}

typedef struct fr_named {
    const char *name;
    fr_stat stat;
} fr_named;

static void put_counts(json_t *object, const fr_figures *figures, const fr_named *named, size_t count) {
    for (size_t i = 0; i < count; i++) {
        fr_json_put(object, named[i].name, json_integer((json_int_t)figures->of[named[i].stat]));
    }
}

static json_t *memory_json(const fr_figures *figures) {
    static const fr_named bytes[] = {
        {"target_weights", FR_STAT_TARGET_WEIGHT_BYTES},
        {"draft_weights", FR_STAT_DRAFT_WEIGHT_BYTES},
        {"resident", FR_STAT_RESIDENT_BYTES},
        {"mapped", FR_STAT_MAPPED_BYTES},
        {"target_kv", FR_STAT_TARGET_KV_BYTES},
        {"draft_kv", FR_STAT_DRAFT_KV_BYTES},
        {"states", FR_STAT_STATE_BYTES},
        {"state_draft", FR_STAT_STATE_DRAFT_BYTES},
        {"snapshots", FR_STAT_CHECKPOINT_BYTES},
        {"scratch", FR_STAT_SCRATCH_BYTES},
        {"kv_used", FR_STAT_KV_USED_BYTES},
        {"kv_shared", FR_STAT_KV_SHARED_BYTES},
        {"kv_cached", FR_STAT_KV_CACHED_BYTES},
        {"peak", FR_STAT_PEAK_BYTES},
    };
    json_t *memory = json_object();
    put_counts(memory, figures, bytes, sizeof(bytes) / sizeof(*bytes));
    return memory;
}

static json_t *depths_json(const fr_figures *figures) {
    static const char *const names[FR_DEPTH_COUNT] = {"drafted", "compared", "accepted", "rejected"};
    json_t *list = json_array();
    for (size_t d = 0; d < deepest(figures); d++) {
        json_t *depth = json_object();
        for (int stat = 0; stat < FR_DEPTH_COUNT; stat++)
            fr_json_put(depth, names[stat], json_integer((json_int_t)figures->depth[d][stat]));
        json_array_append_new(list, depth);
    }
    return list;
}

static void put_phases(json_t *stats, const fr_figures *f) {
    static const fr_named seconds[] = {
        {"vision_seconds", FR_STAT_VISION_SECONDS}, {"prefill_seconds", FR_STAT_PREFILL_SECONDS},
        {"decode_seconds", FR_STAT_DECODE_SECONDS}, {"draft_seconds", FR_STAT_DRAFT_SECONDS},
        {"verify_seconds", FR_STAT_VERIFY_SECONDS}, {"accept_seconds", FR_STAT_ACCEPT_SECONDS},
    };
    for (size_t i = 0; i < sizeof(seconds) / sizeof(*seconds); i++)
        fr_json_put(stats, seconds[i].name, json_real(f->of[seconds[i].stat]));
    fr_json_put(stats, "other_seconds", json_real(other_seconds(f)));
}

json_t *fr_figures_json(const fr_figures *figures, const fr_session *session) {
    static const fr_named counts[] = {
        {"prompt_tokens", FR_STAT_PROMPT_TOKENS},
        {"reused_tokens", FR_STAT_REUSED_TOKENS},
        {"rerun_tokens", FR_STAT_RERUN_TOKENS},
        {"generated_tokens", FR_STAT_GENERATED_TOKENS},
        {"target_calls", FR_STAT_TARGET_CALLS},
        {"draft_calls", FR_STAT_DRAFT_CALLS},
        {"drafted", FR_STAT_DRAFTED},
        {"accepted", FR_STAT_ACCEPTED},
        {"rejected", FR_STAT_REJECTED},
    };
    json_t *stats = json_object();
    put_counts(stats, figures, counts, sizeof(counts) / sizeof(*counts));
    /* each forward with drafts has one row for the last accepted id and one for each draft */
    double rows = figures->of[FR_STAT_DRAFT_CALLS] + figures->of[FR_STAT_DRAFTED];
    fr_json_put(stats, "rows", json_integer((json_int_t)rows));
    fr_json_put(stats, "acceptance", json_real(acceptance(figures)));
    fr_json_put(stats, "tokens_per_target_call", json_real(tokens_per_call(figures)));
    fr_json_put(stats, "tokens_per_second", json_real(tokens_per_second(figures)));
    const uint8_t *lengths;
    size_t count = fr_session_accepted_lengths(session, &lengths);
    json_t *accepted = json_array();
    for (size_t i = 0; i < count; i++) json_array_append_new(accepted, json_integer(lengths[i]));
    fr_json_put(stats, "accepted_lengths", accepted);
    fr_json_put(stats, "depths", depths_json(figures));
    put_phases(stats, figures);
    fr_json_put(stats, "memory", memory_json(figures));
    if (fr_rank_count() > 1) fr_json_put(stats, "ranks", fr_ranks_json(figures->of[FR_STAT_PEAK_BYTES]));
    return stats;
}

static double megabytes(const fr_figures *f, fr_stat stat) {
    return f->of[stat] / 1e6;
}

/* Prints the line about the prompt. If the whole prompt was in the cache, no rate is printed, because only its last
 * token was run again. */
static void print_prompt(const fr_figures *f, FILE *out) {
    const double *of = f->of;
    double seconds = of[FR_STAT_PREFILL_SECONDS];
    double reused = of[FR_STAT_REUSED_TOKENS], rerun = of[FR_STAT_RERUN_TOKENS], fresh = of[FR_STAT_PROMPT_TOKENS];
    fprintf(out, "prompt      %8.0f tokens  %9.3f s", fresh + reused, seconds);
    if (fresh > 0) fprintf(out, "  %9.1f tokens/s", ratio(fresh + rerun, seconds));
    if (fresh > 0 && reused > 0) fprintf(out, " of the %.0f that were run", fresh + rerun);
    fprintf(out, "\n");
    if (reused > 0) fprintf(out, "reused      %8.0f tokens  %9.0f of them run again\n", reused, rerun);
}

void fr_figures_print(const fr_figures *f, FILE *out) {
    const double *of = f->of;
    double decode = of[FR_STAT_DECODE_SECONDS];
    if (of[FR_STAT_VISION_SECONDS] > 0)
        fprintf(out, "vision                        %9.3f s\n", of[FR_STAT_VISION_SECONDS]);
    print_prompt(f, out);
    fprintf(out, "generated   %8.0f tokens  %9.3f s  %9.1f tokens/s\n", of[FR_STAT_GENERATED_TOKENS], decode,
            tokens_per_second(f));
    fprintf(out, "target      %8.0f calls    %9.3f s  %9.2f tokens a call\n", of[FR_STAT_TARGET_CALLS],
            of[FR_STAT_VERIFY_SECONDS], tokens_per_call(f));
    if (of[FR_STAT_DRAFT_CALLS] > 0) {
        fprintf(out, "drafts      %8.0f tokens  %9.3f s  %.0f accepted, %.0f rejected, acceptance %.3f\n",
                of[FR_STAT_DRAFTED], of[FR_STAT_DRAFT_SECONDS], of[FR_STAT_ACCEPTED], of[FR_STAT_REJECTED],
                acceptance(f));
        if (of[FR_STAT_DRAFTED] > 0) {
            fprintf(out, "by depth   ");
            for (size_t d = 0; d < deepest(f); d++)
                fprintf(out, " %.0f/%.0f", f->depth[d][FR_DEPTH_ACCEPTED], f->depth[d][FR_DEPTH_DRAFTED]);
            fprintf(out, " accepted of drafted\n");
        }
    }
    fprintf(out, "seconds     draft %.3f, verify %.3f, accept %.3f, other %.3f\n", of[FR_STAT_DRAFT_SECONDS],
            of[FR_STAT_VERIFY_SECONDS], of[FR_STAT_ACCEPT_SECONDS], other_seconds(f));
    fprintf(out,
            "memory, MB  weights %.1f + %.1f, KV %.1f + %.1f (target + drafter), checkpoints %.1f, scratch %.1f, "
            "peak %.1f\n",
            megabytes(f, FR_STAT_TARGET_WEIGHT_BYTES), megabytes(f, FR_STAT_DRAFT_WEIGHT_BYTES),
            megabytes(f, FR_STAT_TARGET_KV_BYTES), megabytes(f, FR_STAT_DRAFT_KV_BYTES),
            megabytes(f, FR_STAT_CHECKPOINT_BYTES), megabytes(f, FR_STAT_SCRATCH_BYTES),
            megabytes(f, FR_STAT_PEAK_BYTES));
    if (fr_rank_count() > 1) fr_ranks_print(of[FR_STAT_PEAK_BYTES], out);
    fprintf(out, "weights, MB resident %.1f, read from files as they lie %.1f\n", megabytes(f, FR_STAT_RESIDENT_BYTES),
            megabytes(f, FR_STAT_MAPPED_BYTES));
    if (of[FR_STAT_STATE_BYTES] > 0) {
        fprintf(out, "states, MB  %.3f of this timeline, %.3f of each draft behind them\n",
                megabytes(f, FR_STAT_STATE_BYTES), megabytes(f, FR_STAT_STATE_DRAFT_BYTES));
    }
    fprintf(out, "KV pages, MB in use %.1f (the target's and checkpoints'), of these shared %.1f; cached %.1f\n",
            megabytes(f, FR_STAT_KV_USED_BYTES), megabytes(f, FR_STAT_KV_SHARED_BYTES),
            megabytes(f, FR_STAT_KV_CACHED_BYTES));
}
