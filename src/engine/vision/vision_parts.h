/* A vision tower as data, and the activations of one picture in it: private to the files of this folder and its test
 * suites.
 *
 * In: a kind (tower.h), its configuration, a checkpoint's tensors. Out: fr_vision (immutable), fr_vision_activations
 * (for one picture at a time). A tower is layers whose parts are optional: a weight that is NULL, or a matrix without
 * features, is a part that this tower lacks. */
#ifndef FR_SRC_ENGINE_VISION_VISION_PARTS_H
#define FR_SRC_ENGINE_VISION_VISION_PARTS_H

#include "src/engine/layers/attend.h"
#include "src/engine/vision/image_resize.h"
#include "src/engine/vision/vision.h"
#include "src/engine/weights/partition.h"

#define FR_VISION_CHANNELS 3

/* The number of times that a patch is repeated in its row if the tower comes from GGUF. */
#define FR_VISION_GGUF_FRAMES 2

/* Number of rows that are multiplied together. It is so large that each loaded weight is used many times, and so small
 * that the rows fit in the caches. */
#define FR_VISION_CHUNK 256

#define FR_VISION_LAYERS_MAX    1024
#define FR_VISION_DEEPSTACK_MAX 16

typedef struct fr_tower fr_tower;

/* The activation of a feed-forward. GELU is computed by tanh or by the error function. */
typedef enum fr_vision_activation { FR_VISION_SILU, FR_VISION_GELU_TANH, FR_VISION_GELU_ERF } fr_vision_activation;

/* The settings by which the kinds of towers choose tiles and sizes; each kind reads its own. */
typedef struct fr_vision_cuts {
    bool on;                              /* pictures may be cut into tiles */
    bool resize;                          /* pictures are resized before they are cut */
    bool stretch;                         /* if true, pictures are resized to a given width and height; if false, so
                                           * that the longer side has a given length */
    size_t longest_width, longest_height; /* if `stretch`, the given width and height; otherwise both are the given
                                           * length of the longer side. In towers that only limit sizes, they are the
                                           * largest sides that are allowed. */
    size_t least, most;                   /* least: side of the smallest tile; most: largest number of tiles */
    double ratio; /* pictures are cut only if the longer side is at least this many times the shorter one */
} fr_vision_cuts;

/* Says how a tensor of a folder becomes tensors of a GGUF file. */
typedef enum fr_vision_layout {
    FR_VISION_WHOLE,        /* the tensor stays as it is */
    FR_VISION_ONE_MORE,     /* in GGUF each value is greater by 1 */
    FR_VISION_THIRDS,       /* rows of queries, keys and values become three tensors */
    FR_VISION_PAIRED,       /* rows that are rotated together become neighbours in each head */
    FR_VISION_FRAMES,       /* the frames of a convolution become a tensor each */
    FR_VISION_CHANNEL_LAST, /* each row has the values of a patch, ordered by row, column and channel; in GGUF the
                             * channel comes first */
    FR_VISION_ALTERNATING   /* the rows of two tables alternate; in GGUF the tables follow each other */
} fr_vision_layout;

/* A tensor of a tower by both of its names. */
typedef struct fr_vision_tensor {
    char folder[192];
    char gguf[64]; /* the name in GGUF; for FR_VISION_THIRDS, a '?' in the name stands for q, k or v */
    fr_vision_layout layout;
} fr_vision_tensor;

