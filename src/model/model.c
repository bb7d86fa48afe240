/* Opening a target of any family, and running its forward on a pool: see model.h. */
#include "src/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sizes.h"
#include "formats/tokenizer_gguf.h"
#include "src/families/architecture.h"
#include "src/families/config.h"
#include "src/families/families.h"
#include "src/layers/head.h"
#include "src/text/tokenizer.h"
#include "src/vision/mmproj.h"
#include "src/vision/vision.h"

static bool is_written_as(const fr_family *family, const char *architecture) {
    return family && family->gguf && strcmp(family->gguf, architecture) == 0;
}

bool fr_model_is_of(const fr_model *model, const char *architecture) {
    return fr_architecture_in(model->family->architectures, architecture) ||
           is_written_as(model->family, architecture) ||
           is_written_as(fr_family_of(architecture), fr_checkpoint_architecture(&model->files));
}

fr_status fr_family_find(const fr_checkpoint *files, const fr_family **family) {
    const char *architecture = fr_checkpoint_architecture(files);
    if (fr_is_drafter(files))
        return fr_fail(FR_INPUT, "%s is a drafter (%s): give it with -md, and its target with -m", files->path,
                       architecture);
    *family = fr_family_of(architecture);
    if (*family) return FR_OK;
    if (fr_is_mmproj(files))
        return fr_fail(FR_INPUT, "%s is a vision tower (%s): give it with --mmproj, and its text model with -m",
                       files->path, architecture);
    FR_TRY(fr_check_built(files));
    return fr_family_refuse(files, NULL);
}

/* GGUF's, or the union of generation_config.json's and config.json's end-of-sequence ids (top level, then
 * text_config). */
static fr_status read_eos(fr_model *model) {
    size_t vocab = model->trunk.spec.vocab;
    if (model->files.gguf)
        return fr_tokenizer_gguf_ends(model->files.gguf, vocab, &model->weights.notes, model->eos, FR_MAX_EOS,
                                      &model->eos_count);
    const json_t *text = json_object_get(model->files.config, "text_config");
    const json_t *sources[] = {model->files.generation, model->files.config, json_is_object(text) ? text : NULL};
    static const char *const names[] = {"generation_config.json", "config.json", "config.json"};
    for (size_t i = 0; i < 3; i++)
        if (sources[i])
            FR_TRY(fr_json_ids(sources[i], "eos_token_id", (int64_t)vocab - 1, names[i], model->eos, FR_MAX_EOS,
                               &model->eos_count));
    return FR_OK;
}

/* What the tokenizer says, where no configuration says anything, as vLLM and llama.cpp's converter do. */
static void add_tokenizer_eos(fr_model *model) {
    int32_t id = model->tokenizer && model->eos_count == 0 ? fr_tokenizer_end(model->tokenizer) : -1;
    if (id >= 0 && (size_t)id < model->trunk.spec.vocab) model->eos[model->eos_count++] = id;
}

/* transformers masks ids by comparing them with those of the vocabulary, so that others in the list do nothing: a model
 * whose vocabulary was cut keeps the list of the whole one. */
static fr_status read_suppressed(fr_model *model) {
    size_t vocab = model->trunk.spec.vocab, *count = &model->suppressed_count;
    if (model->files.gguf)
        return fr_tokenizer_gguf_suppressed(model->files.gguf, vocab, model->suppressed, FR_MAX_SUPPRESSED, count);
    if (!model->files.generation) return FR_OK;
    return fr_json_id_list(model->files.generation, "suppress_tokens", (int64_t)vocab - 1, "generation_config.json",
                           model->suppressed, FR_MAX_SUPPRESSED, count);
}

fr_status fr_plan_from_options(const fr_options *options, fr_machine *machine, fr_plan *plan) {
    FR_TRY(fr_machine_read(machine));
    int64_t threads = options->value[FR_OPT_THREADS], pin = options->value[FR_OPT_PIN];
    bool numa = options->value[FR_OPT_NUMA] != 0;
    fr_plan_make(machine, threads > 0 ? (size_t)threads : 0, pin < 0 ? fr_pinning_pays(machine, numa) : pin != 0, numa,
                 plan);
    return FR_OK;
}

