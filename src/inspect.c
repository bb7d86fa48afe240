/* What a model, drafter or vision tower is, in words, after checking that it can be used.
 *
 * In: a folder or a GGUF file, for a drafter perhaps its target's. Out: a description on a stream; the reason in
 * fr_last_error() if it can't be used. Nothing is computed: the same opening that generation does is the check. */
#include "forerun_lab.h"

#include <string.h>

#include "formats/error.h"
#include "kernels/fpenv.h"
#include "src/assistant_gemma4.h"
#include "src/mmproj.h"
#include "src/model.h"
#include "src/tokenizer.h"
#include "src/unbuilt.h"

static double megabytes(uint64_t bytes) {
    return (double)bytes / 1e6;
}

static bool of_a_tower(const fr_tensor *tensor) {
    return strstr(tensor->name, "vision") || strstr(tensor->name, "audio");
}

/* Tensors that nothing reads, those of unread types among them: vision and audio towers, and everything else. */
static void print_unused(const fr_checkpoint *files, size_t used, FILE *out) {
    size_t towers = 0, unused = files->tensors.count - used + files->unread.count;
    for (size_t i = 0; i < files->tensors.count; i++) towers += of_a_tower(&files->tensors.items[i]);
    for (size_t i = 0; i < files->unread.count; i++) towers += of_a_tower(&files->unread.items[i]);
    if (towers) fprintf(out, "skipped        %zu vision and audio tensors: text only\n", towers);
    if (unused > towers) fprintf(out, "unused         %zu tensors that nothing reads\n", unused - towers);
}

static void print_tensors(const fr_checkpoint *files, FILE *out) {
    for (size_t i = 0; i < files->tensors.count; i++) {
        const fr_tensor *tensor = &files->tensors.items[i];
        fprintf(out, "%-5s [", fr_dtype_name(tensor->type));
        for (uint32_t d = 0; d < tensor->dims; d++)
            fprintf(out, "%s%llu", d ? ", " : "", (unsigned long long)tensor->shape[d]);
        fprintf(out, "] %s%s\n", tensor->name, tensor->packed ? " (packed)" : "");
    }
}

/* "24 Q4_K, 35 F32": how many tensors of which type are in use. */
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

static void print_files(const fr_checkpoint *files, const fr_weights *weights, FILE *out) {
    fprintf(out, "architecture   %s\n", fr_checkpoint_architecture(files));
    fprintf(out, "files          %zu, %zu tensors, %.1f MB of weights in use\n", files->file_count,
            files->tensors.count, megabytes(weights->bytes));
    print_types(weights, out);
    for (size_t i = 0; i < weights->notes.count; i++) fprintf(out, "note           %s\n", weights->notes.lines[i]);
}

/* own: the MTP layer in its checkpoint, or NULL. */
static void print_model(const fr_model *model, const fr_drafter *own, const fr_options *options, bool tensors,
                        FILE *out) {
    print_files(&model->files, &model->weights, out);
    model->family->describe(model, out);
    if (own)
        fprintf(out, "drafter        an MTP layer in the checkpoint, applied again and again: %.1f MB\n",
                megabytes(own->weights.bytes));
    if (model->vision) {
        fprintf(out, "vision         pictures, where id %d stands in the prompt%s%s\n", model->image_token,
                model->mmproj ? "; from " : "", model->mmproj ? model->mmproj->files.path : "");
        fr_vision_describe(model->vision, out);
    }
    size_t bytes = fr_kv_position_bytes(model->kv_shapes, model->kv_count, fr_model_kv_types(model, options));
    fprintf(out, "context        %zu positions at most, %.1f kB of KV each until a window is full\n",
            model->context_limit, (double)bytes / 1e3);
    fprintf(out, "end of text    ids");
    for (size_t i = 0; i < model->eos_count; i++) fprintf(out, " %d", model->eos[i]);
    if (model->tokenizer)
        fprintf(out, "\ntokenizer      %zu ids\n", fr_tokenizer_size(model->tokenizer));
    else
        fprintf(out, "\ntokenizer      none: ids only\n");
    fprintf(out, "kernels        %s, %zu threads on %d NUMA node%s\n", model->kernels->isa, model->plan.threads,
            model->plan.nodes, model->plan.nodes == 1 ? "" : "s");
    print_unused(&model->files, model->weights.count + (own ? own->weights.count : 0), out);
    if (tensors) print_tensors(&model->files, out);
}

