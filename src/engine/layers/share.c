/* Divides matrices, keys, values and states among ranks: see trunk.h. There are two ways: all layers are divided
 * (queries, keys and values by heads, everything else by features), or each rank gets whole layers. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/layers/parts.h"
#include "src/engine/layers/stages.h"
#include "src/engine/layers/trunk.h"

/* ------------------------------------------------------------------------------------------------------------- rows */

static void share_features(fr_weights *weights, const fr_matrix *matrix) {
    fr_weights_share(weights, matrix, fr_split_features(matrix->features));
}

/* Gives the split that says which heads of a KV layer each rank keeps. each: columns of a head. */
static fr_split kept_heads(const fr_trunk *trunk, size_t kv, size_t each) {
    return fr_split_kv_heads(trunk->kv_shapes[kv].heads, each);
}

void fr_trunk_keep_heads(const fr_trunk *trunk, const fr_ranks *ranks, size_t kv, fr_kv_shape *shape) {
    const fr_split heads = kept_heads(trunk, kv, 1);
    size_t own = fr_ranks_index(ranks), all = shape->heads;
    size_t end = trunk->stages && !fr_stages_keeps(trunk, own, kv) ? 0 : heads.count;
    shape->before = 0;
    if (ranks && !trunk->stages) fr_split_share(&heads, ranks, own, &shape->before, &end);
    shape->heads = end - shape->before;
    shape->behind = all - end;
}

size_t fr_trunk_head_keeper(const fr_trunk *trunk, const fr_ranks *ranks, size_t kv, size_t head) {
    size_t heads = trunk->kv_shapes[kv].heads;
    const fr_split split = fr_split_heads(heads, heads, 1);
    if (trunk->stages) return fr_stages_of(trunk->stages, fr_trunk_kv_owner(trunk, kv));
    return fr_split_owner(&split, ranks, head);
}

size_t fr_trunk_kv_owner(const fr_trunk *trunk, size_t kv) {
    size_t i = 0;
    while (!fr_mixer_attends(trunk->spec.layer[i].mixer) || !trunk->spec.layer[i].attention.owns_kv ||
           trunk->spec.layer[i].attention.kv != kv)
        i++;
    return i;
}

/* Divides latent attention's heads among ranks: k_b and v_b, or kv_b if the file has both in one tensor. */
static void share_latent_heads(fr_weights *weights, const fr_attention_spec *spec, const fr_latent_heads *heads) {
    const fr_split split = fr_split_heads(spec->heads, spec->kv_heads, 1);
    if (heads->kv_b)
        fr_weights_share_heads(weights, heads->kv_b, split);
    else if (heads->k_b)
        fr_weights_share_heads(weights, heads->k_b, split);
    if (!heads->kv_b && heads->v_b) fr_weights_share_heads(weights, heads->v_b, split);
}

/* Divides the states of gated DeltaNet or of Mamba-2 among ranks, by heads. */
static void share_states(const fr_weights *weights, fr_recurrent_shape *shape, fr_split heads) {
    size_t end;
    fr_part_rank(&(fr_team){.ranks = weights->ranks}, heads, &shape->before, &end);
    shape->behind = shape->heads - end;
}

/* Divides Mamba-2 among ranks. One tensor holds its input projection, which has three parts: in_z, in_xbc and in_dt.
 * Every rank has all rows of in_dt, from which the time steps are computed. */
static void share_mamba(fr_weights *weights, fr_trunk *trunk, const fr_mamba_spec *spec, const fr_mamba_weights *m) {
    share_features(weights, &m->in_z);
    share_features(weights, &m->in_xbc);
    fr_weights_share(weights, &m->in_dt, fr_split_kv_heads(1, m->in_dt.features));
    share_features(weights, &m->out);
    share_states(weights, &trunk->recurrent_shapes[spec->state], fr_mamba_split(spec, 1));
}

static void share_each(fr_weights *weights, const fr_matrix *matrices, size_t count) {
    for (size_t i = 0; i < count && matrices; i++) share_features(weights, &matrices[i]);
}

