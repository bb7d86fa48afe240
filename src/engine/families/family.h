/* A family of targets described as data: its names, its configuration row by row, its layers.
 *
 * In: each family has a file with an fr_family, and families.def lists it. Out: a model's spec, which fr_family_read
 * reads from config.json or from GGUF metadata by these rows; and GGUF metadata, which fr_family_put writes by the
 * same rows (config.c). */
#ifndef FR_SRC_ENGINE_FAMILIES_FAMILY_H
#define FR_SRC_ENGINE_FAMILIES_FAMILY_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/engine/layers/trunk.h"

#define FR_LAYERS_MAX 1024 /* the most layers of a configuration, and the size of arrays with an entry for each layer */

/* The kinds of layers in families that have both kinds; also the indices of their rotary forms. */
typedef enum fr_layer_kind { FR_SLIDING, FR_FULL, FR_LAYER_KINDS } fr_layer_kind;

/* The keys that a family has in config.json for the numbers of its mixtures; NULL: the usual key. */
typedef struct fr_mixture_words {
    const char *count, *top_k, *width, *shared;
} fr_mixture_words;

/* A family's settings for mixtures of experts that are not in the layers' spec (mixture.h). */
typedef struct fr_mixture_keys {
    const fr_mixture_words *words; /* NULL: the usual keys */
    size_t shared; /* width of all shared experts together, which are those that every row uses; in defaults, the number
                    * of shared experts */
    size_t shared_width;  /* only in defaults: the default of the key in config.json that gives the width of all shared
                           * experts; 0: the width follows from their number */
    bool shared_by_count; /* the width is the number of shared experts times the width of one expert, because no key
                           * gives the width or GGUF's key is wrong */
    size_t leading_dense; /* layers before the first one that has a mixture */
    bool normalizes;      /* the family's routers always normalize weights, whatever a file says */
    bool any_scoring;     /* GGUF may have another way of scoring than the defaults */
    bool as_wide;         /* an expert is as wide as the feed-forward, and GGUF has no key for it */
} fr_mixture_keys;

/* Says which layers are full if a file doesn't list the kinds. The first `first` layers are full, and so is every
 * `every`th of all layers. */
typedef struct fr_kind_pattern {
    size_t first, every; /* every 0: no other layer is full */
    bool required;       /* the pattern is for folders only: a GGUF file must list the kinds */
} fr_kind_pattern;

/* The spec of a model while it is being read. `layer` is the part that all layers have in common. */
typedef struct fr_model_spec {
    fr_trunk_spec trunk;
    fr_layer_spec layer;
    fr_mixture_keys mixture;
    fr_kind_pattern kinds;
    size_t mtp_layers;
    /* number of last layers that read the K/V of an earlier layer; in a drafter all layers read the target's K/V */
    size_t borrowers;
    int32_t image_token;
} fr_model_spec;

/* The source of a spec: one of the two kinds of files. The pointers for the other kind are NULL. */
typedef struct fr_source {
    const json_t *root, *text; /* config.json, and the text model's part of it */
    const fr_gguf *gguf;
    const char *where;   /* names the file in error lines */
    fr_weights *weights; /* NULL: only the shape of a model, without tensors */
    bool drafter;        /* the files are a drafter's, which need not have a head and a table of ids, because the
                          * target has them */
} fr_source;

/* ------------------------------------------------------------------------------------------------------------- rows */

