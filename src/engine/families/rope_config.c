/* Reads and writes rotary positions in configurations: see rope_config.h.
 *
 * Sources. For keys of config.json: transformers 5.17, modeling_rope_utils.py. For keys of GGUF:
 * github.com/ggml-org/llama.cpp, conversion/base.py and src/llama-context.cpp. For the meaning of missing keys:
 * src/llama-model.cpp. */
#include "src/engine/families/rope_config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/word_list.h"
#include "src/engine/families/config_keys.h"

/* ------------------------------------------------------------------------------------------------------------- JSON */

const char *fr_rope_type_key(const json_t *parameters) {
    return json_object_get(parameters, "rope_type") ? "rope_type" : "type";
}

fr_status fr_rope_parameters(const json_t *text, const char *where, const json_t **parameters, const char **key) {
    json_t *scaling, *newer;
    FR_TRY(fr_json_object(text, "rope_scaling", where, &scaling));
    FR_TRY(fr_json_object(text, "rope_parameters", where, &newer));
    bool older = json_object_size(scaling) > 0;
    *parameters = older ? scaling : newer;
    *key = older ? "rope_scaling" : "rope_parameters";
    return FR_OK;
}

static fr_status read_llama3(const json_t *scaling, fr_rope_spec *rope, const char *where) {
    FR_TRY(fr_json_real(scaling, "low_freq_factor", 1e-3, 1e6, NAN, where, &rope->low_factor));
    FR_TRY(fr_json_real(scaling, "high_freq_factor", 1e-3, 1e6, NAN, where, &rope->high_factor));
    if (rope->low_factor <= rope->high_factor) return FR_OK; /* the two factors are equal in Llama 4 */
    return fr_fail(FR_INPUT, "%s: low_freq_factor %g is above high_freq_factor %g", where, rope->low_factor,
                   rope->high_factor);
}

/* The kinds of scaling, with their names in config.json and in GGUF. The GGUF name is NULL if there is none. */
static const struct {
    const char *config, *gguf;
    fr_rope_kind kind;
} kinds[] = {{"default", "none", FR_ROPE_DEFAULT},
             {"linear", "linear", FR_ROPE_LINEAR},
             {"llama3", NULL, FR_ROPE_LLAMA3},
             {"yarn", "yarn", FR_ROPE_YARN},
             {"deepseek_yarn", NULL, FR_ROPE_YARN}, /* Sarvam 105B's word for YaRN */
             {"longrope", "longrope", FR_ROPE_LONGROPE},
             {"mrope", NULL, FR_ROPE_DEFAULT},    /* Qwen2.5-VL's word for positions along several axes without
                                                   * scaling */
             {"dynamic", NULL, FR_ROPE_DEFAULT}}; /* this kind changes only texts beyond the context limit, which are
                                                   * refused */
#define KINDS (sizeof kinds / sizeof *kinds)

static const char *config_word(size_t index) {
    return index < KINDS ? kinds[index].config : NULL;
}

static const char *gguf_word(size_t index) {
    for (size_t i = 0; i < KINDS; i++)
        if (kinds[i].gguf && index-- == 0) return kinds[i].gguf;
    return NULL;
}

/* Reads YaRN's keys. attention_factor is the factor of cosines and sines. If this key is missing, the factor is
 * computed from mscale and mscale_all_dim if the file has both of them, and otherwise from the scaling's factor. */
static fr_status read_yarn(const json_t *scaling, fr_rope_spec *rope, const char *where) {
    double mscale, all = rope->mscale_all_dim, amplitude;
    bool truncates;
    FR_TRY(fr_json_bool(scaling, "truncate", true, where, &truncates));
    rope->untruncated = !truncates;
    FR_TRY(fr_json_real(scaling, "beta_fast", 1e-6, 1e6, 32, where, &rope->beta_fast));
    FR_TRY(fr_json_real(scaling, "beta_slow", 1e-6, 1e6, 1, where, &rope->beta_slow));
    FR_TRY(fr_json_real(scaling, "mscale", 0, 1e3, 0, where, &mscale));
    bool both = mscale > 0 && all > 0;
    amplitude = fr_rope_yarn_magnitude(rope->factor, both ? mscale : 1);
    if (both) amplitude /= fr_rope_yarn_magnitude(rope->factor, all);
    FR_TRY(fr_json_real(scaling, "attention_factor", 1e-6, 1e6, amplitude, where, &amplitude));
    rope->attention_factor = (float)amplitude;
    return FR_OK;
}