/* The same in all layers. */
static bool has_latents(const fr_model *model) {
    return model->trunk.kv_count && model->trunk.kv_shapes[0].latent;
}

fr_kv_types fr_model_kv_types(const fr_model *model, const fr_options *options) {
    fr_dtype usual = fr_weights_quantized(&model->weights) ? FR_F16 : FR_F32;
    int64_t k = options->value[FR_OPT_KV_K], v = options->value[FR_OPT_KV_V];
    fr_kv_types types = {k < 0 ? usual : (fr_dtype)k, v < 0 ? usual : (fr_dtype)v};
    if (v < 0 && has_latents(model)) types.v = types.k;
    return types;
}

/* A forward reads each expert that any of its rows chose: with 64 rows most are read for a few of them, with 256 for
 * four times as many. GLM-4.7-Flash's shape, Q4_K: 272 tokens/s with 64, 317 with 128, 332 with 256, 334 with 512,
 * which takes 100 MB more again (one core of a Xeon with VNNI). */
enum { USUAL_CHUNK = 64, MIXTURE_CHUNK = 256 };

size_t fr_model_chunk(const fr_model *model, const fr_options *options, bool alone) {
    int64_t chunk = options->value[FR_OPT_CHUNK];
    if (chunk > 0) return (size_t)chunk;
    return alone && fr_spec_experts(&model->trunk.spec) ? MIXTURE_CHUNK : USUAL_CHUNK;
}

fr_status fr_model_check_kv_types(const fr_model *model, fr_kv_types types) {
    const fr_trunk *trunk = &model->trunk;
    if (has_latents(model) && types.v != types.k)
        return fr_fail(FR_INPUT, "%s caches latents, keys and values in one: of type %s, cache-type-v can't be %s",
                       model->files.path, fr_dtype_name(types.k), fr_dtype_name(types.v));
    return fr_kv_check(trunk->kv_shapes, trunk->kv_count, types);
}

fr_status fr_weights_load(fr_weights *weights, const fr_plan *plan, const fr_options *options) {
    fr_pool *pool;
    FR_TRY(fr_weights_check_memory(weights));
    if (weights->exceed && options->value[FR_OPT_MLOCK])
        return fr_fail(FR_MACHINE, "%s: more weights than there is memory can't be locked in it: leave out --mlock",
                       weights->files->path);
    FR_TRY(fr_pool_open(plan, &pool));
    fr_status status = fr_weights_place(weights, pool, options->progress, options->progress_context);
    fr_pool_close(pool);
    if (status == FR_OK && options->value[FR_OPT_MLOCK]) status = fr_weights_lock(weights);
    return status;
}

static fr_status open_tokenizer(fr_model *model, const char *chat_template) {
    const fr_gguf *gguf = model->files.gguf;
    if (gguf)
        return fr_tokenizer_gguf_has(gguf) ? fr_tokenizer_from_gguf(gguf, chat_template, &model->tokenizer) : FR_OK;
    char *path = fr_path_join(model->files.path, "tokenizer.json");
    if (!path) return fr_fail_memory("path", strlen(model->files.path));
    bool there = fr_file_exists(path);
    free(path);
    return there ? fr_tokenizer_from_folder(model->files.path, chat_template, &model->tokenizer) : FR_OK;
}

/* The vision tower that a GGUF text model has beside it. */
static fr_status open_mmproj(fr_model *model, const fr_options *options) {
    const char *token = model->family->picture;
    if (!token)
        return fr_fail(FR_INPUT, "%s: architecture %s takes no pictures, so it has no use for %s", model->files.path,
                       fr_checkpoint_architecture(&model->files), options->mmproj);
    if (model->vision)
        return fr_fail(FR_INPUT, "%s has a vision tower of its own and no use for %s", model->files.path,
                       options->mmproj);
    int32_t id = model->tokenizer ? fr_tokenizer_id(model->tokenizer, token) : -1;
    if (id < 0 || (size_t)id >= model->trunk.spec.vocab)
        return fr_fail(FR_INPUT, "%s has no token %s to stand for a picture", model->files.path, token);
    FR_TRY(fr_mmproj_open(options->mmproj, options->value[FR_OPT_MMAP] != 0, model->kernels, model->trunk.spec.hidden,
                          &model->mmproj));
    fr_weights_compare(&model->mmproj->weights, (fr_mixture_size){0}, &model->weights, fr_memory_available(""));
    fr_notes_copy(&model->weights.notes, &model->mmproj->weights.notes);
    model->vision = model->mmproj->vision;
    model->image_token = id;
    return FR_OK;
}

