/* Norms of hidden rows: see parts.h. */
#include <string.h>

#include "src/engine/layers/parts.h"

void fr_norm_row(const fr_activations *a, float *y, const float *x, const float *weight, const float *bias) {
    const fr_trunk_spec *s = &a->trunk->spec;
    if (weight && s->layer_norm)
        a->kernels->layernorm(y, x, weight, bias, s->hidden, s->eps);
    else if (weight)
        a->kernels->rmsnorm(y, x, weight, s->hidden, s->eps);
    else if (y != x)
        memcpy(y, x, s->hidden * sizeof *y);
}