typedef enum fr_row_kind {
    FR_ROW_SIZE,    /* a size_t */
    FR_ROW_EACH,    /* a size_t of `layer`; GGUF has one for all layers, or an array with one for each */
    FR_ROW_REAL,    /* a float or a double; 0 means none, and is written only if the key is required */
    FR_ROW_DIVISOR, /* a float: 1 / the number in the file */
    FR_ROW_FLAG,    /* a bool */
    /* A float: 1 / the square root of the number in config.json. GGUF has no key for it, so a model is written only if
     * readers of GGUF assume the same value. */
    FR_ROW_RSQRT,
    FR_ROW_SAME,    /* a size_t that was read from another key before; if this key has another value, FR_UNBUILT */
    FR_ROW_ONLY,    /* FR_UNBUILT if config.json has another word than the row's `word` */
    FR_ROW_WITHOUT, /* FR_UNBUILT if the value is true */
    FR_ROW_WITH,    /* FR_UNBUILT if the value is false */
    /* The activation of a feed-forward without a gate, an fr_activation, by its word in config.json. GGUF has no key
     * for the activation, so only a model with the family's default is written. */
    FR_ROW_ACTIVATION,
    FR_ROW_ABSENT, /* FR_UNBUILT if config.json has a value other than null, or GGUF a number other than 0 */
    /* A size_t, the interval of full layers. GGUF may have a list of the layers' kinds instead, which
     * fr_layers_by_kind reads. A GGUF file has no key for the interval if it is the default or no layer slides. */
    FR_ROW_KINDS,
    /* a size_t, the number of MTP layers. GGUF's number of layers includes the MTP layers, so it is reduced by their
     * number */
    FR_ROW_MTP,
    FR_ROW_PART, /* keys that functions read and write */
} fr_row_kind;

/* Functions that read and write keys; either may be NULL. mtp_layers: the number of MTP layers. put fails with
 * FR_INPUT if GGUF has no key for a property of the spec; `where` begins its message. */
typedef struct fr_config_part {
    fr_status (*read)(const fr_source *source, fr_model_spec *spec);
    fr_status (*put)(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);
} fr_config_part;

/* A row of a table. If a file lacks the key, the field keeps the value that it has before the row is read: its
 * default. Rows are read in order, and several rows may have the same key. */
typedef struct fr_config_row {
    const char *json, *gguf; /* keys; NULL: this kind of file has none; a row without keys and without a part ends the
                              * table */
    const fr_config_part *part;
    fr_row_kind kind;
    size_t field, bytes; /* the field's offset in fr_model_spec, and its size */
    double low, high;    /* limits of a number */
    const char *word;    /* FR_ROW_ONLY: the word that is supported */
    size_t like;         /* another field, a size_t, whose value is the default if this field is 0 */
    bool per_head;       /* the default is hidden / heads */
    bool required;       /* GGUF must have this key or `unless` */
    const char *unless;  /* another key that may stand in for this one; if the file has it, the default is 1 */
    bool null_is_none;   /* null in config.json means 0, not the default */
    bool sparse;         /* a size of 0 is not written, and a missing one is 0 in GGUF */
} fr_config_row;

/* Macros that write a row of a table. For a number, give the field, both keys and the limits; members of the row that
 * differ from 0 may follow as designators. Rows without a field only check that the file's value is supported. */
#define FR_NUMBER(of, at, j, g, least, most, ...)                                                                  \
    {                                                                                                              \
        .kind = of, .field = offsetof(fr_model_spec, at), .bytes = sizeof(((fr_model_spec *)NULL)->at), .json = j, \
        .gguf = g, .low = least, .high = most, __VA_ARGS__                                                         \
    }
#define FR_SIZE(at, ...)    FR_NUMBER(FR_ROW_SIZE, at, __VA_ARGS__)
#define FR_EACH(at, ...)    FR_NUMBER(FR_ROW_EACH, at, __VA_ARGS__)
#define FR_REAL(at, ...)    FR_NUMBER(FR_ROW_REAL, at, __VA_ARGS__)
#define FR_RSQRT(at, ...)   FR_NUMBER(FR_ROW_RSQRT, at, __VA_ARGS__)
#define FR_DIVISOR(at, ...) FR_NUMBER(FR_ROW_DIVISOR, at, __VA_ARGS__)
#define FR_FLAG(at, j, ...) FR_NUMBER(FR_ROW_FLAG, at, j, __VA_ARGS__, 0, 1)
#define FR_SAME(at, g)      FR_NUMBER(FR_ROW_SAME, at, NULL, g, 0, 0)
#define FR_ONLY(j, built) \
    { .kind = FR_ROW_ONLY, .json = j, .word = built }
