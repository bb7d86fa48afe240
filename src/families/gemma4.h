/* Gemma 4 as data: its configuration, as a spec and as names; targets (E-series, dense, mixture of experts) and their
 * assistants.
 *
 * In: config.json (or GGUF metadata) of Gemma4ForCausalLM, Gemma4ForConditionalGeneration, Gemma4Unified... (text part)
 * or, for the drafter, the text_config of Gemma4AssistantForCausalLM. Out: what trunk.h opens. Source of the
 * architecture: the published checkpoints and transformers 5.17, models gemma4, gemma4_assistant, gemma4_unified. */
#ifndef FR_SRC_GEMMA4_H
#define FR_SRC_GEMMA4_H

#include "src/families/family.h"

typedef struct fr_gemma4_rope {
    bool proportional; /* the first partial * head_dim / 2 angles turn, the rest stand still */
    double theta, partial, factor;
} fr_gemma4_rope;

typedef struct fr_gemma4_layer_config {
    fr_layer_kind kind;
    size_t head_dim, kv_heads;
    bool owns_kv;  /* false: reads the KV of the last owning layer of its kind */
    size_t ffn;
} fr_gemma4_layer_config;

typedef struct fr_gemma4_config {
    size_t vocab, hidden, layers, heads, window, context_limit;
    size_t ple;                            /* width of the per-layer embeddings, 0: none */
    size_t experts, expert_top, expert_ffn; /* 0: dense */
    float eps, softcap;                    /* softcap 0: none */
    bool assistant;                        /* all its layers borrow */
    bool k_eq_v;                           /* full layers take their values from the key projection */
    fr_gemma4_rope rope[FR_LAYER_KINDS];
    fr_gemma4_layer_config *layer;         /* [layers] */
} fr_gemma4_config;

/* From config.json or GGUF metadata. assistant: every layer borrows its KV. */
fr_status fr_gemma4_config_read(fr_gemma4_config *config, fr_weights *weights, bool assistant);
fr_status fr_gemma4_config_from_gguf(fr_gemma4_config *config, fr_weights *weights, bool assistant);

/* The last `shared` layers borrow; checks that each finds a cache to borrow, and what heads must divide. where: for
 * error lines. */
fr_status fr_gemma4_config_share(fr_gemma4_config *config, size_t shared, bool assistant, const char *where);
void fr_gemma4_config_free(fr_gemma4_config *config);

/* The layers as the decoder's parts read them; config stays. Layers of one kind whose heads differ are FR_UNBUILT. */
fr_status fr_gemma4_spec(const fr_gemma4_config *config, const char *where, fr_trunk_spec *spec);

extern const fr_tensor_naming fr_gemma4_names;

/* What a GGUF file says of the spec, of targets and assistants alike: see fr_family. */
fr_status fr_gemma4_put_keys(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);
size_t fr_gemma4_put_rope_factors(const fr_trunk_spec *spec, float *factors);

#endif
