/* Assigns layers to ranks: see stages.h. */
#include "src/engine/layers/stages.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ranks.h"
#include "base/sizes.h"
#include "src/engine/layers/trunk.h"

/* LEAST_PIECE: the fewest rows of a slice (fr_stages_pieces). PIECES_A_RANK: a forward has at most this many slices for
 * each rank. */
enum { LEAST_PIECE = 32, PIECES_A_RANK = 2 };

/* ----- layers of each rank */

/* Finds where to cut the list of layers so that the number of bytes before the cut is as near as possible to `wanted`.
 * Returns the first layer after the cut. */
static size_t layer_behind(const uint64_t *bytes, size_t layers, double wanted) {
    double before = 0;
    size_t i = 0;
    for (; i < layers && before + (double)bytes[i] / 2 < wanted; i++) before += (double)bytes[i];
    return i;
}

static void deal(fr_stages *s, const uint64_t *bytes, size_t layers) {
    size_t ranks = fr_ranks_count(s->ranks);
    double all = 0, parts = (double)fr_ranks_before(s->ranks, ranks);
    for (size_t i = 0; i < layers; i++) all += (double)bytes[i];
    for (size_t r = 1; r < ranks; r++) {
        size_t at = layer_behind(bytes, layers, all * (double)fr_ranks_before(s->ranks, r) / parts);
        if (layers >= ranks) at = fr_smaller(fr_larger(at, s->first[r - 1] + 1), layers - (ranks - r));
        s->first[r] = fr_larger(at, s->first[r - 1]);
    }
    s->first[ranks] = layers;
}

size_t fr_stages_of(const fr_stages *s, size_t layer) {
    size_t r = 0;
    while (r + 1 < fr_ranks_count(s->ranks) && layer >= s->first[r + 1]) r++;
    return r;
}

/* ----- lent keys and values */

/* Finds the layers that read the keys and values of layer `owner`. */
static fr_lent find_readers(const fr_trunk *trunk, size_t owner) {
    const fr_attention_spec *own = &trunk->spec.layer[owner].attention;
    fr_lent lent = {.kv = own->kv, .owner = owner, .last = owner, .drafted = true};
    for (size_t i = owner + 1; i < trunk->spec.layers; i++) {
        const fr_attention_spec *other = &trunk->spec.layer[i].attention;
        if (!fr_mixer_attends(trunk->spec.layer[i].mixer)) continue;
        if (other->kv == own->kv) lent.last = i;
        if (other->owns_kv && (other->window > 0) == (own->window > 0)) lent.drafted = false;
    }
    return lent;
}

static void find_lent(fr_stages *s, const fr_trunk *trunk) {
    for (size_t i = 0; i < trunk->spec.layers; i++) {
        if (!fr_mixer_attends(trunk->spec.layer[i].mixer) || !trunk->spec.layer[i].attention.owns_kv) continue;
        fr_lent lent = find_readers(trunk, i);
        if (lent.last == i && !lent.drafted) continue;
        s->lent[s->lent_count++] = lent;
        const fr_kv_shape *shape = &trunk->kv_shapes[lent.kv];
        s->lent_bytes += 2 * shape->heads * shape->head_dim * sizeof(float); /* an upper bound, since float32 is the
                                                                              * largest type of keys and values */
    }
}

fr_status fr_stages_open(const fr_trunk *trunk, fr_ranks *ranks, const uint64_t *bytes, fr_stages **stages) {
    size_t count = fr_ranks_count(ranks), layers = trunk->spec.layers;
    fr_stages *s = calloc(1, sizeof *s);
    *stages = s;
    if (s) s->first = calloc(count + 1, sizeof *s->first);
    if (s) s->lent = calloc(layers, sizeof *s->lent);
    if (!s || !s->first || !s->lent) return fr_fail_memory("layers of ranks", layers * sizeof *s->lent);
    s->ranks = ranks;
    deal(s, bytes, layers);
    find_lent(s, trunk);
    return FR_OK;
}