#define FR_ACTIVATION(j) FR_NUMBER(FR_ROW_ACTIVATION, layer.ffn.activation, j, NULL, 0, 0)
#define FR_WITHOUT(j) \
    { .kind = FR_ROW_WITHOUT, .json = j }
#define FR_WITH(j) \
    { .kind = FR_ROW_WITH, .json = j }
#define FR_ABSENT(j) \
    { .kind = FR_ROW_ABSENT, .json = j }
#define FR_NONE(g) \
    { .kind = FR_ROW_ABSENT, .gguf = g }
#define FR_MTP(j)   FR_NUMBER(FR_ROW_MTP, mtp_layers, j, ".nextn_predict_layers", 0, 64, .sparse = true)
#define FR_KINDS(j) FR_NUMBER(FR_ROW_KINDS, kinds.every, j, ".attention.sliding_window_pattern", 1, FR_LAYERS_MAX)
#define FR_PART(of) \
    { .kind = FR_ROW_PART, .part = &(of) }

/* Tables of rows that families share, in the converter's order of keys. fr_size_keys: sizes. fr_head_keys: heads and
 * one rotary form. fr_kind_keys: heads, the window, and a rotary form for each kind of layer. fr_layer_norm_head_keys:
 * as fr_head_keys, for families whose norms are LayerNorm. fr_normless_head_keys: as fr_head_keys, without eps. */
extern const fr_config_row fr_size_keys[], fr_head_keys[], fr_kind_keys[], fr_layer_norm_head_keys[],
    fr_normless_head_keys[];

/* Writes the sections of rotary positions to GGUF; fr_rope_sections reads them. */
extern const fr_config_part fr_sections_part;

/* Reads the window of Qwen's configurations. A key says whether there is one, and another key how many of the first
 * layers don't have it: *first, which is FR_LAYERS_MAX if no layer slides. *window is unchanged then. */
fr_status fr_window_from_json(const json_t *text, const char *where, size_t *first, size_t *window);

/* Reads the same window for a family. GGUF has no key for it. So no layer slides there, and a model with a window is
 * not written. */
extern const fr_config_part fr_window_part;

/* fr_window_of_all reads from config.json the window that all layers have; null means that there is no window.
 * fr_window_of_all_part also reads this window, and refuses to write a model with a window as GGUF. Families whose
 * GGUF has a key for the window use only fr_window_of_all. */
fr_status fr_window_of_all(const fr_source *source, fr_model_spec *spec);
extern const fr_config_part fr_window_of_all_part;

/* ----------------------------------------------------------------------------------------------------------- family */

typedef struct fr_family fr_family;

struct fr_family {
    const char *const *architectures; /* names in config.json and in GGUF, NULL-terminated */
    const char *gguf;                 /* the architecture that is written to GGUF; NULL: GGUF is not written */
    /* gives the architecture under which a model is written to GGUF, for a family whose models do not all have the
     * same one; NULL: all models have `gguf` */
    const char *(*gguf_of)(const fr_trunk_spec *spec);
    /* a key that is not 0 in this family's GGUF files and is missing or 0 in those of another family with the same
     * name; NULL: no other family has the name, or the key is not needed */
    const char *gguf_with;
    const char *tokenizer, *pre; /* tokenizer.ggml.model and tokenizer.ggml.pre of the family's GGUF files */
    bool counts_ids;             /* this family's GGUF files have the key .vocab_size besides the list of tokens */
    /* GGUF has no keys for biases, so they are looked up among the first layer's tensors */
    bool finds_biases;
    /* A number of layers. Scores are scaled by 1 / the square root of n, and GGUF has no key for n. In models with this
     * number of layers n is hidden / heads, in all others head_dim. 0: n is head_dim in all models, unless the defaults
     * have a scale. */
    size_t scaled_by_hidden;
    const char *picture; /* the token that stands for a row of a picture; NULL: the family has no pictures */
    const fr_tensor_naming *names;