static fr_status read_divisors_of(const json_t *scaling, const char *key, const char *where, float *divisors) {
    const json_t *list = json_object_get(scaling, key), *number;
    size_t i;
    if (!json_is_array(list) || json_array_size(list) > FR_LONGROPE_ANGLES)
        return fr_fail(FR_INPUT, "%s: %s is no list of up to %d numbers", where, key, FR_LONGROPE_ANGLES);
    json_array_foreach (list, i, number) {
        divisors[i] = (float)json_number_value(number);
        if (!(divisors[i] >= 1e-6F && divisors[i] <= 1e9F))
            return fr_fail(FR_INPUT, "%s: %s has something at index %zu that is no number of 1e-6 to 1e9", where, key,
                           i);
    }
    return FR_OK;
}

/* Reads the rest of LongRoPE's keys. rope->original_context must have been read before; longer texts use the long
 * divisors. most: the model's largest context. */
static fr_status complete_longrope(const json_t *scaling, fr_rope_spec *rope, double most, const char *where) {
    double amplitude;
    FR_TRY(read_divisors_of(scaling, "short_factor", where, rope->longrope[FR_ROPE_NEAR]));
    FR_TRY(read_divisors_of(scaling, "long_factor", where, rope->longrope[FR_ROPE_FAR]));
    FR_TRY(fr_json_real(scaling, "factor", 1e-6, 1e6, most / rope->original_context, where, &rope->factor));
    amplitude = fr_rope_longrope_magnitude(rope->factor, rope->original_context);
    FR_TRY(fr_json_real(scaling, "attention_factor", 1e-6, 1e6, amplitude, where, &amplitude));
    rope->attention_factor = (float)amplitude;
    return FR_OK;
}

/* Refuses mscale_all_dim together with the kind "dynamic". In transformers, DeepSeek's layers then multiply scores by a
 * factor, which is not supported. */
static fr_status check_dynamic(const json_t *scaling, const char *where) {
    double factor, all;
    FR_TRY(fr_json_real(scaling, "factor", 1e-6, 1e6, 1, where, &factor));
    FR_TRY(fr_json_real(scaling, "mscale_all_dim", 0, 1e3, 0, where, &all));
    if (all == 0 || factor <= 1) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: mscale_all_dim %g is not built with rope_type dynamic", where, all);
}

static fr_status read_scaling(const json_t *scaling, fr_rope_spec *rope, const char *where) {
    const char *type;
    size_t i = 0;
    FR_TRY(fr_json_text(scaling, fr_rope_type_key(scaling), where, &type));
    while (type && i < KINDS && strcmp(type, kinds[i].config) != 0) i++;
    if (i == KINDS)
        return fr_fail(FR_UNBUILT, "%s: rope_type %s is not built (%s are)", where, type,
                       fr_list_words(config_word).text);
    rope->dynamic = type && strcmp(type, "dynamic") == 0;
    if (kinds[i].kind == FR_ROPE_DEFAULT) return rope->dynamic ? check_dynamic(scaling, where) : FR_OK;
    rope->kind = kinds[i].kind;
    FR_TRY(fr_json_real(scaling, "mscale_all_dim", 0, 1e3, 0, where, &rope->mscale_all_dim));
    if (rope->kind == FR_ROPE_LONGROPE)
        return fr_json_real(scaling, "original_max_position_embeddings", 2, 1 << 24, rope->original_context, where,
                            &rope->original_context);
    FR_TRY(fr_json_real(scaling, "factor", 1e-6, 1e6, NAN, where, &rope->factor));
    if (rope->kind == FR_ROPE_LINEAR) return FR_OK;
    FR_TRY(fr_json_real(scaling, "original_max_position_embeddings", 1, 1 << 24, rope->original_context, where,
                        &rope->original_context));
    return rope->kind == FR_ROPE_YARN ? read_yarn(scaling, rope, where) : read_llama3(scaling, rope, where);
}