typedef struct fr_vision_config {
    const fr_tower *tower; /* the tower's kind */
    size_t hidden, layers, heads, ffn;
    /* patch: a patch's side in pixels; frames: number of times that a patch is repeated in its row; merge: a token's
     * side in patches */
    size_t patch, frames, merge;
    size_t out, out_ffn; /* out: width of the embeddings; out_ffn: width inside the merger */
    size_t merged;       /* floats of the merger's input that are kept for each token; 0: none */
    bool bias;           /* the layers' products have biases */
    /* settings of the merger alone: biases of its products, its activation, the eps of its norm */
    bool merger_bias;
    fr_vision_activation merger_activation;
    float merger_eps;
    bool layer_norm;                 /* norms are LayerNorms, with biases; if false, they are RMS norms, without
                                      * biases */
    fr_vision_activation activation; /* activation of the layers' feed-forward */
    float eps;
    double theta;                   /* base of the rotary positions; 0: there are none */
    int64_t min_pixels, max_pixels; /* limits on a picture's pixels, after resizing; 0: all pictures have one size */
    size_t pixel_count;             /* number of times that each pixel counts in the comparison with min_pixels and
                                     * max_pixels */
    size_t tile; /* if not 0, the tower sees only squares, with sides of this many pixels; 0: pictures keep their
                  * proportions */
    fr_vision_cuts cuts;
    fr_resample resample;                 /* the filter by which pictures are resized */
    float value[FR_VISION_CHANNELS][256]; /* the normalised value of each byte of a channel */
    /* the factor, mean and deviation by which bytes are normalised */
    double rescale, mean[FR_VISION_CHANNELS], deviation[FR_VISION_CHANNELS];
    bool channel_last; /* a patch's values are ordered by row, column and channel; if false, by channel, time, row and
                        * column */

    bool positions_by_fraction; /* a patch's entry in a square table of positions follows from the fraction of the
                                 * picture's side at which the patch lies */
    size_t positions; /* the side of a square table of learned positions, or the number of rows of each axis's own
                       * table; 0: none */
    /* the layers whose stream is merged into further rows, for the outputs of the text model's first layers */
    size_t deepstack, deepstack_layers[FR_VISION_DEEPSTACK_MAX];
    bool v_norm;          /* attention's values are normed, without a weight */
    bool rope_halves;     /* a head's halves are rotated separately, the first one by the column */
    bool rope_pairs;      /* adjacent values of a head are rotated together; if false, value i and the i-th of the
                           * second half */
    bool rope_alternates; /* all values of a head are rotated as one; the even frequencies are for rows, the odd ones
                           * for columns */
    size_t pooling;       /* if the processor's patches are smaller than the tower's: how many of them fit in a side of
                           * a tower's patch; otherwise 0 */
    float scale;          /* scale of attention's scores; 0: 1 / sqrt(a head's width) */
    bool clipped;         /* the layers' products have clipped inputs and outputs */
    bool other_sight;     /* in the text model, a picture's rows see other rows than readers of the family's GGUF files
                           * assume */
    size_t window;        /* the side of a window in tokens; 0: no layer has windows */
    bool windowed[FR_VISION_LAYERS_MAX];
} fr_vision_config;

/* The weights of a norm; weight NULL: there is no norm. It is a LayerNorm if it has a bias, otherwise an RMS norm. */
typedef struct fr_vision_norm {
    const float *weight, *bias;
} fr_vision_norm;

/* The bounds of a product's inputs and outputs; values outside are set to the nearer bound. */
typedef struct fr_vision_clip {
    float input_min, input_max, output_min, output_max;
} fr_vision_clip;

/* The products of a layer, which may be clipped. */
typedef enum fr_vision_product {
    FR_VISION_Q,
    FR_VISION_K,
    FR_VISION_V,
    FR_VISION_PROJ,
    FR_VISION_GATE,
    FR_VISION_UP,
    FR_VISION_DOWN,
    FR_VISION_PRODUCTS
} fr_vision_product;

typedef struct fr_vision_layer {
    fr_vision_norm norm1, norm2; /* [hidden] the norms before attention and before the feed-forward */
    /* [hidden] norms of the outputs of attention and feed-forward, before they are added to the stream */
    fr_vision_norm post_norm1, post_norm2;
    fr_vision_clip clips[FR_VISION_PRODUCTS]; /* clips of the layer's products, if the tower has any */
    const float *q_norm, *k_norm;             /* [head_dim] the norms of each head's query and key */
    fr_matrix qkv[3];                         /* one matrix for queries, keys and values, or three */
    size_t qkv_count;                         /* number of matrices in `qkv`: 1 or 3 */
    fr_matrix proj, gate, up, down;
    const float *qkv_bias[3], *proj_bias, *gate_bias, *up_bias, *down_bias;
} fr_vision_layer;

