/* Opens and runs a decoder: see trunk.h. */
#include "src/engine/layers/trunk.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "kernels/alibi.h"
#include "src/engine/layers/parts.h"
#include "src/engine/layers/stages.h"
#include "src/engine/weights/low_rank.h"

enum { PIECE_UNIT = 8 }; /* rows that share one reading of the weights */

/* ---------------------------------------------------------------------------------------------------------- opening */

fr_status fr_spec_repeat(fr_trunk_spec *spec, const fr_layer_spec *layer) {
    spec->layer = calloc(spec->layers, sizeof *spec->layer);
    if (!spec->layer) return fr_fail_memory("layers", spec->layers * sizeof *spec->layer);
    for (size_t i = 0; i < spec->layers; i++) spec->layer[i] = *layer;
    spec->mtp = *layer;
    return FR_OK;
}

const fr_layer_spec *fr_spec_layer(const fr_trunk_spec *spec, size_t index) {
    return index < spec->layers ? &spec->layer[index] : &spec->mtp;
}

const fr_attention_spec *fr_spec_attention(const fr_trunk_spec *spec) {
    size_t i = 0;
    while (i < spec->layers && !fr_mixer_attends(spec->layer[i].mixer)) i++;
    return &fr_spec_layer(spec, i)->attention;
}

size_t fr_spec_window(const fr_trunk_spec *spec) {
    size_t window = 0;
    bool owns = false;
    for (size_t i = 0; i < spec->layers; i++) {
        window = fr_larger(window, spec->layer[i].attention.window);
        owns |= spec->layer[i].attention.owns_kv;
    }
    return window && !owns ? window - 1 : window;
}

bool fr_spec_has_axes(const fr_trunk_spec *spec) {
    bool has = false;
    for (size_t i = 0; i < spec->ropes; i++)
        for (size_t axis = 1; axis < FR_AXES; axis++) has |= spec->rope[i].sections[axis] > 0;
    return has;
}

bool fr_spec_sees_block(const fr_trunk_spec *spec) {
    bool sees = false;
    for (size_t i = 0; i < spec->layers; i++) sees |= spec->layer[i].attention.sees_block;
    return sees;
}

const fr_experts_spec *fr_spec_experts(const fr_trunk_spec *spec) {
    for (size_t i = 0; i < spec->layers; i++)
        if (spec->layer[i].experts.count) return &spec->layer[i].experts;
    return spec->mtp.experts.count ? &spec->mtp.experts : NULL;
}

fr_mixture_size fr_spec_mixture_size(const fr_trunk_spec *spec) {
    const fr_experts_spec *experts = fr_spec_experts(spec);
    return experts ? (fr_mixture_size){experts->count, experts->top_k} : (fr_mixture_size){0};
}

/* Makes weights of 1 for the norms that read the stream. */
static fr_status make_ones(fr_trunk *trunk) {
    size_t hidden = trunk->spec.hidden;
    float *ones = trunk->ones = malloc(hidden * sizeof *ones);
    if (!ones) return fr_fail_memory("norm weights", hidden * sizeof *ones);
    for (size_t i = 0; i < hidden; i++) ones[i] = 1.0F;
    for (size_t i = 0; i < trunk->spec.layers; i++) {
        fr_layer *layer = &trunk->layers[i];
        bool after = trunk->spec.layer[i].norms == FR_NORMS_AFTER;
        *(after ? &layer->post_attn_norm : &layer->input_norm) = ones;
        *(after ? &layer->post_ffn_norm : &layer->pre_ffn_norm) = ones;
    }
    if (!trunk->spec.no_last_norm) trunk->norm = ones;
    return FR_OK;
}

static fr_status bind_tensors(fr_trunk *trunk, const fr_tensor_naming *naming, fr_weights *weights,
                              const int32_t *head_order) {
    const fr_trunk_spec *s = &trunk->spec;
    fr_binding b = fr_binding_model(weights, s);
    b.head_order = head_order;
    b.head_sorted = &trunk->head_sorted;
    FR_TRY(fr_names_bind_model(&b, naming, trunk));
    for (size_t i = 0; i < s->layers; i++) {
        b = fr_binding_layer(weights, s, &s->layer[i], i);
        FR_TRY(fr_tensor_names_bind_layer(&b, naming, &trunk->layers[i]));
    }
    if (s->plain_norms) FR_TRY(make_ones(trunk));
    trunk->packed = weights->has_packed;
    trunk->rotations = weights->rotations;
    return FR_OK;
}