/* Refuses a partial_rotary_factor of null in a family that rotates only a part of a head by default. For null,
 * transformers 5.24 rotates whole heads in most of these families, and the family's default part in others. */
static fr_status check_part(const json_t *text, const json_t *parameters, const char *where, double usual) {
    static const char key[] = "partial_rotary_factor";
    bool told = json_is_number(json_object_get(parameters, key));
    if (usual == 1 || told || !json_is_null(json_object_get(text, key))) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: %s null is not built (numbers are)", where, key);
}

fr_status fr_rope_from_json(fr_rope_spec *rope, const json_t *text, size_t trained, const char *where,
                            double *partial) {
    const json_t *parameters;
    const char *key;
    char inside[128];
    FR_TRY(fr_rope_parameters(text, where, &parameters, &key));
    snprintf(inside, sizeof inside, "%s: %s", where, key);
    *rope = (fr_rope_spec){.kind = FR_ROPE_DEFAULT,
                           .theta = rope->theta,
                           .partial = 1.0,
                           .factor = 1.0,
                           .original_context = (double)trained};
    FR_TRY(fr_json_real(text, "rope_theta", 1.001, 1e12, rope->theta, where, &rope->theta));
    FR_TRY(check_part(text, parameters, where, *partial));
    FR_TRY(fr_json_real(text, "partial_rotary_factor", 0.0, 1.0, *partial, where, partial));
    if (!parameters) return FR_OK;
    FR_TRY(fr_json_real(parameters, "rope_theta", 1.001, 1e12, rope->theta, inside, &rope->theta));
    FR_TRY(fr_json_real(parameters, "partial_rotary_factor", 0.0, 1.0, *partial, inside, partial));
    FR_TRY(read_scaling(parameters, rope, inside));
    FR_TRY(fr_json_real(text, "original_max_position_embeddings", 2, 1 << 24, rope->original_context, where,
                        &rope->original_context)); /* this key has precedence over the key of the same name in
                                                    * `parameters` */
    return rope->kind == FR_ROPE_LONGROPE ? complete_longrope(parameters, rope, (double)trained, inside) : FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* Reads the factor, which has another key in older files. */
static fr_status read_gguf_factor(fr_rope_spec *rope, const fr_gguf *gguf, double fallback) {
    static const char newer[] = ".rope.scaling.factor", older[] = ".rope.scale_linear";
    bool is_older = !fr_gguf_find(gguf, newer) && fr_gguf_find(gguf, older);
    return fr_gguf_real(gguf, is_older ? older : newer, 1e-6, 1e6, fallback, &rope->factor);
}

/* Reads YaRN's keys. There are two keys for the factor of cosines and sines. yarn_attn_factor is the complete factor.
 * The converter writes it for config.json's attention_factor, although llama.cpp doesn't read it. */
static fr_status read_gguf_yarn(fr_rope_spec *rope, const fr_gguf *gguf) {
    double more;
    rope->kind = FR_ROPE_YARN;
    FR_TRY(read_gguf_factor(rope, gguf, NAN));
    FR_TRY(fr_gguf_real(gguf, ".rope.scaling.original_context_length", 1, 1 << 24, NAN, &rope->original_context));
    FR_TRY(fr_gguf_real(gguf, ".rope.scaling.yarn_beta_fast", 1e-6, 1e6, 32, &rope->beta_fast));
    FR_TRY(fr_gguf_real(gguf, ".rope.scaling.yarn_beta_slow", 1e-6, 1e6, 1, &rope->beta_slow));
    FR_TRY(fr_gguf_real(gguf, ".rope.scaling.attn_factor", 1e-6, 1e6, 1, &more));
    more *= fr_rope_yarn_magnitude(rope->factor, 1);
    FR_TRY(fr_gguf_real(gguf, ".rope.scaling.yarn_attn_factor", 1e-6, 1e6, more, &more));
    rope->attention_factor = (float)more;
    return FR_OK;
}

static fr_status read_gguf_linear(fr_rope_spec *rope, const fr_gguf *gguf) {
    FR_TRY(read_gguf_factor(rope, gguf, 1.0));
    if (rope->factor != 1.0) rope->kind = FR_ROPE_LINEAR;
    return FR_OK;
}

fr_status fr_rope_scaling_from_gguf(fr_rope_spec *rope, const fr_gguf *gguf) {
    static const char key[] = ".rope.scaling.type";
    fr_text type;
    FR_TRY(fr_gguf_text(gguf, key, &type));
    if (!type.bytes) return read_gguf_linear(rope, gguf);
    for (size_t i = 0; i < KINDS; i++) {
        if (!kinds[i].gguf || !fr_text_is(type, kinds[i].gguf)) continue;
        if (kinds[i].kind == FR_ROPE_LINEAR) return read_gguf_linear(rope, gguf);
        if (kinds[i].kind == FR_ROPE_LONGROPE)
            return fr_fail(FR_INPUT, "%s: tensor rope_factors_long.weight is missing, and key %s%s is longrope",
                           gguf->path, gguf->architecture, key);
        return kinds[i].kind == FR_ROPE_YARN ? read_gguf_yarn(rope, gguf) : FR_OK;
    }
    return fr_fail(FR_UNBUILT, "%s: key %s%s: \"%.*s\" is not built (%s are)", gguf->path, gguf->architecture, key,
                   (int)(type.length < 40 ? type.length : 40), type.bytes, fr_list_words(gguf_word).text);
}

/* Writes LongRoPE's keys. The divisors are not written here, because they are tensors (fr_outputs_add_rope_factors). */
static fr_status put_longrope(const fr_rope_spec *rope, fr_gguf_writer *w) {
    fr_gguf_put_string(w, ".rope.scaling.type", "longrope");
    fr_gguf_put_u32(w, ".rope.scaling.original_context_length", (uint32_t)rope->original_context);
    fr_gguf_put_f32(w, ".rope.scaling.attn_factor", rope->attention_factor);
    return FR_OK;
}

fr_status fr_rope_put_scaling(const fr_rope_spec *rope, const char *where, fr_gguf_writer *w) {
    double magnitude = fr_rope_yarn_magnitude(rope->factor, 1);
    if (rope->kind == FR_ROPE_LLAMA3)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for rotary positions scaled as llama3's", where);
    if (rope->kind == FR_ROPE_DEFAULT) return FR_OK;
    if (rope->kind == FR_ROPE_LONGROPE) return put_longrope(rope, w);
    fr_gguf_put_string(w, ".rope.scaling.type", rope->kind == FR_ROPE_YARN ? "yarn" : "linear");
    fr_gguf_put_f32(w, ".rope.scaling.factor", (float)rope->factor);
    if (rope->kind != FR_ROPE_YARN) return FR_OK;
    fr_gguf_put_u32(w, ".rope.scaling.original_context_length", (uint32_t)rope->original_context);
    fr_gguf_put_f32(w, ".rope.scaling.yarn_beta_fast", (float)rope->beta_fast);
    fr_gguf_put_f32(w, ".rope.scaling.yarn_beta_slow", (float)rope->beta_slow);
    if (rope->attention_factor != (float)magnitude)
        fr_gguf_put_f32(w, ".rope.scaling.attn_factor", (float)((double)rope->attention_factor / magnitude));
    return FR_OK;
}

fr_status fr_rope_put(const fr_family *family, const fr_trunk_spec *s, const char *where, fr_gguf_writer *w) {
    const fr_rope_spec *rope = &s->rope[s->ropes > 1 ? FR_FULL : 0];
    bool divided = rope->kind == FR_ROPE_LLAMA3 || rope->kind == FR_ROPE_PROPORTIONAL;
    if (s->ropes > 1 && s->rope[FR_SLIDING].kind != FR_ROPE_DEFAULT)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for sliding layers whose rotary positions are scaled", where);
    /* A family with put_rope_factors writes these divisors as a tensor, so they need no key. */
    return divided && family->put_rope_factors ? FR_OK : fr_rope_put_scaling(rope, where, w);
}

/* ------------------------------------------------------------------------------------------------------ whole specs */

/* Sets the number of rotated values of a head, and assigns all angles to one axis. */
static void set_dims(fr_rope_spec *rope, size_t dims) {
    rope->dims = dims;
    memset(rope->sections, 0, sizeof rope->sections);
    rope->sections[0] = dims / 2;
}

/* Reads LongRoPE's divisors from two tensors. If a file has these tensors, it uses LongRoPE. No key says so, because
 * the converter does not write such a key (conversion/phi.py). */
fr_status fr_rope_longrope_from_gguf(const fr_source *source, double trained, fr_rope_spec *rope) {
    static const char *const names[] = {
        [FR_ROPE_NEAR] = "rope_factors_short.weight", [FR_ROPE_FAR] = "rope_factors_long.weight"};
    const float *divisors;
    double amplitude;
    size_t angles = rope->dims / 2;
    if (angles > FR_LONGROPE_ANGLES)
        return fr_fail(FR_UNBUILT, "%s: LongRoPE of %zu angles is not built (up to %d are)", source->where, angles,
                       FR_LONGROPE_ANGLES);
    for (int reach = FR_ROPE_NEAR; reach < FR_ROPE_REACHES; reach++) {
        FR_TRY(fr_bind_vector(source->weights, "", names[reach], angles, &divisors));
        memcpy(rope->longrope[reach], divisors, angles * sizeof *divisors);
    }
    rope->kind = FR_ROPE_LONGROPE;
    FR_TRY(fr_gguf_real(source->gguf, ".rope.scaling.original_context_length", 2, 1 << 24, trained,
                        &rope->original_context));
    FR_TRY(fr_gguf_real(source->gguf, ".rope.scaling.attn_factor", 1e-6, 1e6, 1, &amplitude));
    rope->attention_factor = (float)amplitude;
    return FR_OK;
}

fr_status fr_rope_check_longrope(const fr_rope_spec *rope, const char *where) {
    size_t angles = rope->dims / 2;
    if (rope->kind != FR_ROPE_LONGROPE) return FR_OK;
    if (angles > FR_LONGROPE_ANGLES)
        return fr_fail(FR_UNBUILT, "%s: LongRoPE of %zu angles is not built (up to %d are)", where, angles,
                       FR_LONGROPE_ANGLES);
    for (size_t i = 0; i < FR_LONGROPE_ANGLES; i++)
        for (int reach = FR_ROPE_NEAR; reach < FR_ROPE_REACHES; reach++)
            if ((rope->longrope[reach][i] > 0) != (i < angles))
                return fr_fail(FR_INPUT,
                               "%s: rope_scaling or rope_parameters of longrope has no short_factor and "
                               "long_factor of %zu numbers, one for each angle",
                               where, angles);
    return FR_OK;
}

/* Reads rope_freqs.weight, divisors of the frequencies. The converter writes llama3's scaling in this form. */
static fr_status read_divisors(const fr_source *source, fr_rope_spec *rope) {
    if (!fr_source_has(source, "rope_freqs.weight")) return FR_OK;
    return fr_bind_vector(source->weights, "", "rope_freqs.weight", rope->dims / 2, &rope->divisors);
}

/* Says that positions are not scaled though the file has a factor. llama.cpp's converter overwrites the kind of
 * K-EXAONE's scaling with "none" and leaves the factor; llama.cpp then scales nothing, and neither does the engine, but
 * such a model answers other texts than its folder. */
static fr_status note_unscaled(const fr_source *source) {
    const fr_gguf *gguf = source->gguf;
    fr_text type;
    double factor;
    FR_TRY(fr_gguf_text(gguf, ".rope.scaling.type", &type));
    if (!source->weights || !type.bytes || !fr_text_is(type, "none")) return FR_OK;
    FR_TRY(fr_gguf_real(gguf, ".rope.scaling.factor", -1e300, 1e300, 1, &factor));
    if (factor != 1 && factor != 0)
        fr_notes_add(&source->weights->notes,
                     "%s: key %s.rope.scaling.type is none, so positions are not scaled by .rope.scaling.factor %g",
                     gguf->path, gguf->architecture, factor);
    return FR_OK;
}

static fr_status read_one_form(const fr_source *source, fr_model_spec *spec) {
    fr_rope_spec *rope = &spec->trunk.rope[0];
    bool neox = rope->neox, mrope_interleaved = rope->mrope_interleaved;
    double partial = rope->partial;
    if (source->gguf) {
        set_dims(rope, rope->dims);
        FR_TRY(read_divisors(source, rope));
        if (fr_source_has(source, "rope_factors_long.weight")) return fr_rope_longrope_from_gguf(source, NAN, rope);
        FR_TRY(note_unscaled(source));
        return fr_rope_scaling_from_gguf(rope, source->gguf);
    }
    FR_TRY(fr_rope_from_json(rope, source->text, spec->trunk.context_limit, source->where, &partial));
    rope->neox = neox;
    rope->mrope_interleaved = mrope_interleaved;
    set_dims(rope, (size_t)((double)spec->layer.attention.head_dim * partial));
    return FR_OK;
}

fr_status fr_rope_one_form(const fr_source *source, fr_model_spec *spec) {
    const fr_rope_spec *rope = &spec->trunk.rope[0];
    FR_TRY(read_one_form(source, spec));
    if (rope->kind == FR_ROPE_LONGROPE && source->weights)
        fr_notes_add(&source->weights->notes,
                     "%s: texts of more than %.0f tokens have other rotary angles: a text "
                     "that becomes so long is run again from its beginning",
                     source->where, rope->original_context);
    return FR_OK;
}

bool fr_rope_is_plain(const fr_rope_spec *rope) {
    return rope->kind == FR_ROPE_DEFAULT && !rope->dynamic;
}

/* Reads one rotary form that rotates whole heads. Fails if positions are scaled and partial_rotary_factor is not 1.
 * transformers uses that key only for scaled positions, and its heads then don't fit their angles. */
fr_status fr_rope_whole_heads(const fr_source *source, fr_model_spec *spec) {
    fr_rope_spec *rope = &spec->trunk.rope[0];
    size_t width = spec->layer.attention.head_dim;
    FR_TRY(fr_rope_one_form(source, spec));
    if (source->gguf || rope->dims == width) return FR_OK;
    if (!fr_rope_is_plain(rope))
        return fr_fail(FR_UNBUILT, "%s: a partial_rotary_factor is not built with positions that are scaled",
                       source->where);
    set_dims(rope, width);
    return FR_OK;
}

fr_status fr_rope_llama3_unless_told(const fr_source *source, fr_model_spec *spec, double factor) {
    fr_rope_spec *rope = &spec->trunk.rope[0];
    double theta = rope->theta;
    FR_TRY(fr_rope_whole_heads(source, spec));
    /* an empty rope_parameters means that positions are not scaled; an empty rope_scaling means nothing */
    if (source->gguf || json_is_object(json_object_get(source->text, "rope_parameters")) ||
        json_object_size(json_object_get(source->text, "rope_scaling")))
        return FR_OK;
    rope->kind = FR_ROPE_LLAMA3;
    rope->theta = theta;
    rope->factor = factor;
    rope->low_factor = 1;
    rope->high_factor = 4;
    rope->original_context = 8192;
    return FR_OK;
}

fr_status fr_positions_learned(const fr_source *source, fr_model_spec *spec) {
    (void)source;
    set_dims(&spec->trunk.rope[0], 0);
    spec->layer.attention.no_rope = true;
    spec->trunk.position_rows = spec->trunk.context_limit + spec->trunk.position_offset;
    return FR_OK;
}

fr_status fr_positions_alibi(const fr_source *source, fr_model_spec *spec) {
    (void)source;
    set_dims(&spec->trunk.rope[0], 0);
    spec->layer.attention.no_rope = spec->layer.attention.alibi = true;
    if (spec->layer.attention.alibi_octaves == 0) spec->layer.attention.alibi_octaves = 8;
    return FR_OK;
}

size_t fr_rope_llama3_factors(const fr_trunk_spec *spec, float *factors) {
    const fr_rope_spec *rope = &spec->rope[0];
    size_t angles = rope->dims / 2;
    if (rope->kind != FR_ROPE_LLAMA3) return 0;
    fr_rope_frequencies(rope->kind, rope->theta, rope->dims, rope->partial, rope->factor, factors);
    for (size_t i = 0; i < angles; i++) {
        float scaled = factors[i];
        fr_rope_scale(&scaled, 1, rope->factor, rope->low_factor, rope->high_factor, rope->original_context);
        factors[i] /= scaled;
    }
    return angles;
}

/* Fits the sections of a family's defaults to the number of angles of this model. Axes alternate. As in transformers,
 * an angle beyond the section of its axis belongs to the first axis. */
static void fit_default_sections(fr_rope_spec *rope, const size_t *defaults) {
    memset(rope->sections, 0, sizeof rope->sections);
    for (size_t i = 0; i < rope->dims / 2; i++) {
        size_t axis = i % FR_AXES;
        rope->sections[i < FR_AXES * defaults[axis] ? axis : 0]++;
    }
}

fr_status fr_rope_sections(const fr_source *source, fr_model_spec *spec) {
    fr_rope_spec *rope = &spec->trunk.rope[0];
    size_t defaults[FR_AXES];
    memcpy(defaults, rope->sections, sizeof defaults);
    FR_TRY(fr_rope_one_form(source, spec));
    if (source->gguf) return fr_config_gguf_sections(source->gguf, rope->sections);
    FR_TRY(fr_config_sections(source->text, defaults, source->where, rope->sections));
    if (rope->mrope_interleaved && memcmp(rope->sections, defaults, sizeof defaults) == 0)
        fit_default_sections(rope, defaults);
    return FR_OK;
}

static fr_status put_sections(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)where;
    fr_config_put_sections(&spec->rope[0], w);
    return FR_OK;
}