static void print_tower(const fr_mmproj *mmproj, bool tensors, FILE *out) {
    print_files(&mmproj->files, &mmproj->weights, out);
    fr_vision_describe(mmproj->vision, out);
    fprintf(out, "fits           not checked: give its text model with -m and the tower with --mmproj\n");
    if (tensors) print_tensors(&mmproj->files, out);
}

static void print_drafter(const fr_checkpoint *files, const fr_weights *weights, const fr_assistant *a,
                          const char *target, bool tensors, FILE *out) {
    print_files(files, weights, out);
    fr_gemma4_describe(&a->net.config, out);
    if (a->clusters)
        fprintf(out, "head           %zu centroids of %zu ids, the best %zu scored: %zu of %zu rows a draft\n",
                a->clusters, a->cluster_size, a->top, a->top * a->cluster_size, a->net.config.vocab);
    else
        fprintf(out, "head           plain: all %zu rows a draft\n", a->net.config.vocab);
    if (target)
        fprintf(out, "fits           %s\n", target);
    else
        fprintf(out, "fits           not checked: give its target with -m and the drafter with -md\n");
    print_unused(files, weights->count, out);
    if (tensors) print_tensors(files, out);
}

/* A drafter on its own: all that can be checked without its target. */
static fr_status inspect_drafter_alone(fr_checkpoint *files, bool tensors, FILE *out) {
    fr_weights weights;
    fr_assistant assistant = {0};
    fr_status status = fr_weights_open(&weights, files);
    if (status == FR_OK) status = fr_assistant_open(&assistant, NULL, files, &weights);
    if (status == FR_OK) print_drafter(files, &weights, &assistant, NULL, tensors, out);
    fr_assistant_close(&assistant);
    fr_weights_close(&weights);
    return status;
}

static fr_status inspect_tower(const char *path, const fr_options *options, bool tensors, FILE *out) {
    const fr_kernels *kernels;
    fr_mmproj *mmproj;
    FR_TRY(fr_kernels_select(*options->isa ? options->isa : NULL, &kernels));
    FR_TRY(fr_mmproj_open(path, options->value[FR_OPT_MMAP] != 0, kernels, 0, &mmproj));
    print_tower(mmproj, tensors, out);
    fr_mmproj_close(mmproj);
    return FR_OK;
}

static fr_status inspect_pair(const char *path, const char *target, const fr_options *options, bool tensors,
                              FILE *out) {
    fr_model *model;
    fr_drafter *drafter = NULL;
    FR_TRY(fr_model_bind(target ? target : path, options, &model));
    bool drafts = target || model->mtp_layers > 0;
    fr_status status = drafts ? fr_drafter_bind(target ? path : NULL, model, options, &drafter) : FR_OK;
    if (status == FR_OK && target)
        print_drafter(&drafter->files, &drafter->weights, drafter->net, target, tensors, out);
    else if (status == FR_OK)
        print_model(model, drafter, options, tensors, out);
    fr_drafter_unload(drafter);
    fr_model_unload(model);
    return status;
}

static fr_status inspect(const char *path, const char *target, const fr_options *options, bool tensors, FILE *out) {
    fr_checkpoint files;
    if (target) return inspect_pair(path, target, options, tensors, out);
    FR_TRY(fr_open_files(&files, path, options->value[FR_OPT_MMAP] != 0));
    bool alone = *options->mmproj == '\0', assistant = alone && fr_is_drafter(&files),
         tower = alone && fr_is_mmproj(&files);
    fr_status status = assistant ? inspect_drafter_alone(&files, tensors, out) : FR_OK;
    fr_checkpoint_close(&files);
    if (tower) return inspect_tower(path, options, tensors, out);
    return assistant ? status : inspect_pair(path, NULL, options, tensors, out);
}

fr_status fr_lab_inspect(const char *path, const char *target, const fr_options *options, bool tensors, FILE *out) {
    if (!path || !out) return fr_fail(FR_USAGE, "fr_lab_inspect: a path and a stream are needed");
    fr_options resolved = fr_options_resolve(options);
    uint64_t environment = fr_fpenv_enter();
    fr_status status = inspect(path, target, &resolved, tensors, out);
    fr_fpenv_leave(environment);
    return status;
}
