/* Writes random weights of a given shape in the published folder form, so that engines can be timed on models of that
 * size without a download.
 *
 * In: a shape. Out: FOLDER/config.json and FOLDER/model.safetensors, BF16. The text of such a model is noise, but its
 * speed and memory are those of the shape. */
#ifndef FR_BENCH_SYNTH_H
#define FR_BENCH_SYNTH_H

#include "forerun.h"

typedef struct fr_synth_target {
    size_t vocab; /* a power of two */
    size_t hidden, layers, heads, kv_heads, head_dim, global_head_dim, ffn, window;
    size_t full_every; /* each full_every-th layer and the last layer have full attention; all other layers have sliding
                        * attention */
} fr_synth_target;

typedef struct fr_synth_assistant {
    size_t hidden, layers, heads, ffn; /* the last layer has full attention; all other layers have sliding attention */
    /* clusters: number of clusters of the centroid head; top: number of clusters that a step scores */
    size_t clusters, top;
    bool plain; /* config.json asks for a plain head and not for the centroid head */
} fr_synth_assistant;

/* Each writes a folder. They return false, with a line on standard error, if the files can't be written. */
bool fr_synth_write_target(const char *folder, const fr_synth_target *shape);
bool fr_synth_write_assistant(const char *folder, const fr_synth_assistant *shape, const fr_synth_target *target);

#endif
