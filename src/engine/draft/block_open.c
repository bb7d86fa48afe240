/* Names and binds the tensors of block drafters: see block.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/draft/block.h"
#include "src/engine/draft/drafter_target.h"

/* ------------------------------------------------------------------------------------------------------------ names */

/* The tensors outside of the layers. z-lab's names of codebooks don't end in ".weight". The names of Muse-Glimmer's own
 * drafter contain "encoder.". */
typedef enum own {
    FC,
    CONTEXT_NORM,
    NORM,
    HEAD,
    EMBEDDING,
    IDS,
    MASK_ROW,
    BEFORE,
    AFTER,
    SELECTOR,
    BIAS_BEFORE,
    BIAS_AFTER,
    CONFIDENCE,
    CONFIDENCE_BIAS,
    OWN
} own;

static const struct {
    const char *published, *other, *gguf;
} own_names[OWN] = {
    [FC] = {"fc.weight", "encoder.fc.weight", "fc.weight"},
    [CONTEXT_NORM] = {"hidden_norm.weight", "encoder.output_norm_enc.weight", "enc.output_norm.weight"},
    [NORM] = {"norm.weight", NULL, "output_norm.weight"},
    [HEAD] = {"lm_head.weight", NULL, "output.weight"},
    [EMBEDDING] = {"embed_tokens.weight", NULL, "token_embd.weight"},
    [IDS] = {"d2t", NULL, "d2t"},
    [MASK_ROW] = {"mask_embedding", "mask_embedding.weight", NULL},
    [BEFORE] = {"candidate_selector.predecessor_codebook.weight", "candidate_selector.predecessor_codebook",
                "selector_predecessor.weight"},
    [AFTER] = {"candidate_selector.successor_codebook.weight", "candidate_selector.successor_codebook",
               "selector_successor.weight"},
    [SELECTOR] = {"candidate_selector.hidden_projection.weight", NULL, "selector_hidden.weight"},
    [BIAS_BEFORE] = {"markov_head.markov_w1.weight", NULL, "markov_w1.weight"},
    [BIAS_AFTER] = {"markov_head.markov_w2.weight", NULL, "markov_w2.weight"},
    [CONFIDENCE] = {"confidence_head.proj.weight", NULL, "conf_proj.weight"},
    [CONFIDENCE_BIAS] = {"confidence_head.proj.bias", NULL, "conf_proj.bias"},
};

/* The convolutions of a layer, in the order of fr_block_part. */
static const struct {
    const char *published, *gguf;
} conv_bases[FR_BLOCK_PARTS] = {{"attention_conv.base_kernel", "attn_conv_base"},
                                {"mlp_conv.base_kernel", "ffn_conv_base"}},
  conv_kernels[FR_BLOCK_PARTS] = {{"attention_conv.kernel_projection.weight", "attn_conv_proj.weight"},
                                  {"mlp_conv.kernel_projection.weight", "ffn_conv_proj.weight"}};

/* Tensors that are not read: the map from the target's ids to the drafter's, and copies of the target's tables and of
 * one of its norms. */
static const char *const extras[] = {"t2d", "model.t2d", "*rotary_emb.inv_freq", "verifier_*", NULL};
static const fr_tensor_name model_names[] = {FR_VECTOR(fr_trunk, norm, HIDDEN, "norm.weight", "output_norm.weight"),
                                             {0}};
const fr_tensor_naming fr_block_names = {
    .model = model_names, .layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names}, .extras = extras};

/* Gives the prefix of all published names. It is "model." in some files and empty in others. */
static const char *prefix_of(const fr_weights *weights) {
    return !weights->files->gguf && fr_weights_has_any(weights, "model.") ? "model." : "";
}

/* Returns the name by which the files have a tensor. If they have none of the tensor's names, returns the usual one. */
static const char *name_of(const fr_weights *weights, own which) {
    if (weights->files->gguf) return own_names[which].gguf;
    const char *other = own_names[which].other;
    return other && fr_weights_has(weights, prefix_of(weights), other) ? other : own_names[which].published;
}

static bool has(const fr_weights *weights, own which) {
    const char *name = name_of(weights, which);
    return name && fr_weights_has(weights, prefix_of(weights), name);
}

/* Splits a name that begins with "layers.N.": returns the rest of the name and gives N. Returns NULL for any other
 * name. */