static void share_rows(fr_trunk *trunk, fr_weights *weights) {
    for (size_t i = 0; i < trunk->spec.layers; i++) {
        const fr_layer *layer = &trunk->layers[i];
        const fr_matrix *features[] = {&layer->attention.o,      &layer->ffn.gate_up[0],   &layer->ffn.gate_up[1],
                                       &layer->ffn.down,         &layer->deltanet.in_qkv,  &layer->deltanet.in_qkvz,
                                       &layer->deltanet.out,     &layer->short_conv.in[0], &layer->short_conv.in[1],
                                       &layer->short_conv.in[2], &layer->short_conv.out,   &layer->experts.latent_out};
        size_t experts = trunk->spec.layer[i].experts.count;
        const fr_attention_spec *attention = &trunk->spec.layer[i].attention;
        const fr_matrix *q = &layer->attention.q;
        size_t kv_heads =
            q->data && attention->heads && attention->kv < trunk->kv_count ? trunk->kv_shapes[attention->kv].heads : 0;
        if (kv_heads)
            fr_weights_share(weights, q, fr_split_heads(attention->heads, kv_heads, q->features / attention->heads));
        if (kv_heads && attention->own_gate)
            fr_weights_share(weights, &layer->attention.gate,
                             fr_split_heads(attention->heads, kv_heads, attention->own_gate));
        if (attention->owns_kv && layer->attention.k.data) {
            const fr_split kept = kept_heads(trunk, attention->kv, attention->head_dim);
            fr_weights_share(weights, &layer->attention.k, kept);
            fr_weights_share(weights, &layer->attention.v, kept);
        }
        share_latent_heads(weights, attention, &layer->mla.heads);
        const fr_layer_spec *spec = &trunk->spec.layer[i];
        const fr_deltanet_spec *deltanet = &spec->deltanet;
        if (spec->mixer == FR_MIXER_DELTANET) {
            share_each(weights, layer->deltanet.in_parts, deltanet->by_key ? 3 : 0);
            const fr_matrix *z = &layer->deltanet.in_z;
            if (z->data) fr_weights_share(weights, z, fr_deltanet_split(deltanet, deltanet->value_dim));
            share_states(weights, &trunk->recurrent_shapes[deltanet->state], fr_deltanet_split(deltanet, 1));
        }
        if (spec->mixer == FR_MIXER_MAMBA || spec->mixer == FR_MIXER_BOTH)
            share_mamba(weights, trunk, &spec->mamba, &layer->mamba);
        for (size_t m = 0; m < sizeof features / sizeof *features; m++) share_features(weights, features[m]);
        share_each(weights, layer->experts.gate, experts);
        share_each(weights, layer->experts.up, experts);
        share_each(weights, layer->experts.down, experts);
    }
}

/* ----------------------------------------------------------------------------------------------------------- layers */

enum {
    MATRICES_MAX = 40, /* the largest number of arrays of matrices in a layer; a single matrix is an array of one */
    GATHERS = 4        /* number of exchanges in a layer that is split by rows */
};

typedef struct matrices {
    const fr_matrix *at;
    size_t count;
} matrices;

/* Lists the arrays of matrices of a layer; returns their number. */
static size_t matrices_of(const fr_trunk *trunk, size_t index, matrices *all) {
    const fr_layer *l = &trunk->layers[index];
    const fr_layer_spec *spec = &trunk->spec.layer[index];
    size_t experts = spec->experts.count, heads = spec->mixer == FR_MIXER_MLA ? spec->attention.heads : 0;
    const matrices list[] = {
        {&l->attention.q, 1},       {&l->attention.k, 1},        {&l->attention.v, 1},      {&l->attention.o, 1},
        {&l->mla.q_a, 1},           {&l->mla.kv_a, 1},           {l->mla.heads.k_b, heads}, {l->mla.heads.v_b, heads},
        {l->mla.heads.kv_b, heads}, {&l->deltanet.in_qkv, 1},    {&l->deltanet.in_z, 1},    {&l->deltanet.in_b, 1},
        {&l->deltanet.in_a, 1},     {&l->deltanet.in_qkvz, 1},   {&l->deltanet.in_ba, 1},   {&l->deltanet.out, 1},
        {&l->mamba.in_z, 1},        {&l->mamba.in_xbc, 1},       {&l->mamba.in_dt, 1},      {&l->mamba.out, 1},
        {l->short_conv.in, 3},      {&l->short_conv.out, 1},     {l->ffn.gate_up, 2},       {&l->ffn.down, 1},
        {&l->experts.latent_in, 1}, {&l->experts.latent_out, 1}, {&l->ple.gate, 1},         {&l->ple.out, 1},
        {&l->experts.router, 1},    {l->experts.gate, experts},  {l->experts.up, experts},  {l->experts.down, experts},
        {l->deltanet.in_parts, 3},  {&l->deltanet.low_a, 1},     {&l->deltanet.low_z, 1},   {&l->mla.gate, 1},
        {&l->attention.gate, 1}};
    _Static_assert(sizeof list / sizeof *list <= MATRICES_MAX, "room for all");
    memcpy(all, list, sizeof list);
    return sizeof list / sizeof *list;
}

static uint64_t bytes_of(const matrices *list) {
    uint64_t bytes = 0;
    for (size_t m = 0; list->at && m < list->count; m++)
        if (list->at[m].data) bytes += fr_matrix_bytes(&list->at[m]);
    return bytes;
}

