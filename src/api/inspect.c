/* Opens a model, drafter or vision tower, which checks that it can be used, and describes it in words.
 *
 * In: a folder or a GGUF file; for a drafter, perhaps also the target's folder or file. Out: a description on a stream,
 * or the reason in fr_last_error() why it can't be used. No forward is run. */
#include "src/api/inspect.h"

#include "base/error.h"
#include "base/fpenv.h"
#include "base/sizes.h"
#include "formats/storage.h"
#include "kernels/dispatch.h"
#include "src/engine/encoder/encoder.h"
#include "src/engine/families/architecture.h"
#include "src/language/tokenizer/tokenizer.h"

/* ------------------------------------------------------------------------------------------------------------ words */

/* Prints the tensors that nothing reads, including those of unknown types: first the vision and audio towers', then
 * all others. */
static void print_unused(const fr_inspected *what, FILE *out) {
    fr_inspected_counts counts = fr_inspected_count(what);
    if (counts.towers) fprintf(out, "skipped        %zu vision and audio tensors: text only\n", counts.towers);
    if (counts.unused > counts.towers)
        fprintf(out, "unused         %zu tensors that nothing reads\n", counts.unused - counts.towers);
}

static void print_tensors(const fr_checkpoint *files, FILE *out) {
    for (size_t i = 0; i < files->tensors.count; i++) {
        const fr_tensor *tensor = &files->tensors.items[i];
        fprintf(out, "%-5s [", tensor->storage ? tensor->storage->method : fr_dtype_name(tensor->type));
        for (uint32_t d = 0; d < tensor->dims; d++)
            fprintf(out, "%s%llu", d ? ", " : "", (unsigned long long)tensor->shape[d]);
        fprintf(out, "] %s%s\n", tensor->name, tensor->packed ? " (packed)" : "");
    }
}

/* Prints the number of used tensors of each type: "24 Q4_K, 35 F32". */
static void print_types(const fr_weights *weights, FILE *out) {
    size_t counts[FR_DTYPE_COUNT][2] = {{0}};
    const char *comma = "";
    for (size_t i = 0; i < weights->count; i++) {
        const fr_tensor *tensor = weights->bound[i].tensor;
        counts[tensor->type][tensor->packed]++;
    }
    fprintf(out, "types          ");
    for (fr_dtype type = FR_F32; type < FR_DTYPE_COUNT; type++)
        for (size_t packed = 0; packed < 2; packed++) {
            if (!counts[type][packed]) continue;
            fprintf(out, "%s%zu %s%s", comma, counts[type][packed], fr_dtype_name(type), packed ? " packed" : "");
            comma = ", ";
        }
    fprintf(out, "\n");
}

static double megabytes(uint64_t bytes) {
    return (double)bytes / 1e6;
}

/* Prints a count such as "6.71 M (6709798)". */
static void print_count(const char *name, uint64_t count, FILE *out) {
    bool large = count >= 1000000000;
    fprintf(out, "%s%.2f %c (%llu)", name, (double)count / (large ? 1e9 : 1e6), large ? 'B' : 'M',
            (unsigned long long)count);
}

/* Prints how the matrices of a quantized folder are stored, such as "storage 14 matrices of GPTQ, 4 bits, groups of
 * 128: 4.16 bits a weight". */
static void print_storages(const fr_inspected *what, FILE *out) {
    fr_inspected_storages all = fr_inspected_stored(what);
    for (size_t i = 0; i < all.count; i++) {
        const fr_storage *s = all.of[i].storage;
        fprintf(out, "storage        %zu matri%s of %s, %u bits, ", all.of[i].matrices,
                all.of[i].matrices == 1 ? "x" : "ces", s->method, s->codes.bits);
        if (s->scale_rows > 1)
            fprintf(out, "blocks of %zu x %u", s->scale_rows, s->grouping.group);
        else if (s->groups == 1)
            fprintf(out, "a scale a %s", s->row_step ? "row" : "matrix");
        else
            fprintf(out, "groups of %u%s", s->grouping.group, s->group_of ? " in any order" : "");
        fprintf(out, ": %.2f bits a weight\n", 8.0 * (double)all.of[i].bytes / (double)all.of[i].values);
    }
    if (all.count && all.left)
        fprintf(out, "not quantized  %zu matri%s, %.1f MB\n", all.left, all.left == 1 ? "x" : "ces",
                megabytes(all.left_bytes));
}

