/* The LM head of a batch: see head.h.
 *
 * Logits of a batch are megabytes. So each thread takes its features in pieces that stay in a core's cache from the
 * product over the soft cap to the comparison: 8 rows of 262144 logits would otherwise be written once and read four
 * times. */
#include "src/layers/head.h"

#include "src/weights/partition.h"

enum {
    PIECE = 256 << 10, /* bytes of logits */
    NOT_FINITE = -1,
    NOTHING = -2
};

/* Of two ids, the first's smaller, the one with the larger logit. */
static int64_t larger(const float *logits, int64_t a, int64_t b) {
    if (a == NOTHING || b == NOT_FINITE) return b;
    if (b == NOTHING || a == NOT_FINITE) return a;
    return logits[b] > logits[a] ? b : a;
}

static size_t piece_features(size_t rows) {
    size_t features = PIECE / sizeof(float) / rows;
    return features < FR_FEATURE_UNIT ? FR_FEATURE_UNIT : features / FR_FEATURE_UNIT * FR_FEATURE_UNIT;
}

/* Logits of features [begin, end), and how they change the thread's best. */
static void run_piece(const fr_team *team, fr_forward *f, const fr_head *head, size_t begin, size_t end,
                      int64_t *best) {
    size_t vocab = head->matrix->features, hidden = head->matrix->cols;
    const fr_kernels *k = head->workspace->kernels;
    fr_matrix_apply_part(team, head->workspace, head->matrix, begin, end,
                         &(fr_matrix_rows){f->logits, vocab, f->hidden + f->head_first * hidden, hidden, f->head_rows});
    for (size_t r = 0; r < f->head_rows; r++) {
        float *logits = f->logits + r * vocab;
        if (head->scale != 0.0f) k->scale(logits + begin, end - begin, head->scale);
        if (head->softcap != 0.0f) k->softcap(logits + begin, end - begin, head->softcap);
        int64_t at = k->argmax(logits + begin, end - begin);
        best[r] = larger(logits, best[r], at < 0 ? NOT_FINITE : (int64_t)begin + at);
    }
}

/* The threads' bests of a row, whose features are in the order of the threads. */
static int64_t best_of_row(const fr_team *team, const fr_forward *f, size_t vocab, size_t r) {
    int64_t best = NOTHING;
    for (size_t t = 0; t < team->count; t++)
        best = larger(f->logits + r * vocab, best, f->best[t * f->best_stride + r]);
    return best;
}

/* Of whole rows of logits. */
static void join_ranks(const fr_team *team, const fr_forward *f, const fr_kernels *k, size_t vocab) {
    size_t begin, end;
    fr_part_rows(team, f->head_rows, &begin, &end);
    for (; begin < end; begin++) f->best[begin] = k->argmax(f->logits + begin * vocab, vocab);
}

void fr_head_rows(const fr_team *team, const fr_head *head, fr_forward *f) {
    size_t vocab = head->matrix->features, hidden = head->matrix->cols;
    size_t piece = piece_features(f->head_rows), begin, end;
    int64_t *best = f->best + team->index * f->best_stride;
    fr_publish_own_input(team, head->workspace, f->hidden + f->head_first * hidden, hidden, hidden, f->head_rows);
    for (size_t r = 0; r < f->head_rows; r++) best[r] = NOTHING;
    fr_part_features(team, vocab, &begin, &end);
    for (size_t to; begin < end; begin = to) {
        to = end - begin < piece ? end : begin + piece;
        run_piece(team, f, head, begin, to, best);
    }
    fr_publish_rows(team, &(fr_shared_rows){f->logits, vocab, f->head_rows, fr_split_features(vocab)}, 1);
    /* The best of each thread's features; other ranks' are among the logits. */
    if (team->ranks) {
        join_ranks(team, f, head->workspace->kernels, vocab);
        return;
    }
    fr_part_rows(team, f->head_rows, &begin, &end);
    for (; begin < end; begin++) f->best[begin] = best_of_row(team, f, vocab, begin);
}
