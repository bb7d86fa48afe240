/* Makes the choices that the options leave open: a model's threads, the types of its cache, the rows of a forward. See
 * model.h. */
#include "base/error.h"
#include "src/engine/model/model.h"

fr_status fr_plan_from_options(const fr_options *options, fr_machine *machine, fr_plan *plan) {
    FR_TRY(fr_machine_read(machine));
    int64_t threads = options->value[FR_OPT_THREADS], pin = options->value[FR_OPT_PIN];
    bool numa = options->value[FR_OPT_NUMA] != 0;
    fr_plan_make(machine, threads > 0 ? (size_t)threads : 0, pin < 0 ? fr_pinning_pays(machine, numa) : pin != 0, numa,
                 plan);
    return FR_OK;
}

/* Returns true if the cache has latents. Either all layers of the cache have latents, or none. */
static bool has_latents(const fr_model *model) {
    return model->trunk.kv_count && model->trunk.kv_shapes[0].latent;
}

fr_kv_types fr_model_kv_types(const fr_model *model, const fr_options *options) {
    fr_dtype fallback = fr_weights_quantized(&model->weights) ? FR_F16 : FR_F32;
    int64_t k = options->value[FR_OPT_KV_K], v = options->value[FR_OPT_KV_V];
    fr_kv_types types = {k < 0 ? fallback : (fr_dtype)k, v < 0 ? fallback : (fr_dtype)v};
    if (v < 0 && has_latents(model)) types.v = types.k;
    return types;
}

/* The usual number of prompt rows in a forward: USUAL_CHUNK for models without a mixture of experts, MIXTURE_CHUNK for
 * models with one. A forward reads each expert that any of its rows has chosen. With 64 rows it already reads most
 * experts, but each for only a few rows; with 256 rows it reads each expert for four times as many rows.
 * (GLM-4.7-Flash's shape, Q4_K, one core of a Xeon with VNNI: 272 tokens/s with 64 rows, 317 with 128, 332 with 256,
 * 334 with 512. Each doubling takes about 100 MB more.) */
enum { USUAL_CHUNK = 64, MIXTURE_CHUNK = 256 };

size_t fr_model_chunk(const fr_model *model, const fr_options *options, bool alone) {
    int64_t chunk = options->value[FR_OPT_CHUNK];
    if (chunk > 0) return (size_t)chunk;
    return alone && fr_spec_experts(&model->trunk.spec) ? MIXTURE_CHUNK : USUAL_CHUNK;
}

fr_status fr_model_check_kv_types(const fr_model *model, fr_kv_types types) {
    const fr_trunk *trunk = &model->trunk;
    if (has_latents(model) && types.v != types.k)
        return fr_fail(FR_INPUT, "%s caches latents, which are keys and values in one, as %s: cache-type-v can't be %s",
                       model->files.path, fr_dtype_name(types.k), fr_dtype_name(types.v));
    return fr_kv_check(trunk->kv_shapes, trunk->kv_count, types);
}