static void print_files(const fr_inspected *what, FILE *out) {
    const fr_checkpoint *files = what->files;
    const fr_weights *weights = what->weights;
    fr_inspected_counts counts = fr_inspected_count(what);
    fprintf(out, "architecture   %s\n", fr_checkpoint_architecture(files));
    fprintf(out, "files          %zu, %zu tensors, %.1f MB of weights in use\n", files->file_count,
            files->tensors.count, megabytes(weights->bytes));
    print_count("parameters     ", counts.parameters, out);
    if (counts.used_parameters != counts.parameters) print_count(", in use ", counts.used_parameters, out);
    fprintf(out, "\n");
    print_types(weights, out);
    print_storages(what, out);
    for (size_t i = 0; i < weights->notes.count; i++) fprintf(out, "note           %s\n", weights->notes.lines[i]);
}

static void print_memory(const fr_inspected *what, FILE *out) {
    const fr_session_bytes *m = &what->memory;
    bool drafts = what->own || what->assistant || what->eagle || what->block || what->mtp || what->draft_model;
    fprintf(out, "memory         %.1f MB of KV for %zu positions, %.1f MB a session in all%s\n",
            megabytes(m->target_kv), m->context, megabytes(m->all), drafts ? ", drafting" : "");
}

/* Prints the bytes that must be in memory while the model runs. Experts of a mapped file don't count, because the
 * system may drop them and read them again. */
static void print_memory_use(const fr_inspected *what, FILE *out) {
    const fr_memory_use *r = &what->memory_use;
    fprintf(out, "resident       %.1f MB of weights and %.1f MB of a session must stay in memory", megabytes(r->stays),
            megabytes(what->memory.all));
    if (r->experts)
        fprintf(out, "; a token chooses %.1f of %.1f MB of experts", megabytes(r->token), megabytes(r->experts));
    fprintf(out, "\n");
}

/* Prints the size of the recurrent layers' states. There is one state for each timeline, and one for each position that
 * may be rejected. */
static void print_states(const fr_trunk *trunk, FILE *out) {
    if (trunk->recurrent_count == 0) return;
    fprintf(out, "states         %.2f MB a timeline, %.1f kB a draft\n",
            megabytes(fr_recurrent_page_bytes(trunk->recurrent_shapes, trunk->recurrent_count)),
            (double)fr_recurrent_position_bytes(trunk->recurrent_shapes, trunk->recurrent_count) / 1e3);
}

/* Prints the suppressed ids, but only the first 16, because there may be thousands. */
static void print_suppressed(const fr_model *model, FILE *out) {
    size_t shown = fr_smaller(model->suppressed_count, 16);
    if (shown) fprintf(out, "\nnever said     ids");
    for (size_t i = 0; i < shown; i++) fprintf(out, " %d", model->suppressed[i]);
    if (shown < model->suppressed_count) fprintf(out, " and %zu more", model->suppressed_count - shown);
}

/* Prints how many tokens a picture becomes, for some usual sizes of pictures. */
static void print_costs(const fr_vision *vision, FILE *out) {
    const char *before = "tokens         ";
    for (size_t i = 0; i < FR_INSPECTED_SIZES; i++) {
        const size_t *size = fr_inspected_sizes[i];
        fr_image_grid grid;
        if (fr_vision_grid(vision, size[0], size[1], &grid) != FR_OK) continue;
        fprintf(out, "%s%zu for a picture of %zu x %zu", before, grid.rows * grid.columns, size[0], size[1]);
        before = ", ";
    }
    if (before[0] == ',') fprintf(out, "\n");
}