static fr_status read_spec(fr_model *model, fr_trunk_spec *spec) {
    fr_source source;
    fr_model_spec whole;
    FR_TRY(fr_source_of(&model->weights, &source));
    fr_status status = fr_family_read(model->family, &source, &whole);
    *spec = whole.trunk;
    model->mtp_layers = whole.mtp_layers;
    model->image_token = whole.image_token;
    if (status != FR_OK || !model->family->sees || !fr_vision_exists(&model->weights)) return status;
    return fr_vision_open(&model->weights, model->kernels, spec->hidden, &model->vision);
}

static fr_status open_trunk(fr_model *model) {
    fr_trunk_spec spec = {0};
    fr_status status = read_spec(model, &spec);
    if (status == FR_OK) status = fr_trunk_open(&model->trunk, &spec, model->family->names, &model->weights, NULL);
    free(spec.layer);
    return status;
}

fr_status fr_model_bind_files(fr_model *model, const char *chat_template) {
    FR_TRY(fr_family_find(&model->files, &model->family));
    FR_TRY(fr_weights_open(&model->weights, &model->files));
    model->image_token = -1;
    FR_TRY(open_trunk(model));
    FR_TRY(fr_tensor_names_check_read(&model->weights, model->family->names, model->trunk.spec.layers,
                                      fr_larger(model->mtp_layers, 1)));
    fr_weights_note_slow(&model->weights);
    fr_weights_note_transposed(&model->weights);
    FR_TRY(read_eos(model));
    FR_TRY(read_suppressed(model));
    FR_TRY(open_tokenizer(model, chat_template));
    add_tokenizer_eos(model);
    if (model->tokenizer) fr_notes_copy(&model->weights.notes, fr_tokenizer_notes(model->tokenizer));
    return FR_OK;
}

typedef fr_status bind_model(fr_model *model, const char *path, const fr_options *options);

static fr_status bind(fr_model *model, const char *path, const fr_options *options) {
    FR_TRY(fr_kernels_select(*options->isa ? options->isa : NULL, &model->kernels));
    FR_TRY(fr_plan_from_options(options, &model->machine, &model->plan));
    FR_TRY(fr_open_files(&model->files, path, options->value[FR_OPT_MMAP] != 0));
    FR_TRY(fr_model_bind_files(model, options->chat_template));
    fr_weights_compare(&model->weights, fr_spec_mixture_size(&model->trunk.spec), NULL, fr_memory_available(""));
    return *options->mmproj ? open_mmproj(model, options) : FR_OK;
}

static fr_status outline(fr_model *model, const char *path, const fr_options *options) {
    FR_TRY(fr_open_files(&model->files, path, options->value[FR_OPT_MMAP] != 0));
    model->family = fr_family_of(fr_checkpoint_architecture(&model->files));
    if (!model->family)
        return fr_fail(FR_INPUT, "%s: architecture \"%s\" is no target's that is known", path,
                       fr_checkpoint_architecture(&model->files));
    FR_TRY(fr_weights_open(&model->weights, &model->files));
    return read_spec(model, &model->trunk.spec);
}

static fr_status make(bind_model *fill, const char *path, const fr_options *options, fr_model **model) {
    *model = NULL;
    fr_model *m = calloc(1, sizeof *m);
    if (!m) return fr_fail_memory("model", sizeof *m);
    fr_status status = fill(m, path, options);
    if (status == FR_OK)
        *model = m;
    else
        fr_model_unload(m);
    return status;
}

