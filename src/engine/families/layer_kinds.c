/* Finds out which layers of a model slide and which are full: see family.h.
 *
 * In: config.json's layer_types, in transformers' words; or GGUF's sliding_window_pattern, which is a flag for each
 * layer or the interval of full layers. If a file has none of these keys, the pattern of the family is used. */
#include "base/error.h"
#include "src/engine/families/family.h"

static const char pattern_key[] = ".attention.sliding_window_pattern";

static fr_status set_kind(const fr_source *source, fr_model_spec *spec, size_t layer, fr_layer_kind kind) {
    fr_layer_spec *of = layer < spec->trunk.layers ? &spec->trunk.layer[layer] : &spec->trunk.mtp;
    fr_attention_spec *a = &of->attention;
    a->window = kind == FR_SLIDING ? spec->layer.attention.window : 0;
    a->rope = spec->trunk.ropes > 1 ? (size_t)kind : 0;
    if (kind == FR_FULL || a->window || source->drafter) return FR_OK;
    return fr_fail(FR_INPUT, "%s: layer %zu has sliding attention, but the window is missing", source->where, layer);
}

static fr_status set_pattern(const fr_source *source, fr_model_spec *spec, fr_kind_pattern pattern) {
    for (size_t i = 0; i < spec->trunk.layers; i++) {
        bool full = i < pattern.first || (pattern.every && (i + 1) % pattern.every == 0);
        FR_TRY(set_kind(source, spec, i, full ? FR_FULL : FR_SLIDING));
    }
    return FR_OK;
}

static fr_status from_json(const fr_source *source, fr_model_spec *spec, fr_kind_pattern fallback) {
    bool slides[FR_LAYERS_MAX], listed;
    FR_TRY(fr_source_words(source, "layer_types", "sliding_attention", "full_attention", spec->trunk.layers, slides,
                           &listed));
    if (!listed) return set_pattern(source, spec, fallback);
    for (size_t i = 0; i < spec->trunk.layers; i++) FR_TRY(set_kind(source, spec, i, slides[i] ? FR_SLIDING : FR_FULL));
    return FR_OK;
}

static fr_status from_gguf(const fr_source *source, fr_model_spec *spec, fr_kind_pattern fallback) {
    int64_t numbers[FR_LAYERS_MAX];
    const fr_gguf_value *value = fr_gguf_find(source->gguf, pattern_key);
    if (value && value->type == FR_GGUF_ARRAY) {
        FR_TRY(fr_gguf_ints(source->gguf, pattern_key, 0, 1, FR_GGUF_REQUIRED, spec->trunk.layers, numbers));
        for (size_t i = 0; i < spec->trunk.layers; i++)
            FR_TRY(set_kind(source, spec, i, numbers[i] ? FR_SLIDING : FR_FULL));
        return FR_OK;
    }
    int64_t every = fallback.required ? FR_GGUF_REQUIRED : (int64_t)fallback.every;
    FR_TRY(fr_gguf_size(source->gguf, pattern_key, 0, FR_LAYERS_MAX, every, &fallback.every));
    return set_pattern(source, spec, fallback);
}

fr_status fr_layers_mark_kinds(const fr_source *source, fr_model_spec *spec) {
    fr_kind_pattern fallback = spec->kinds;
    if (spec->layer.attention.window == 0) fallback.every = 1;
    return source->gguf ? from_gguf(source, spec, fallback) : from_json(source, spec, fallback);
}

fr_status fr_layers_mark_mtp(const fr_source *source, fr_model_spec *spec, bool slides) {
    bool found;
    if (!spec->mtp_layers) return FR_OK;
    if (!source->gguf)
        FR_TRY(fr_source_words(source, "mtp_layer_types", "sliding_attention", "full_attention", spec->mtp_layers,
                               &slides, &found));
    return set_kind(source, spec, spec->trunk.layers, slides ? FR_SLIDING : FR_FULL);
}

fr_status fr_layers_by_kind(const fr_source *source, fr_model_spec *spec) {
    FR_TRY(fr_layers_alike(source, spec));
    return fr_layers_mark_kinds(source, spec);
}

fr_status fr_layers_still_if_full(const fr_source *source, fr_model_spec *spec) {
    FR_TRY(fr_layers_alike(source, spec));
    return fr_layers_mark_still(source, spec);
}

fr_status fr_layers_mark_still(const fr_source *source, fr_model_spec *spec) {
    FR_TRY(fr_layers_mark_kinds(source, spec));
    for (size_t i = 0; i < spec->trunk.layers; i++) {
        fr_attention_spec *a = &spec->trunk.layer[i].attention;
        a->no_rope = spec->layer.attention.window && !a->window;
    }
    return FR_OK;
}

fr_status fr_window_from_json(const json_t *text, const char *where, size_t *first, size_t *window) {
    size_t layer;
    bool slide;
    *first = FR_LAYERS_MAX;
    FR_TRY(fr_json_bool(text, "use_sliding_window", false, where, &slide));
    FR_TRY(fr_json_size(text, "max_window_layers", 0, 1 << 24, 28, where, &layer));
    if (!slide || json_is_null(json_object_get(text, "sliding_window"))) return FR_OK;
    *first = layer;
    return fr_json_size(text, "sliding_window", 1, 1 << 24, 4096, where, window);
}

static fr_status read_window(const fr_source *source, fr_model_spec *spec) {
    spec->kinds.first = FR_LAYERS_MAX;
    if (source->gguf) return FR_OK;
    return fr_window_from_json(source->text, source->where, &spec->kinds.first, &spec->layer.attention.window);
}

fr_status fr_window_of_all(const fr_source *source, fr_model_spec *spec) {
    size_t *window = &spec->layer.attention.window;
    const json_t *told = json_object_get(source->text, "sliding_window");
    if (source->gguf || json_is_null(told)) *window = 0;
    if (source->gguf || json_is_null(told) || !told) return FR_OK;
    return fr_json_size(source->text, "sliding_window", 1, 1 << 24, 1, source->where, window);
}

/* ---------------------------------------------------------------------------------------------------------- writing */

static bool is_every(const fr_trunk_spec *s, size_t every) {
    for (size_t i = 0; i < s->layers; i++)
        if ((s->layer[i].attention.window == 0) != ((i + 1) % every == 0)) return false;
    return true;
}

void fr_layers_put_kinds(const fr_trunk_spec *s, size_t fallback, fr_gguf_writer *w) {
    size_t every = 1;
    if (fr_spec_window(s) == 0 || is_every(s, fallback)) return;
    while (every < s->layers && s->layer[every - 1].attention.window) every++;
    if (is_every(s, every)) {
        fr_gguf_put_u32(w, pattern_key, (uint32_t)every);
        return;
    }
    fr_gguf_put_array(w, pattern_key, FR_GGUF_BOOL, s->layers);
    for (size_t i = 0; i < s->layers; i++) fr_gguf_add_bool(w, s->layer[i].attention.window > 0);
}

static fr_status put_window(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)w;
    return fr_spec_window(s) ? fr_fail(FR_INPUT, "%s: GGUF has no key for its window", where) : FR_OK;
}

const fr_config_part fr_window_part = {.read = read_window, .put = put_window},
                     fr_window_of_all_part = {.read = fr_window_of_all, .put = put_window};
