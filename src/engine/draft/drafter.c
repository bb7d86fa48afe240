/* Opens a drafter of any method. The drafter's files show the method, and the method reads and checks the rest. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/word_list.h"
#include "src/engine/draft/draft.h"
#include "src/engine/draft/draft_list.h"
#include "src/engine/families/architecture.h"

/* All methods whose drafters have files of their own. The first method that recognizes the files is used.
 * fr_draft_model comes last, because it accepts any model. */
static const fr_draft_method *const methods[] = {&fr_draft_assistant, &fr_draft_dflash, &fr_draft_eagle3,
                                                 &fr_draft_eagle,     &fr_draft_mtp,    &fr_draft_model};

static const fr_draft_method *find_method(const fr_checkpoint *files) {
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (methods[i]->reads(files)) return methods[i];
    return NULL;
}

const char *fr_drafter_path(const fr_drafter *drafter) {
    return drafter->files.path ? drafter->files.path : drafter->target->files.path;
}

const fr_model *fr_drafter_model(const fr_drafter *drafter) {
    return drafter->method == &fr_draft_model || drafter->method == &fr_draft_text ? drafter->net : NULL;
}

const fr_drafter *fr_drafter_at(const fr_drafter *drafter, size_t index) {
    return drafter && index == 1 ? drafter->beside : index == 0 ? drafter : NULL;
}

fr_memory_use fr_drafter_memory_use(const fr_drafter *drafter) {
    const fr_memory_use *own = &drafter->weights.memory_use;
    return drafter->beside ? fr_memory_use_sum(own, &drafter->beside->weights.memory_use) : *own;
}

size_t fr_drafter_bytes(const fr_drafter *drafter) {
    size_t bytes = 0;
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++) {
        const fr_drafter *d = fr_drafter_at(drafter, i);
        if (d) bytes += d->weights.bytes + fr_draft_head_bytes(&d->head);
    }
    return bytes;
}

/* Binds the MTP layer that is in the target's own files. */
static fr_status bind_own(fr_drafter *drafter) {
    const fr_model *target = drafter->target;
    if (target->mtp_layers == 0)
        return fr_fail_about(FR_OPT_SPEC_TYPE, FR_INPUT, "%s has no MTP layer: its drafter is in other files",
                             target->files.path);
    FR_TRY(fr_weights_open(&drafter->weights, &target->files));
    drafter->method = &fr_draft_mtp;
    return drafter->method->load(drafter);
}

static fr_status refuse(const fr_checkpoint *files) {
    FR_TRY(fr_check_built(files));
    return fr_fail_about(FR_OPT_SPEC_TYPE, FR_INPUT,
                         "%s: architecture \"%s\" is no drafter's that is known (a target's MTP layer alone, or %s)",
                         files->path, fr_checkpoint_architecture(files), fr_list_words(fr_drafter_architecture).text);
}

/* Checks that drafter and target fit into the machine's memory together. A draft model was already checked when it was
 * opened as a model. A drafter without a target will not run, so it is not checked. */
static void compare_memory(fr_drafter *drafter) {
    const fr_model *target = drafter->target;
    if (!target || fr_drafter_model(drafter)) return;
    fr_weights_compare(&drafter->weights, fr_spec_mixture_size(&target->trunk.spec), &target->weights,
                       fr_memory_available(""));
}

/* Gives the head that scores drafts, or NULL if there is none. */
static const fr_matrix *head_of(const fr_drafter *drafter) {
    return drafter->method->head ? drafter->method->head(drafter) : NULL;
}

bool fr_drafter_borrows(const fr_drafter *drafter, size_t kv) {
    return drafter->method->borrows && drafter->method->borrows(drafter, kv);
}

/* Gives the attention weights of the target's layer whose keys and values the drafter reads. Each rank computes the
 * keys and values of all heads of this layer itself, so it needs these weights whole. Gives NULL if the drafter doesn't
 * read the layer, or if the rank gets the keys and values from the rank that computes them. */
static const fr_attention_weights *borrowed(const fr_drafter *drafter, size_t kv) {
    const fr_trunk *trunk = &drafter->target->trunk;
    if (trunk->stages || !fr_drafter_borrows(drafter, kv)) return NULL;
    return &trunk->layers[fr_trunk_kv_owner(trunk, kv)].attention;
}

static void count_borrowed(fr_drafter *drafter) {
    const fr_model *target = drafter->target;
    for (size_t kv = 0; target && kv < target->trunk.kv_count; kv++) {
        const fr_attention_weights *owner = borrowed(drafter, kv);
        if (!owner) continue;
        fr_weights_count_rest(&drafter->weights, &target->weights, &owner->k);
        fr_weights_count_rest(&drafter->weights, &target->weights, &owner->v);
    }
}

static fr_status bring_borrowed(const fr_drafter *drafter, const fr_plan *plan, const fr_options *options) {
    const fr_model *target = drafter->target;
    for (size_t kv = 0; kv < target->trunk.kv_count; kv++) {
        const fr_attention_weights *owner = borrowed(drafter, kv);
        if (!owner) continue;
        FR_TRY(fr_weights_bring_rest(&target->weights, &owner->k, plan, options));
        FR_TRY(fr_weights_bring_rest(&target->weights, &owner->v, plan, options));
    }
    return FR_OK;
}