fr_kv_shape fr_attention_kv_shape(const fr_attention_spec *spec) {
    return (fr_kv_shape){
        .heads = spec->kv_heads, .head_dim = spec->head_dim, .window = spec->window, .latent = spec->latent};
}

/* Assigns KV layers. A layer that owns keys and values gets a KV layer of its own. A layer that borrows reads the KV
 * layer of the nearest earlier layer that owns keys and values and is of the same kind (sliding or full). A drafter may
 * have no cache of its own. Then all its layers borrow from the target's cache, which the target has laid out. */
static fr_status map_kv(fr_trunk *trunk) {
    const fr_trunk_spec *s = &trunk->spec;
    size_t last[2] = {0};
    trunk->kv_shapes = calloc(s->layers, sizeof *trunk->kv_shapes);
    if (!trunk->kv_shapes) return fr_fail_memory("KV shapes", s->layers * sizeof *trunk->kv_shapes);
    for (size_t i = 0; i < s->layers; i++) {
        fr_attention_spec *a = &s->layer[i].attention;
        if (!fr_mixer_attends(s->layer[i].mixer)) continue;
        size_t *mine = &last[a->window > 0];
        if (a->owns_kv) {
            *mine = trunk->kv_count++;
            trunk->kv_shapes[*mine] = fr_attention_kv_shape(a);
            trunk->owners = i + 1;
        }
        a->kv = *mine;
    }
    return FR_OK;
}

size_t *fr_layer_state(fr_layer_spec *layer) {
    if (layer->mixer == FR_MIXER_SHORT_CONV) return &layer->short_conv.state;
    return layer->mixer == FR_MIXER_DELTANET ? &layer->deltanet.state : &layer->mamba.state;
}

/* Gives each recurrent layer a state. */
static fr_status map_states(fr_trunk *trunk) {
    const fr_trunk_spec *s = &trunk->spec;
    trunk->recurrent_shapes = calloc(s->layers, sizeof *trunk->recurrent_shapes);
    if (!trunk->recurrent_shapes) return fr_fail_memory("state shapes", s->layers * sizeof *trunk->recurrent_shapes);
    for (size_t i = 0; i < s->layers; i++) {
        fr_layer_spec *layer = &s->layer[i];
        size_t state = trunk->recurrent_count;
        if (!fr_mixer_recurs(layer->mixer)) continue;
        fr_recurrent_shape *shape = &trunk->recurrent_shapes[trunk->recurrent_count++];
        if (layer->mixer == FR_MIXER_SHORT_CONV)
            *shape = fr_short_conv_shape(&layer->short_conv, s->hidden);
        else if (layer->mixer == FR_MIXER_DELTANET)
            *shape = fr_deltanet_shape(&layer->deltanet);
        else
            *shape = fr_mamba_shape(&layer->mamba);
        *fr_layer_state(layer) = state;
        trunk->owners = fr_larger(trunk->owners, i + 1);
    }
    return FR_OK;
}

/* Checks that the heads of a layer that borrows keys and values fit the cache that the layer reads. */
static fr_status check_borrowers(const fr_trunk *trunk, const char *path) {
    for (size_t i = 0; i < trunk->spec.layers && trunk->kv_count; i++) {
        const fr_attention_spec *a = &trunk->spec.layer[i].attention;
        if (!fr_mixer_attends(trunk->spec.layer[i].mixer)) continue;
        const fr_kv_shape *kv = &trunk->kv_shapes[a->kv];
        if (kv->head_dim != a->head_dim || a->heads % kv->heads)
            return fr_fail(FR_INPUT, "%s: layer %zu has head_dim %zu, the KV cache it borrows has %zu", path, i,
                           a->head_dim, kv->head_dim);
    }
    return FR_OK;
}