const fr_config_part fr_sections_part = {.put = put_sections};

/* Reads the kind "proportional", in which only a part of the angles is rotated. */
static fr_status read_proportional(const json_t *entry, fr_rope_spec *rope, const char *where) {
    rope->kind = FR_ROPE_PROPORTIONAL;
    FR_TRY(fr_json_real(entry, "partial_rotary_factor", 0.0, 1.0, 1.0, where, &rope->partial));
    return fr_json_real(entry, "factor", 1e-6, 1e6, 1.0, where, &rope->factor);
}

/* Reads a scaling that is applied to whole heads. */
static fr_status read_whole_scaling(const json_t *entry, fr_rope_spec *rope, const char *where) {
    const char *type = json_string_value(json_object_get(entry, fr_rope_type_key(entry)));
    double partial;
    FR_TRY(read_scaling(entry, rope, where));
    FR_TRY(fr_json_real(entry, "partial_rotary_factor", 0.0, 1.0, 1.0, where, &partial));
    if (fr_rope_is_plain(rope) || partial == 1.0) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: partial_rotary_factor %g is not built with rope_type %s", where, partial, type);
}

/* Reads the entry of rope_parameters for one kind of layer. The entry replaces all defaults except theta. part:
 * receives the rotated part of a head, in families that read this part for every type of scaling; NULL in other
 * families. */
