/* Decoders whose layers are all alike: what their configurations share, of whatever family.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: checked numbers;
 * of those a spec; of a spec the converter's keys. Sizes count values. A line of a failure names the key. */
#ifndef FR_SRC_UNIFORM_H
#define FR_SRC_UNIFORM_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/families/family.h"

typedef struct fr_uniform_config {
    size_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context_limit;
    float eps;
    bool attention_biased, ffn_biased, qk_norm;
    fr_rope_spec rope; /* the family's to read, but for GGUF's dims and theta */
} fr_uniform_config;

/* Keys left out are as in `usual`, whose kv_heads may be 0: as many as heads; heads are hidden / heads wide. An
 * activation other than silu is FR_UNBUILT. */
fr_status fr_uniform_from_json(fr_uniform_config *config, const json_t *text, const fr_uniform_config *usual,
                               const char *where);

/* layers: all blocks, MTP layers too. The rotary positions are not scaled, and neighbours turn together. */
fr_status fr_uniform_from_gguf(fr_uniform_config *config, const fr_checkpoint *files);

/* Whether the queries of a GGUF file's first layer have a bias, alone or in one tensor with those of keys and values:
 * it has no key for that. */
bool fr_uniform_biased_in_gguf(const fr_weights *weights);

/* Of that the widths of the stream and the feed-forward, layers, positions and eps alone. */
fr_status fr_uniform_sizes_from_gguf(fr_uniform_config *config, const fr_gguf *gguf);

/* The same without its vocabulary, of which a drafter's file may have no table. */
fr_status fr_uniform_layers_from_gguf(fr_uniform_config *config, const fr_gguf *gguf);

/* Whether the numbers go together. */
fr_status fr_uniform_check(const fr_uniform_config *config, const char *where);

/* The layers as the decoder's parts read them: free spec->layer. */
fr_status fr_uniform_spec(const fr_uniform_config *config, fr_trunk_spec *spec);

/* The keys of its sizes, in the converter's order: those before what a family says of its rotary positions, and those
 * behind. */
void fr_uniform_put_sizes(const fr_trunk_spec *spec, size_t mtp_layers, fr_gguf_writer *writer);
void fr_uniform_put_heads(const fr_trunk_spec *spec, fr_gguf_writer *writer);

#endif