static fr_status print_images(const fr_inspected *what, FILE *out) {
    for (size_t i = 0; i < what->how->image_count; i++) {
        fr_inspected_picture p;
        FR_TRY(fr_inspect_image(what, i, &p));
        fprintf(out, "%-14s %zu x %zu pixels, %zu tokens, %.3g billion multiply-adds in the tower's layers",
                what->how->images[i], p.width, p.height, p.tokens, p.multiply_adds / 1e9);
        if (p.seconds > 0)
            fprintf(out, ", about %.2g s with %zu threads (an estimate)", p.seconds, what->model->plan.threads);
        fprintf(out, "\n");
    }
    return FR_OK;
}

static void print_model(const fr_inspected *what, FILE *out) {
    const fr_model *model = what->model;
    fr_trunk_describe(&model->trunk.spec, out);
    if (what->own)
        fprintf(out, "drafter        an MTP layer in the checkpoint, applied again and again: %.1f MB\n",
                megabytes(what->own->weights.bytes));
    if (model->vision) {
        fprintf(out, "vision         pictures, where id %d stands in the prompt%s%s\n", model->image_token,
                model->mmproj ? "; from " : "", model->mmproj ? model->mmproj->files.path : "");
        fr_vision_describe(model->vision, out);
        print_costs(model->vision, out);
    }
    size_t bytes = fr_kv_position_bytes(model->trunk.kv_shapes, model->trunk.kv_count, what->kv_types);
    bool latent = model->trunk.kv_count && model->trunk.kv_shapes[0].latent;
    fprintf(out, "context        %zu positions at most, %.1f kB of %s each until a window is full\n",
            model->trunk.spec.context_limit, (double)bytes / 1e3, latent ? "latents" : "KV");
    print_states(&model->trunk, out);
    print_memory(what, out);
    print_memory_use(what, out);
    fprintf(out, "end of text    %s", model->eos_count ? "ids" : "no id is known: texts go on until -n or --stop");
    for (size_t i = 0; i < model->eos_count; i++) fprintf(out, " %d", model->eos[i]);
    print_suppressed(model, out);
    if (model->tokenizer)
        fprintf(out, "\ntokenizer      %zu ids\n", fr_tokenizer_count(model->tokenizer));
    else
        fprintf(out, "\ntokenizer      none: ids only\n");
    fprintf(out, "kernels        %s, %zu threads on %d NUMA node%s\n", model->kernels->isa, model->plan.threads,
            model->plan.nodes, model->plan.nodes == 1 ? "" : "s");
    print_unused(what, out);
}

static void print_tower(const fr_inspected *what, FILE *out) {
    fr_vision_describe(what->vision, out);
    print_costs(what->vision, out);
    fprintf(out, "fits           not checked: give its text model with -m and the tower with --mmproj\n");
}

/* Prints the target with which a drafter was checked, and the memory of a session with both. */
static void print_fit(const fr_inspected *what, FILE *out) {
    if (what->how->target)
        fprintf(out, "fits           %s\n", what->how->target);
    else
        fprintf(out, "fits           not checked: give its target with -m and the drafter with -md\n");
    if (what->model) print_memory(what, out);
    print_unused(what, out);
}

/* Prints the target that a drafter needs, if it was opened without one. */
static void print_needs(const fr_inspected *what, FILE *out) {
    if (what->model) return;
    fr_inspected_needs needs = fr_inspected_need(what);
    fprintf(out, "needs          a target of %zu ids, width %zu and %zu layer%s%s", needs.vocab, needs.hidden,
            needs.layers, needs.layers == 1 ? "" : "s", needs.deeper ? " or more" : "");
    if (needs.architecture) fprintf(out, ", of architecture %s", needs.architecture);
    fprintf(out, "\n");
}

static void print_aux_layers(const fr_aux_layers *aux_layers, FILE *out) {
    if (aux_layers->count)
        fprintf(out, "sees           inputs of the target's layers");
    else
        fprintf(out, "sees           the target's rows after its final norm");
    for (size_t i = 0; i < aux_layers->count; i++) fprintf(out, " %zu", aux_layers->layer[i]);
}