/* The squares by which a tower sees a picture: its tiles, row by row, and the whole picture, which comes before or
 * after them. */
typedef struct fr_vision_tiling {
    /* Before a picture is cut, it is resized once or twice, to these sizes (width, height). */
    size_t resizes, size[2][2];
    size_t rows, columns; /* number of rows and columns of tiles; 0: there are none */
    size_t width, height; /* size of a tile; those at the right and at the bottom may be smaller */
    bool whole_last;      /* the whole picture comes after its tiles; if false, before them */
} fr_vision_tiling;

/* A token, in the tower's order of tokens. */
typedef struct fr_vision_token {
    uint32_t place;       /* the token's number in the picture, row by row */
    uint32_t first, last; /* in layers with windows, the first and the last token that this one sees, in the tower's
                           * order */
} fr_vision_token;

struct fr_vision {
    const fr_kernels *kernels;
    fr_vision_config config;
    fr_vision_layer *layers;
    float *inverse;  /* [2, head_dim / 4] rotary frequencies of rows and of columns */
    fr_matrix embed; /* [hidden, values of a patch] the embedding of patches */
    const float *embed_bias;
    void *own;                 /* tensors that only this kind of tower has */
    fr_vision_tensor *tensors; /* all tensors, if the tower is a folder's */
    size_t tensor_count;
    bool packed; /* at least one matrix is packed */
};

/* The activations of one picture. Patches are ordered by token: those of one token are adjacent. */
typedef struct fr_vision_activations {
    const fr_vision *vision;
    const fr_image *image; /* the resized picture */
    fr_image_grid grid;    /* grid of tokens */
    size_t patches;

    fr_vision_token *tokens; /* [tokens] the tokens in the tower's order */
    float *x;                /* [patches, hidden] the stream */
    float *qkv;              /* [patches, 3 * hidden] queries, keys and values */
    /* [patches, head_width] the keys and values of the head whose attention is computed, one row after the other */
    float *keys, *values;
    const uint8_t **key_pages, **value_pages; /* [patches / 64, rounded up] keys and values as pages of 64 rows */
    float *batches;                           /* [threads][2][FR_ATTEND_BATCH, head_width] queries and outputs */
    size_t head_width;                        /* a head's width, rounded up to whole cache lines */
    float *attn;                              /* [patches, attn_width] attention's output */
    size_t attn_width;
    float *cosine, *sine; /* [patches, head_dim / 2] cosines and sines of the rotary angles */

    float *wide, *gate, *up, *narrow; /* rows of a chunk: `wide` is a product's input; `gate`, `up` and `narrow` are
                                       * outputs */
    size_t wide_width, gate_width, narrow_width;
    float *clipped; /* rows of a chunk: a product's clipped input, as wide as the widest input */
    size_t clipped_width;
    float *ones; /* [gate_width] all 1, in place of gate's output if there is no gate */
    fr_workspace workspace;
    fr_attend_workspace attend;
    float *merged; /* [tokens, config.merged] the merger's input */
    float *rows;   /* [tokens, fr_vision_row_width] the merger's output, in the order of the picture */
} fr_vision_activations;

/* vision_bind.c: reads the configuration and binds the weights. hidden: as in fr_vision_open. */
fr_status fr_vision_bind(fr_vision *vision, fr_weights *weights, size_t hidden);

/* Reads the checkpoint's JSON files or GGUF metadata. */
fr_status fr_vision_config_read(fr_vision_config *config, const fr_weights *weights);

/* Gives the grid of a picture's tokens for a tower that sees squares. Each square is a run of tokens, and the squares
 * are placed one below the other. */
fr_status fr_vision_grid_of_tiles(const fr_vision_config *config, size_t width, size_t height, fr_image_grid *grid);

/* fr_vision_tile chooses how a picture is resized and cut into tiles. fr_vision_views counts the images that the tower
 * sees: the tiles and the whole picture. */
