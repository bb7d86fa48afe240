/* A kind of vision tower: the rules by which the towers of model families differ.
 *
 * In: a checkpoint's configuration and tensors. Out: for each kind an fr_tower, in a file of its own (tower_NAME.c),
 * listed in towers.c. All kinds share the layers (vision_block.c), whose parts are optional; a kind decides three
 * things: the size to which a picture is resized, how its patches are embedded, and how rows for the text model are
 * computed from the last layer's output. */
#ifndef FR_SRC_ENGINE_VISION_TOWER_H
#define FR_SRC_ENGINE_VISION_TOWER_H

#include "base/text_buffer.h"
#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/engine/vision/vision_parts.h"

/* The files from which a kind's configuration is read. Either the JSON members or `gguf` are set; the others are
 * NULL. */
typedef struct fr_tower_source {
    const fr_weights *weights;
    const json_t *root, *vision; /* config.json and its vision_config */
    const json_t *processor;     /* the picture processor's settings; NULL: there are none */
    const char *where;           /* the file of `processor`, for error lines */
    const json_t *outer;         /* processor_config.json, whose settings for texts are needed too; NULL: there is
                                  * none */
    const fr_gguf *gguf;
} fr_tower_source;

/* Binds tensors under a prefix. Each tensor has a name in folders and another one in GGUF. */
typedef struct fr_tower_binder {
    fr_weights *weights;
    char prefix[128];  /* prefix such as "model.visual.blocks.7."; if the tower is read from GGUF, "" or "v.blk.7." */
    char in_gguf[32];  /* the prefix of the same tensors in GGUF, even if the tower is read from a folder */
    fr_vision *vision; /* the tower; a folder's tensors are listed in it */
} fr_tower_binder;

/* The names of a layer's tensors in folders, without ".weight" and ".bias"; NULL: the kind has no such part. GGUF has
 * the same names for all kinds. */
typedef struct fr_tower_names {
    const char *layers; /* prefix of a layer's number, such as "blocks." */
    const char *norm1, *norm2, *q_norm, *k_norm;
    const char *post_norm1, *post_norm2;
    const char *qkv;       /* one tensor for queries, keys and values; in GGUF this may be three tensors */
    bool paired_in_gguf;   /* in GGUF, those rows of q and k that are rotated together are adjacent */
    bool parted_in_gguf;   /* in GGUF, qkv is three tensors */
    const char *q, *k, *v; /* the three tensors if qkv is NULL */
    const char *proj;
    const char *gate; /* NULL: the feed-forward has no gate */
    const char *up, *down;
} fr_tower_names;

struct fr_tower {
    const char *const *architectures; /* architectures of config.json, or its model_type; NULL-terminated */
    const char *projector;            /* clip.projector_type in GGUF */
    const char *token;                /* the image token's text in GGUF; NULL: the text model's family gives it */
    const char *const *prefixes;      /* prefixes that the names of the tower's tensors may have in folders,
                                       * NULL-terminated */
    const char *first;                /* name, after the prefix, of a tensor that every tower of this kind has */
    const fr_tower_names *names;      /* NULL: there are no layers */

    /* Reads the whole configuration, from either kind of files. */
    fr_status (*read)(fr_vision_config *config, const fr_tower_source *source);

    /* Binds everything that is not in a layer. The function may allocate vision->own, which is freed with the tower. */
    fr_status (*bind)(const fr_tower_binder *binder, fr_vision *vision);

    /* Chooses the grid of tokens for a picture of this size; NULL: the grid follows from config.tile. */
    fr_status (*grid)(const fr_vision_config *config, size_t width, size_t height, fr_image_grid *grid);

    /* Chooses the tiles of a picture of this size, for a tower with config.tile. NULL: the tower does not cut pictures
     * into tiles. */
    fr_status (*tile)(const fr_vision_config *config, size_t width, size_t height, fr_vision_tiling *tiling);

    /* Takes limits on a picture's pixels; a limit of 0 is none. Fails with FR_INPUT if the tower can't have such
     * limits. NULL: the limits are stored as min_pixels and max_pixels of the configuration. */
    fr_status (*limit)(fr_vision_config *config, int64_t least, int64_t most);