static fr_status make_longrope(fr_trunk *trunk, size_t i) {
    const fr_rope_spec *rope = &trunk->spec.rope[i];
    size_t angles = rope->dims / 2;
    fr_rope_divided(rope->theta, rope->longrope[FR_ROPE_NEAR], angles, trunk->inverse[i]);
    if (memcmp(rope->longrope[FR_ROPE_NEAR], rope->longrope[FR_ROPE_FAR], sizeof rope->longrope[0]) == 0)
        return FR_OK; /* long texts have the same angles as short ones */
    trunk->rope_far_inverse[i] = calloc(angles + 1, sizeof(float));
    if (!trunk->rope_far_inverse[i]) return fr_fail_memory("rotary frequencies", angles * sizeof(float));
    fr_rope_divided(rope->theta, rope->longrope[FR_ROPE_FAR], angles, trunk->rope_far_inverse[i]);
    trunk->rope_near_max = (size_t)rope->original_context;
    return FR_OK;
}

static fr_status make_ropes(fr_trunk *trunk) {
    for (size_t i = 0; i < trunk->spec.ropes; i++) {
        const fr_rope_spec *rope = &trunk->spec.rope[i];
        trunk->inverse[i] = calloc(rope->dims / 2 + 1, sizeof(float));
        if (!trunk->inverse[i]) return fr_fail_memory("rotary frequencies", rope->dims / 2 * sizeof(float));
        fr_rope_frequencies(rope->kind, rope->theta, rope->dims, rope->partial, rope->factor, trunk->inverse[i]);
        if (rope->kind == FR_ROPE_LONGROPE) FR_TRY(make_longrope(trunk, i));
        if (rope->kind == FR_ROPE_LLAMA3)
            fr_rope_scale(trunk->inverse[i], rope->dims / 2, rope->factor, rope->low_factor, rope->high_factor,
                          rope->original_context);
        if (rope->kind == FR_ROPE_YARN)
            fr_rope_yarn(trunk->inverse[i], rope->dims / 2, rope->theta, rope->factor, rope->beta_fast, rope->beta_slow,
                         rope->original_context, !rope->untruncated);
        for (size_t a = 0; rope->divisors && a < rope->dims / 2; a++) trunk->inverse[i][a] /= rope->divisors[a];
    }
    return FR_OK;
}

static fr_status make_slopes(fr_trunk *trunk) {
    const fr_attention_spec *a = fr_spec_attention(&trunk->spec);
    if (!a->alibi) return FR_OK;
    trunk->slopes = calloc(a->heads, sizeof *trunk->slopes);
    if (!trunk->slopes) return fr_fail_memory("slopes of heads", a->heads * sizeof *trunk->slopes);
    fr_alibi_slopes(a->heads, a->alibi_octaves, trunk->slopes);
    for (size_t i = 0; a->alibi_stepped && i < a->heads; i++)
        trunk->slopes[i] = fr_f32_from_bf16(fr_bf16_from_f32(trunk->slopes[i]));
    return FR_OK;
}

fr_status fr_trunk_derive(fr_trunk *trunk, const char *path) {
    FR_TRY(map_kv(trunk));
    FR_TRY(map_states(trunk));
    FR_TRY(check_borrowers(trunk, path));
    FR_TRY(make_slopes(trunk));
    return make_ropes(trunk);
}

fr_status fr_trunk_open(fr_trunk *trunk, fr_trunk_spec *spec, const fr_tensor_naming *naming, fr_weights *weights,
                        const int32_t *head_order) {
    *trunk = (fr_trunk){.spec = *spec};
    *spec = (fr_trunk_spec){0};
    trunk->spec.embeds = head_order == NULL;
    size_t layers = trunk->spec.layers;
    trunk->layers = calloc(layers, sizeof *trunk->layers);
    fr_status status = trunk->layers ? bind_tensors(trunk, naming, weights, head_order)
                                     : fr_fail_memory("layers", layers * sizeof *trunk->layers);
    if (status == FR_OK) status = fr_trunk_derive(trunk, weights->files->path);
    if (status != FR_OK) fr_trunk_close(trunk);
    return status;
}

void fr_layer_close(fr_layer *layer) {
    free(layer->experts.gate);
    free(layer->experts.up);
    free(layer->experts.down);
    free(layer->mla.heads.k_b);
    free(layer->mla.heads.v_b);
    free(layer->mla.heads.kv_b);
    free(layer->mla.heads.copy);
}