fr_status fr_model_bind(const char *path, const fr_options *options, fr_model **model) {
    return make(bind, path, options, model);
}

fr_status fr_model_outline(const char *path, const fr_options *options, fr_model **model) {
    return make(outline, path, options, model);
}

fr_status fr_model_load(const char *path, const fr_options *options, fr_model **model) {
    FR_TRY(fr_model_bind(path, options, model));
    fr_status status = fr_weights_load(&(*model)->weights, &(*model)->plan, options);
    if (status == FR_OK && (*model)->mmproj)
        status = fr_weights_load(&(*model)->mmproj->weights, &(*model)->plan, options);
    if (status == FR_OK) return FR_OK;
    fr_model_unload(*model);
    *model = NULL;
    return status;
}

void fr_model_unload(fr_model *model) {
    if (!model) return;
    if (model->mmproj)
        fr_mmproj_close(model->mmproj);
    else
        fr_vision_close(model->vision);
    fr_trunk_close(&model->trunk);
    fr_tokenizer_close(model->tokenizer);
    fr_weights_close(&model->weights);
    fr_checkpoint_close(&model->files);
    free(model);
}

uint64_t fr_model_bytes(const fr_model *model) {
    return model->weights.bytes + (model->mmproj ? model->mmproj->weights.bytes : 0);
}

fr_residence fr_model_residence(const fr_model *model) {
    const fr_residence *own = &model->weights.residence;
    return model->mmproj ? fr_residence_sum(own, &model->mmproj->weights.residence) : *own;
}

bool fr_model_is_eos(const fr_model *model, int32_t id) {
    for (size_t i = 0; i < model->eos_count; i++)
        if (model->eos[i] == id) return true;
    return false;
}

/* That of layers without a mixture, or beside one that stands apart. */
static void describe_feed_forward(const fr_trunk_spec *s, FILE *out) {
    size_t first = 0, last = 0;
    for (size_t i = 0; i < s->layers; i++) {
        const fr_layer_spec *layer = &s->layer[i];
        if (layer->experts.count && !layer->experts.parallel) continue;
        last = layer->ffn.width;
        if (!first) first = last;
    }
    if (first) fprintf(out, ", feed-forward %zu", first);
    if (last != first) fprintf(out, " to %zu", last);
}

/* A mixture's feed-forward beside it is its shared experts', unless it stands apart. */
static void describe_experts(const fr_trunk_spec *s, FILE *out) {
    const fr_experts_spec *experts = fr_spec_experts(s);
    const fr_layer_spec *last = &s->layer[s->layers - 1];
    size_t dense = 0;
    for (size_t i = 0; i < s->layers; i++) dense += s->layer[i].experts.count == 0;
    if (dense == s->layers) return;
    fprintf(out, "\nexperts        %zu of width %zu, %zu chosen a token", experts->count, experts->width,
            experts->top_k);
    if (!experts->parallel && last->experts.count && last->ffn.width)
        fprintf(out, ", beside shared ones of width %zu", last->ffn.width);
    if (dense) fprintf(out, "; %zu layer%s without", dense, dense > 1 ? "s" : "");
}

/* What attention is in its layers. */
typedef struct attention_kinds {
    const fr_attention_spec *first; /* NULL: no layer has any */
    size_t layers, sliding, owners;
    bool alike;
} attention_kinds;

static attention_kinds count_attention(const fr_trunk_spec *s) {
    attention_kinds kinds = {.alike = true};
    for (size_t i = 0; i < s->layers; i++) {
        const fr_attention_spec *a = &s->layer[i].attention;
        if (s->layer[i].mixer == FR_MIXER_DELTANET) continue;
        if (!kinds.first) kinds.first = a;
        kinds.layers++;
        kinds.sliding += a->window > 0;
        kinds.owners += a->owns_kv;
        kinds.alike &= a->kv_heads == kinds.first->kv_heads && a->head_dim == kinds.first->head_dim;
    }
    return kinds;
}

