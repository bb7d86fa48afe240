/* Turns pictures into rows of a prompt: see picture.h. */
#include "src/engine/vision/picture.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

const fr_input_embeddings fr_no_input_embeddings = {0};

static fr_picture_digest digest_of(const fr_image *image) {
    const uint64_t size[] = {image->width, image->height};
    fr_picture_digest digest;
    fr_sha256 hash = fr_sha256_begin();
    fr_sha256_add(&hash, size, sizeof size);
    fr_sha256_add(&hash, image->rgb, image->width * image->height * 3);
    fr_sha256_end(&hash, digest.bytes);
    return digest;
}

fr_status fr_picture_load(fr_image *image, const fr_vision *vision, fr_picture **picture) {
    *picture = NULL;
    fr_picture *p = calloc(1, sizeof *p);
    if (!p) {
        fr_image_close(image);
        return fr_fail_memory("picture", sizeof *p);
    }
    *p = (fr_picture){.vision = vision, .image = *image};
    fr_status status = fr_vision_grid(vision, p->image.width, p->image.height, &p->grid);
    if (status != FR_OK) {
        fr_picture_unload(p);
        return status;
    }
    p->digest = digest_of(&p->image);
    *picture = p;
    return FR_OK;
}

void fr_picture_unload(fr_picture *picture) {
    if (!picture) return;
    fr_image_close(&picture->image);
    free(picture);
}

void fr_shown_free(fr_shown *shown) {
    for (size_t i = 0; shown->rows && i < shown->count; i++) fr_vision_rows_close(&shown->rows[i]);
    free(shown->rows);
    free(shown->grids);
    free(shown->digests);
    free(shown->embeddings);
    *shown = (fr_shown){0};
}

/* -------------------------------------------------------------------------------------------------------- kept rows */

static size_t bytes_of(const fr_vision_rows *rows) {
    return rows->count * rows->hidden * sizeof(float);
}

static void forget(fr_kept_pictures *kept, size_t index) {
    kept->bytes -= bytes_of(&kept->of[index].rows);
    fr_vision_rows_close(&kept->of[index].rows);
}

void fr_kept_pictures_free(fr_kept_pictures *kept) {
    for (size_t i = 0; i < FR_PICTURES_KEPT; i++) forget(kept, i);
}

static fr_status copy_rows(fr_vision_rows *to, const fr_vision_rows *from) {
    *to = (fr_vision_rows){.count = from->count, .hidden = from->hidden, .grid = from->grid};
    fr_status status = fr_vision_rows_open(to);
    if (status == FR_OK) memcpy(to->rows, from->rows, bytes_of(from));
    if (status != FR_OK) fr_vision_rows_close(to);
    return status;
}

/* Copies the rows of a picture if they are kept from an earlier prompt. If they are not, *found is set to false. */
static fr_status find_rows(fr_kept_pictures *kept, const fr_picture *picture, fr_vision_rows *rows, bool *found) {
    kept->looked++;
    for (size_t i = 0; i < FR_PICTURES_KEPT; i++) {
        if (!kept->of[i].rows.rows || memcmp(&kept->of[i].digest, &picture->digest, sizeof picture->digest) != 0)
            continue;
        kept->of[i].used = kept->looked;
        *found = true;
        return copy_rows(rows, &kept->of[i].rows);
    }
    *found = false;
    return FR_OK;
}

/* Gives a free place, or FR_PICTURES_KEPT if there is none. */
static size_t find_free(const fr_kept_pictures *kept) {
    size_t i = 0;
    while (i < FR_PICTURES_KEPT && kept->of[i].rows.rows) i++;
    return i;
}

/* Gives the place that was used the longest ago. At least one place must be taken. */
static size_t find_oldest(const fr_kept_pictures *kept) {
    size_t oldest = FR_PICTURES_KEPT;
    for (size_t i = 0; i < FR_PICTURES_KEPT; i++)
        if (kept->of[i].rows.rows && (oldest == FR_PICTURES_KEPT || kept->of[i].used < kept->of[oldest].used))
            oldest = i;
    return oldest;
}

/* Keeps a copy of the rows, in place of the rows that were used the longest ago. */
static fr_status keep_rows(fr_kept_pictures *kept, const fr_picture *picture, const fr_vision_rows *rows) {
    size_t bytes = bytes_of(rows);
    if (bytes > FR_PICTURES_KEPT_BYTES) return FR_OK;
    while (kept->bytes > FR_PICTURES_KEPT_BYTES - bytes || find_free(kept) == FR_PICTURES_KEPT)
        forget(kept, find_oldest(kept));
    size_t place = find_free(kept);
    FR_TRY(copy_rows(&kept->of[place].rows, rows));
    kept->of[place].digest = picture->digest;
    kept->of[place].used = kept->looked;
    kept->bytes += bytes;
    return FR_OK;
}