void fr_trunk_close(fr_trunk *trunk) {
    for (size_t i = 0; trunk->layers && i < trunk->spec.layers; i++) fr_layer_close(&trunk->layers[i]);
    for (size_t i = 0; i < FR_ROPES; i++) {
        free(trunk->inverse[i]);
        free(trunk->rope_far_inverse[i]);
    }
    fr_stages_close(trunk->stages);
    free(trunk->ones);
    free(trunk->slopes);
    free(trunk->layers);
    free(trunk->kv_shapes);
    free(trunk->recurrent_shapes);
    free(trunk->spec.layer);
    *trunk = (fr_trunk){0};
}

/* ---------------------------------------------------------------------------------------------------------- running */

/* Describes rows of a branch's output. The description is for the function that completes these rows on all ranks. The
 * branch's output is added to the stream later. */
static fr_shared_rows branch(const fr_activations *a, float *rows) {
    size_t hidden = a->trunk->spec.hidden;
    return (fr_shared_rows){rows, hidden, a->batch.count, fr_split_features(hidden)};
}

void fr_layer_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                  size_t index) {
    bool ends_rows = index + 1 >= a->trunk->owners, last = !a->trunk->layers || index + 1 >= a->trunk->spec.layers;
    const fr_matrix *next = last ? NULL : &a->trunk->layers[index + 1].attention.q;
    if (spec->mixer == FR_MIXER_MLA)
        fr_mla_run(team, a, spec, layer, ends_rows);
    else if (spec->mixer == FR_MIXER_DELTANET)
        fr_deltanet_run(team, a, spec, layer, ends_rows);
    else if (spec->mixer == FR_MIXER_SHORT_CONV)
        fr_short_conv_run(team, a, spec, layer, ends_rows);
    else if (spec->mixer == FR_MIXER_MAMBA)
        fr_mamba_run(team, a, spec, layer, ends_rows);
    else if (spec->mixer == FR_MIXER_BOTH)
        fr_mamba_run_beside(team, a, spec, layer, ends_rows);
    else if (spec->mixer == FR_MIXER_ATTENTION)
        fr_attention_run(team, a, spec, layer, ends_rows);
    if (a->batch.count == 0) return;
    const fr_shared_rows out[] = {branch(a, a->out), branch(a, layer->experts.router.data ? a->experts->sum : NULL)};
    if (!fr_layer_feeds(spec)) {
        fr_publish_rows_before(team, out, 1, next);
        fr_mixer_join(team, a, spec, layer);
        return;
    }
    if (spec->mixer != FR_MIXER_NONE) fr_publish_rows_before(team, out, 1, &layer->ffn.gate_up[0]);
    fr_ffn_prepare(team, a, spec, layer);
    fr_team_sync(team);
    fr_ffn_gate(team, a, &spec->ffn, &layer->ffn);
    if (layer->experts.router.data) fr_experts_score(team, a, &spec->experts, &layer->experts);
    fr_ffn_down(team, a, &layer->ffn);
    if (layer->experts.router.data) fr_experts_run(team, a, &spec->experts, &layer->experts);
    fr_publish_rows_before(team, out + !layer->ffn.down.data, (layer->ffn.down.data != NULL) + (out[1].at != NULL),
                           next);
    fr_ffn_join(team, a, spec, layer);
    if (layer->ple.gate.data) fr_ple_branch(team, a, layer, index);
}

/* Copies the stream before a layer to aux_hidden, for the thread's own rows. */
static void copy_aux(const fr_team *team, const fr_activations *a, size_t layer) {
    size_t begin, end, hidden = a->trunk->spec.hidden, count = a->aux_layers->count;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t t = 0; t < count; t++)
        for (size_t r = begin; r < end && a->aux_layers->layer[t] == layer; r++)
            memcpy(a->aux_hidden + (r * count + t) * hidden, a->x + r * hidden, hidden * sizeof *a->x);
}

/* Adds the further rows that a picture has for this layer to the layer's output, for the thread's own rows. */
static void add_deepstack(const fr_team *team, const fr_activations *a, size_t layer) {
    size_t begin, end, hidden = a->trunk->spec.hidden;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++)
        if (a->batch.rows[r].embedding)
            a->kernels->add(a->x + r * hidden, a->batch.rows[r].embedding + (1 + layer) * hidden, hidden);
}

