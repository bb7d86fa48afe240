/* Counts the matrices of a quantized folder by their storage (inspect.h). */
#include <string.h>

#include "formats/storage.h"
#include "src/api/inspect.h"

/* Returns true if inspect describes both matrices in the same words; they are then counted together. */
static bool alike(const fr_storage *a, const fr_storage *b) {
    bool whole = a->groups == 1 && b->groups == 1; /* each group is a whole row or the whole matrix */
    return strcmp(a->method, b->method) == 0 && a->codes.bits == b->codes.bits && a->scale_rows == b->scale_rows &&
           (whole || a->grouping.group == b->grouping.group) && !a->row_step == !b->row_step &&
           !a->group_of == !b->group_of;
}

static void add(fr_inspected_storages *all, const fr_tensor *tensor) {
    const fr_storage *s = tensor->storage;
    size_t i = 0;
    if (!s) {
        bool left = tensor->type < FR_FLOAT_TYPES && tensor->dims > 1;
        all->left += left;
        all->left_bytes += left ? tensor->bytes : 0;
        return;
    }
    /* the last entry also counts all kinds for which there is no entry left */
    while (i < all->count && i < FR_STORAGES_SHOWN - 1 && !alike(all->of[i].storage, s)) i++;
    if (i == all->count) all->of[all->count++].storage = s;
    all->of[i].matrices++;
    all->of[i].values += (uint64_t)s->rows * s->cols;
    all->of[i].bytes += fr_storage_bytes(s);
}

fr_inspected_storages fr_inspected_stored(const fr_inspected *what) {
    fr_inspected_storages all = {0};
    const fr_weights *weights[] = {what->weights, what->own ? &what->own->weights : NULL};
    for (size_t w = 0; w < 2 && weights[w]; w++)
        for (size_t i = 0; i < weights[w]->count; i++) add(&all, weights[w]->bound[i].tensor);
    return all;
}