fr_status fr_vision_tile(const fr_vision_config *config, size_t width, size_t height, fr_vision_tiling *tiling);
size_t fr_vision_views(const fr_vision_tiling *tiling);

/* fr_vision_canvas resizes a picture before it is cut. fr_vision_view makes image number `index` of the images that the
 * tower sees, from the resized picture. Each of these images has the size of `grid`. */
fr_status fr_vision_canvas(const fr_vision_config *config, const fr_vision_tiling *tiling, const fr_image *image,
                           fr_image *canvas);
fr_status fr_vision_view(const fr_vision_config *config, const fr_vision_tiling *tiling, fr_image_grid grid,
                         const fr_image *canvas, size_t index, fr_image *view);

/* Gives the order of the tower's tokens. tokens: [rows * columns]. */
void fr_vision_order(const fr_vision_config *config, fr_image_grid grid, fr_vision_token *tokens);

/* Gives the row and column of a patch in the picture's grid of patches. */
void fr_vision_place(const fr_vision_config *config, fr_image_grid grid, const fr_vision_token *tokens, size_t patch,
                     size_t *row, size_t *column);

/* Writes a patch's normalised values, in the order of the configuration. */
void fr_vision_patch(const fr_vision_config *config, const fr_image *image, size_t row, size_t column, float *values);

/* Takes a picture's activations from the arena, which may only count bytes (base/arena.h). */
void fr_vision_activations_layout(fr_vision_activations *a, fr_arena *arena, size_t threads);

/* Counts the rows of the chunk that begins at row `first` of `count` rows. */
static inline size_t fr_vision_chunk(size_t first, size_t count) {
    return count - first < FR_VISION_CHUNK ? count - first : FR_VISION_CHUNK;
}

/* All threads of the team call each of the functions from here to fr_vision_merge. The functions have the barriers that
 * they need. fr_vision_block runs a layer. */
void fr_vision_embed(const fr_team *team, const fr_vision_activations *a);
void fr_vision_block(const fr_team *team, const fr_vision_activations *a, size_t layer);

/* For a tower that is run in slices: fr_vision_block_parts counts the parts of a layer, and fr_vision_block_part runs
 * one. fr_vision_block runs all parts of a layer in order. fr_vision_merge makes the rows for the text model from the
 * last layer. */
size_t fr_vision_block_parts(const fr_vision_activations *a);
void fr_vision_block_part(const fr_team *team, const fr_vision_activations *a, size_t layer, size_t part);
void fr_vision_merge(const fr_team *team, const fr_vision_activations *a);

/* Writes a row's norm, which must have a weight; y may be x. */
void fr_vision_norm_row(const fr_vision *vision, const fr_vision_norm *norm, float *y, const float *x, size_t n);

/* Computes y = matrix(x) + bias for the thread's own features; bias may be NULL. */
void fr_vision_apply(const fr_team *team, const fr_vision_activations *a, const fr_matrix *matrix, const float *bias,
                     const fr_matrix_rows *rows);

/* Computes y = matrix(x) + bias with clipped inputs and outputs; clip may be NULL. The rows of x must be complete. */
void fr_vision_apply_clipped(const fr_team *team, const fr_vision_activations *a, const fr_matrix *matrix,
                             const float *bias, const fr_vision_clip *clip, const fr_matrix_rows *rows);

/* A feed-forward's first half: activation(gate(x)) * up(x), or activation(up(x)) if `gate` has no features. */
typedef struct fr_vision_ffn {
    const fr_matrix *gate, *up;
    const float *gate_bias, *up_bias; /* NULL: none */
    const fr_vision_clip *clips;      /* [FR_VISION_PRODUCTS] the bounds of each product; NULL: products are not
                                       * clipped */
    fr_vision_activation activation;
} fr_vision_ffn;

/* Computes the first half of a feed-forward for the thread's own features; y must be the activations' gate. */
void fr_vision_feed(const fr_team *team, const fr_vision_activations *a, const fr_vision_ffn *ffn,
                    const fr_matrix_rows *rows);

#endif