static uint64_t layer_bytes(const fr_trunk *trunk, size_t index) {
    matrices all[MATRICES_MAX];
    uint64_t bytes = 0;
    for (size_t i = 0, count = matrices_of(trunk, index, all); i < count; i++) bytes += bytes_of(&all[i]);
    return bytes;
}

/* Counts the bytes of a layer's weights that are read for one token. */
static double layer_read(const fr_trunk *trunk, size_t index) {
    const fr_experts_spec *spec = &trunk->spec.layer[index].experts;
    const fr_experts_weights *experts = &trunk->layers[index].experts;
    double bytes = (double)layer_bytes(trunk, index), stacks = 0;
    if (spec->count == 0) return bytes;
    for (size_t i = 0; i < 3; i++)
        stacks += (double)bytes_of(&(matrices){i == 0   ? experts->gate
                                               : i == 1 ? experts->up
                                                        : experts->down,
                                               spec->count});
    return bytes - stacks + stacks * (double)spec->top_k / (double)spec->count;
}

/* Returns true if a token takes less time when each rank runs whole layers than when ranks divide rows.
 *
 * If they divide rows, all ranks read their shares of the weights at the same time, which takes bytes / bandwidth. But
 * they wait for each other four times in each layer: before and after attention's output projection, and before and
 * after the feed-forward's. If they run whole layers, one rank reads after the other, which multiplies the time by the
 * number of ranks. But only one message goes to each rank.
 *
 * Messages between ranks on one machine take microseconds. For such ranks no latency is given, and rows are divided.
 * Measurements agree (bench/ranks/README.md): one machine reads a certain model of 28 layers in 60 ms. Dividing its
 * rows between two ranks pays if messages take less than 0.25 ms. */
static bool layers_pay(const fr_trunk *trunk, const fr_ranks *ranks, const fr_rank_plan *plan) {
    double bytes = 0, count = (double)fr_ranks_count(ranks), layers = (double)trunk->spec.layers;
    if (plan->split != FR_SPLIT_AUTO) return plan->split == FR_SPLIT_LAYERS;
    if (plan->latency <= 0 || plan->bandwidth <= 0) return false;
    for (size_t i = 0; i < trunk->spec.layers; i++) bytes += layer_read(trunk, i);
    double reading = bytes / plan->bandwidth;
    return count * (reading + plan->latency) < reading + GATHERS * layers * plan->latency;
}

/* Assigns a layer to a rank. Only that rank keeps the layer's states. */
static void assign_layer(fr_trunk *trunk, fr_weights *weights, size_t index, size_t rank) {
    fr_layer_spec *spec = &trunk->spec.layer[index];
    matrices all[MATRICES_MAX];
    if (fr_mixer_recurs(spec->mixer) && rank != fr_ranks_index(weights->ranks)) {
        fr_recurrent_shape *state = &trunk->recurrent_shapes[*fr_layer_state(spec)];
        state->behind = state->heads;
    }
    for (size_t i = 0, count = matrices_of(trunk, index, all); i < count; i++)
        for (size_t m = 0; all[i].at && m < all[i].count; m++) fr_weights_assign(weights, &all[i].at[m], rank);
}

static fr_status share_layers(fr_trunk *trunk, fr_weights *weights) {
    uint64_t *bytes = calloc(trunk->spec.layers, sizeof *bytes);
    if (!bytes) return fr_fail_memory("sizes of layers", trunk->spec.layers * sizeof *bytes);
    for (size_t i = 0; i < trunk->spec.layers; i++) bytes[i] = layer_bytes(trunk, i);
    fr_status status = fr_stages_open(trunk, weights->ranks, bytes, &trunk->stages);
    free(bytes);
    for (size_t i = 0; i < trunk->spec.layers && status == FR_OK; i++)
        assign_layer(trunk, weights, i, fr_stages_of(trunk->stages, i));
    return status;
}

fr_status fr_trunk_share(fr_trunk *trunk, fr_weights *weights, const fr_rank_plan *plan) {
    if (layers_pay(trunk, weights->ranks, plan))
        FR_TRY(share_layers(trunk, weights));
    else
        share_rows(trunk, weights);
    fr_weights_share_head(weights, &trunk->head, &trunk->embedding);
    return FR_OK;
}

bool fr_trunk_share_drafter(fr_trunk *trunk, fr_weights *weights, const fr_rank_plan *plan) {
    if (layers_pay(trunk, weights->ranks, plan)) return false;
    share_rows(trunk, weights);
    fr_weights_share_head(weights, &trunk->head, &trunk->embedding);
    for (size_t kv = 0; kv < trunk->kv_count; kv++)
        fr_trunk_keep_heads(trunk, weights->ranks, kv, &trunk->kv_shapes[kv]);
    trunk->drafts = true;
    return true;
}
