/* Opens a vision tower in a file of its own: see mmproj.h. */
#include "src/engine/vision/mmproj.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/vision/tower.h"

bool fr_is_mmproj(const fr_checkpoint *files) {
    return files->gguf && strcmp(files->gguf->architecture, "clip") == 0;
}

/* Returns true for a tensor that the tower does not need. It may belong to a tower for sound, which a file may have as
 * well. It may also be a row of the text model's table of ids. */
static bool is_left_out(const char *name) {
    return strncmp(name, "a.", 2) == 0 || strncmp(name, "mm.a.", 5) == 0 || strcmp(name, "v.token_embd.img_break") == 0;
}

/* Refuses a file with a tensor that this tower does not read, such as position embeddings or a norm. The answers would
 * be wrong without that tensor. */
static fr_status check_all_bound(const fr_weights *weights) {
    const fr_tensors *tensors = &weights->files->tensors, *unread = &weights->files->unread;
    const char *name = unread->count ? unread->items[0].name : NULL;
    for (size_t i = 0; i < tensors->count && !name; i++)
        if (!fr_weights_bound(weights, &tensors->items[i]) && !is_left_out(tensors->items[i].name))
            name = tensors->items[i].name;
    if (!name) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s is none of the vision tower that projector \"%s\" stands for",
                   weights->files->path, name, fr_tower_of(weights->files)->projector);
}

static fr_status open_file(fr_mmproj *m, const char *path, bool use_mmap, const fr_kernels *kernels, size_t hidden) {
    FR_TRY(fr_checkpoint_open(&m->files, path, use_mmap));
    if (!fr_is_mmproj(&m->files))
        return fr_fail(FR_INPUT, "%s: expected a vision tower, a GGUF file of architecture \"clip\"", path);
    FR_TRY(fr_weights_open(&m->weights, &m->files));
    FR_TRY(fr_vision_open(&m->weights, kernels, hidden, &m->vision));
    FR_TRY(check_all_bound(&m->weights));
    return FR_OK;
}

fr_status fr_mmproj_open(const char *path, bool use_mmap, const fr_kernels *kernels, size_t hidden,
                         fr_mmproj **mmproj) {
    fr_mmproj *m = calloc(1, sizeof *m);
    *mmproj = NULL;
    if (!m) return fr_fail_memory("vision tower", sizeof *m);
    fr_status status = open_file(m, path, use_mmap, kernels, hidden);
    if (status == FR_OK)
        *mmproj = m;
    else
        fr_mmproj_close(m);
    return status;
}

void fr_mmproj_close(fr_mmproj *mmproj) {
    if (!mmproj) return;
    fr_vision_close(mmproj->vision);
    fr_weights_close(&mmproj->weights);
    fr_checkpoint_close(&mmproj->files);
    free(mmproj);
}
