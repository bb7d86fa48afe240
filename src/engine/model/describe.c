/* Describes a decoder in words, for inspect: see model.h. */
#include "src/engine/model/model.h"

/* Prints the width of the feed-forward in layers without experts, and in layers where it is parallel to experts. */
static void describe_feed_forward(const fr_trunk_spec *s, FILE *out) {
    size_t first = 0, last = 0;
    for (size_t i = 0; i < s->layers; i++) {
        const fr_layer_spec *layer = &s->layer[i];
        if ((layer->experts.count && !layer->experts.parallel) || layer->ffn.width == 0) continue;
        last = layer->ffn.width;
        if (!first) first = last;
    }
    if (first) fprintf(out, ", feed-forward %zu", first);
    if (last != first) fprintf(out, " to %zu", last);
}

/* Describes the experts. If a layer's feed-forward is not parallel to its mixture, that feed-forward is the shared
 * experts'. */
static void describe_experts(const fr_trunk_spec *s, FILE *out) {
    const fr_experts_spec *experts = fr_spec_experts(s);
    const fr_layer_spec *last = &s->layer[s->layers - 1];
    size_t dense = 0;
    for (size_t i = 0; i < s->layers; i++) dense += s->layer[i].experts.count == 0;
    if (dense == s->layers) return;
    fprintf(out, "\nexperts        %zu of width %zu, %zu chosen a token", experts->count, experts->width,
            experts->top_k);
    if (!experts->parallel && last->experts.count && last->ffn.width)
        fprintf(out, ", beside shared ones of width %zu", last->ffn.width);
    if (dense) fprintf(out, "; %zu layer%s without", dense, dense > 1 ? "s" : "");
}

/* The kinds of attention in a model's layers. */
typedef struct attention_kinds {
    const fr_attention_spec *first; /* first layer with attention; NULL: there is none */
    size_t layers, sliding, owners; /* layers: number of layers with attention; sliding: how many of them have a window;
                                     * owners: how many of them have K/V of their own */
    bool alike;                     /* all layers with attention have heads of the same number and size */
} attention_kinds;

static attention_kinds count_attention(const fr_trunk_spec *s) {
    attention_kinds kinds = {.alike = true};
    for (size_t i = 0; i < s->layers; i++) {
        const fr_attention_spec *a = &s->layer[i].attention;
        if (!fr_mixer_attends(s->layer[i].mixer)) continue;
        if (!kinds.first) kinds.first = a;
        kinds.layers++;
        kinds.sliding += a->window > 0;
        kinds.owners += a->owns_kv;
        kinds.alike &= a->kv_heads == kinds.first->kv_heads && a->head_dim == kinds.first->head_dim;
    }
    return kinds;
}

/* Finds the first recurrent layer; NULL if there is none. */
static const fr_layer_spec *recurrent_of(const fr_trunk_spec *s) {
    for (size_t i = 0; i < s->layers; i++)
        if (fr_mixer_recurs(s->layer[i].mixer)) return &s->layer[i];
    return NULL;
}

static void describe_recurrent(const fr_layer_spec *layer, FILE *out) {
    const fr_deltanet_spec *d = &layer->deltanet;
    const fr_mamba_spec *m = &layer->mamba;
    if (layer->mixer == FR_MIXER_SHORT_CONV)
        fprintf(out, "\nconvolutions   over %zu positions", layer->short_conv.conv_kernel);
    else if (layer->mixer == FR_MIXER_MAMBA || layer->mixer == FR_MIXER_BOTH)
        fprintf(out,
                "\nMamba-2        %zu heads of %zu in %zu group%s, states of %zu, a convolution over %zu positions",
                m->heads, m->head_dim, m->groups, m->groups > 1 ? "s" : "", m->state_dim, m->conv_kernel);
    else if (d->by_key)
        fprintf(out, "\nKDA            %zu heads of %zu, a convolution over %zu positions", d->value_heads,
                d->value_dim, d->conv_kernel);
    else
        fprintf(out, "\nDeltaNet       %zu key heads of %zu, %zu value heads of %zu, a convolution over %zu positions",
                d->key_heads, d->key_dim, d->value_heads, d->value_dim, d->conv_kernel);
}

/* Prints how many layers there are of each kind, in a model with recurrent layers. */
static void describe_kinds(const fr_trunk_spec *s, const fr_layer_spec *recurrent, size_t attend, FILE *out) {
    static const char *const words[] = {[FR_MIXER_DELTANET] = "gated DeltaNet",
                                        [FR_MIXER_SHORT_CONV] = "short convolutions",
                                        [FR_MIXER_MAMBA] = "Mamba-2",
                                        [FR_MIXER_BOTH] = "Mamba-2 beside attention"};
    size_t recur = 0, only_feed = 0;
    for (size_t i = 0; i < s->layers; i++) {
        recur += fr_mixer_recurs(s->layer[i].mixer);
        only_feed += s->layer[i].mixer == FR_MIXER_NONE;
    }
    bool kda = recurrent->mixer == FR_MIXER_DELTANET && recurrent->deltanet.by_key;
    fprintf(out, ": %zu %s", recur, kda ? "Kimi Delta Attention" : words[recurrent->mixer]);
    if (recurrent->mixer != FR_MIXER_BOTH) fprintf(out, ", %zu of full attention", attend);
    if (only_feed) fprintf(out, ", %zu only of a feed-forward", only_feed);
}

void fr_trunk_describe(const fr_trunk_spec *s, FILE *out) {
    attention_kinds kinds = count_attention(s);
    fprintf(out, "layers         %zu", s->layers);
    const fr_layer_spec *recurrent = recurrent_of(s);
    if (recurrent)
        describe_kinds(s, recurrent, kinds.layers, out);
    else if (kinds.sliding == 0)
        fprintf(out, ", all of full attention");
    else
        fprintf(out, ": %zu sliding (window %zu), %zu full", kinds.sliding, fr_spec_window(s),
                s->layers - kinds.sliding);
    if (kinds.owners < kinds.layers)
        fprintf(out, "; %zu own their KV cache, %zu borrow one", kinds.owners, kinds.layers - kinds.owners);
    fprintf(out, "\nwidth          hidden %zu", s->hidden);
    describe_feed_forward(s, out);
    if (kinds.first) fprintf(out, ", %zu attention heads", kinds.first->heads);
    if (kinds.first && kinds.first->latent)
        fprintf(out, ", latents of %zu beside %zu rotary values", kinds.first->latent,
                kinds.first->head_dim - kinds.first->latent);
    else if (kinds.first && kinds.alike)
        fprintf(out, ", %zu of keys and values, of %zu", kinds.first->kv_heads, kinds.first->head_dim);
    if (recurrent) describe_recurrent(recurrent, out);
    if (s->ple_width) fprintf(out, "\nper-layer      embeddings of width %zu", s->ple_width);
    describe_experts(s, out);
    fprintf(out, "\nvocabulary     %zu ids\n", s->vocab);
}
