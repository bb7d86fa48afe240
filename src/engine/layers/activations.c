/* Allocates a batch's activations: see activations.h. */
#include "src/engine/layers/activations.h"

#include "base/sizes.h"
#include "src/engine/layers/parts.h"
#include "src/engine/layers/stages.h"

/* Finds the largest widths over all layers: the widths of each kind of row, of a head (*head_dim), and of the outputs
 * of all heads together (*joined). */
static void set_widths(fr_activations *a, size_t *head_dim, size_t *joined) {
    const fr_trunk_spec *s = &a->trunk->spec;
    *head_dim = *joined = 0;
    a->ffn_width = s->ple_width;
    /* Layer number s->layers is the MTP layer, which uses the same rows as the layers of the trunk. */
    for (size_t i = 0; i <= s->layers; i++) {
        const fr_layer_spec *layer = fr_spec_layer(s, i);
        const fr_attention_spec *attention = &layer->attention;
        size_t width = layer->mixer == FR_MIXER_MLA ? layer->mla.value_dim : attention->head_dim;
        *joined = fr_larger(*joined, attention->heads * width);
        *head_dim = fr_larger(*head_dim, attention->head_dim);
        a->q_width = fr_larger(a->q_width, (attention->output_gate ? 2 : 1) * attention->heads * attention->head_dim);
        a->own_gates_width = fr_larger(a->own_gates_width, attention->heads * attention->own_gate);
        a->kv_width = fr_larger(a->kv_width, attention->kv_heads * attention->head_dim);
        a->ffn_width = fr_larger(a->ffn_width, layer->ffn.width);
    }
}

static void take_rows(fr_activations *a, fr_arena *arena, size_t max_rows) {
    const fr_trunk_spec *s = &a->trunk->spec;
    size_t tokens = s->layers * s->ple_width;
    const struct {
        float **rows;
        size_t width;
    } all[] = {{&a->x, s->hidden},     {&a->normed, s->hidden}, {&a->out, s->hidden},
               {&a->q, a->q_width},    {&a->attn, a->q_width},  {&a->own_gates, a->own_gates_width},
               {&a->k, a->kv_width},   {&a->v, a->kv_width},    {&a->gate, a->ffn_width},
               {&a->up, a->ffn_width}, {&a->token, tokens},     {&a->ple_table, tokens}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i].rows = fr_arena_take(arena, max_rows * all[i].width, sizeof(float));
    for (size_t i = 0; i < s->ropes; i++) {
        a->cosine[i] = fr_arena_take(arena, max_rows * (s->rope[i].dims / 2), sizeof(float));
        a->sine[i] = fr_arena_take(arena, max_rows * (s->rope[i].dims / 2), sizeof(float));
    }
}

/* Finds the first recurrent layer; all recurrent layers have the same sizes. */
static const fr_layer_spec *recurrent_of(const fr_trunk_spec *spec) {
    for (size_t i = 0; i < spec->layers; i++)
        if (fr_mixer_recurs(spec->layer[i].mixer)) return &spec->layer[i];
    return NULL;
}

void fr_activations_layout(fr_activations *a, const fr_trunk *trunk, const fr_kernels *kernels, bool packed,
                           fr_arena *arena, size_t max_rows, size_t input_width, size_t threads) {
    const fr_experts_spec *experts = fr_spec_experts(&trunk->spec);
    const fr_layer_spec *recurrent = recurrent_of(&trunk->spec);
    const fr_deltanet_spec *deltanet = recurrent && recurrent->mixer == FR_MIXER_DELTANET ? &recurrent->deltanet : NULL;
    bool mamba = recurrent && (recurrent->mixer == FR_MIXER_MAMBA || recurrent->mixer == FR_MIXER_BOTH);
    size_t head_dim, joined, widest;
    *a = (fr_activations){.trunk = trunk, .kernels = kernels};
    set_widths(a, &head_dim, &joined);
    take_rows(a, arena, max_rows);
    a->adapters = fr_arena_take(arena, max_rows, sizeof *a->adapters);
    fr_attend_layout(&a->attend, arena, head_dim, threads);
    fr_mla_layout(a, packed, arena, max_rows, threads);
    widest = fr_larger(fr_larger(trunk->spec.hidden, joined), fr_larger(a->ffn_width, input_width));
    widest = fr_larger(widest, a->q_a_width);
    if (deltanet)
        fr_deltanet_layout(a, deltanet, arena, max_rows, threads);
    else if (mamba)
        fr_mamba_layout(a, recurrent, arena, max_rows, threads);
    else if (recurrent)
        fr_short_conv_layout(a, &recurrent->short_conv, arena, max_rows);
    if (deltanet) widest = fr_larger(widest, deltanet->value_heads * deltanet->value_dim);
    if (mamba) widest = fr_larger(widest, recurrent->mamba.heads * recurrent->mamba.head_dim);
    fr_workspace_layout(&a->workspace, kernels, arena, packed, trunk->rotations, max_rows, widest);
    if (trunk->stages) a->lent = fr_arena_take(arena, max_rows * trunk->stages->lent_bytes, 1);
    if (experts) fr_experts_layout(a, experts, packed, arena, max_rows, threads);
}

void fr_activations_narrow(fr_activations *a) {
    const fr_trunk_spec *s = &a->trunk->spec;
    size_t keep = a->keep;
    a->x += keep * s->hidden;
    /* If attention and feed-forward of a layer share a norm, the norm's rows are still read after attention. */
    a->normed += keep * s->hidden;
    if (a->aux_layers) a->aux_hidden += keep * a->aux_layers->count * s->hidden;
    a->q += keep * a->q_width;
    a->attn += keep * a->q_width;
    a->own_gates += keep * a->own_gates_width;
    if (a->heads) a->heads += keep * a->heads_width;
    if (a->head_gates) a->head_gates += keep * a->head_gates_width;
    if (s->ple_width) a->token += keep * s->layers * s->ple_width;
    for (size_t i = 0; i < s->ropes; i++) {
        a->cosine[i] += keep * (s->rope[i].dims / 2);
        a->sine[i] += keep * (s->rope[i].dims / 2);
    }
    if (a->workspace.adapters) a->workspace.adapters += keep;
    a->batch.rows += keep;
    a->batch.count -= keep;
    a->keep = 0;
}