/* Adds the directions of control vectors to the output of a layer, for the thread's own rows. */
static void add_directions(const fr_team *team, const fr_activations *a, size_t layer) {
    size_t begin, end, hidden = a->trunk->spec.hidden;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const fr_adapter_set *set = a->workspace.adapters[r];
        for (size_t i = 0; set && i < set->count; i++) {
            if (!set->uses[i].directions) continue;
            const float *direction = set->uses[i].directions + layer * hidden, scale = (float)set->uses[i].scale;
            for (size_t c = 0; c < hidden; c++) a->x[r * hidden + c] += scale * direction[c];
        }
    }
}

static void run_layers(const fr_team *team, fr_activations *a, size_t first, size_t last) {
    const fr_trunk *trunk = a->trunk;
    for (size_t i = first; i < last && (i < trunk->owners || a->batch.count); i++) {
        if (a->aux_layers) copy_aux(team, a, i);
        if (team->index == 0 && !trunk->drafts) fr_ranks_enter_place(team->ranks, i);
        fr_layer_run(team, a, &trunk->spec.layer[i], &trunk->layers[i], i);
        if (i < trunk->spec.deepstack) add_deepstack(team, a, i);
        if (a->workspace.adapters) add_directions(team, a, i);
    }
    if (team->index == 0) fr_ranks_enter_place(team->ranks, FR_RANKS_ELSEWHERE);
}

void fr_layers_run(const fr_team *team, fr_activations *a) {
    run_layers(team, a, 0, a->trunk->spec.layers);
}

void fr_trunk_embed(const fr_trunk *trunk, const fr_kernels *kernels, int32_t id, float *row) {
    fr_matrix_row(kernels, &trunk->embedding, (size_t)id, trunk->spec.embedding_scale, row);
}

/* Multiplies rows by a matrix, in place. Each thread must have computed its own rows. */
static void project_rows(const fr_team *team, const fr_activations *a, const fr_matrix *matrix, float *rows,
                         size_t count) {
    size_t begin, end, hidden = a->trunk->spec.hidden;
    fr_part_rows(team, count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        memcpy(a->normed + r * hidden, rows + r * hidden, matrix->cols * sizeof *rows);
        fr_matrix_input_row(&a->workspace, r, a->normed + r * hidden, matrix->cols);
    }
    fr_team_sync(team);
    fr_matrix_apply(team, &a->workspace, matrix, &(fr_matrix_rows){rows, hidden, a->normed, hidden, count});
    fr_publish_rows(team, &(fr_shared_rows){rows, hidden, count, fr_split_features(matrix->features)}, 1);
}

/* Adds a position's row of the table of positions to an embedding. */
static void add_position(const fr_activations *a, size_t row) {
    size_t hidden = a->trunk->spec.hidden, at = (size_t)a->batch.rows[row].position + a->trunk->spec.position_offset;
    float *learned = a->normed + row * hidden;
    fr_matrix_row(a->kernels, &a->trunk->positions, at, 1.0F, learned);
    a->kernels->add(a->x + row * hidden, learned, hidden);
}

static void embed_rows(const fr_team *team, const fr_activations *a) {
    size_t begin, end, hidden = a->trunk->spec.hidden;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const fr_row *row = &a->batch.rows[r];
        if (row->embedding)
            memcpy(a->x + r * hidden, row->embedding, hidden * sizeof *a->x);
        else
            fr_trunk_embed(a->trunk, a->kernels, row->id, a->x + r * hidden);
    }
    if (a->trunk->project_in.data) project_rows(team, a, &a->trunk->project_in, a->x, a->batch.count);
    for (size_t r = begin; r < end && a->trunk->positions.data; r++) add_position(a, r);
    for (size_t r = begin; r < end && a->trunk->spec.norms_embeddings; r++)
        if (!a->batch.rows[r].embedding)
            a->kernels->rmsnorm(a->x + r * hidden, a->x + r * hidden, NULL, hidden, a->trunk->spec.eps);
    for (size_t r = begin; r < end && a->trunk->embed_norm; r++)
        fr_norm_row(a, a->x + r * hidden, a->x + r * hidden, a->trunk->embed_norm, a->trunk->embed_norm_bias);
}

