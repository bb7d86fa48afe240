/* A family of targets described as data: its names, its configuration row by row, its layers.
 *
 * In: a file of a family fills an fr_family, and families.def lists it. Out: by these rows fr_family_read makes a
 * model's spec of config.json or of GGUF metadata, and fr_family_put writes GGUF metadata (config.c). */
#ifndef FR_SRC_ENGINE_FAMILIES_FAMILY_H
#define FR_SRC_ENGINE_FAMILIES_FAMILY_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/engine/layers/trunk.h"

#define FR_LAYERS_MAX 1024 /* the most layers of a configuration; arrays with an entry for each layer have this size */

/* The kinds of layers in families that have both; also the numbers of their rotary forms. */
typedef enum fr_layer_kind { FR_SLIDING, FR_FULL, FR_LAYER_KINDS } fr_layer_kind;

/* A family's keys in config.json for the numbers of its mixtures; NULL: the usual key. */
typedef struct fr_mixture_words {
    const char *count, *top_k, *width, *shared;
} fr_mixture_words;

/* A family's settings for mixtures of experts, beside those in the layers' spec (mixture.h). */
typedef struct fr_mixture_keys {
    const fr_mixture_words *words; /* NULL: the usual keys */
    size_t shared;                 /* the joint width of the experts that all rows share; in defaults their number */
    size_t shared_width;           /* in defaults that width, if config.json has a key for it; 0: it has none */
    bool shared_by_count; /* no key has that width, or GGUF's is wrong: it follows from the number of shared experts */
    size_t leading_dense; /* layers before the first one that has a mixture */
    bool normalizes;      /* its routers always normalize weights, whatever a file says */
    bool any_scoring;     /* GGUF may have other scores than the defaults */
    bool as_wide;         /* an expert is as wide as the feed-forward: GGUF has no key for it */
} fr_mixture_keys;

/* The layers that are full if a file doesn't list the kinds: the first ones, `first` of them, then every `every`th. */
typedef struct fr_kind_pattern {
    size_t first, every; /* every 0: no others */
    bool required;       /* this is for folders only: GGUF must have the kinds */
} fr_kind_pattern;

/* The spec of a model as it is read. `layer` is the part that all layers have in common. */
typedef struct fr_model_spec {
    fr_trunk_spec trunk;
    fr_layer_spec layer;
    fr_mixture_keys mixture;
    fr_kind_pattern kinds;
    size_t mtp_layers;
    /* the number of last layers that read the K/V of an earlier one; all of a drafter's read the target's */
    size_t borrowers;
    int32_t image_token;
} fr_model_spec;

/* The source of a spec: one of the two kinds of files; the pointers of the other kind are NULL. */
typedef struct fr_source {
    const json_t *root, *text; /* config.json, and the text model's part of it */
    const fr_gguf *gguf;
    const char *where;   /* for error lines */
    fr_weights *weights; /* NULL: a shape without tensors */
    bool drafter;        /* it is a drafter, whose head and table of ids may be its target's: they are not required */
} fr_source;

/* ------------------------------------------------------------------------------------------------------------- rows */

typedef enum fr_row_kind {
    FR_ROW_SIZE,    /* a size_t */
    FR_ROW_EACH,    /* a size_t of `layer`: in GGUF one for all layers, or an array of one for each */
    FR_ROW_REAL,    /* a float or a double; 0 means none, and is not written unless the key is required */
    FR_ROW_DIVISOR, /* a float: 1 / the number that the file has */
    FR_ROW_FLAG,    /* a bool */
    /* A float: 1 / the root of the number in config.json. GGUF has no key for it, so a model is written only if
     * readers of GGUF assume the same value. */
    FR_ROW_RSQRT,
    FR_ROW_SAME,    /* a size_t that has been read already, and must be the same here: otherwise FR_UNBUILT */
    FR_ROW_ONLY,    /* FR_UNBUILT if config.json says another word than this */
    FR_ROW_WITHOUT, /* FR_UNBUILT if it says true */
    FR_ROW_WITH,    /* FR_UNBUILT if it says false */
    FR_ROW_ABSENT,  /* FR_UNBUILT if config.json has a value other than null, or GGUF a number other than 0 */
    /* A size_t, the interval of full layers. GGUF may list the kinds instead (fr_layers_by_kind reads them), and has
     * no key if the interval is the default or no layer slides. */
    FR_ROW_KINDS,
    /* a size_t, the number of MTP layers; GGUF counts them among the layers, from which they are subtracted */
    FR_ROW_MTP,
    FR_ROW_PART, /* keys that code reads and writes */
} fr_row_kind;

