/* Sampling settings that a model's makers publish with it, and the keys that hold them in its files.
 *
 * In: an opened folder or file, which is not trusted. Out: the number of a setting. llama.cpp's converter reads the
 * same names from generation_config.json and writes the same keys to GGUF. */
#ifndef FR_SRC_ENGINE_MODEL_SAMPLING_KEYS_H
#define FR_SRC_ENGINE_MODEL_SAMPLING_KEYS_H

#include "base/options.h"
#include "formats/checkpoint.h"

typedef struct fr_sampling_key {
    fr_option option;
    const char *key;  /* the key in a GGUF file */
    const char *name; /* the key in generation_config.json */
} fr_sampling_key;

enum {
#define FR_SAMPLER_PUBLISHED(id, gguf, json, chat) FR_SAMPLING_KEY_##id,
#include "samplers.def"
    FR_SAMPLING_KEYS
};
extern const fr_sampling_key fr_sampling_keys[FR_SAMPLING_KEYS];

/* The keys for the order of samplers. Their value is a text. */
#define FR_SAMPLING_ORDER_KEY  "general.sampling.sequence"
#define FR_SAMPLING_ORDER_NAME "sequence"

/* Gives the number that the file or folder has for the setting. Gives NAN if there is no such number, or if the option
 * does not accept the number. */
double fr_sampling_number(const fr_checkpoint *files, const fr_sampling_key *key);

/* Gives the order of the samplers; an empty text if there is none. */
fr_text fr_sampling_order(const fr_checkpoint *files);

#endif
