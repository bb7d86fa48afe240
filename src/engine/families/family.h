/* A family of targets, described as data: its names, the rows of its configuration, and its layers.
 *
 * In: each family has a file with an fr_family, and families.def lists the family. Out: a model's spec, which
 * fr_family_read reads by these rows from config.json or from GGUF metadata. fr_family_put writes GGUF metadata by the
 * same rows (config.c). */
#ifndef FR_SRC_ENGINE_FAMILIES_FAMILY_H
#define FR_SRC_ENGINE_FAMILIES_FAMILY_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/engine/layers/trunk.h"

#define FR_LAYERS_MAX 1024 /* the most layers of a configuration, and the size of arrays with an entry for each layer */

/* The kinds of layers, in families that have both kinds. The numbers are also the indices of their rotary forms. */
typedef enum fr_layer_kind { FR_SLIDING, FR_FULL, FR_LAYER_KINDS } fr_layer_kind;

/* The keys of a family in config.json for the sizes of its mixtures. A member that is NULL means the usual key. */
typedef struct fr_mixture_words {
    const char *count, *top_k, *width, *shared;
} fr_mixture_words;

/* A family's settings of mixtures of experts, apart from those in the layers' spec (mixture.h). */
typedef struct fr_mixture_keys {
    const fr_mixture_words *words; /* NULL: the usual keys */
    size_t shared; /* width of all shared experts together; every row uses the shared experts. In defaults, this is the
                    * number of shared experts */
    size_t shared_width;  /* only in defaults: the default of config.json's key for the width of all shared experts; 0:
                           * the width is computed from their number */
    bool shared_by_count; /* the width is the number of shared experts times the width of one expert, because there is
                           * no key for the width, or GGUF's key is wrong */
    size_t leading_dense; /* number of layers before the first layer with a mixture */
    bool normalizes;      /* the family's routers always normalize weights, even if a file says otherwise */
    bool any_scoring;     /* GGUF may name another scoring function than that of the defaults */
    bool as_wide;         /* an expert is as wide as the feed-forward, and GGUF has no key for an expert's width */
} fr_mixture_keys;

/* The pattern of full layers, for files that don't list the kinds of layers. The first `first` layers are full, and
 * also every `every`th layer of the model. */
typedef struct fr_kind_pattern {
    size_t first, every; /* every 0: only the first layers are full */
    bool required;       /* only folders may use the pattern: a GGUF file must list the kinds */
} fr_kind_pattern;

/* The spec of a model while it is being read. `layer` has the values that all layers share. */
typedef struct fr_model_spec {
    fr_trunk_spec trunk;
    fr_layer_spec layer;
    fr_mixture_keys mixture;
    fr_kind_pattern kinds;
    size_t mtp_layers;
    /* number of layers at the end that read the keys and values of an earlier layer; in a drafter all layers read the
     * target's keys and values */
    size_t borrowers;
    int32_t image_token;
} fr_model_spec;

/* The source of a spec, which is a folder or a GGUF file. The pointers for the other of these two are NULL. */
typedef struct fr_source {
    const json_t *root, *text; /* config.json, and its part for the text model */
    const fr_gguf *gguf;
    const char *where;   /* the name of the file for error lines */
    fr_weights *weights; /* the files' tensors; NULL: there are no tensors, only the shape of a model is read */
    bool drafter;        /* the files are a drafter's; its head and its embedding table may be missing, because the
                          * target has them */
} fr_source;

/* ------------------------------------------------------------------------------------------------------------- rows */

typedef enum fr_row_kind {
    FR_ROW_SIZE,    /* a size_t */
    FR_ROW_EACH,    /* a size_t of `layer`; GGUF has one number for all layers, or an array with a number for each
                     * layer */
    FR_ROW_REAL,    /* a float or a double; 0 means that there is no such number, and is written only if the key is
                     * required */
    FR_ROW_DIVISOR, /* a float, which is 1 / the number in the file */
    FR_ROW_FLAG,    /* a bool */
    /* A float, which is 1 / the square root of the number in config.json. GGUF has no key for it, so a model is written
     * only if readers of GGUF assume the same value. */
    FR_ROW_RSQRT,
    FR_ROW_SAME,    /* a size_t that was already read from another key; another value in this key is refused with
                     * FR_UNBUILT */
    FR_ROW_ONLY,    /* the key may only have the row's `word`; another word in config.json is refused with FR_UNBUILT */
    FR_ROW_WITHOUT, /* a value of true is refused with FR_UNBUILT */
    FR_ROW_WITH,    /* a value of false is refused with FR_UNBUILT */
    /* An fr_activation: the activation of a feed-forward without a gate, which config.json names by a word. GGUF has no
     * key for the activation, so only a model with the family's default is written. */
    FR_ROW_ACTIVATION,
    FR_ROW_ABSENT, /* refused with FR_UNBUILT if config.json has a value other than null, or GGUF a number other than
                    * 0 */
    /* A size_t, the interval of full layers. GGUF may have a list of the layers' kinds instead, which fr_layers_by_kind
     * reads. The key for the interval is missing in GGUF if the interval is the default, or if no layer slides. */
    FR_ROW_KINDS,
    /* a size_t, the number of MTP layers. GGUF's number of layers includes MTP layers, so these are subtracted from
     * it */
    FR_ROW_MTP,
    FR_ROW_PART, /* keys that are read and written by functions */
} fr_row_kind;

