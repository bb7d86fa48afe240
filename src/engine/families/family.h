/* What a family of targets is, as data: its names, its configuration row by row, what its layers are.
 *
 * In: a file of a family fills an fr_family, and families.def lists it. Out: fr_family_read makes a model's spec of a
 * config.json or of GGUF metadata by the same rows, and fr_family_put writes the latter (config.c). */
#ifndef FR_SRC_ENGINE_FAMILIES_FAMILY_H
#define FR_SRC_ENGINE_FAMILIES_FAMILY_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/engine/layers/trunk.h"

#define FR_MOST_LAYERS 1024 /* that a configuration may have; what is kept layer by layer has room for them */

/* Kinds of layers in families that have both, and the rotary forms of theirs. */
typedef enum fr_layer_kind { FR_SLIDING, FR_FULL, FR_LAYER_KINDS } fr_layer_kind;

/* What config.json of a family calls the numbers of its mixtures; NULL: as most do. */
typedef struct fr_mixture_words {
    const char *count, *top_k, *width, *shared;
} fr_mixture_words;

/* Mixtures of experts, beside what the spec of a layer says of them (mixture.h). */
typedef struct fr_mixture_keys {
    const fr_mixture_words *words; /* NULL: as most families have them */
    size_t shared;        /* width of the experts that all rows share, together; in defaults how many */
    size_t shared_width;  /* in defaults that width, where config.json has a key of its own for it; 0: it has none */
    bool shared_by_count; /* there is no key of that width, or GGUF's is wrong: it is that of as many */
    size_t leading_dense; /* layers in front of the first one that has a mixture */
    bool normalizes;      /* its routers always do: no file is asked */
    bool any_scoring;     /* GGUF may say other scores than the defaults */
    bool as_wide;         /* an expert is as wide as the feed-forward: GGUF has no key for it */
} fr_mixture_keys;

/* Which layers are full where a file doesn't tell it layer by layer: the first ones, so many; then every so manieth. */
typedef struct fr_kind_pattern {
    size_t first, every; /* every 0: none */
    bool required;       /* of folders alone: GGUF must tell it */
} fr_kind_pattern;

/* What is read of a model. `layer`: what its layers are, as far as they are alike. */
typedef struct fr_model_spec {
    fr_trunk_spec trunk;
    fr_layer_spec layer;
    fr_mixture_keys mixture;
    fr_kind_pattern kinds;
    size_t mtp_layers;
    size_t borrowers; /* layers, the last ones, that read the K/V of an earlier one; of a drafter all, the target's */
    int32_t image_token;
} fr_model_spec;

/* Where it is read: one of the two kinds of files, the other's pointers are NULL. */
typedef struct fr_source {
    const json_t *root, *text; /* config.json, and the text model's part of it */
    const fr_gguf *gguf;
    const char *where;   /* for error lines */
    fr_weights *weights; /* NULL: a shape without tensors */
    bool drafter;        /* of a drafter, whose head and table of ids may be its target's: they are not asked for */
} fr_source;

/* ------------------------------------------------------------------------------------------------------------- rows */

typedef enum fr_row_kind {
    FR_ROW_SIZE,    /* a size_t */
    FR_ROW_EACH,    /* a size_t of `layer`: in GGUF one for all layers, or an array of one for each */
    FR_ROW_REAL,    /* a float or a double; 0 says nothing and is not written unless the key is required */
    FR_ROW_DIVISOR, /* a float: one by the number that the file has */
    FR_ROW_FLAG,    /* a bool */
    /* A float: one by the root of the number that the file has, in config.json alone. A model is written if readers of
     * GGUF take it for what it is without a key. */
    FR_ROW_RSQRT,
    FR_ROW_SAME,    /* a size_t that has been read already, and must be here again: otherwise FR_UNBUILT */
    FR_ROW_ONLY,    /* FR_UNBUILT if config.json says another word than this */
    FR_ROW_WITHOUT, /* FR_UNBUILT if it says true */
    FR_ROW_WITH,    /* FR_UNBUILT if it says false */
    FR_ROW_ABSENT,  /* FR_UNBUILT if it says anything, or GGUF a number but 0 */
    /* A size_t, every how manieth layer is full. GGUF may tell it layer by layer (fr_layers_by_kind reads it), and has
     * no key where it is as in the defaults or none slides. */
    FR_ROW_KINDS,
    FR_ROW_MTP,     /* a size_t, how many MTP layers there are: GGUF counts them among the layers, which become fewer */
    FR_ROW_PART,    /* keys that code reads and writes */
} fr_row_kind;

/* Both may be NULL. mtp_layers: that stand behind the others. What has no key in GGUF is FR_INPUT, `where` in its
 * line. */