static void describe_deltanet(const fr_trunk_spec *s, FILE *out) {
    const fr_deltanet_spec *d = NULL;
    for (size_t i = 0; i < s->layers && !d; i++)
        if (s->layer[i].mixer == FR_MIXER_DELTANET) d = &s->layer[i].deltanet;
    if (d)
        fprintf(out, "\nDeltaNet       %zu key heads of %zu, %zu value heads of %zu, a convolution over %zu positions",
                d->key_heads, d->key_dim, d->value_heads, d->value_dim, d->conv_kernel);
}

void fr_trunk_describe(const fr_trunk_spec *s, FILE *out) {
    attention_kinds kinds = count_attention(s);
    fprintf(out, "layers         %zu", s->layers);
    if (kinds.layers < s->layers)
        fprintf(out, ": %zu gated DeltaNet, %zu of full attention", s->layers - kinds.layers, kinds.layers);
    else if (kinds.sliding == 0)
        fprintf(out, ", all of full attention");
    else
        fprintf(out, ": %zu sliding (window %zu), %zu full", kinds.sliding, fr_spec_window(s),
                s->layers - kinds.sliding);
    if (kinds.owners < kinds.layers)
        fprintf(out, "; %zu own their KV cache, %zu borrow one", kinds.owners, kinds.layers - kinds.owners);
    fprintf(out, "\nwidth          hidden %zu", s->hidden);
    describe_feed_forward(s, out);
    if (kinds.first) fprintf(out, ", %zu attention heads", kinds.first->heads);
    if (kinds.first && kinds.first->latent)
        fprintf(out, ", latents of %zu beside %zu rotary values", kinds.first->latent,
                kinds.first->head_dim - kinds.first->latent);
    else if (kinds.first && kinds.alike)
        fprintf(out, ", %zu of keys and values, of %zu", kinds.first->kv_heads, kinds.first->head_dim);
    describe_deltanet(s, out);
    if (s->ple_width) fprintf(out, "\nper-layer      embeddings of width %zu", s->ple_width);
    describe_experts(s, out);
    fprintf(out, "\nvocabulary     %zu ids\n", s->vocab);
}

/* ----------------------------------------------------------------------------------------------------- forward runs */

void *fr_model_layout(const fr_model *model, fr_arena *arena, size_t max_rows, size_t threads) {
    fr_activations a, *place = fr_arena_take(arena, 1, sizeof *place);
    fr_activations_layout(&a, &model->trunk, model->kernels, model->weights.has_packed, arena, max_rows, 0, threads);
    a.reads_ahead = model->weights.exceed;
    if (place) *place = a;
    return place;
}

void fr_model_embed(const fr_model *model, int32_t id, float *row) {
    fr_trunk_embed(&model->trunk, model->kernels, id, row);
}

fr_expert_use fr_model_expert_use(const void *activations) {
    const fr_activations *a = activations;
    return a->experts ? a->experts->use : (fr_expert_use){0};
}

static void run_head(void *context, const fr_team *team) {
    fr_forward *f = context;
    fr_head head = fr_trunk_head(f, &f->model->trunk);
    fr_head_rows(team, &head, f);
}

static void run_forward(void *context, const fr_team *team) {
    fr_forward *f = context;
    fr_trunk_run(team, f);
    if (f->head_rows == 0) return;
    fr_team_sync(team);
    run_head(f, team);
}

/* A row of logits among rows of a batch, so that forwards are told apart that take different times. */
enum { HEAD_ROW = 1 << 16 };

void fr_forward_run(fr_pool *pool, fr_forward *forward) {
    const fr_batch *batch = &forward->batch;
    size_t rows = batch->count + forward->head_rows * HEAD_ROW;
    fr_pool_run_some(pool, forward->model, rows, run_forward, forward);
    for (size_t r = 0; r < batch->count; r++)
        for (int32_t i = 0; i <= batch->rows[r].also; i++) fr_kv_ran(batch->timelines[batch->rows[r].timeline + i]);
}

void fr_head_run(fr_pool *pool, fr_forward *forward) {
    fr_pool_run_some(pool, forward->model, forward->head_rows * HEAD_ROW, run_head, forward);
}