    /* values for keys that a file lacks; gguf_defaults NULL: GGUF has the same defaults */
    const fr_model_spec *defaults, *gguf_defaults;
    const fr_config_row *rows[6]; /* tables, ending with NULL */

    /* Reads rotary positions, after the rows (rope_config.h). */
    fr_status (*rope)(const fr_source *source, fr_model_spec *spec);

    /* Makes the layers, and reads all that no row reads. The caller then owns spec->trunk.layer. NULL: all layers are
     * alike. */
    fr_status (*shape)(const fr_source *source, fr_model_spec *spec);

    bool scales_embedding; /* embeddings are multiplied by the square root of hidden */
    /* GGUF has no keys for the factors of products (fr_layer_factors), of embeddings and of logits; instead, the
     * weights in GGUF are multiplied by these factors */
    bool factors_in_weights;
    bool scaling_in_rows; /* the rows also write the scaling of rotary positions; if false, fr_family_put writes the
                           * scaling after the rows */
    bool sees;            /* the family's folders may have a supported vision tower */

    /* Gives fr_rope_spec.neox for an MTP layer in this GGUF file. The file need not be the model's own. NULL: neox is
     * the same in all files of the family as in folders, or there are no MTP layers. */
    bool (*gguf_neox)(const fr_gguf *gguf);

    /* Writes rope_freqs.weight, the divisors of the frequencies of one of the rotary forms, and returns their number;
     * 0 if this model has none. NULL: no model of the family has that tensor. */
    size_t (*put_rope_factors)(const fr_trunk_spec *spec, float *factors);
};

#define FR_FAMILY(name) extern const fr_family fr_family_##name;
#include "src/engine/families/families.def"
#undef FR_FAMILY

/* --------------------------------------------------------------------------------------------- functions for shapes */

/* Makes all layers the same. */
fr_status fr_layers_alike(const fr_source *source, fr_model_spec *spec);

/* Makes the layers: sliding ones, which have the window, and full ones, which have none. The file's list says which
 * layers slide; without a list, spec->kinds says it. Without a window all layers are full, and a list that says
 * otherwise is refused; but a drafter's is accepted, because the classes of published drafters run such a layer as a
 * full one. If there are two rotary forms, each kind of layer has a form of its own. */
fr_status fr_layers_by_kind(const fr_source *source, fr_model_spec *spec);

/* Makes layers as fr_layers_by_kind does; if there is a window, the heads of full layers aren't rotated. */
fr_status fr_layers_still_if_full(const fr_source *source, fr_model_spec *spec);

/* Set the kinds as fr_layers_by_kind and fr_layers_still_if_full do, in layers that have already been made. */
fr_status fr_layers_mark_kinds(const fr_source *source, fr_model_spec *spec);
fr_status fr_layers_mark_still(const fr_source *source, fr_model_spec *spec);

/* Sets the kind of the MTP layer, of which a model has at most one. config.json says it in mtp_layer_types. Without
 * that key, and in GGUF, the layer slides if `slides` is true. */
fr_status fr_layers_mark_mtp(const fr_source *source, fr_model_spec *spec, bool slides);

/* Writes the key that says which layers slide. It is left out if none slides, or if exactly every `fallback`th layer
 * is full. */
void fr_layers_put_kinds(const fr_trunk_spec *spec, size_t fallback, fr_gguf_writer *writer);

/* Read rotary positions. fr_rope_one_form reads a single form, into rope[0]. fr_rope_by_kind reads a form for each
 * kind of layer. All values of a head are rotated, if no rows have set their number. For a folder, `neox` is as in the
 * defaults. For GGUF, it follows from fr_tensor_naming.rotary_rows. */
