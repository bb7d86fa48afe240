/* GLM as data: its configuration, as a spec and as names; GLM-OCR's text model and its MTP layer.
 *
 * In: config.json of GlmOcrForConditionalGeneration (text part), or the metadata of llama.cpp's GGUF of it
 * (architecture "glm4"). Out: what trunk.h opens. Source of the architecture: the published checkpoint and transformers
 * 5.17, model glm_ocr. */
#ifndef FR_SRC_GLM_H
#define FR_SRC_GLM_H

#include "src/families/uniform.h"

typedef struct fr_glm_config {
    fr_uniform_config uniform; /* its layers without the MTP layers */
    size_t mtp_layers;         /* behind the others */
    int32_t image_token;       /* what stands in the ids for a row of an image; -1: none */
} fr_glm_config;

/* From config.json or GGUF metadata. */
fr_status fr_glm_config_read(fr_glm_config *config, const fr_weights *weights);

/* Whether its heads turn halves: see fr_family. */
bool fr_glm_gguf_halves(const fr_gguf *gguf);

/* The keys of a GGUF file of that spec: see fr_family. */
fr_status fr_glm_put_keys(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);

#endif
