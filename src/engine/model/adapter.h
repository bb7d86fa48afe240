/* Opens an adapter (LoRA) for a model: low-rank products that are added to those of the model's matrices.
 *
 * In: a folder as peft writes it (adapter_config.json, adapter_model.safetensors), or a GGUF file as llama.cpp's
 * convert_lora_to_gguf.py writes it. Both can be used with models in folders and in GGUF. Out: fr_adapter, immutable.
 * For each matrix that the adapter changes it has a and b as float32, with b's rows in the order of the model's rows.
 * Each tensor's name, shape and values are checked. A method that does not compute W x + scale b(a(x)) is refused by
 * name. */
#ifndef FR_SRC_ENGINE_MODEL_ADAPTER_H
#define FR_SRC_ENGINE_MODEL_ADAPTER_H

#include "base/sha256.h"
#include "src/engine/layers/adapted.h"
#include "src/engine/model/model.h"
#include "src/engine/weights/low_rank.h"

struct fr_adapter {
    char *path;
    const fr_model *model;
    fr_low_rank *products; /* [1 + adaptable] the products that are added to matrices; a matrix's product is at index
                            * fr_matrix.adapted */
    float *directions;     /* [layers, hidden] the rows of a control vector, which are added after the layers; NULL: the
                        * adapter is no control vector */
    size_t matrices;       /* number of matrices that the adapter changes */
    size_t rank;           /* largest rank */
    float **values;        /* the arrays that products point into */
    size_t value_count, value_room;
    fr_sha256 hash;                  /* hash of what has been read so far; `digest` is made from it */
    uint8_t digest[FR_SHA256_BYTES]; /* digest of all values and scales */
};

fr_status fr_adapter_load(const char *path, const fr_model *model, fr_adapter **adapter);

/* Opens a control vector as an adapter without products (control_vector.c). The vector is added after each layer from
 * first to last, counted from 0, but never after layer 0. last 0: up to the model's last layer. */
fr_status fr_control_vector_load(const char *path, const fr_model *model, size_t first, size_t last,
                                 fr_adapter **adapter);

/* Makes an adapter that changes nothing. The functions that load an adapter then fill it. */
fr_status fr_adapter_new(const char *path, const fr_model *model, fr_adapter **adapter);

/* Frees an adapter; NULL does nothing. */
void fr_adapter_unload(fr_adapter *adapter);

/* Joins adapters, each with its scale, to the set that a session uses. Adapters with scale 0 are left out. Also
 * computes the digest that identifies the set; the digest of an empty set is all 0. Fails with FR_USAGE if an adapter
 * is given twice or belongs to another model, if there are too many adapters, or if a scale is not finite. */
fr_status fr_adapter_join(const fr_model *model, const fr_adapter *const *adapters, const double *scales, size_t count,
                          fr_adapter_set *set, uint8_t digest[FR_SHA256_BYTES]);

/* adapter_config.c: a peft adapter's configuration, adapter_config.json. */
typedef struct fr_adapter_config {
    json_t *root;
    const char *where; /* the file's path, for error lines */
    size_t rank;
    double alpha;
    bool rslora; /* the scale is alpha / sqrt(rank) */
} fr_adapter_config;

/* Reads a configuration. Refuses one that asks for anything but LoRA. */
fr_status fr_adapter_config_read(fr_adapter_config *config, const char *path);

/* Gives the rank and the scale for one module. The module is given by its name, without the prefixes that peft
 * adds. */
fr_status fr_adapter_config_module(const fr_adapter_config *config, const char *module, size_t *rank, double *scale);

#endif