static const char *of_layer(const char *published, size_t *layer) {
    char *end;
    if (strncmp(published, "layers.", 7) != 0 || published[7] < '0' || published[7] > '9') return NULL;
    *layer = strtoul(published + 7, &end, 10);
    return *end == '.' ? end + 1 : NULL;
}

bool fr_block_name(const char *published, const char **gguf, fr_tensor_name_found *found) {
    if (strncmp(published, "model.", 6) == 0) published += 6;
    *found = (fr_tensor_name_found){0};
    const char *rest = of_layer(published, &found->layer);
    found->of_layer = rest != NULL;
    for (size_t i = 0; i < OWN && !rest; i++) {
        const char *other = own_names[i].other;
        *gguf = own_names[i].gguf;
        if (strcmp(published, own_names[i].published) == 0 || (other && strcmp(published, other) == 0)) return *gguf;
    }
    for (size_t i = 0; i < FR_BLOCK_PARTS && rest; i++) {
        *gguf = strcmp(rest, conv_bases[i].published) == 0 ? conv_bases[i].gguf : conv_kernels[i].gguf;
        if (strcmp(rest, conv_bases[i].published) == 0 || strcmp(rest, conv_kernels[i].published) == 0) return true;
    }
    for (size_t t = 0; t < FR_LAYER_TABLES && rest && fr_block_names.layer[t]; t++)
        for (found->name = found->table = fr_block_names.layer[t]; found->name->published; found->name++) {
            *gguf = found->name->gguf;
            if (strcmp(rest, found->name->published) == 0) return *gguf;
        }
    return false;
}

/* ---------------------------------------------------------------------------------------------------------- binding */

static fr_status bind_matrix(fr_weights *weights, own which, size_t features, size_t cols, fr_access access,
                             fr_matrix *matrix) {
    return fr_bind_matrix(weights, prefix_of(weights), name_of(weights, which), features, cols, access, matrix);
}

static fr_status bind_layers(fr_block_net *net, fr_weights *weights) {
    const fr_block_config *c = &net->config;
    fr_trunk_spec *s = &net->trunk.spec;
    bool gguf = weights->files->gguf;
    net->trunk.layers = calloc(s->layers, sizeof *net->trunk.layers);
    if (!net->trunk.layers) return fr_fail_memory("drafter", s->layers * sizeof *net->trunk.layers);
    for (size_t i = 0; i < s->layers; i++) {
        fr_binding b = {.weights = weights, .trunk = s, .layer = &s->layer[i]};
        snprintf(b.prefix, sizeof b.prefix, gguf ? "%sblk.%zu." : "%slayers.%zu.", prefix_of(weights), i);
        FR_TRY(fr_tensor_names_bind_layer(&b, &fr_block_names, &net->trunk.layers[i]));
    }
    if (c->kind != FR_BLOCK_DFLASH2) return FR_OK;
    net->conv_width = 2 * c->conv_taps * (s->hidden / c->conv_group);
    net->convs = calloc(s->layers, sizeof *net->convs);
    if (!net->convs) return fr_fail_memory("drafter", s->layers * sizeof *net->convs);
    const uint64_t shape[] = {2, c->conv_taps, s->hidden};
    for (size_t i = 0; i < s->layers; i++)
        for (size_t part = 0; part < FR_BLOCK_PARTS; part++) {
            fr_block_conv *conv = &net->convs[i][part];
            char prefix[64];
            snprintf(prefix, sizeof prefix, gguf ? "%sblk.%zu." : "%slayers.%zu.", prefix_of(weights), i);
            FR_TRY(fr_bind_array(weights, prefix, gguf ? conv_bases[part].gguf : conv_bases[part].published, shape, 3,
                                 &conv->base));
            FR_TRY(fr_bind_matrix(weights, prefix, gguf ? conv_kernels[part].gguf : conv_kernels[part].published,
                                  net->conv_width, s->hidden, FR_STREAMED, &conv->kernel));
        }
    return FR_OK;
}