void fr_stages_close(fr_stages *s) {
    if (!s) return;
    free(s->first);
    free(s->lent);
    free(s);
}

bool fr_stages_keeps(const fr_trunk *trunk, size_t rank, size_t kv) {
    const fr_stages *s = trunk->stages;
    const fr_lent lent = find_readers(trunk, fr_trunk_kv_owner(trunk, kv));
    return lent.drafted || (lent.owner < s->first[rank + 1] && lent.last >= s->first[rank]);
}

/* Copies the keys or values of one position. If pack is true, copies from their slots to `at`, otherwise from `at` to
 * their slots. Returns the end of the copy. */
static uint8_t *copy_slots(const fr_kv_layer *cache, const fr_kv_rows *rows, size_t position, uint8_t *at, bool pack) {
    for (size_t h = 0; h < cache->heads; h++, at += rows->bytes) {
        uint8_t *slot = fr_kv_slot(cache, rows, h, position);
        memcpy(pack ? at : slot, pack ? slot : at, rows->bytes);
    }
    return at;
}

/* Copies the lent keys and values of a batch's rows, in the direction that `pack` says. Returns the end of the copy. */
static uint8_t *copy_lent(const fr_batch *batch, const fr_lent *lent, uint8_t *at, bool pack) {
    for (size_t r = 0; r < batch->count; r++) {
        const fr_row *row = &batch->rows[r];
        const fr_kv_layer *cache = &batch->timelines[row->timeline]->layers[lent->kv];
        at = copy_slots(cache, &cache->k, (size_t)row->position, at, pack);
        at = copy_slots(cache, &cache->v, (size_t)row->position, at, pack);
    }
    return at;
}

static size_t bytes_of(const fr_batch *batch, const fr_lent *lent) {
    const fr_kv_layer *cache = &batch->timelines[batch->rows->timeline]->layers[lent->kv];
    return batch->count * cache->heads * (cache->k.bytes + cache->v.bytes);
}

/* ---------------------------------------------------------------------------------------------------------- borders */

/* Returns true if layers before the border compute the lent keys and values, and layers after the border read them. */
static bool crosses(const fr_lent *lent, size_t border) {
    return lent->owner < border && lent->last >= border;
}

static void copy_crossing(const fr_activations *a, const fr_batch *batch, size_t border, bool pack) {
    const fr_stages *s = a->trunk->stages;
    uint8_t *at = a->lent;
    for (size_t i = 0; i < s->lent_count; i++)
        if (crosses(&s->lent[i], border)) at = copy_lent(batch, &s->lent[i], at, pack);
}

/* Passes rows of the stream over the border between rank `from` and the next rank: one of the two sends, the other
 * receives. The lent keys and values of all rows of `batch` are passed too. One thread calls this function. */
static void cross(const fr_activations *a, const fr_batch *batch, size_t from) {
    const fr_stages *s = a->trunk->stages;
    size_t border = s->first[from + 1], row = a->trunk->spec.hidden * sizeof *a->x;
    size_t lent = 0;
    for (size_t i = 0; i < s->lent_count; i++)
        if (crosses(&s->lent[i], border)) lent += bytes_of(batch, &s->lent[i]);
    bool sends = from == fr_ranks_index(s->ranks);
    const fr_ranks_block blocks[] = {{(uint8_t *)a->x, row, a->batch.count, row}, {a->lent, lent, 1, lent}};
    if (sends) copy_crossing(a, batch, border, true);
    fr_ranks_enter_place(s->ranks, border ? border - 1 : 0);
    fr_ranks_hand_on(s->ranks, from, from + 1, blocks, 2);
    fr_ranks_enter_place(s->ranks, FR_RANKS_ELSEWHERE);
    if (!sends) copy_crossing(a, batch, border, false);
}

