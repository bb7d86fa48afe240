/* GLM as data: its configuration, as a spec and as names; GLM-OCR's text model and its MTP layer.
 *
 * In: config.json of GlmOcrForConditionalGeneration (text part), or the metadata of llama.cpp's GGUF of it
 * (architecture "glm4"). Out: what trunk.h opens. Source of the architecture: the published checkpoint and transformers
 * 5.17, model glm_ocr. */
#ifndef FR_SRC_GLM_H
#define FR_SRC_GLM_H

#include "formats/gguf_write.h"
#include "src/decoder/trunk.h"

typedef struct fr_glm_config {
    size_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context_limit;
    size_t mtp_layers; /* behind the others */
    size_t rotary;     /* of a head's values, those that turn: the first */
    bool halves; /* value i turns with i + rotary / 2, as llama.cpp orders the rows; else neighbours 2i and 2i + 1 */
    size_t sections[FR_AXES]; /* how many of the rotary / 2 angles follow each axis, in this order */
    double theta;
    float eps;
    int32_t image_token; /* what stands in the ids for a row of an image; -1: none */
} fr_glm_config;

/* From config.json or GGUF metadata. */
fr_status fr_glm_config_read(fr_glm_config *config, const fr_weights *weights);

/* The layers as the decoder's parts read them, the MTP layer not among them. */
fr_status fr_glm_spec(const fr_glm_config *config, fr_trunk_spec *spec);

/* The keys of a GGUF file of that spec: see fr_family. */
fr_status fr_glm_put_keys(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);

#endif
