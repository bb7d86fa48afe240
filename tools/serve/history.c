/* Records the last rounds of a scheduler (history.h).
 *
 * The number of rows that a session ran in a round is computed from the session's figures. While the prompt is run,
 * each row makes fr_history_left smaller by 1. After the prompt, a session has one row in each round, and one more row
 * for each draft. */
#include "tools/serve/history.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

typedef struct part {
    uint16_t slot, rows, ids;
    bool prompt; /* the rows belong to a prompt */
} part;

typedef struct round_kept {
    double seconds;
    size_t count;
    part *parts; /* [slots] */
} round_kept;

/* A session's figures before the current round. */
typedef struct figures {
    double left, drafted;
    bool steps;
} figures;

struct fr_history {
    size_t slots;
    figures *before; /* [slots] */
    round_kept now;  /* the current round. Only the engine's thread uses it and the members above it */

    pthread_mutex_t lock; /* protects the members below */
    unsigned long long total;
    round_kept rounds[FR_HISTORY_ROUNDS]; /* round number n is at index (n - 1) % FR_HISTORY_ROUNDS */
};

fr_history *fr_history_new(size_t slots) {
    fr_history *history = fr_resize(NULL, 1, sizeof *history);
    memset(history, 0, sizeof *history);
    history->slots = slots;
    history->before = fr_resize(NULL, slots, sizeof *history->before);
    history->now.parts = fr_resize(NULL, slots, sizeof(part));
    for (size_t i = 0; i < FR_HISTORY_ROUNDS; i++) history->rounds[i].parts = fr_resize(NULL, slots, sizeof(part));
    pthread_mutex_init(&history->lock, NULL);
    return history;
}

void fr_history_free(fr_history *history) {
    if (!history) return;
    pthread_mutex_destroy(&history->lock);
    for (size_t i = 0; i < FR_HISTORY_ROUNDS; i++) free(history->rounds[i].parts);
    free(history->now.parts);
    free(history->before);
    free(history);
}

double fr_history_left(const fr_session *session) {
    return (double)fr_session_waiting(session) + fr_session_stat(session, FR_STAT_REUSED_TOKENS);
}

void fr_history_before(fr_history *history, size_t slot, const fr_round *round) {
    history->before[slot] = (figures){.left = fr_history_left(round->session),
                                      .drafted = fr_session_stat(round->session, FR_STAT_DRAFTED),
                                      .steps = fr_session_waiting(round->session) == 0};
}

void fr_history_behind(fr_history *history, size_t slot, const fr_round *round) {
    const figures *before = &history->before[slot];
    if (round->status != FR_OK) return;
    double drafts = fr_session_stat(round->session, FR_STAT_DRAFTED) - before->drafted;
    double rows = before->steps ? 1 + drafts : before->left - fr_history_left(round->session);
    if (rows < 0) rows = 0;
    if (rows > UINT16_MAX) rows = UINT16_MAX;
    history->now.parts[history->now.count++] =
        (part){(uint16_t)slot, (uint16_t)rows, (uint16_t)round->count, !before->steps};
}

void fr_history_end(fr_history *history, double seconds) {
    history->now.seconds = seconds;
    pthread_mutex_lock(&history->lock);
    round_kept *oldest = &history->rounds[history->total++ % FR_HISTORY_ROUNDS], spare = *oldest;
    *oldest = history->now;
    pthread_mutex_unlock(&history->lock);
    history->now = (round_kept){.parts = spare.parts};
}

static json_t *json_of(const round_kept *round) {
    json_t *rows = json_array();
    for (size_t i = 0; i < round->count; i++) {
        const part *p = &round->parts[i];
        json_array_append_new(rows, json_pack("[i, i, i, b]", p->slot, p->rows, p->ids, p->prompt));
    }
    return json_pack("{s:f, s:o}", "ms", 1e3 * round->seconds, "rows", rows);
}

json_t *fr_history_json(fr_history *history, unsigned long long after) {
    json_t *rounds = json_array();
    pthread_mutex_lock(&history->lock);
    unsigned long long total = history->total, first = total > FR_HISTORY_ROUNDS ? total - FR_HISTORY_ROUNDS : 0;
    if (after > first) first = after;
    for (unsigned long long n = first; n < total; n++)
        json_array_append_new(rounds, json_of(&history->rounds[n % FR_HISTORY_ROUNDS]));
    pthread_mutex_unlock(&history->lock);
    return json_pack("{s:I, s:I, s:o}", "slots", (json_int_t)history->slots, "total", (json_int_t)total, "rounds",
                     rounds);
}
