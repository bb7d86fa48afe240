/* Mixtures of experts as configurations of several families have them: keys, and names of tensors.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: checked numbers,
 * which make a decoder of dense layers one of mixtures; of those the converter's keys. */
#ifndef FR_SRC_MIXTURE_H
#define FR_SRC_MIXTURE_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/families/uniform.h"

typedef struct fr_mixture_config {
    fr_experts_spec experts;
    size_t shared;        /* width of the experts that all rows share, together; 0: none */
    bool normalizes;      /* its routers always do: no file is asked */
    size_t leading_dense; /* layers in front of the first one that has a mixture */
    bool dense[FR_MOST_LAYERS]; /* which layers behind that have none either */
} fr_mixture_config;

/* Keys left out are as in `usual`, which alone says what a family's routers are: scores, corrections, gates; its shared
 * counts experts here, of `width` each. */
fr_status fr_mixture_from_json(fr_mixture_config *config, const json_t *text, const fr_mixture_config *usual,
                               const char *where);
fr_status fr_mixture_from_gguf(fr_mixture_config *config, const fr_gguf *gguf, const fr_mixture_config *usual);

/* Whether the numbers go together, in so many layers. */
fr_status fr_mixture_check(const fr_mixture_config *config, size_t layers, const char *where);

/* Gives layers a mixture, all but the leading ones, and the MTP layer too. */
void fr_mixture_add(const fr_mixture_config *config, fr_trunk_spec *spec);

/* The spec of layers that are alike but for that; free spec->layer. */
fr_status fr_mixture_spec(const fr_uniform_config *uniform, const fr_mixture_config *config, fr_trunk_spec *spec);

/* The keys of a spec's mixture. There is none for a layer without one behind a layer that has one. */
fr_status fr_mixture_put_keys(const fr_trunk_spec *spec, const char *where, fr_gguf_writer *writer);

/* Into a spec, with what stands there for defaults: of its layer the experts, and spec->mixture; then its layers, which
 * have a mixture but for the leading ones and those that are `dense` (NULL: no others). */
extern const fr_config_row fr_mixture_rows[];
fr_status fr_mixture_read(const fr_source *source, fr_model_spec *spec);
fr_status fr_mixture_layers(const fr_source *source, fr_model_spec *spec, const bool *dense);

/* The names of a layer's feed-forward: dense, or a mixture and its shared experts; fields of fr_layer. */
extern const fr_tensor_name fr_mixture_names[];

#endif
