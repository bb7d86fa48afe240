/* The vision tower as data, and the activations of one picture in it: private to vision*.c and its test suite.
 *
 * In: config.json and (pre)processor_config.json, tensors model.visual.*; or llama.cpp's mmproj file. Out: fr_vision
 * (immutable), fr_vision_activations (for one picture at a time). Source of the architecture: the published checkpoint
 * and transformers 5.17, models glm_ocr and glm46v. */
#ifndef FR_SRC_ENGINE_VISION_VISION_PARTS_H
#define FR_SRC_ENGINE_VISION_VISION_PARTS_H

#include "src/engine/layers/attend.h"
#include "src/engine/vision/vision.h"
#include "src/engine/weights/partition.h"

#define FR_VISION_CHANNELS 3

/* The number of times that a patch is repeated in its row if the tower comes from GGUF. */
#define FR_VISION_GGUF_FRAMES 2

/* Rows that are multiplied together: enough that each weight serves many, few enough for the caches. */
#define FR_VISION_CHUNK 256

typedef struct fr_vision_config {
    size_t hidden, layers, heads, ffn;
    /* a patch's side in pixels; how many times it is repeated in its row; a token's side in patches */
    size_t patch, frames, merge;
    size_t out, out_ffn; /* width of the embeddings; width inside the merger */
    bool bias;           /* the blocks' products have biases */
    float eps;
    double theta;
    int64_t min_pixels, max_pixels;       /* limits on a picture's pixels times its frames, after resizing */
    float value[FR_VISION_CHANNELS][256]; /* a channel's byte, normalised */
} fr_vision_config;

typedef struct fr_vision_layer {
    const float *norm1, *norm2, *q_norm, *k_norm; /* [hidden] twice, [head_dim] twice */
    fr_matrix qkv, proj, gate, up, down;
    const float *qkv_bias, *proj_bias, *gate_bias, *up_bias, *down_bias; /* NULL: none */
} fr_vision_layer;

struct fr_vision {
    const fr_kernels *kernels;
    fr_vision_config config;
    fr_vision_layer *layers;
    float *inverse;                 /* [head_dim / 4] rotary frequencies, for height and for width */
    fr_matrix embed, downsample;    /* [hidden, a patch's values], [out, merge * merge * hidden] */
    fr_matrix proj, gate, up, down; /* weights of the merger */
    const float *embed_bias, *downsample_bias, *norm, *merger_norm, *merger_bias;
    bool packed; /* at least one matrix is packed */
};

/* The activations of one picture. Patches are ordered by token: those of one token are adjacent. */
typedef struct fr_vision_activations {
    const fr_vision *vision;
    const fr_image *image; /* resized */
    fr_image_grid grid;    /* grid of tokens */
    size_t patches;

    float *x;                  /* [patches, hidden] the stream */
    float *qkv;                /* [patches, 3 * hidden] */
    const uint8_t **qkv_pages; /* [patches / 64, rounded up] qkv as pages of 64 rows, for attention */
    float *attn;               /* [patches, hidden] */
    float *cosine, *sine;      /* [patches, head_dim / 2] */

    float *wide, *gate, *up, *narrow; /* rows of a chunk: the input of a product (wide), and outputs */
    size_t wide_width, gate_width, narrow_width;
    fr_workspace workspace;
    fr_attend_workspace attend;
    float *merged; /* [tokens, out] the merger's input */
    float *rows;   /* [tokens, out] the merger's output */
} fr_vision_activations;

/* Reads the checkpoint's JSON files or GGUF metadata. */
fr_status fr_vision_config_read(fr_vision_config *config, const fr_weights *weights);

/* Gives the row and column of a patch in the picture's grid of patches. */
void fr_vision_place(const fr_vision_config *config, fr_image_grid grid, size_t patch, size_t *row, size_t *column);

/* Writes a patch's normalised values, ordered by channel, time, row and column. */
void fr_vision_patch(const fr_vision_config *config, const fr_image *image, size_t row, size_t column, float *values);

/* Takes a picture's activations from the arena, or measures them. */
void fr_vision_activations_layout(fr_vision_activations *a, fr_arena *arena, size_t threads);

/* Counts the rows of the chunk that begins at `first`, if there are `count` rows in all. */
static inline size_t fr_vision_chunk(size_t first, size_t count) {
    return count - first < FR_VISION_CHUNK ? count - first : FR_VISION_CHUNK;
}

/* The whole team calls these one after another; they contain their barriers. */
void fr_vision_embed(const fr_team *team, const fr_vision_activations *a);
void fr_vision_block(const fr_team *team, const fr_vision_activations *a, size_t layer);
void fr_vision_merge(const fr_team *team, const fr_vision_activations *a);

/* Computes y = matrix(x) + bias for the thread's own features; bias may be NULL. */
void fr_vision_apply(const fr_team *team, const fr_vision_activations *a, const fr_matrix *matrix, const float *bias,
                     const fr_matrix_rows *rows);

/* Computes y = silu(gate(x)) * up(x) for the thread's own features, with biases added first; y must be the
 * activations' gate. */
void fr_vision_gate(const fr_team *team, const fr_vision_activations *a, const fr_matrix *gate, const float *gate_bias,
                    const fr_matrix *up, const float *up_bias, const fr_matrix_rows *rows);

#endif