/* Functions that read and write keys; either may be NULL. mtp_layers: the number of MTP layers. put fails with
 * FR_INPUT if GGUF has no key for something; `where` begins its message. */
typedef struct fr_config_part {
    fr_status (*read)(const fr_source *source, fr_model_spec *spec);
    fr_status (*put)(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);
} fr_config_part;

/* A row of a table. The value that the field has before is the default. Rows are read in order, and a key may have
 * several. */
typedef struct fr_config_row {
    const char *json, *gguf; /* NULL: that kind of file has no such key; both NULL, and no part: the table ends */
    const fr_config_part *part;
    fr_row_kind kind;
    size_t field, bytes; /* the offset in fr_model_spec, and the size */
    double low, high;
    const char *word;
    size_t like;        /* another field, a size_t, whose value is the default if this field has 0 */
    bool per_head;      /* that default is hidden / heads */
    bool required;      /* GGUF must have it or `unless` */
    const char *unless; /* another key; if the file has it, the default is 1 */
    bool null_is_none;  /* a null in config.json is 0, not the default */
    bool sparse;        /* a size of 0 is not written, and one that GGUF lacks is 0 */
} fr_config_row;

/* Lines of tables: a number by its field, both keys and its limits, more by designators; and checks for what is
 * built. */
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

/* Tables that families share, in the converter's order of keys: sizes; heads and one rotary form; heads, the window
 * and a rotary form for each kind of layer. The fourth is the second one for families whose norms are LayerNorm. */
extern const fr_config_row fr_size_keys[], fr_head_keys[], fr_kind_keys[], fr_layer_norm_head_keys[];

/* Writes the sections of rotary positions; fr_rope_sections reads them. */
extern const fr_config_part fr_sections_part;

/* Reads the window of Qwen's configurations: a key switches it on, for the layers after the first ones. GGUF has no
 * key for it, so nothing slides there, and a model with a window is not written. */
extern const fr_config_part fr_window_part;

/* Does the same for a window of all layers, unless a folder says null. Families whose GGUF has a key use only the
 * function. */
fr_status fr_window_of_all(const fr_source *source, fr_model_spec *spec);
extern const fr_config_part fr_window_of_all_part;

/* ----------------------------------------------------------------------------------------------------------- family */

typedef struct fr_family fr_family;

struct fr_family {
    const char *const *architectures; /* names in config.json and in GGUF, NULL-terminated */
    const char *gguf;                 /* the architecture that is written; NULL: GGUF is not written */
    /* a key with a number in its GGUF files, but not in those of another family of that name; NULL: not needed */
    const char *gguf_with;
    const char *tokenizer, *pre; /* tokenizer.ggml.model and .pre of such a file */
    bool counts_ids;             /* such a file has .vocab_size beside the list of tokens */
    /* GGUF has no keys for biases: they are looked for among the first layer's tensors */
    bool finds_biases;
    /* GGUF has no key for the scale of scores either: in a model of this many layers it follows from hidden / heads,
     * in others from head_dim. 0: it follows from head_dim, unless the defaults have one. */
    size_t scaled_by_hidden;
    const char *picture; /* the token that stands for a row of a picture; NULL: it takes no pictures */
    const fr_tensor_naming *names;

    /* values for keys that a file lacks; gguf_defaults NULL: GGUF has the same */
    const fr_model_spec *defaults, *gguf_defaults;
    const fr_config_row *rows[6]; /* tables, up to NULL */

    /* Reads rotary positions, after the rows (rope_config.h). */
    fr_status (*rope)(const fr_source *source, fr_model_spec *spec);