typedef struct fr_config_part {
    fr_status (*read)(const fr_source *source, fr_model_spec *spec);
    fr_status (*put)(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);
} fr_config_part;

/* What stands in a field before is the default. Rows are read in order, and a key may have several. */
typedef struct fr_config_row {
    const char *json, *gguf; /* NULL: that kind of file has no such key; both NULL, and no part: the table ends */
    const fr_config_part *part;
    fr_row_kind kind;
    size_t field, bytes; /* of fr_model_spec: where it goes, and its size */
    double low, high;
    const char *word;
    size_t like;   /* the default where the field has 0: another field's, a size_t */
    bool per_head; /* or hidden / heads */
    bool required; /* GGUF must have it or `unless` */
    const char *unless; /* a key with which the default is 1 */
    bool null_is_none;  /* a null in config.json is 0, not the default */
    bool sparse;        /* a size of 0 is not written, and one that GGUF hasn't is 0 */
} fr_config_row;

/* Lines of tables: a number by its field, both keys and its limits, more by designators; what is built. */
#define FR_NUMBER(of, at, j, g, least, most, ...)                                                         \
    {.kind = of, .field = offsetof(fr_model_spec, at), .bytes = sizeof(((fr_model_spec *)NULL)->at),      \
     .json = j, .gguf = g, .low = least, .high = most, __VA_ARGS__}
#define FR_SIZE(at, ...)     FR_NUMBER(FR_ROW_SIZE, at, __VA_ARGS__)
#define FR_EACH(at, ...)     FR_NUMBER(FR_ROW_EACH, at, __VA_ARGS__)
#define FR_REAL(at, ...)     FR_NUMBER(FR_ROW_REAL, at, __VA_ARGS__)
#define FR_RSQRT(at, ...)    FR_NUMBER(FR_ROW_RSQRT, at, __VA_ARGS__)
#define FR_DIVISOR(at, ...)  FR_NUMBER(FR_ROW_DIVISOR, at, __VA_ARGS__)
#define FR_FLAG(at, j, ...)  FR_NUMBER(FR_ROW_FLAG, at, j, __VA_ARGS__, 0, 1)
#define FR_SAME(at, g)       FR_NUMBER(FR_ROW_SAME, at, NULL, g, 0, 0)
#define FR_ONLY(j, built)    {.kind = FR_ROW_ONLY, .json = j, .word = built}
#define FR_WITHOUT(j)        {.kind = FR_ROW_WITHOUT, .json = j}
#define FR_WITH(j)           {.kind = FR_ROW_WITH, .json = j}
#define FR_ABSENT(j)         {.kind = FR_ROW_ABSENT, .json = j}
#define FR_NONE(g)           {.kind = FR_ROW_ABSENT, .gguf = g}
#define FR_MTP(j)            FR_NUMBER(FR_ROW_MTP, mtp_layers, j, ".nextn_predict_layers", 0, 64, .sparse = true)
#define FR_KINDS(j) \
    FR_NUMBER(FR_ROW_KINDS, kinds.every, j, ".attention.sliding_window_pattern", 1, FR_MOST_LAYERS)
#define FR_PART(of)          {.kind = FR_ROW_PART, .part = &(of)}

/* Tables that families share, in the converter's order of keys: sizes; heads and one rotary form; heads, the window and
 * a rotary form for each kind of layer. Of heads once more, where norms are LayerNorm. */
extern const fr_config_row fr_size_keys[], fr_head_keys[], fr_kind_keys[], fr_layer_norm_head_keys[];

/* The sections of rotary positions, written; fr_rope_sections reads them. */
extern const fr_config_part fr_sections_part;

/* A window of the layers behind the first so many, as Qwen's configurations have it, switched on by a key of its own;
 * GGUF has none, so that nothing slides there, and a model with a window is not written. */
extern const fr_config_part fr_window_part;

/* The same of all layers, where a folder doesn't say null; the first alone for families whose GGUF has a key. */
fr_status fr_window_of_all(const fr_source *source, fr_model_spec *spec);
extern const fr_config_part fr_window_of_all_part;

/* ----------------------------------------------------------------------------------------------------------- family */

typedef struct fr_family fr_family;

struct fr_family {
    const char *const *architectures; /* names in config.json and in GGUF, NULL-terminated */
    const char *gguf;                 /* the one that is written; NULL: none is */
    const char *gguf_with; /* its GGUF files have a number here, those of another family of that name none; NULL: all */
    const char *tokenizer, *pre;      /* tokenizer.ggml.model of such a file, and .pre */
    bool counts_ids;                  /* it has .vocab_size beside the list of tokens */
    bool finds_biases;                /* it has no keys for biases: the first layer's tensors say which there are */
    /* Nor for the scale of scores, where families have one of their own: in a model of so many layers it is by
     * hidden / heads, in others by head_dim. 0: it is by head_dim, if not as in the defaults. */
    size_t scaled_by_hidden;
    const char *picture; /* the token that stands for a row of one; NULL: it takes none */
    const fr_tensor_naming *names;