/* Chooses the head that will score drafts, and counts its memory. */
static fr_status choose_head(fr_drafter *drafter, const fr_options *options) {
    const fr_matrix *whole = head_of(drafter);
    if (!options || !drafter->target) return FR_OK;
    if ((!whole || drafter->method->whole_head) && fr_draft_head_trims(options->draft_head))
        return fr_fail_about(FR_OPT_DRAFT_HEAD, FR_USAGE, "%s %s: its head can't be trimmed", fr_drafter_path(drafter),
                             whole ? "adds a value to each id's score" : "scores ids of its own choice");
    if (!whole) return FR_OK;
    FR_TRY(fr_draft_head_choose(&drafter->head, options->draft_head, drafter->target, whole));
    fr_weights_count_rest(&drafter->weights, &drafter->target->weights, whole);
    if (drafter->head.ids) fr_weights_count_rest(&drafter->weights, &drafter->weights, whole);
    drafter->weights.memory_use.own += fr_draft_head_bytes(&drafter->head);
    drafter->weights.memory_use.stays += fr_draft_head_bytes(&drafter->head);
    return FR_OK;
}

static fr_status bind(fr_drafter *drafter, const char *path, const fr_options *options) {
    if (!path) return bind_own(drafter);
    FR_TRY(fr_open_files(&drafter->files, path, options->value[FR_OPT_MMAP] != 0));
    drafter->method = find_method(&drafter->files);
    if (!drafter->method) return refuse(&drafter->files);
    if (drafter->files.rotations)
        return fr_fail(FR_UNBUILT, "%s: a drafter's rotated weights (keys prism.hadamard.*) are not built",
                       drafter->files.path);
    FR_TRY(fr_weights_open(&drafter->weights, &drafter->files));
    if (drafter->target) drafter->weights.rotations = drafter->target->weights.rotations;
    return drafter->method->load(drafter);
}

/* Opens one drafter, without the MTP layer that may be opened with it. */
static fr_status bind_alone(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter) {
    *drafter = NULL;
    fr_drafter *d = calloc(1, sizeof *d);
    if (!d) return fr_fail_memory("drafter", sizeof *d);
    d->target = target;
    fr_status status = bind(d, path, options);
    if (status == FR_OK) {
        compare_memory(d);
        count_borrowed(d);
        status = choose_head(d, options);
    }
    if (status == FR_OK) {
        *drafter = d;
    } else {
        fr_drafter_unload(d);
    }
    return status;
}

fr_status fr_drafter_bind(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter) {
    FR_TRY(bind_alone(path, target, options, drafter));
    if (!path || !options || !target || !fr_draft_words_name_both(options->spec_type, *drafter)) return FR_OK;
    fr_status status = bind_alone(NULL, target, options, &(*drafter)->beside);
    if (status == FR_OK) return FR_OK;
    fr_drafter_unload(*drafter);
    *drafter = NULL;
    return status;
}

/* Loads the rows of the head that other ranks have. Each rank needs them, because it drafts with the whole head, while
 * the target's head is divided among the ranks. If the drafter has a trimmed head, loads the rows of that head too. */
static fr_status bring_head(const fr_drafter *drafter, const fr_plan *plan, const fr_options *options) {
    const fr_matrix *head = head_of(drafter);
    if (!head) return FR_OK;
    FR_TRY(fr_weights_bring_rest(&drafter->target->weights, head, plan, options));
    return drafter->head.ids ? fr_weights_bring_rest(&drafter->weights, head, plan, options) : FR_OK;
}

/* Loads a drafter's weights. others: bytes of memory that the target and the other drafter take. */
static fr_status load_weights(fr_drafter *drafter, uint64_t others, const fr_plan *plan, const fr_options *options) {
    FR_TRY(fr_weights_check_limit(&drafter->weights, others, (uint64_t)options->value[FR_OPT_MEMORY]));
    FR_TRY(fr_weights_load(&drafter->weights, plan, options));
    FR_TRY(bring_borrowed(drafter, plan, options));
    FR_TRY(bring_head(drafter, plan, options));
    return fr_draft_head_gather(&drafter->head, head_of(drafter));
}

fr_status fr_drafter_load(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter) {
    fr_machine machine;
    fr_plan plan;
    FR_TRY(fr_plan_from_options(options, &machine, &plan));
    FR_TRY(fr_drafter_bind(path, target, options, drafter));
    fr_status status = load_weights(*drafter, fr_model_memory_use(target).stays, &plan, options);
    if (status == FR_OK && (*drafter)->beside) {
        uint64_t others = fr_model_memory_use(target).stays + (*drafter)->weights.memory_use.stays;
        status = load_weights((*drafter)->beside, others, &plan, options);
    }
    if (status == FR_OK) return FR_OK;
    fr_drafter_unload(*drafter);
    *drafter = NULL;
    return status;
}

void fr_drafter_unload(fr_drafter *drafter) {
    if (!drafter) return;
    fr_drafter_unload(drafter->beside);
    if (drafter->method) drafter->method->unload(drafter);
    fr_draft_head_free(&drafter->head);
    fr_weights_close(&drafter->weights);
    fr_checkpoint_close(&drafter->files);
    free(drafter);
}