fr_status fr_rope_one_form(const fr_source *source, fr_model_spec *spec);
fr_status fr_rope_by_kind(const fr_source *source, fr_model_spec *spec);

/* Reads one rotary form for each kind of layer. Each form rotates a part of a head (partial_rotary_factor). */
fr_status fr_rope_by_kind_in_part(const fr_source *source, fr_model_spec *spec);

/* Reads one form, for families that always rotate whole heads. If their config.json has a partial_rotary_factor,
 * transformers ignores it. */
fr_status fr_rope_whole_heads(const fr_source *source, fr_model_spec *spec);

/* Reads one form as fr_rope_whole_heads does. If config.json has no parameters of rotary positions, the form has
 * llama3's scaling by this factor for texts of more than 8192 positions. Its base is then the family's, even if
 * config.json has another one. */
fr_status fr_rope_llama3_unless_told(const fr_source *source, fr_model_spec *spec, double factor);

/* Reads one rotary form whose angles are divided among several axes. The defaults must have `mrope_interleaved`, and
 * the sections for a config.json without them. GGUF must have sections. */
fr_status fr_rope_sections(const fr_source *source, fr_model_spec *spec);

/* Reads nothing: heads aren't rotated, but a table has a row for each position, after trunk.position_offset others. */
fr_status fr_positions_learned(const fr_source *source, fr_model_spec *spec);

/* Reads nothing: heads aren't rotated, but scores grow towards the row's position. The flattest slope is 2^-8 unless a
 * row has set alibi_octaves. */
fr_status fr_positions_alibi(const fr_source *source, fr_model_spec *spec);

/* A put_rope_factors function for llama3's scaling. It writes a factor for each frequency: the one by which llama3's
 * scaling reduces that frequency. */
size_t fr_rope_llama3_factors(const fr_trunk_spec *spec, float *factors);

/* Gives 1 / the square root of n, rounded once: the usual scale of scores. */
float fr_rsqrt(size_t n);

/* Reads the id that stands for a row of a picture. It is in config.json itself, outside of the text model's part. -1:
 * there is none. */
fr_status fr_read_image_token(const fr_source *source, fr_model_spec *spec);

/* Reads a list of config.json with one of two words for each layer. is_yes[i] gets true if layer i has the word `yes`.
 * Returns false in *found if there is no list. */
fr_status fr_source_words(const fr_source *source, const char *key, const char *yes, const char *no, size_t layers,
                          bool *is_yes, bool *found);

/* Returns true if the files have a tensor of that name. */
bool fr_source_has(const fr_source *source, const char *tensor);

/* Returns true if any layer of a GGUF file has a tensor of that name. All layers are searched because the file of an
 * MTP layer has only that layer's tensors. */
bool fr_source_layer_has(const fr_source *source, const fr_model_spec *spec, const char *tensor);

/* ---------------------------------------------------------------------------------------- names that families share */

/* The names of tensors, each for a field of fr_layer. fr_attention_names: attention's input norm, projections, biases
 * and norms of heads. fr_pre_norm_names and fr_post_norm_names: the norm before the feed-forward, which GGUF names
 * ffn_norm or post_attention_norm. fr_sandwich_norm_names: norms before and after attention and feed-forward;
 * fr_glm_norm_names has GLM-4's names for them. fr_behind_norm_names: norms only after attention and feed-forward
 * (FR_NORMS_BEHIND). The feed-forward has gate and up in one tensor (fused) or in two. */
extern const fr_tensor_name fr_attention_names[], fr_pre_norm_names[], fr_post_norm_names[], fr_sandwich_norm_names[],
    fr_behind_norm_names[], fr_glm_norm_names[], fr_fused_ffn_names[], fr_ffn_names[];

#endif
