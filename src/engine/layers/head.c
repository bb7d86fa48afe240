/* Runs the LM head of a batch: see head.h.
 *
 * The logits of a batch take megabytes, for example for 8 rows of 262144 logits. Writing them to memory once and
 * reading them four times would take too long. So each thread divides its features into pieces. A piece stays in a
 * core's cache from the product to the soft cap and the comparison. */
#include "src/engine/layers/head.h"

#include <string.h>

#include "base/sizes.h"
#include "src/engine/weights/partition.h"

enum {
    PIECE = 256 << 10, /* a thread computes this many bytes of logits at a time */
    NOT_FINITE = -1,   /* stands for an id if some logit is not finite */
    NOTHING = -2,      /* stands for an id if no logit has been compared yet */
    TOGETHER = 16      /* number of rows for which ranks exchange their best ids in one message */
};

/* Gives the id with the larger logit. If the logits are equal, gives a, which is the smaller id. An id may also be
 * NOTHING or NOT_FINITE. */
static int64_t larger(const float *logits, int64_t a, int64_t b) {
    if (a == NOTHING || b == NOT_FINITE) return b;
    if (b == NOTHING || a == NOT_FINITE) return a;
    return logits[b] > logits[a] ? b : a;
}

/* Computes the logits of features [begin, end), and updates the thread's best ids. */
static void run_piece(fr_forward *f, const fr_head *head, size_t begin, size_t end, int64_t *best) {
    size_t vocab = head->matrix->features;
    const fr_kernels *k = head->workspace->kernels;
    fr_workspace workspace = *head->workspace;
    workspace.adapters = head->adapters;
    fr_matrix_apply_part(
        &workspace, head->matrix, begin, end,
        &(fr_matrix_rows){f->logits, vocab, f->hidden + f->head_first * head->stride, head->stride, f->head_rows});
    for (size_t r = 0; r < f->head_rows; r++) {
        float *logits = f->logits + r * vocab;
        if (head->bias) k->add(logits + begin, head->bias + begin, end - begin);
        if (head->scale != 0.0f) k->scale(logits + begin, end - begin, head->scale);
        if (head->softcap != 0.0f) k->softcap(logits + begin, end - begin, head->softcap);
        int64_t at = k->argmax(logits + begin, end - begin);
        best[r] = larger(logits, best[r], at < 0 ? NOT_FINITE : (int64_t)begin + at);
    }
}

/* The best id of a row, among the ids of one rank. */
typedef struct rank_best {
    int64_t at; /* the feature with the largest logit, or NOT_FINITE or NOTHING */
    float logit;
} rank_best;

static int64_t larger_of_ranks(const rank_best *best, size_t ranks, size_t stride) {
    rank_best found = {.at = NOTHING};
    for (size_t i = 0; i < ranks; i++, best += stride) {
        if (best->at == NOT_FINITE) return NOT_FINITE;
        if (best->at != NOTHING && (found.at == NOTHING || best->logit > found.logit)) found = *best;
    }
    return found.at;
}

/* Exchanges the ranks' best ids for at most TOGETHER rows, beginning with row `first`, and chooses the best id of each
 * row. If logits are equal, the id of the lower rank is chosen, because that rank has the lower ids. One thread makes
 * this call. */
static void join_ranks(fr_ranks *ranks, const fr_forward *f, size_t vocab, size_t first) {
    rank_best all[FR_RANKS_MAX * TOGETHER];
    size_t count = fr_ranks_count(ranks), rows = fr_smaller(TOGETHER, f->head_rows - first);
    rank_best *own = all + fr_ranks_index(ranks) * rows;
    memset(all, 0, count * rows * sizeof *all);
    for (size_t r = 0; r < rows; r++) {
        own[r].at = f->best[first + r];
        if (own[r].at >= 0) own[r].logit = f->logits[(first + r) * vocab + (size_t)own[r].at];
    }
    fr_ranks_gather_equal(ranks, all, rows * sizeof *all);
    for (size_t r = 0; r < rows; r++) f->best[first + r] = larger_of_ranks(all + r, count, rows);
}

void fr_head_rows(const fr_team *team, const fr_head *head, fr_forward *f) {
    size_t vocab = head->matrix->features, hidden = head->matrix->cols;
    size_t piece = PIECE / sizeof(float) / f->head_rows, begin, end;
    piece = piece < FR_FEATURE_UNIT ? FR_FEATURE_UNIT : piece / FR_FEATURE_UNIT * FR_FEATURE_UNIT;
    int64_t *best = f->best + team->index * f->best_stride;
    fr_publish_own_input(team, head->workspace, f->hidden + f->head_first * head->stride, head->stride, hidden,
                         f->head_rows);
    for (size_t r = 0; r < f->head_rows; r++) best[r] = NOTHING;
    fr_part_features(team, vocab, &begin, &end);
    for (size_t to; begin < end; begin = to) {
        to = end - begin < piece ? end : begin + piece;
        run_piece(f, head, begin, to, best);
    }
    /* Each thread has now found the best id among its features. To compare these ids, the logits of the other ranks are
     * needed. */
    fr_publish_rows(team, &(fr_shared_rows){f->logits, vocab, f->head_rows, fr_split_features(vocab)}, !f->best_alone);
    fr_part_rows(team, f->head_rows, &begin, &end);
    /* Threads have their features in ascending order. */
    for (; begin < end; begin++) {
        int64_t found = NOTHING;
        for (size_t t = 0; t < team->count; t++)
            found = larger(f->logits + begin * vocab, found, f->best[t * f->best_stride + begin]);
        f->best[begin] = found;
    }
    if (!team->ranks) return;
    fr_team_sync(team);
    for (size_t r = 0; team->index == 0 && r < f->head_rows; r += TOGETHER) join_ranks(team->ranks, f, vocab, r);
}