/* Functions that read and write keys. Either function may be NULL. mtp_layers: the number of MTP layers. `put` returns
 * FR_INPUT if GGUF has no key for a property of the spec. `where` is the beginning of its error line. */
typedef struct fr_config_part {
    fr_status (*read)(const fr_source *source, fr_model_spec *spec);
    fr_status (*put)(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);
} fr_config_part;

/* A row of a table. If a file lacks the row's key, the field keeps its default, which is the value that it has before
 * the row is read. Rows are read in order, and several rows may have the same key. */
typedef struct fr_config_row {
    const char *json, *gguf; /* the keys; NULL: this kind of file has no such key. A row without keys and without a part
                              * ends the table */
    const fr_config_part *part;
    fr_row_kind kind;
    size_t field, bytes; /* the field's offset in fr_model_spec, and its size */
    double low, high;    /* limits of a number */
    const char *word;    /* FR_ROW_ONLY: the word that is supported */
    size_t like;         /* offset of another field, a size_t; if this field's default is 0, the other field's value is
                          * its default */
    bool per_head;       /* the default is hidden / heads */
    bool required;       /* GGUF must have this key, or the key `unless` */
    const char *unless;  /* another key that may take the place of this key; if the file has only that key, this field
                          * gets 1 */
    bool null_is_none;   /* null in config.json means 0; otherwise null means the default */
    bool sparse;         /* a size of 0 is not written to GGUF; so a size that is missing in GGUF is 0 */
} fr_config_row;

/* Macros that write a row of a table. A row for a number has the field, both keys and the limits. Designators for other
 * members may follow, if they differ from 0. Rows without a field only check that the file's value is supported. */
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

/* Tables of rows that families share, in the order in which the converter writes the keys. fr_size_keys: sizes.
 * fr_head_keys: heads and one rotary form. fr_kind_keys: heads, the window, and a rotary form for each kind of layer.
 * fr_layer_norm_head_keys: as fr_head_keys, for families whose norms are LayerNorms. fr_normless_head_keys: as
 * fr_head_keys, without eps. */
extern const fr_config_row fr_size_keys[], fr_head_keys[], fr_kind_keys[], fr_layer_norm_head_keys[],
    fr_normless_head_keys[];

/* Writes the sections of rotary positions to GGUF. fr_rope_sections reads them. */
extern const fr_config_part fr_sections_part;

/* Reads the window of Qwen's configurations. One key says whether there is a window. Another key says how many of the
 * first layers don't have it; this number is stored in *first. If no layer slides, *first is FR_LAYERS_MAX, and *window
 * is unchanged. */
fr_status fr_window_from_json(const json_t *text, const char *where, size_t *first, size_t *window);

/* Reads the same window for a family. GGUF has no key for this window. So no layer slides in a GGUF file, and a model
 * with a window is not written. */
extern const fr_config_part fr_window_part;

/* fr_window_of_all reads the window that all layers have from config.json; null means that there is no window.
 * fr_window_of_all_part does the same, and refuses to write a model with a window as GGUF. If a family's GGUF has a key
 * for the window, the family uses only fr_window_of_all. */
fr_status fr_window_of_all(const fr_source *source, fr_model_spec *spec);
extern const fr_config_part fr_window_of_all_part;

/* ----------------------------------------------------------------------------------------------------------- family */

typedef struct fr_family fr_family;