/* Notes which adapters the thread's own rows use. */
static void choose_adapters(const fr_team *team, fr_activations *a) {
    size_t begin, end;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) a->adapters[r] = a->batch.adapters[a->batch.rows[r].timeline];
    a->workspace.adapters = a->adapters;
}

/* Receives the stream, runs the rank's own layers, and sends the stream. Without ranks, runs all layers. Returns true
 * if the rows have passed the last layer. */
static bool run_own_layers(const fr_team *team, fr_activations *a) {
    const fr_stages *stages = a->trunk->stages;
    const fr_batch batch = a->batch;
    if (!stages) {
        fr_layers_run(team, a);
        return true;
    }
    size_t own = fr_ranks_index(stages->ranks);
    fr_stages_receive(team, a);
    run_layers(team, a, stages->first[own], stages->first[own + 1]);
    fr_stages_send(team, a, &batch);
    return own + 1 == fr_ranks_count(stages->ranks);
}

static void run_rows(const fr_team *team, const fr_forward *f) {
    fr_activations a = *(const fr_activations *)f->activations;
    size_t begin, end, hidden = a.trunk->spec.hidden;
    float *out = f->hidden + f->keep * hidden;
    a.batch = f->batch;
    a.keep = f->keep;
    a.aux_layers = f->aux_layers;
    a.aux_hidden = f->aux_hidden;
    if (f->batch.adapters) choose_adapters(team, &a);
    embed_rows(team, &a);
    fr_rotations(team, &a);
    if (a.trunk->spec.ple_width) fr_ple_inputs(team, &a);
    if (a.conv && team->index == 0) fr_conv_begin(&a);
    if (!run_own_layers(team, &a)) return;
    if (a.aux_layers) copy_aux(team, &a, a.trunk->spec.layers);
    fr_part_rows(team, a.batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++)
        fr_norm_row(&a, out + r * hidden, a.x + r * hidden, a.trunk->norm, a.trunk->norm_bias);
    if (a.trunk->project_out.data) project_rows(team, &a, &a.trunk->project_out, out, a.batch.count);
}

/* Gives the part of a forward for one slice of its rows. The slices go through the ranks one after the other. A row's
 * parent may be in an earlier slice. That does no harm: only recurrent layers read a row's parent, and forwards with
 * such layers are not cut. */
static fr_forward piece_of(const fr_forward *f, const fr_trunk *trunk, size_t index, size_t pieces) {
    fr_forward piece = *f;
    size_t begin, end, hidden = trunk->spec.hidden;
    fr_partition(f->batch.count, PIECE_UNIT, index, pieces, &begin, &end);
    piece.batch.rows += begin;
    piece.batch.count = end - begin;
    piece.keep = f->keep > begin ? fr_smaller(f->keep - begin, end - begin) : 0;
    piece.hidden += begin * hidden;
    if (f->aux_layers) piece.aux_hidden += begin * f->aux_layers->count * hidden;
    return piece;
}

void fr_trunk_run(const fr_team *team, fr_forward *f) {
    const fr_trunk *trunk = ((const fr_activations *)f->activations)->trunk;
    if (!trunk->stages) {
        run_rows(team, f);
        return;
    }
    for (size_t i = 0, pieces = fr_stages_pieces(trunk, &f->batch); i < pieces; i++) {
        const fr_forward piece = piece_of(f, trunk, i, pieces);
        run_rows(team, &piece);
        fr_team_sync(team);
    }
    fr_stages_finish(team, f);
}

fr_head fr_trunk_head(const fr_forward *f, const fr_trunk *trunk) {
    const fr_activations *a = f->activations;
    return (fr_head){.matrix = f->head ? f->head : &trunk->head,
                     .workspace = &a->workspace,
                     .stride = trunk->spec.hidden,
                     .bias = f->head ? NULL : trunk->head_bias,
                     .adapters = f->batch.adapters ? a->adapters + f->head_first : NULL,
                     .scale = trunk->spec.logit_scale,
                     .softcap = trunk->spec.softcap};
}