/* --------------------------------------------------------------------------------------------------- shown pictures */

static fr_status run_all(fr_shown *shown, fr_kept_pictures *kept, fr_pool *pool, size_t threads,
                         const fr_picture *const *pictures, const fr_vision_ask *ask, size_t *ran) {
    for (size_t i = 0; i < shown->count; i++) {
        const fr_picture *picture = pictures[i];
        fr_vision_rows *rows = &shown->rows[i];
        bool found;
        FR_TRY(ask->goes_on(ask->context));
        FR_TRY(find_rows(kept, picture, rows, &found));
        if (!found) {
            FR_TRY(fr_vision_run_slices(picture->vision, pool, threads, &picture->image, ask, rows));
            FR_TRY(keep_rows(kept, picture, rows));
            ++*ran;
        }
        shown->grids[i] = rows->grid;
        shown->digests[i] = picture->digest;
    }
    return FR_OK;
}

fr_status fr_shown_open(fr_shown *shown, size_t count) {
    fr_shown_free(shown);
    shown->rows = calloc(count + 1, sizeof *shown->rows);
    shown->grids = calloc(count + 1, sizeof *shown->grids);
    shown->digests = calloc(count + 1, sizeof *shown->digests);
    shown->count = count;
    bool room = shown->rows && shown->grids && shown->digests;
    return room ? FR_OK : fr_fail_memory("pictures", count);
}

fr_status fr_shown_open_runs(fr_shown *shown) {
    size_t runs = 0;
    for (size_t i = 0; i < shown->count; i++) runs += shown->grids[i].runs ? shown->grids[i].runs : 1;
    shown->embeddings = calloc(runs + 1, sizeof *shown->embeddings);
    return shown->embeddings ? FR_OK : fr_fail_memory("pictures", runs * sizeof *shown->embeddings);
}

fr_status fr_shown_run(fr_shown *shown, fr_kept_pictures *kept, fr_pool *pool, size_t threads,
                       const fr_picture *const *pictures, size_t count, const fr_vision_ask *ask, size_t *ran) {
    fr_status status = fr_shown_open(shown, count);
    *ran = 0;
    if (status == FR_OK) status = run_all(shown, kept, pool, threads, pictures, ask, ran);
    if (status == FR_OK) status = fr_shown_open_runs(shown);
    if (status != FR_OK) fr_shown_free(shown);
    return status;
}

fr_status fr_pictures_assign(fr_shown *shown, int32_t image_token, bool has_axes, const int32_t *ids, size_t count,
                             size_t first, fr_rope_position *rope_positions, int64_t *next) {
    int64_t base = *next;
    fr_input_embeddings *run = shown->embeddings;
    FR_TRY(fr_mrope_positions(ids, count, image_token, shown->grids, shown->count, &rope_positions->at, next));
    *next = base + (has_axes ? *next : (int64_t)count);
    for (size_t i = 0; i < count; i++)
        for (int axis = 0; axis < FR_AXES; axis++)
            rope_positions[i].at[axis] = (int32_t)base + (has_axes ? rope_positions[i].at[axis] : (int32_t)i);
    for (size_t image = 0, at = 0; image < shown->count; image++) {
        const fr_vision_rows *rows = &shown->rows[image];
        size_t tokens = fr_image_grid_run_rows(rows->grid) * rows->grid.columns;
        for (size_t row = 0; row < rows->count; row += tokens, at += tokens) {
            while (ids[at] != image_token) at++;
            *run++ = (fr_input_embeddings){first + at, tokens, rows->rows + row * rows->hidden};
        }
    }
    return FR_OK;
}

fr_status fr_shown_check(const fr_shown *shown, int32_t image_token, const int32_t *ids, size_t count) {
    int64_t next;
    return fr_mrope_positions(ids, count, image_token, shown->grids, shown->count, NULL, &next);
}

void fr_shown_cut(fr_shown *shown, size_t end) {
    for (fr_input_embeddings *run = shown->embeddings; run->count; run++) {
        if (run->first >= end)
            *run = (fr_input_embeddings){0};
        else if (run->count > end - run->first)
            run->count = end - run->first;
    }
}