void fr_stages_receive(const fr_team *team, fr_activations *a) {
    const fr_stages *s = a->trunk->stages;
    const fr_batch batch = a->batch;
    size_t own = fr_ranks_index(s->ranks);
    if (own == 0) return;
    if (s->first[own] >= a->trunk->owners) fr_activations_narrow(a);
    fr_team_sync(team); /* other threads may still read the embeddings in the stream */
    if (team->index == 0) cross(a, &batch, own - 1);
    fr_team_sync(team);
}

void fr_stages_send(const fr_team *team, const fr_activations *a, const fr_batch *batch) {
    const fr_stages *s = a->trunk->stages;
    size_t own = fr_ranks_index(s->ranks);
    if (own + 1 == fr_ranks_count(s->ranks)) return;
    fr_team_sync(team);
    if (team->index == 0) cross(a, batch, own);
    fr_team_sync(team);
}

/* ----- results */

static void tell_aux(const fr_stages *s, const fr_forward *f, size_t hidden) {
    size_t rows = f->batch.count - f->keep, count = f->aux_layers->count, row = hidden * sizeof *f->aux_hidden;
    for (size_t t = 0; t < count; t++) {
        float *first = f->aux_hidden + (f->keep * count + t) * hidden;
        const fr_ranks_block block = {(uint8_t *)first, count * row, rows, row};
        fr_ranks_hand_on(s->ranks, fr_stages_of(s, f->aux_layers->layer[t]), FR_RANKS_ALL, &block, 1);
    }
}

static void tell_lent(const fr_stages *s, const fr_forward *f, uint8_t *message) {
    for (size_t i = 0; i < s->lent_count; i++) {
        if (!s->lent[i].drafted) continue;
        size_t owner = fr_stages_of(s, s->lent[i].owner), bytes = bytes_of(&f->batch, &s->lent[i]);
        bool own = owner == fr_ranks_index(s->ranks);
        const fr_ranks_block block = {message, bytes, 1, bytes};
        if (own) copy_lent(&f->batch, &s->lent[i], message, true);
        fr_ranks_hand_on(s->ranks, owner, FR_RANKS_ALL, &block, 1);
        if (!own) copy_lent(&f->batch, &s->lent[i], message, false);
    }
}

void fr_stages_finish(const fr_team *team, const fr_forward *f) {
    const fr_activations *a = f->activations;
    const fr_stages *s = a->trunk->stages;
    fr_team_sync(team);
    if (team->index == 0) {
        size_t hidden = a->trunk->spec.hidden, rows = f->batch.count - f->keep, row = hidden * sizeof *f->hidden;
        const fr_ranks_block block = {(uint8_t *)(f->hidden + f->keep * hidden), row, rows, row};
        fr_ranks_hand_on(s->ranks, fr_ranks_count(s->ranks) - 1, FR_RANKS_ALL, &block, 1);
        if (f->aux_layers) tell_aux(s, f, hidden);
        if (f->lends) tell_lent(s, f, a->lent);
    }
    fr_team_sync(team);
}

/* Gives the number of slices into which a forward is cut, so that ranks run different slices at the same time. If one
 * process runs the forward in time T, then R ranks with P slices need T / R * (P + R - 1) / P. That holds only if a
 * slice's time is proportional to its number of rows. A slice of few rows takes as long as a single row, because
 * reading the weights takes all of that time. So a slice has at least LEAST_PIECE rows. Two kinds of forwards are not
 * cut. One kind has recurrent layers, whose states move over all rows at once. The other kind has a picture whose rows
 * may see later rows of the same picture. */
size_t fr_stages_pieces(const fr_trunk *trunk, const fr_batch *batch) {
    size_t most = PIECES_A_RANK * fr_ranks_count(trunk->stages->ranks);
    bool whole = trunk->recurrent_count > 0;
    for (size_t r = 0; r < batch->count && !whole; r++) whole = batch->rows[r].block_last > batch->rows[r].position;
    return whole ? 1 : fr_larger(fr_smaller(batch->count / LEAST_PIECE, most), 1);
}