struct fr_family {
    const char *const *architectures; /* names in config.json and in GGUF; NULL ends the list */
    const char *gguf;                 /* the architecture in GGUF files that are written; NULL: GGUF is not written */
    /* Gives the architecture for the GGUF file of a model, if not all models of the family have the same one. NULL: all
     * models have `gguf`. */
    const char *(*gguf_of)(const fr_trunk_spec *spec);
    /* A key by which GGUF files of this family are told apart from those of another family with the same name. Here the
     * key is not 0; in the other family's files it is missing or 0. NULL: no such key is needed. */
    const char *gguf_with;
    const char *tokenizer, *pre; /* tokenizer.ggml.model and tokenizer.ggml.pre of the family's GGUF files */
    bool counts_ids;             /* the family's GGUF files have the key .vocab_size in addition to the list of
                                  * tokens */
    /* GGUF has no keys for biases, so the first layer's tensors show whether there are biases */
    bool finds_biases;
    /* A number of layers, which identifies certain models of the family. Scores are scaled by 1 / the square root of n,
     * and GGUF has no key for n. In models with this number of layers, n is hidden / heads. In all other models n is
     * head_dim. If this is 0, n is head_dim in all models, unless the defaults have a scale. */
    size_t scaled_by_hidden;
    const char *picture; /* the token that stands for a row of a picture; NULL: the family does not read pictures */
    const fr_tensor_naming *names;

    /* values for keys that a file lacks; if gguf_defaults is NULL, GGUF has the same defaults as folders */
    const fr_model_spec *defaults, *gguf_defaults;
    const fr_config_row *rows[6]; /* tables, ending with NULL */

    /* Reads rotary positions, after the rows (rope_config.h). */
    fr_status (*rope)(const fr_source *source, fr_model_spec *spec);

    /* Makes the layers, and reads everything that the rows don't read. The caller then owns spec->trunk.layer. NULL:
     * all layers are the same. */
    fr_status (*shape)(const fr_source *source, fr_model_spec *spec);

    bool scales_embedding; /* embeddings are multiplied by the square root of hidden */
    /* GGUF has no keys for the factors of products (fr_layer_factors), of embeddings and of logits. In GGUF the weights
     * are already multiplied by these factors. */
    bool factors_in_weights;
    bool scaling_in_rows; /* the rows write the scaling of rotary positions too; if false, fr_family_put writes the
                           * scaling after the rows */
    bool sees;            /* folders of the family may have a vision tower that is supported */

    /* Gives fr_rope_spec.neox for the MTP layer in a GGUF file, which may be another file than the model's. NULL: all
     * files of the family have the same neox as folders, or there are no MTP layers. */
    bool (*gguf_neox)(const fr_gguf *gguf);

    /* Writes rope_freqs.weight, the divisors of the frequencies of one rotary form. Returns their number, or 0 if this
     * model has none. The pointer is NULL if no model of the family has that tensor. */
    size_t (*put_rope_factors)(const fr_trunk_spec *spec, float *factors);
};

#define FR_FAMILY(name) extern const fr_family fr_family_##name;
#include "src/engine/families/families.def"
#undef FR_FAMILY

/* --------------------------------------------------------------------------------------------- functions for shapes */

/* Makes all layers the same. */
fr_status fr_layers_alike(const fr_source *source, fr_model_spec *spec);

/* Makes the layers. Sliding layers have the window, and full layers have none. The file's list says which layers slide;
 * if there is no list, spec->kinds says it. If there is no window, all layers are full, and a list that names sliding
 * layers is refused. Only a drafter's list is then accepted, because the classes of published drafters run such a layer
 * as a full one. If there are two rotary forms, each kind of layer has a form of its own. */
fr_status fr_layers_by_kind(const fr_source *source, fr_model_spec *spec);

/* Makes layers as fr_layers_by_kind does. If there is a window, the heads of full layers aren't rotated. */
fr_status fr_layers_still_if_full(const fr_source *source, fr_model_spec *spec);

/* Set the kinds of layers that have already been made: fr_layers_mark_kinds as fr_layers_by_kind does,
 * fr_layers_mark_still as fr_layers_still_if_full does. */
fr_status fr_layers_mark_kinds(const fr_source *source, fr_model_spec *spec);
fr_status fr_layers_mark_still(const fr_source *source, fr_model_spec *spec);

/* Sets the kind of the MTP layer. A model has at most one MTP layer. In config.json, mtp_layer_types gives its kind. If
 * that key is missing, and in GGUF, the layer slides if `slides` is true. */
fr_status fr_layers_mark_mtp(const fr_source *source, fr_model_spec *spec, bool slides);

