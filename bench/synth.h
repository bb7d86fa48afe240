/* Writes random weights of a given shape in the published folder form, to time engines on models of that size without
 * a download.
 *
 * In: a shape. Out: FOLDER/config.json and FOLDER/model.safetensors, BF16. The text of such a model is noise, but its
 * speed and memory are those of the shape. */
#ifndef FR_BENCH_SYNTH_H
#define FR_BENCH_SYNTH_H

#include "forerun.h"

typedef struct fr_synth_target {
    size_t vocab; /* a power of two */
    size_t hidden, layers, heads, kv_heads, head_dim, global_head_dim, ffn, window;
    size_t full_every; /* each full_every-th layer and the last layer have full attention, the others are sliding */
} fr_synth_target;

typedef struct fr_synth_assistant {
    size_t hidden, layers, heads, ffn; /* the last layer has full attention, and the others are sliding */
    /* clusters: number of clusters of the centroid head; top: number of clusters that a step scores */
    size_t clusters, top;
    bool plain; /* config.json asks for a plain head instead of the centroid head */
} fr_synth_assistant;

/* Write a folder. Return false, with a line on standard error, if the files can't be written. */
bool fr_synth_write_target(const char *folder, const fr_synth_target *shape);
bool fr_synth_write_assistant(const char *folder, const fr_synth_assistant *shape, const fr_synth_target *target);

#endif
