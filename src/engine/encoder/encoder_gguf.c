/* Names a text encoder's tensors and settings as llama.cpp's files do: see encoder.h.
 *
 * In: an encoder of a folder. Out: the name of a tensor, and the keys. The tables of the encoder's kind
 * (encoder_kinds.c) have both names of a tensor, the folder's and llama.cpp's. If llama.cpp's architecture has no key
 * for a setting, an error names the setting. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/encoder/encoder_kinds.h"

/* The parts of a model that can have a tensor. The names of a classifier's tensors have no prefix, except those of
 * BERT's pooler. EXPERTS: tensors inside a layer whose names end without .weight and .bias. */
typedef enum part { OUTSIDE, INSIDE, EXPERTS, HEAD } part;

/* Those members of fr_encoder_names that are names of tensors, with the part of the model in which each tensor is. */
static const struct {
    size_t at;
    part part;
} members[] = {
#define MEMBER(part, member) \
    { offsetof(fr_encoder_names, member), part }
    MEMBER(OUTSIDE, words),      MEMBER(OUTSIDE, positions),
    MEMBER(OUTSIDE, types),      MEMBER(OUTSIDE, embedding_norm),
    MEMBER(OUTSIDE, final_norm), MEMBER(INSIDE, q),
    MEMBER(INSIDE, k),           MEMBER(INSIDE, v),
    MEMBER(INSIDE, qkv),         MEMBER(INSIDE, o),
    MEMBER(INSIDE, q_norm),      MEMBER(INSIDE, k_norm),
    MEMBER(INSIDE, norm1),       MEMBER(INSIDE, norm2),
    MEMBER(INSIDE, post1),       MEMBER(INSIDE, post2),
    MEMBER(INSIDE, gate),        MEMBER(INSIDE, up),
    MEMBER(INSIDE, down),        MEMBER(INSIDE, gate_up),
    MEMBER(INSIDE, up_alone),    MEMBER(INSIDE, router),
    MEMBER(EXPERTS, expert_up),  MEMBER(EXPERTS, expert_down),
    MEMBER(HEAD, head_dense),    MEMBER(HEAD, head_norm),
    MEMBER(HEAD, head_label)
#undef MEMBER
};

static const char *member_of(const fr_encoder_names *names, size_t at) {
    const char *name;
    memcpy(&name, (const char *)names + at, sizeof name);
    return name;
}

/* Returns GGUF's spelling of the end of a name: .weight or .bias, also for .gamma and .beta of old files. begin: the
 * name's part before the end. Returns NULL if the name begins or ends in another way. */
static const char *end_of(const char *name, const char *begin) {
    size_t length = strlen(begin);
    static const char *const ends[][2] = {
        {".weight", ".weight"}, {".bias", ".bias"}, {".gamma", ".weight"}, {".beta", ".bias"}};
    if (strncmp(name, begin, length) != 0) return NULL;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcmp(name + length, ends[i][0]) == 0) return ends[i][1];
    return NULL;
}

bool fr_encoder_gguf_name(const fr_encoder *e, const char *published, char *name, size_t size, fr_values *values) {
    const fr_encoder_names *from = e->names, *to = e->spec.kind->gguf_names;
    size_t prefix = strlen(e->prefix), layer = strlen(from->layer);
    bool prefixed = strncmp(published, e->prefix, prefix) == 0;
    const char *outside = prefixed ? published + prefix : NULL, *inside = NULL;
    unsigned long index = 0;
    if (outside && strncmp(outside, from->layer, layer) == 0) {
        char *end;
        index = strtoul(outside + layer, &end, 10);
        if (end != outside + layer && *end == '.') inside = end + 1;
    }
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const char *own = member_of(from, members[i].at), *theirs = member_of(to, members[i].at);
        bool in_layer = members[i].part == INSIDE || members[i].part == EXPERTS;
        const char *at = in_layer ? inside : outside, *end = own && at ? end_of(at, own) : NULL;
        if (!end && own && members[i].part == HEAD) end = end_of(published, own);
        if (own && at && members[i].part == EXPERTS) end = strcmp(at, own) == 0 ? "" : NULL;
        if (!end || !theirs) continue;
        if (in_layer)
            snprintf(name, size, "%s%lu.%s%s", to->layer, index, theirs, end);
        else
            snprintf(name, size, "%s%s", theirs, end);
        *values = strstr(name, "_norm.weight") ? e->spec.norm_values : FR_AS_THEY_ARE;
        return true;
    }
    return false;
}

bool fr_encoder_is_expert_bias(const fr_encoder *e, const char *published) {
    const char *own = e->names->expert_bias;
    size_t length = strlen(published), ending = own ? strlen(own) : length;
    return ending < length && published[length - ending - 1] == '.' && strcmp(published + length - ending, own) == 0;
}

/* Among the folders that can be written as GGUF, only NomicBERT's may have experts. */
const char *fr_encoder_gguf_architecture(const fr_encoder *e) {
    if (!e->spec.kind->gguf_names) return NULL;
    return e->spec.experts ? "nomic-bert-moe" : e->spec.kind->gguf[0];
}