static fr_status read_entry(const json_t *entry, fr_rope_spec *rope, const char *where, double *part) {
    const char *type;
    rope->kind = FR_ROPE_DEFAULT;
    rope->partial = rope->factor = 1.0;
    if (part) FR_TRY(fr_json_real(entry, "partial_rotary_factor", 0.0, 1.0, 1.0, where, part));
    FR_TRY(fr_json_real(entry, "rope_theta", 1.001, 1e12, rope->theta, where, &rope->theta));
    FR_TRY(fr_json_text(entry, "rope_type", where, &type));
    if (type && strcmp(type, "proportional") == 0) return read_proportional(entry, rope, where);
    return part ? read_scaling(entry, rope, where) : read_whole_scaling(entry, rope, where);
}

/* Reads the rotary form of one kind of layer, from this kind's entry in rope_parameters. Older files have rope_scaling
 * instead, which is only for full layers. */
static fr_status read_kind(const fr_source *source, const char *kind, bool older, fr_rope_spec *rope, double *part) {
    char inside[128];
    json_t *table, *entry = NULL, *scaling = NULL;
    FR_TRY(fr_json_object(source->text, "rope_parameters", source->where, &table));
    if (table) FR_TRY(fr_json_object(table, kind, source->where, &entry));
    if (older) FR_TRY(fr_json_object(source->text, "rope_scaling", source->where, &scaling));
    snprintf(inside, sizeof inside, "%s: rope_parameters: %s", source->where, kind);
    if (entry) FR_TRY(read_entry(entry, rope, inside, part));
    if (json_object_size(scaling) == 0) return FR_OK;
    snprintf(inside, sizeof inside, "%s: rope_scaling", source->where);
    return part ? read_scaling(scaling, rope, inside) : read_whole_scaling(scaling, rope, inside);
}

