/* Keys that configurations of several families have, and what of them is built.
 *
 * In: an object of config.json, or a GGUF file. Out: FR_OK; or a line that names the key, or the tensor. */
#ifndef FR_SRC_ENGINE_FAMILIES_CONFIG_KEYS_H
#define FR_SRC_ENGINE_FAMILIES_CONFIG_KEYS_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/engine/layers/layer_spec.h"
#include "src/engine/weights/weights.h"

/* A key for which one value is built: another is FR_UNBUILT. It may be left out. */
fr_status fr_config_only(const json_t *object, const char *key, const char *built, const char *where);

/* A key that may not be true. */
fr_status fr_config_without(const json_t *object, const char *key, const char *where);

/* Whether a published file has a head of its own, where neither the text model's part of its configuration nor the
 * whole says that the embeddings are the head. */
fr_status fr_config_head(const json_t *object, const char *where, const fr_weights *weights);

/* mrope_section beside the other parameters of rotary positions: how many angles follow each axis. */
fr_status fr_config_sections(const json_t *text, const size_t *fallback, const char *where, size_t *sections);

/* The same of GGUF metadata, which must say it; and written there. */
fr_status fr_config_gguf_sections(const fr_gguf *gguf, size_t *sections);
void fr_config_put_sections(const fr_rope_spec *rope, fr_gguf_writer *writer);

/* How many MTP layers stand behind a model's: by a key of its own, or the fallback; of GGUF, where those are counted
 * among `layers`, which become the model's. More than one is FR_UNBUILT. */
fr_status fr_config_mtp(const json_t *text, const char *key, int64_t fallback, const char *where, size_t *mtp);
fr_status fr_config_gguf_mtp(const fr_gguf *gguf, size_t *layers, size_t *mtp);

/* The rows of a GGUF file's table of ids, of `hidden` values each. */
fr_status fr_config_vocabulary(const fr_checkpoint *files, size_t hidden, size_t *vocab);

#endif
