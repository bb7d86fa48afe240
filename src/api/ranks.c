/* Keeps the job (the group of processes) to which this process belongs: fr_ranks_... of forerun.h. A process belongs
 * to at most one job.
 *
 * In: a job as the system started it. Out: its ranks, for models that are opened. */
#include "src/api/ranks.h"

#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "forerun_lab_ranks.h"

static fr_ranks *job; /* set once, before threads are started */
static bool joined, decides_alone;
static bool by_layers; /* the model that was opened last is split into groups of layers */
static fr_rank_plan plan;

fr_ranks *fr_job(void) {
    return fr_ranks_count(job) > 1 ? job : NULL;
}

fr_status fr_ranks_join(int timeout_seconds) {
    if (timeout_seconds < 1)
        return fr_fail(FR_USAGE, "fr_ranks_join: the timeout must be 1 second or more, not %d", timeout_seconds);
    if (joined) return fr_fail(FR_USAGE, "fr_ranks_join: this process has joined its job already");
    joined = true;
    return fr_ranks_open(timeout_seconds, &job);
}

void fr_lab_ranks_timeout(int seconds) {
    fr_ranks_patience(job, seconds);
}

fr_status fr_lab_ranks_deal(const uint32_t *parts, size_t count) {
    if (count != fr_ranks_count(job))
        return fr_fail(FR_USAGE, "there are shares for %zu rank%s, but the job has %zu rank%s", count,
                       count == 1 ? "" : "s", fr_ranks_count(job), fr_ranks_count(job) == 1 ? "" : "s");
    for (size_t i = 0; i < count; i++)
        if (parts[i] < 1 || parts[i] > FR_RANK_PARTS_MAX)
            return fr_fail(FR_USAGE, "a rank's share is %u, and must be from 1 to %d", parts[i], FR_RANK_PARTS_MAX);
    uint64_t hash = fr_hash(0, parts, count * sizeof *parts);
    FR_TRY(fr_ranks_agree(fr_job(), &hash, sizeof hash, "its list of shares"));
    fr_ranks_deal(fr_job(), parts);
    return FR_OK;
}

fr_rank_plan fr_job_plan(void) {
    return plan;
}

_Static_assert(FR_LAB_SPLIT_AUTO == (int)FR_SPLIT_AUTO && FR_LAB_SPLIT_ROWS == (int)FR_SPLIT_ROWS &&
                   FR_LAB_SPLIT_LAYERS == (int)FR_SPLIT_LAYERS,
               "the same splits");

fr_status fr_lab_ranks_split(fr_lab_split split, double latency, double bandwidth) {
    fr_rank_plan own = {(fr_rank_split)split, latency, bandwidth};
    uint64_t hash = fr_hash(fr_hash(split, &latency, sizeof latency), &bandwidth, sizeof bandwidth);
    FR_TRY(fr_ranks_agree(fr_job(), &hash, sizeof hash, "its way of splitting models"));
    plan = own;
    return FR_OK;
}

void fr_job_note_split(bool layers) {
    by_layers = layers;
}

bool fr_lab_ranks_by_layers(void) {
    return by_layers;
}

size_t fr_lab_ranks_hosts(void) {
    return fr_ranks_hosts(job);
}

void fr_lab_ranks_delay(double seconds) {
    fr_ranks_delay(job, seconds);
}

fr_lab_traffic fr_lab_ranks_sent(size_t layer) {
    fr_ranks_traffic told = fr_ranks_told(job, layer);
    return (fr_lab_traffic){told.messages, told.bytes, told.seconds};
}

static uint64_t hash_text(uint64_t hash, const char *text) {
    return fr_hash(hash, text, strlen(text) + 1);
}

fr_status fr_ranks_agree_options(fr_ranks *ranks, const fr_options *options) {
    static const fr_option own[] = {FR_OPT_THREADS, FR_OPT_PIN, FR_OPT_NUMA, FR_OPT_MMAP, FR_OPT_MLOCK, FR_OPT_MEMORY};
    int64_t value[FR_OPT_COUNT];
    if (!ranks) return FR_OK;
    memcpy(value, options->value, sizeof value);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) value[own[i]] = 0;
    uint64_t hash = fr_hash(0, value, sizeof value);
    hash = fr_hash(hash, options->number, sizeof options->number);
    hash = fr_hash(hash, options->biases, options->bias_count * sizeof *options->biases);
    hash = fr_hash(hash, options->filters, options->filter_count);
    for (size_t i = 0; i < options->breakers.count; i++) hash = hash_text(hash, options->breakers.texts[i]);
    hash = hash_text(hash, options->spec_type);
    return fr_ranks_agree(ranks, &hash, sizeof hash, "its set of options, or the memory that it may use,");
}

void fr_lab_ranks_decide_alone(void) {
    decides_alone = true;
}

fr_status fr_lab_ranks_check(void) {
    return fr_ranks_check(job);
}

bool fr_lab_ranks_decide(bool own) {
    uint8_t first = own;
    if (decides_alone) return own;
    fr_ranks_broadcast(fr_job(), &first, sizeof first);
    return first;
}

_Static_assert(FR_RANKS_MAX == FR_LAB_MOST_RANKS, "callers have room for each rank");
_Static_assert(FR_RANKS_ELSEWHERE == FR_LAB_RANKS_ELSEWHERE && FR_RANKS_PLACES == FR_LAB_RANKS_ALL, "the same places");

void fr_lab_ranks_collect(double own, double *all) {
    all[fr_ranks_index(job)] = own;
    fr_ranks_gather_equal(fr_job(), all, sizeof *all);
}

void fr_lab_ranks_end_late(double seconds, void (*end)(const char *line)) {
    fr_ranks_end_late(job, seconds, end);
}

bool fr_lab_ranks_struck(int signal_number) {
    return fr_ranks_struck(job, signal_number, !decides_alone);
}

size_t fr_rank(void) {
    return fr_ranks_index(job);
}

size_t fr_rank_count(void) {
    return fr_ranks_count(job);
}

int fr_ranks_part(int code, const char *line, void (*say)(const char *line)) {
    int all = fr_ranks_leave(job, code, line ? line : "", say);
    job = NULL;
    return all;
}