static fr_status read_kinds(const fr_source *source, fr_model_spec *spec, double *sliding_part, double *full_part) {
    fr_rope_spec *sliding = &spec->trunk.rope[FR_SLIDING], *full = &spec->trunk.rope[FR_FULL];
    set_dims(sliding, sliding->dims ? sliding->dims : spec->layer.attention.head_dim);
    set_dims(full, full->dims ? full->dims : spec->layer.attention.head_dim);
    if (source->gguf) {
        FR_TRY(read_divisors(source, full));
        return fr_rope_scaling_from_gguf(full, source->gguf);
    }
    json_t *table;
    FR_TRY(fr_json_object(source->text, "rope_parameters", source->where, &table));
    if (json_object_size(table) > 0 && !json_object_get(table, "full_attention") &&
        !json_object_get(table, "sliding_attention"))
        return fr_fail(FR_INPUT, "%s: rope_parameters has neither full_attention nor sliding_attention", source->where);
    sliding->original_context = full->original_context = (double)spec->trunk.context_limit;
    FR_TRY(read_kind(source, "sliding_attention", false, sliding, sliding_part));
    return read_kind(source, "full_attention", true, full, full_part);
}

fr_status fr_rope_by_kind(const fr_source *source, fr_model_spec *spec) {
    return read_kinds(source, spec, NULL, NULL);
}

fr_status fr_rope_by_kind_in_part(const fr_source *source, fr_model_spec *spec) {
    fr_rope_spec *sliding = &spec->trunk.rope[FR_SLIDING], *full = &spec->trunk.rope[FR_FULL];
    double sliding_part = sliding->partial, full_part = full->partial, width = (double)spec->layer.attention.head_dim;
    FR_TRY(read_kinds(source, spec, &sliding_part, &full_part));
    sliding->partial = full->partial = 1.0;
    if (source->gguf) return FR_OK;
    set_dims(sliding, (size_t)(width * sliding_part));
    set_dims(full, (size_t)(width * full_part));
    return FR_OK;
}