/* Writes the key that says which layers slide. The key is left out if no layer slides, or if full layers are exactly
 * every `fallback`th layer. */
void fr_layers_put_kinds(const fr_trunk_spec *spec, size_t fallback, fr_gguf_writer *writer);

/* Read rotary positions. fr_rope_one_form reads a single form, into rope[0]. fr_rope_by_kind reads a form for each kind
 * of layer. If no rows have set the number of rotated values, all values of a head are rotated. For a folder, `neox` is
 * as in the defaults. For GGUF, it follows from fr_tensor_naming.rotary_rows. */
fr_status fr_rope_one_form(const fr_source *source, fr_model_spec *spec);
fr_status fr_rope_by_kind(const fr_source *source, fr_model_spec *spec);

/* Reads one rotary form for each kind of layer. Each form rotates a part of a head (partial_rotary_factor). */
fr_status fr_rope_by_kind_in_part(const fr_source *source, fr_model_spec *spec);

/* Reads one form, for families that always rotate whole heads. For these families transformers ignores a
 * partial_rotary_factor in config.json, so it is ignored here too. */
fr_status fr_rope_whole_heads(const fr_source *source, fr_model_spec *spec);

/* Reads one form as fr_rope_whole_heads does. If config.json has no parameters of rotary positions, the form has
 * llama3's scaling by `factor` for texts of more than 8192 positions. Its base is then the family's default, even if
 * config.json has another base. */
fr_status fr_rope_llama3_unless_told(const fr_source *source, fr_model_spec *spec, double factor);

/* Reads one rotary form whose angles are divided among several axes. The defaults must have `mrope_interleaved`, and
 * must have the sections, for a config.json that lacks them. GGUF must have sections. */
fr_status fr_rope_sections(const fr_source *source, fr_model_spec *spec);

/* Reads nothing, because heads aren't rotated. Instead, a table has a row for each position. trunk.position_offset
 * other rows come before these in the table. */
fr_status fr_positions_learned(const fr_source *source, fr_model_spec *spec);

/* Reads nothing, because heads aren't rotated. Instead, a score is larger the nearer the key is to the row's position.
 * The flattest slope is 2^-8 if no row has set alibi_octaves. */
fr_status fr_positions_alibi(const fr_source *source, fr_model_spec *spec);

/* A put_rope_factors function for llama3's scaling. For each frequency, it writes the factor by which llama3's scaling
 * reduces the frequency. */
size_t fr_rope_llama3_factors(const fr_trunk_spec *spec, float *factors);

/* Gives 1 / the square root of n, rounded once. This is the usual scale of scores. */
float fr_rsqrt(size_t n);

/* Reads the id that stands for a row of a picture. The key is in config.json itself, outside of the text model's part.
 * The id is -1 if there is no key. */
fr_status fr_read_image_token(const fr_source *source, fr_model_spec *spec);

/* Reads a list of config.json that has the word `yes` or the word `no` for each layer. is_yes[i] is true if layer i has
 * the word `yes`. *found is false if there is no list. */
fr_status fr_source_words(const fr_source *source, const char *key, const char *yes, const char *no, size_t layers,
                          bool *is_yes, bool *found);

/* Returns true if the files have a tensor of that name. */
bool fr_source_has(const fr_source *source, const char *tensor);

/* Returns true if any layer of a GGUF file has a tensor of that name. All layers are searched, because the file of an
 * MTP layer has only that layer's tensors. */
bool fr_source_layer_has(const fr_source *source, const fr_model_spec *spec, const char *tensor);

/* ---------------------------------------------------------------------------------------- names that families share */

/* The names of tensors; each table has names for fields of fr_layer. fr_attention_names: the input norm of attention,
 * its projections and biases, and the norms of heads. fr_pre_norm_names and fr_post_norm_names: the norm before the
 * feed-forward, which GGUF names ffn_norm or post_attention_norm. fr_sandwich_norm_names: norms before and after
 * attention and feed-forward. fr_glm_norm_names: the same with GLM-4's names. fr_behind_norm_names: norms only after
 * attention and feed-forward (FR_NORMS_BEHIND). fr_fused_ffn_names: a feed-forward with gate and up in one tensor.
 * fr_ffn_names: with gate and up in two tensors. */
extern const fr_tensor_name fr_attention_names[], fr_pre_norm_names[], fr_post_norm_names[], fr_sandwich_norm_names[],
    fr_behind_norm_names[], fr_glm_norm_names[], fr_fused_ffn_names[], fr_ffn_names[];

#endif
