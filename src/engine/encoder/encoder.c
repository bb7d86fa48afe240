/* Opens a text encoder and describes it: see encoder.h. */
#include "src/engine/encoder/encoder.h"

#include <stdlib.h>

#include "base/error.h"
#include "src/engine/encoder/encoder_kinds.h"

fr_status fr_encoder_open(fr_weights *weights, const fr_kernels *kernels, fr_encoder **encoder) {
    fr_encoder *e = calloc(1, sizeof *e);
    *encoder = NULL;
    if (!e) return fr_fail_memory("an encoder", sizeof *e);
    e->kernels = kernels;
    fr_status status = fr_encoder_read(weights, &e->spec);
    if (status == FR_OK) status = fr_encoder_bind(e, weights);
    if (status == FR_OK)
        *encoder = e;
    else
        fr_encoder_close(e);
    return status;
}

void fr_encoder_close(fr_encoder *e) {
    if (!e) return;
    for (size_t i = 0; i < FR_ENCODER_REACHES; i++) free(e->inverse[i]);
    free(e->bias_slopes);
    free(e->layers);
    free(e->experts);
    free(e);
}

fr_encoder_facts fr_encoder_fact(const fr_encoder *e) {
    const fr_encoder_spec *s = &e->spec;
    bool local = false;
    for (size_t i = 0; i < s->layers; i++) local |= s->local[i] == FR_ENCODER_LOCAL;
    return (fr_encoder_facts){.vocab = s->vocab,
                              .hidden = s->hidden,
                              .layers = s->layers,
                              .context = s->context,
                              .first = s->position_first,
                              .types = s->types,
                              .labels = s->labels,
                              .window = local ? s->reach : 0,
                              .experts = s->experts,
                              .ffn = s->ffn};
}

void fr_encoder_describe(const fr_encoder *e, FILE *out) {
    const fr_encoder_spec *s = &e->spec;
    size_t local = 0;
    for (size_t i = 0; i < s->layers; i++) local += s->local[i] == FR_ENCODER_LOCAL;
    fprintf(out, "encoder        %s, %zu layers of width %zu, in which every token sees its whole text\n",
            s->kind->name, s->layers, s->hidden);
    fprintf(out, "attention      %zu heads of %zu", s->heads, s->head_dim);
    if (s->kv_heads != s->heads) fprintf(out, ", %zu key/value heads", s->kv_heads);
    if (local) fprintf(out, "; %zu local layers see %zu tokens on either side", local, s->reach);
    fprintf(out, "\nfeed-forward   %zu%s\n", s->ffn, s->gated ? ", gated" : "");
    fprintf(out, "texts          up to %zu tokens of a vocabulary of %zu\n", s->context, s->vocab);
    if (s->labels) fprintf(out, "classifier     %zu score%s\n", s->labels, s->labels == 1 ? "" : "s");
}
