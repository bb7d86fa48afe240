/* Reads keys that configurations of several families have, and refuses values that are not supported.
 *
 * In: an object of config.json, or a GGUF file. Out: FR_OK, or an error line that names the key or the tensor. */
#ifndef FR_SRC_ENGINE_FAMILIES_CONFIG_KEYS_H
#define FR_SRC_ENGINE_FAMILIES_CONFIG_KEYS_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/engine/layers/tensor_names.h"
#include "src/engine/weights/weights.h"

/* Checks a key for which only the value `built` is supported. Any other value is refused with FR_UNBUILT. The key may
 * be missing. */
fr_status fr_config_only(const json_t *object, const char *key, const char *built, const char *where);

/* Reads the activation of a feed-forward without a gate, which the key names by its word in transformers. If the key is
 * missing, *activation is unchanged. */
fr_status fr_config_activation(const json_t *object, const char *key, const char *where, fr_activation *activation);

/* Checks that a key is not true; it may be false or missing. */
fr_status fr_config_without(const json_t *object, const char *key, const char *where);

/* Checks that a published file has a head of its own. The head may be missing if the configuration says that the
 * embedding table is the head. It may say so for the text model or for the whole model. */
fr_status fr_config_head(const json_t *object, const char *where, const fr_weights *weights);

/* Reads mrope_section, the number of angles for each axis. This key is next to the other parameters of rotary
 * positions. */
fr_status fr_config_sections(const json_t *text, const size_t *fallback, const char *where, size_t *sections);

/* Read and write mrope_section in GGUF metadata. It is an error if the metadata lacks it. */
fr_status fr_config_gguf_sections(const fr_gguf *gguf, size_t *sections);
void fr_config_put_sections(const fr_rope_spec *rope, fr_gguf_writer *writer);

/* Read how many MTP layers follow a model's own layers. fr_config_mtp reads the number from a key of config.json; if
 * the key is missing, the number is `fallback`. In GGUF the key for the number of layers counts MTP layers too, so
 * fr_config_gguf_mtp subtracts them from *layers. More than one MTP layer is refused with FR_UNBUILT. */
fr_status fr_config_mtp(const json_t *text, const char *key, int64_t fallback, const char *where, size_t *mtp);
fr_status fr_config_gguf_mtp(const fr_gguf *gguf, size_t *layers, size_t *mtp);

/* Reads the id that stands for a row of a picture. Newer versions of transformers write it as `key`, older ones as
 * `older`. If the file has neither key, *token is `fallback`, or -1 if this is not in the vocabulary. */
fr_status fr_config_image_token(const json_t *root, const char *key, const char *older, int64_t fallback, size_t vocab,
                                const char *where, int32_t *token);

/* Gives the number of rows of the embedding table in a GGUF file. Each row must have `hidden` values. */
fr_status fr_config_vocabulary(const fr_checkpoint *files, size_t hidden, size_t *vocab);

#endif