    /* In a prompt, a picture is written as `before`, its image tokens, and `after`; if `before` or `after` is NULL,
     * nothing is written there. Chat templates write `mark` in place of all this. If `mark` is NULL, they write one
     * image token. */
    const char *mark, *before, *after;

    /* Writes what is between `before` and `after` for a picture of this size. Besides image tokens this may be other
     * text, such as the ends of rows. token: the image token's text. If the function is NULL, there are only image
     * tokens. */
    void (*spell)(const fr_vision *vision, size_t width, size_t height, const char *token, fr_text_buffer *text);

    /* Changes a patch's values before they are embedded; NULL: nothing changes. */
    void (*prepare_patch)(const fr_vision *vision, float *values);

    /* Sets the order of the tokens. In layers with windows, also sets which tokens each token sees. NULL: tokens are
     * ordered row by row, and there are no windows. */
    void (*order)(const fr_vision_config *config, fr_image_grid grid, fr_vision_token *tokens);

    /* Finishes the embedding x of the patch in this row and column, for example by adding its learned position.
     * `spare` has room for [hidden]. NULL: nothing is left to do. */
    void (*finish_patch)(const fr_vision *vision, fr_image_grid grid, size_t row, size_t column, float *spare,
                         float *x);

    /* Computes the rows of tokens [first, first + count), at most a chunk of them, from the last layer's output. The
     * whole team calls this function. It has barriers of its own. */
    void (*merge)(const fr_team *team, const fr_vision_activations *a, size_t first, size_t count);

    /* The token that ends each row of a picture; NULL: there is none. llama.cpp reads its embedding from the tower's
     * file. */
    const char *row_end;

    /* Writes the keys of GGUF that only this kind has (fr_vision_put writes the keys that all kinds have). Fails with
     * FR_UNBUILT if GGUF has no key for something in the configuration. NULL: the kind can't be written. */
    fr_status (*put)(const fr_vision_config *config, fr_gguf_writer *writer);

    /* The whole team calls this function after each layer. NULL: nothing reads the stream between layers. */
    void (*after_layer)(const fr_team *team, const fr_vision_activations *a, size_t layer);
};

/* Finds the kind of a tower: in a folder by its architecture, and in a GGUF file by its projector. NULL: the kind is
 * not supported. */
const fr_tower *fr_tower_of(const fr_checkpoint *files);

/* Fails with a line that lists the supported projectors. */
fr_status fr_tower_refuse(const fr_checkpoint *files);

extern const fr_tower fr_tower_glm, fr_tower_qwen25, fr_tower_qwen3, fr_tower_gemma3, fr_tower_gemma4,
    fr_tower_gemma4_unified, fr_tower_idefics3, fr_tower_pixtral;

/* ---------------------------------------------------------------------------------- configurations: vision_config.c */

/* The file names for error lines. */
#define FR_TOWER_CONFIG     "config.json"
#define FR_TOWER_PROCESSORS "processor_config.json"

/* Reads a size in `low`..`high`; a missing one is `fallback`. */
fr_status fr_tower_size(const json_t *object, const char *key, int64_t low, int64_t high, int64_t fallback,
                        const char *where, size_t *value);

/* Reads the sizes that GGUF has for every kind: widths, layers, heads, the norms' eps, the side of a patch and the
 * normalisation of pixels. */
fr_status fr_tower_gguf_sizes(const fr_gguf *gguf, fr_vision_config *config);

/* Writes the side of a picture, and the name of the projector. Every file has the side, although not every kind of
 * tower reads it. key: the key of the projector, which is ".projector_type", or another one if the file may also have a
 * tower for sound. */
void fr_tower_put(const fr_vision_config *config, size_t image_size, const char *key, fr_gguf_writer *writer);

/* Writes the limits on a picture's pixels. */
void fr_tower_put_limits(const fr_vision_config *config, fr_gguf_writer *writer);

/* Refuses to write a setting that GGUF has no key for. */
fr_status fr_tower_no_key(const char *what);