static void print_eagle(const fr_inspected *what, FILE *out) {
    const fr_eagle *e = what->eagle->net;
    size_t rows = e->own_head ? e->trunk.head.features : e->trunk.spec.vocab;
    fr_trunk_describe(&e->trunk.spec, out);
    if (!what->model && e->needs.default_aux_layers)
        fprintf(out, "sees           inputs of %zu of the target's layers: an early, a middle and a late one",
                what->eagle->aux_layers.count);
    else
        print_aux_layers(&what->eagle->aux_layers, out);
    fprintf(out, "\nembeddings     %s\n", e->trunk.embedding.data ? "its own" : "the target's");
    fprintf(out, "head           %s, %zu rows a draft, of %zu ids\n", e->own_head ? "its own" : "the target's", rows,
            e->trunk.spec.vocab);
    print_needs(what, out);
    print_fit(what, out);
}

static void print_block(const fr_inspected *what, FILE *out) {
    const fr_block_net *net = what->block->net;
    const fr_block_config *c = &net->config;
    size_t sliding = 0;
    for (size_t i = 0; i < net->trunk.spec.layers; i++) sliding += c->slides[i];
    fr_trunk_describe(&net->trunk.spec, out);
    if (sliding && c->sight.window)
        fprintf(out, "slides         %zu of its layers, over %zu positions\n", sliding, c->sight.window);
    fprintf(out, "drafts         %zu at once, in a block of %zu rows (%s)\n", c->block - !c->from_anchor, c->block,
            what->block->method->name);
    print_aux_layers(&c->aux_layers, out);
    fprintf(out, "\nembeddings     %s\n", net->trunk.embedding.data ? "its own" : "the target's");
    fprintf(out, "head           %s, of %zu ids\n", net->own_head ? "its own" : "the target's", c->draft_vocab);
    print_needs(what, out);
    print_fit(what, out);
}

/* Prints an MTP layer, which comes after its target's layers and has the target's widths. */
static void print_mtp(const fr_inspected *what, FILE *out) {
    fprintf(out, "drafts         as an MTP layer behind layer %zu of its target, applied again and again\n",
            what->mtp->target->trunk.spec.layers - 1);
    print_needs(what, out);
    print_fit(what, out);
}

static void print_draft_model(const fr_inspected *what, FILE *out) {
    bool same = what->draft_model->method == &fr_draft_model;
    fr_trunk_describe(&fr_drafter_model(what->draft_model)->trunk.spec, out);
    fprintf(out, "drafts         as a model of %s\n",
            same ? "the target's vocabulary" : "another vocabulary, whose text is tokenized as the target's");
    print_fit(what, out);
}

static void print_assistant(const fr_inspected *what, FILE *out) {
    const fr_assistant *a = what->assistant;
    fr_trunk_describe(&a->trunk.spec, out);
    if (a->clusters)
        fprintf(out, "head           %zu centroids of %zu ids, the best %zu scored: %zu of %zu rows a draft\n",
                a->clusters, a->cluster_size, a->top, a->top * a->cluster_size, a->trunk.spec.vocab);
    else
        fprintf(out, "head           plain: all %zu rows a draft\n", a->trunk.spec.vocab);
    print_fit(what, out);
}

/* Refuses a model for which this machine lacks memory, as opening it would. It is called only after the description was
 * printed. */
static fr_status check_memory(const fr_inspected *what) {
    const fr_mmproj *tower = what->model ? what->model->mmproj : NULL;
    FR_TRY(fr_weights_check_memory(what->weights));
    if (tower) FR_TRY(fr_weights_check_memory(&tower->weights));
    return what->own ? fr_weights_check_memory(&what->own->weights) : FR_OK;
}

static void print_words(const fr_inspected *what, FILE *out) {
    print_files(what, out);
    if (what->assistant)
        print_assistant(what, out);
    else if (what->eagle)
        print_eagle(what, out);
    else if (what->block)
        print_block(what, out);
    else if (what->mtp)
        print_mtp(what, out);
    else if (what->draft_model)
        print_draft_model(what, out);
    else if (what->model)
        print_model(what, out);
    else
        print_tower(what, out);
    if (what->how->tensors) print_tensors(what->files, out);
}