/* Gives n if exactly one layer in each n is global: the first of the n if `first`, otherwise the last. Gives 0 if there
 * is no such n. */
static size_t period_of(const fr_encoder_spec *s, bool first) {
    for (size_t every = 1; every <= s->layers + 1; every++) {
        size_t i = 0;
        while (i < s->layers && (s->local[i] == FR_ENCODER_LOCAL) == ((first ? i : i + 1) % every != 0)) i++;
        if (i == s->layers) return every;
    }
    return 0;
}

/* Refuses settings that differ from those that llama.cpp assumes for the architecture. */
static fr_status check(const fr_encoder *e, const char *where) {
    const fr_encoder_spec *s = &e->spec;
    const char *architecture = fr_encoder_gguf_architecture(e);
    bool rotates = s->rope_dims > 0, modern = s->pre_norm && !s->rms;
    fr_encoder_activation usual = s->rms                ? FR_ENCODER_GELU_TANH
                                  : s->gated && !modern ? FR_ENCODER_SILU
                                                        : FR_ENCODER_GELU;
    bool known = s->activation == usual || (modern && s->activation == FR_ENCODER_SILU);
    const char *what = NULL;
    if (!known) what = "this activation";
    if (strcmp(architecture, "nomic-bert") == 0 && (!s->gated || s->qkv_bias))
        what = "a feed-forward without a gate, or a bias,";
    if (s->labels && s->head_activation != (modern ? FR_ENCODER_GELU : FR_ENCODER_TANH))
        what = "a classifier with this activation";
    if (fabs((double)s->scale * sqrt((double)s->head_dim) - 1) > 1e-6) what = "another scale of the scores";
    if (rotates && s->rope_dims != s->head_dim) what = "heads that are rotated in part";
    for (size_t i = 0; i < FR_ENCODER_REACHES; i++)
        if (rotates && s->rope_factor[i] != 1) what = "scaled positions";
    if ((modern || s->rms) && !period_of(s, modern)) what = "layer_types without a period";
    return what ? fr_fail(FR_UNBUILT, "%s: %s has no form in GGUF files of architecture \"%s\"", where, what,
                          architecture)
                : FR_OK;
}

fr_status fr_encoder_put_keys(const fr_encoder *e, size_t types, const char *where, fr_gguf_writer *writer) {
    const fr_encoder_spec *s = &e->spec;
    bool modern = s->pre_norm && !s->rms;
    FR_TRY(check(e, where));
    fr_gguf_put_u32(writer, ".block_count", (uint32_t)s->layers);
    fr_gguf_put_u32(writer, ".context_length", (uint32_t)s->context);
    fr_gguf_put_u32(writer, ".embedding_length", (uint32_t)s->hidden);
    fr_gguf_put_u32(writer, ".feed_forward_length", (uint32_t)s->ffn);
    fr_gguf_put_u32(writer, ".attention.head_count", (uint32_t)s->heads);
    if (s->kv_heads != s->heads || s->rms) fr_gguf_put_u32(writer, ".attention.head_count_kv", (uint32_t)s->kv_heads);
    if (s->head_dim * s->heads != s->hidden || s->rms) {
        fr_gguf_put_u32(writer, ".attention.key_length", (uint32_t)s->head_dim);
        fr_gguf_put_u32(writer, ".attention.value_length", (uint32_t)s->head_dim);
    }
    fr_gguf_put_f32(writer, s->rms ? ".attention.layer_norm_rms_epsilon" : ".attention.layer_norm_epsilon", s->eps);
    fr_gguf_put_bool(writer, ".attention.causal", false);
    if (s->experts) {
        fr_gguf_put_u32(writer, ".expert_count", (uint32_t)s->experts);
        fr_gguf_put_u32(writer, ".expert_used_count", (uint32_t)s->experts_used);
        fr_gguf_put_u32(writer, ".moe_every_n_layers", (uint32_t)s->expert_every);
    }
    if (s->rope_dims) fr_gguf_put_f32(writer, ".rope.freq_base", (float)s->theta[FR_ENCODER_GLOBAL]);
    if (modern || s->rms) {
        fr_gguf_put_f32(writer, ".rope.freq_base_swa", (float)s->theta[FR_ENCODER_LOCAL]);
        fr_gguf_put_u32(writer, ".attention.sliding_window", (uint32_t)(2 * s->reach));
        fr_gguf_put_u32(writer, ".attention.sliding_window_pattern", (uint32_t)period_of(s, modern));
    }
    if (modern && s->labels) fr_gguf_put_u32(writer, ".classifier.pooling_type", s->label_mean ? 1 : 2);
    if (modern) fr_gguf_put_string(writer, ".hidden_activation", s->activation == FR_ENCODER_SILU ? "silu" : "gelu");
    /* A BERT of llama.cpp has at least one token type, even if no row is added for the type. */
    if (!s->pre_norm) fr_gguf_put_u32(writer, "tokenizer.ggml.token_type_count", types ? (uint32_t)types : 1);
    return FR_OK;
}