/* Binds the drafter's table of ids and its head. If the drafter has no head, takes the target's head. */
static fr_status bind_ends(fr_block_net *net, fr_drafter *drafter) {
    const fr_block_config *c = &net->config;
    fr_weights *weights = &drafter->weights;
    size_t hidden = net->trunk.spec.hidden;
    if (has(weights, EMBEDDING))
        FR_TRY(bind_matrix(weights, EMBEDDING, net->trunk.spec.vocab, hidden, FR_LOOKED_UP, &net->trunk.embedding));
    net->own_head = has(weights, HEAD);
    if (net->own_head) return bind_matrix(weights, HEAD, c->draft_vocab, hidden, FR_STREAMED, &net->trunk.head);
    if (c->draft_vocab != net->trunk.spec.vocab || has(weights, IDS))
        return fr_fail(FR_INPUT, "%s: tensor %s is missing, and the target's is no head of %zu ids",
                       weights->files->path, name_of(weights, HEAD), c->draft_vocab);
    if (drafter->target) net->trunk.head = drafter->target->trunk.head;
    return FR_OK;
}

/* Binds the tensors by which drafts are chosen: DFlash2's selector, and DSpark's bias and confidence head. */
static fr_status bind_choice(fr_block_net *net, fr_weights *weights) {
    const fr_block_config *c = &net->config;
    size_t hidden = net->trunk.spec.hidden, vocab = net->trunk.spec.vocab;
    const char *prefix = prefix_of(weights);
    const float *bias = NULL;
    if (c->kind == FR_BLOCK_DFLASH2) {
        FR_TRY(bind_matrix(weights, BEFORE, vocab, c->rank, FR_LOOKED_UP, &net->before));
        FR_TRY(bind_matrix(weights, AFTER, vocab, c->rank, FR_LOOKED_UP, &net->after));
        FR_TRY(bind_matrix(weights, SELECTOR, c->rank, hidden, FR_STREAMED, &net->selector));
    }
    if (c->kind == FR_BLOCK_DSPARK && c->rank) {
        FR_TRY(bind_matrix(weights, BIAS_BEFORE, vocab, c->rank, FR_LOOKED_UP, &net->bias_before));
        FR_TRY(bind_matrix(weights, BIAS_AFTER, c->draft_vocab, c->rank, FR_STREAMED, &net->bias_after));
    }
    if (!c->confidence) return FR_OK;
    size_t width = hidden + (c->confidence_sees_draft ? c->rank : 0);
    FR_TRY(fr_bind_row(weights, prefix, name_of(weights, CONFIDENCE), width, &net->confidence));
    if (!has(weights, CONFIDENCE_BIAS)) return FR_OK;
    FR_TRY(fr_bind_vector(weights, prefix, name_of(weights, CONFIDENCE_BIAS), 1, &bias));
    net->confidence_bias = *bias;
    return FR_OK;
}

fr_status fr_block_open(fr_block_net *net, const fr_block_config *config, fr_drafter *drafter) {
    fr_weights *weights = &drafter->weights;
    const fr_block_config *c = &net->config;
    net->config = *config;
    net->trunk.spec = config->spec.trunk;
    size_t hidden = net->trunk.spec.hidden;
    FR_TRY(bind_matrix(weights, FC, hidden, c->aux_layers.count * hidden, FR_STREAMED, &net->fc));
    FR_TRY(fr_bind_vector(weights, prefix_of(weights), name_of(weights, CONTEXT_NORM), hidden, &net->context_norm));
    FR_TRY(bind_layers(net, weights));
    FR_TRY(fr_bind_vector(weights, prefix_of(weights), name_of(weights, NORM), hidden, &net->trunk.norm));
    if (has(weights, MASK_ROW))
        FR_TRY(fr_bind_row(weights, prefix_of(weights), name_of(weights, MASK_ROW), hidden, &net->mask_row));
    FR_TRY(bind_ends(net, drafter));
    if (c->draft_vocab != net->trunk.spec.vocab || has(weights, IDS))
        FR_TRY(fr_drafter_bind_ids(weights, prefix_of(weights), name_of(weights, IDS), c->draft_vocab,
                                   net->trunk.spec.vocab, &net->ids));
    FR_TRY(bind_choice(net, weights));
    FR_TRY(fr_trunk_derive(&net->trunk, weights->files->path));
    net->packed = weights->has_packed || (drafter->target && drafter->target->weights.has_packed);
    net->trunk.packed = net->packed;
    return fr_tensor_names_check_read(weights, &fr_block_names, net->trunk.spec.layers, 0);
}

void fr_block_close(fr_block_net *net) {
    free(net->convs);
    fr_trunk_close(&net->trunk);
}