    /* Makes the layers, and reads all that no row reads; the caller then owns spec->trunk.layer. NULL: layers are
     * alike. */
    fr_status (*shape)(const fr_source *source, fr_model_spec *spec);

    bool scales_embedding; /* embeddings are multiplied by the root of hidden */
    bool scaling_in_rows;  /* the rows write the scaling of rotary positions; otherwise it is written after them */
    bool sees;             /* its folders may have a vision tower that is built */

    /* Gives fr_rope_spec.neox for this GGUF file. NULL: it is the folders' in all of the family's files, or there is
     * no MTP layer that could be in another file. */
    bool (*gguf_neox)(const fr_gguf *gguf);

    /* Writes rope_freqs.weight, the divisors of the frequencies of one of the rotary forms, and returns their number;
     * 0: this model has none. NULL: no model of the family has that tensor. */
    size_t (*put_rope_factors)(const fr_trunk_spec *spec, float *factors);
};

#define FR_FAMILY(name) extern const fr_family fr_family_##name;
#include "src/engine/families/families.def"
#undef FR_FAMILY

/* ----------------------------------------------------------------------------------------------- what shapes may do */

/* Makes all layers alike. */
fr_status fr_layers_alike(const fr_source *source, fr_model_spec *spec);

/* Makes sliding layers with the window and full ones without; if there are two rotary forms, each kind has its own.
 * The file lists the kinds, or spec->kinds gives them; without a window all layers are full. */
fr_status fr_layers_by_kind(const fr_source *source, fr_model_spec *spec);

/* Does the same; if there is a window, the heads of full layers aren't rotated. */
fr_status fr_layers_still_if_full(const fr_source *source, fr_model_spec *spec);

/* Does the same for layers that are there already. */
fr_status fr_layers_mark_kinds(const fr_source *source, fr_model_spec *spec);

/* Writes the key for the layers that slide, if any does, unless every `fallback`th is full. */
void fr_layers_put_kinds(const fr_trunk_spec *spec, size_t fallback, fr_gguf_writer *writer);

/* Reads rotary positions of one form, rope[0], or of a form for each kind of layer. All values of a head are rotated,
 * unless rows have set their number. `neox` is that of the defaults, and in GGUF that of the family's rotary rows. */
fr_status fr_rope_one_form(const fr_source *source, fr_model_spec *spec);
fr_status fr_rope_by_kind(const fr_source *source, fr_model_spec *spec);

/* Reads one form for families whose heads are rotated as a whole: transformers ignores a partial_rotary_factor in
 * their config.json. */
fr_status fr_rope_whole_heads(const fr_source *source, fr_model_spec *spec);

/* Reads one form along several axes. `mrope_interleaved`, and the sections if config.json has none, are those of the
 * defaults. GGUF must have sections. */
fr_status fr_rope_sections(const fr_source *source, fr_model_spec *spec);

/* A put_rope_factors for llama3's scaling: the factors by which it makes each frequency smaller. */
size_t fr_rope_llama3_factors(const fr_trunk_spec *spec, float *factors);

/* Gives 1 / the root of n, rounded once, as scores are scaled. */
float fr_rsqrt(size_t n);

/* Returns true if the files have a tensor of that name. */
bool fr_source_has(const fr_source *source, const char *tensor);

/* Returns true if any layer of a GGUF file has a tensor of that name: the file of an MTP layer has only that
 * layer's. */
bool fr_source_layer_has(const fr_source *source, const fr_model_spec *spec, const char *tensor);

/* ---------------------------------------------------------------------------------------- names that families share */

/* The names of fields of fr_layer. Attention: its input norm, projections, biases and norms of heads. Norms: one
 * before the feed-forward, which GGUF names ffn_norm or post_attention_norm; norms before and after each part; norms
 * only after each part (FR_NORMS_BEHIND); norms before and after each part by GLM-4's names. The feed-forward, with
 * gate and up in one tensor or in two. */
extern const fr_tensor_name fr_attention_names[], fr_pre_norm_names[], fr_post_norm_names[], fr_sandwich_norm_names[],
    fr_behind_norm_names[], fr_glm_norm_names[], fr_fused_ffn_names[], fr_ffn_names[];

#endif
