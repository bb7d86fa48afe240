/* Rotary positions of families beside Llama: see llama.h. */
#include "src/families/llama.h"

#include "base/error.h"
#include "src/families/rope_config.h"

fr_status fr_llama_rope_from_json(fr_uniform_config *c, const json_t *root, double usual_partial, const char *where) {
    double partial = usual_partial;
    FR_TRY(fr_rope_from_json(&c->rope, root, c->context_limit, where, &partial));
    c->rope.dims = (size_t)((double)c->head_dim * partial);
    c->rope.neox = true;
    return FR_OK;
}

/* rope_freqs.weight divides the frequencies: the converter writes llama3's scaling so. */
fr_status fr_llama_rope_from_gguf(fr_rope_spec *rope, fr_weights *weights) {
    if (fr_weights_has(weights, "", "rope_freqs.weight"))
        FR_TRY(fr_bind_vector(weights, "", "rope_freqs.weight", rope->dims / 2, &rope->divisors));
    return fr_rope_scaling_from_gguf(rope, weights->files->gguf);
}