    const fr_model_spec *defaults, *gguf_defaults; /* where a file says nothing; NULL: GGUF's are the same */
    const fr_config_row *rows[6];                  /* tables, up to NULL */

    /* Rotary positions, once the rows are read (rope_config.h). */
    fr_status (*rope)(const fr_source *source, fr_model_spec *spec);

    /* The layers, and whatever no row says: spec->trunk.layer becomes the caller's. NULL: they are alike. */
    fr_status (*shape)(const fr_source *source, fr_model_spec *spec);

    bool scales_embedding; /* by the root of hidden */
    bool scaling_in_rows; /* they write how rotary positions are scaled; else it is written behind them */
    bool sees;            /* its folders may have a vision tower that is built */

    /* Whether heads are rotated as fr_rope_spec.neox says in this GGUF file; NULL: in all of the family's files as in
     * its folders, or it has no MTP layer that could lie in another file. */
    bool (*gguf_neox)(const fr_gguf *gguf);

    /* rope_freqs.weight: what the frequencies of one of the rotary forms are divided by. Returns how many; 0: such a
     * file has none. NULL: none of the family has. */
    size_t (*put_rope_factors)(const fr_trunk_spec *spec, float *factors);
};

#define FR_FAMILY(name) extern const fr_family fr_family_##name;
#include "src/engine/families/families.def"
#undef FR_FAMILY

/* ----------------------------------------------------------------------------------------------- what shapes may do */

/* All layers alike. */
fr_status fr_layers_alike(const fr_source *source, fr_model_spec *spec);

/* Sliding layers have the window, full ones none; where there are two rotary forms each kind has its own. Which is
 * which a file says, or else spec->kinds; without a window all are full. */
fr_status fr_layers_by_kind(const fr_source *source, fr_model_spec *spec);

/* The same; where there is a window the heads of full layers aren't rotated. */
fr_status fr_layers_still_if_full(const fr_source *source, fr_model_spec *spec);

/* The same of layers that there are already. */
fr_status fr_layers_mark_kinds(const fr_source *source, fr_model_spec *spec);

/* The key that says which layers slide, where any does and it is not every `fallback`th that is full. */
void fr_layers_put_kinds(const fr_trunk_spec *spec, size_t fallback, fr_gguf_writer *writer);

/* Rotary positions of one form, rope[0], and of one for each kind of layer, of all values of its heads unless rows have
 * said of how many. `neox` is as in the defaults, in GGUF as the family's rotary rows stand. */
fr_status fr_rope_one_form(const fr_source *source, fr_model_spec *spec);
fr_status fr_rope_by_kind(const fr_source *source, fr_model_spec *spec);

/* The first, of families whose heads are rotated as a whole: a partial_rotary_factor in config.json means nothing to
 * transformers there, which knows the key of all families. */
fr_status fr_rope_whole_heads(const fr_source *source, fr_model_spec *spec);

/* The same of one form along several axes; `mrope_interleaved`, and sections where config.json says none, are as in the
 * defaults. GGUF must say its sections. */
fr_status fr_rope_sections(const fr_source *source, fr_model_spec *spec);

/* By how much llama3's scaling makes each frequency smaller, as a family's put_rope_factors. */
size_t fr_rope_llama3_factors(const fr_trunk_spec *spec, float *factors);

/* As scores are scaled: rounded once. */
float fr_rsqrt(size_t n);

/* Whether the files have a tensor of that name. */
bool fr_source_has(const fr_source *source, const char *tensor);

/* Whether any layer of a GGUF file has one of that name: a file of an MTP layer has that layer's alone. */
bool fr_source_layer_has(const fr_source *source, const fr_model_spec *spec, const char *tensor);

/* ---------------------------------------------------------------------------------------- names that families share */

/* Fields of fr_layer. Attention: its input norm, projections, biases and norms of heads; norms around feed-forward: one
 * before it, which GGUF names so or as one behind attention, or one before and behind each part, or behind each alone
 * (FR_NORMS_BEHIND), or as GLM-4 calls those before and behind; the feed-forward, its gate and up in one tensor or each
 * in its own. */
extern const fr_tensor_name fr_attention_names[], fr_pre_norm_names[], fr_post_norm_names[], fr_sandwich_norm_names[],
    fr_behind_norm_names[], fr_glm_norm_names[], fr_fused_ffn_names[], fr_ffn_names[];

#endif