/* Reads only the normalisation of pixels from GGUF. */
fr_status fr_tower_gguf_pixels(const fr_gguf *gguf, fr_vision_config *config);

/* Reads rescaling and normalisation from the picture processor's settings, and fills in the table that has a value for
 * each byte. mean, deviation: the defaults. */
fr_status fr_tower_pixels(const fr_tower_source *source, const double *mean, const double *deviation,
                          fr_vision_config *config);

/* Checks the picture processor's settings: do_resize must be true, and the filter must be bicubic. If one of these
 * settings is missing, it is assumed to have this value. */
fr_status fr_tower_resizes(const fr_tower_source *source);

/* Checks the settings as fr_tower_resizes does, but allows any filter and reads it into config->resample. Without the
 * key, config->resample is unchanged. */
fr_status fr_tower_resample(const fr_tower_source *source, fr_vision_config *config);

/* If the processor's settings have a number for `key`, checks that it equals the tower's number `wanted`. */
fr_status fr_tower_same(const fr_tower_source *source, const char *key, size_t wanted);

/* These check a number or a text as fr_tower_same does. The number or text is in processor_config.json itself, outside
 * of the settings. */
fr_status fr_tower_same_outside(const fr_tower_source *source, const char *key, size_t wanted);
fr_status fr_tower_same_text(const fr_tower_source *source, const char *key, const char *wanted);

/* Reads the activation of vision_config; `fallback` if vision_config has no activation. */
fr_status fr_tower_activation(const json_t *vision, const char *key, fr_vision_activation fallback,
                              fr_vision_activation *activation);

extern const double fr_clip_mean[FR_VISION_CHANNELS], fr_clip_deviation[FR_VISION_CHANNELS];

/* ------------------------------------------------------------------------------------------- tensors: vision_bind.c */

/* Puts a folder's tensor PREFIX + FOLDER on the list of tensors, with its name and layout in GGUF. The functions below
 * do this for all tensors that they bind. If the tower is read from GGUF, nothing is listed. */
fr_status fr_tower_list(const fr_tower_binder *binder, const char *folder, const char *gguf, fr_vision_layout layout);

/* Gives a binder for tensors of a folder that have another prefix than the tower's. The prefix is the first of
 * `prefixes` under which the folder has the tensor `first`. If there is no such prefix, it is the first of all. In GGUF
 * all tensors have the tower's prefix. */
fr_tower_binder fr_tower_beside(const fr_tower_binder *binder, const char *const *prefixes, const char *first);

/* Binds the norm NAME.weight, and NAME.bias if it is a LayerNorm, of n values. */
fr_status fr_tower_bind_norm(const fr_tower_binder *binder, const char *folder, const char *gguf, bool biased, size_t n,
                             fr_vision_norm *norm);
fr_status fr_tower_bind_vector(const fr_tower_binder *binder, const char *folder, const char *gguf, size_t n,
                               const float **vector);

/* Binds the product NAME.weight of shape [features, cols], and NAME.bias if bias is not NULL. */
fr_status fr_tower_bind_product(const fr_tower_binder *binder, const char *folder, const char *gguf, size_t features,
                                size_t cols, fr_matrix *product, const float **bias);

/* Binds the embedding of patches, which is a convolution. A folder has one tensor for all frames; GGUF has one tensor
 * for each frame. */
fr_status fr_tower_bind_patches(const fr_tower_binder *binder, const char *folder, fr_vision *vision);

/* ------------------------------------------------------------------------------------------------ sizes of pictures */

/* Refuses a picture whose longer side is more than 200 times the shorter one; ratio: the ratio of the sides, as the
 * processor computes it. */
fr_status fr_tower_check_ratio(size_t width, size_t height, double ratio);

/* Rounds a picture's size to whole tokens. Each pixel counts `frames` times. If the limits don't allow the picture's
 * number of pixels, both sides are scaled by the same factor, and rounded down or up. Like Qwen's and GLM's processors,
 * it computes in doubles and rounds in the same order. */
void fr_tower_grid_by_area(const fr_vision_config *config, double frames, double width, double height,
                           fr_image_grid *grid);

#endif