static fr_status print(const fr_inspected *what, FILE *out) {
    if (what->how->json)
        FR_TRY(fr_inspected_print_json(what, out));
    else
        print_words(what, out);
    if (!what->how->json) FR_TRY(print_images(what, out));
    return what->model ? check_memory(what) : FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static fr_status refuse_context(const fr_lab_inspection *how, const fr_checkpoint *files) {
    if (how->context == 0) return FR_OK;
    return fr_fail(FR_USAGE, "%s is no model: how much a context takes is its model's to say", files->path);
}

/* Begins a drafter's description. Stores the drafter in the field for its kind; that field decides what is printed. */
static fr_inspected describe_drafter(const fr_drafter *drafter, const fr_lab_inspection *how) {
    fr_inspected what = {.kind = "drafter", .files = &drafter->files, .weights = &drafter->weights, .how = how};
    if (drafter->method == &fr_draft_assistant)
        what.assistant = drafter->net;
    else if (fr_drafter_model(drafter))
        what.draft_model = drafter;
    else if (drafter->method == &fr_draft_mtp)
        what.mtp = drafter;
    else if (drafter->method == &fr_draft_eagle || drafter->method == &fr_draft_eagle3)
        what.eagle = drafter;
    else
        what.block = drafter;
    return what;
}

/* Describes a drafter that was given without its target, with all checks that need no target. An MTP layer lies in its
 * target's files and needs the target's sizes. So the sizes are read too, but the target's weights are not. */
static fr_status inspect_drafter_alone(const fr_checkpoint *files, const fr_lab_inspection *how,
                                       const fr_options *options, FILE *out) {
    fr_model *outline = NULL;
    fr_drafter *drafter = NULL;
    FR_TRY(refuse_context(how, files));
    if (fr_is_mtp(files)) FR_TRY(fr_model_outline(files->path, options, &outline));
    fr_status status = fr_drafter_bind(files->path, outline, options, &drafter);
    if (status == FR_OK) {
        fr_inspected what = describe_drafter(drafter, how);
        status = print(&what, out);
    }
    fr_drafter_unload(drafter);
    fr_model_unload(outline);
    return status;
}

static fr_status inspect_tower(const char *path, const fr_lab_inspection *how, const fr_options *options, FILE *out) {
    const fr_kernels *kernels;
    fr_mmproj *mmproj;
    FR_TRY(fr_kernels_select(*options->isa ? options->isa : NULL, &kernels));
    FR_TRY(fr_mmproj_open(path, options->value[FR_OPT_MMAP] != 0, kernels, 0, &mmproj));
    fr_inspected what = {
        .kind = "tower", .files = &mmproj->files, .weights = &mmproj->weights, .vision = mmproj->vision, .how = how};
    fr_status status = fr_vision_limit(mmproj->vision, options);
    if (status == FR_OK) status = refuse_context(how, &mmproj->files);
    if (status == FR_OK) status = print(&what, out);
    fr_mmproj_close(mmproj);
    return status;
}

/* Copies the options. If how->context is given, the copy's context is that number, but at most the model's limit. */
static fr_options at_context(const fr_inspected *what, const fr_options *options) {
    fr_options at = *options;
    size_t wanted = what->how->context, limit = what->model->trunk.spec.context_limit;
    if (what->how->limit) *what->how->limit = limit;
    if (wanted) at.value[FR_OPT_CONTEXT] = (int64_t)(wanted < limit ? wanted : limit);
    return at;
}

/* Refuses a model that needs more memory than FR_OPT_MEMORY, as opening a session would. It is called only after the
 * description was printed. */
static fr_status check_limit(const fr_inspected *what, const fr_drafter *drafter, fr_options *at) {
    uint64_t limit = (uint64_t)at->value[FR_OPT_MEMORY], target = fr_model_memory_use(what->model).stays;
    FR_TRY(fr_weights_check_limit(&what->model->weights, 0, limit));
    if (drafter) FR_TRY(fr_weights_check_limit(&drafter->weights, target, limit));
    return fr_session_fit(what->model, drafter, 0, at);
}

/* Gives the memory of a model's weights and of its own MTP layer. own: that layer; NULL: it has none. */
static fr_memory_use add_memory_use(const fr_model *model, const fr_drafter *own) {
    fr_memory_use memory_use = fr_model_memory_use(model);
    return own ? fr_memory_use_sum(&memory_use, &own->weights.memory_use) : memory_use;
}

/* Describes a text encoder, which has no sessions. */
static fr_status inspect_encoder(const fr_model *model, const fr_lab_inspection *how, FILE *out) {
    const fr_inspected what = {
        .kind = "encoder", .files = &model->files, .weights = &model->weights, .how = how, .model = model};
    if (how->target) return fr_model_check_generates(model);
    if (how->json)
        return fr_fail(FR_UNBUILT, "%s: describing a text encoder as JSON is not built yet", model->files.path);
    print_files(&what, out);
    fr_encoder_describe(model->encoder, out);
    if (how->tensors) print_tensors(what.files, out);
    return check_memory(&what);
}

/* Describes the model. If `how` names a target, describes the drafter at `path` for that target instead. */
static fr_status inspect_bound(const char *path, const fr_model *model, const fr_lab_inspection *how,
                               const fr_options *options, FILE *out) {
    fr_drafter *drafter = NULL;
    bool drafts = how->target || model->mtp_layers > 0;
    if (model->encoder) return inspect_encoder(model, how, out);
    FR_TRY(drafts ? fr_drafter_bind(how->target ? path : NULL, model, options, &drafter) : FR_OK);
    fr_inspected what = {.kind = "model",
                         .files = &model->files,
                         .weights = &model->weights,
                         .own = drafter,
                         .vision = model->vision,
                         .how = how};
    if (how->target) what = describe_drafter(drafter, how);
    what.model = model;
    what.kv_types = fr_model_kv_types(model, options);
    what.memory_use = add_memory_use(model, what.own);
    fr_options at = at_context(&what, options);
    if (!how->target) at.spec_type[0] = '\0'; /* it names the drafter's method; here only the target is described */
    fr_status status = fr_session_measure(model, drafter, &at, 0, &what.memory);
    if (status == FR_OK) status = print(&what, out);
    if (status == FR_OK) status = check_limit(&what, drafter, &at);
    fr_drafter_unload(drafter);
    return status;
}

static fr_status inspect_model(const char *path, const fr_lab_inspection *how, const fr_options *options, FILE *out) {
    fr_model *model;
    FR_TRY(fr_model_bind(how->target ? how->target : path, options, &model));
    fr_status status = inspect_bound(path, model, how, options, out);
    fr_model_unload(model);
    return status;
}

static fr_status inspect(const char *path, const fr_lab_inspection *how, const fr_options *options, FILE *out) {
    fr_checkpoint files;
    if (how->target) return inspect_model(path, how, options, out);
    FR_TRY(fr_open_files(&files, path, options->value[FR_OPT_MMAP] != 0));
    bool alone = *options->mmproj == '\0', assistant = alone && fr_is_drafter(&files),
         tower = alone && fr_is_mmproj(&files);
    fr_status status = assistant ? inspect_drafter_alone(&files, how, options, out) : FR_OK;
    fr_checkpoint_close(&files);
    if (tower) return inspect_tower(path, how, options, out);
    return assistant ? status : inspect_model(path, how, options, out);
}

fr_status fr_lab_inspect(const char *path, const fr_lab_inspection *how, const fr_options *options, FILE *out) {
    if (!path || !out) return fr_fail(FR_USAGE, "fr_lab_inspect: a path and a stream are needed");
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = inspect(path, how ? how : &(fr_lab_inspection){0}, &resolved, out);
    fr_fpenv_leave(environment);
    return status;
}
