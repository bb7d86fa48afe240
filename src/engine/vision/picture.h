/* Turns pictures into the rows of a prompt that stand for them.
 *
 * In: images, a model with a vision tower. Out: the rows that replace the image tokens' embeddings, and the rotary
 * positions of those tokens. */
#ifndef FR_SRC_ENGINE_VISION_PICTURE_H
#define FR_SRC_ENGINE_VISION_PICTURE_H

#include "base/pool.h"
#include "base/sha256.h"
#include "src/engine/layers/forward.h"
#include "src/engine/vision/vision.h"

/* A hash of a picture's size and pixels. If two pictures have equal digests, the same model computes equal rows for
 * them. */
typedef struct fr_picture_digest {
    uint8_t bytes[FR_SHA256_BYTES];
} fr_picture_digest;

struct fr_picture {
    const fr_vision *vision; /* the tower that will run the picture */
    fr_image image;
    fr_image_grid grid;
    fr_picture_digest digest;
};

/* Makes a picture from an opened image. The picture owns the image from here on, even if this fails. */
fr_status fr_picture_load(fr_image *image, const fr_vision *vision, fr_picture **picture);
void fr_picture_unload(fr_picture *picture);

/* The pictures of a session's prompt, with the rows that the tower has computed for them. Both are kept until the
 * prompt has been run. */
typedef struct fr_shown {
    fr_vision_rows *rows;       /* [count] the rows of each picture */
    fr_image_grid *grids;       /* [count] the grid of each picture */
    fr_picture_digest *digests; /* [count] the digest of each picture */
    size_t count;
    /* one entry for each run of a picture's tokens, and a last entry without rows; fr_pictures_assign fills them */
    fr_input_embeddings *embeddings;
} fr_shown;

/* The list for a prompt of text only. It is empty, so every position has the embedding of its id. */
extern const fr_input_embeddings fr_no_input_embeddings;

/* Keeps the rows of the pictures that were shown last, so that another question about a picture does not run the tower
 * again. Digests tell pictures apart. A zeroed struct is empty. */
enum { FR_PICTURES_KEPT = 64 };
#define FR_PICTURES_KEPT_BYTES ((size_t)128 << 20)
typedef struct fr_kept_pictures {
    struct {
        fr_picture_digest digest;
        fr_vision_rows rows; /* if it has no rows, this place is free */
        uint64_t used;       /* number of the look-up that used the rows last */
    } of[FR_PICTURES_KEPT];
    size_t bytes;
    uint64_t looked;
} fr_kept_pictures;
void fr_kept_pictures_free(fr_kept_pictures *kept);

/* Runs pictures through the tower, except for pictures whose rows are kept. All pictures given become the pictures of
 * `shown`, in place of its earlier pictures. *ran: the number of pictures that were run. `ask` is called between the
 * slices of the tower. */
fr_status fr_shown_run(fr_shown *shown, fr_kept_pictures *kept, fr_pool *pool, size_t threads,
                       const fr_picture *const *pictures, size_t count, const fr_vision_ask *ask, size_t *ran);
void fr_shown_free(fr_shown *shown);

/* fr_shown_pack packs the rows into bytes (malloc'd), which are sent to another rank. On that rank, fr_shown_unpack
 * unpacks them into `shown`, in place of its earlier rows. hidden: number of floats in a row
 * (fr_spec_picture_width). */
fr_status fr_shown_pack(const fr_shown *shown, size_t hidden, void **bytes, size_t *size);
fr_status fr_shown_unpack(fr_shown *shown, size_t hidden, const void *bytes, size_t size);

/* fr_shown_open makes room for `count` pictures, in place of those that `shown` had before. The caller then sets their
 * grids, and fr_shown_open_runs makes room for their runs. */
fr_status fr_shown_open(fr_shown *shown, size_t count);
fr_status fr_shown_open_runs(fr_shown *shown);

/* Assigns rotary positions to `count` ids, the first of which is id `first` of the timeline. That id gets the rotary
 * position *next, and *next is then moved past the last id. Also assigns the runs of image tokens to the pictures whose
 * rows stand for them. has_axes: pictures have positions along height and width; if false, they have positions like
 * text. Fails with FR_INPUT if image tokens and pictures don't match. */
fr_status fr_pictures_assign(fr_shown *shown, int32_t image_token, bool has_axes, const int32_t *ids, size_t count,
                             size_t first, fr_rope_position *rope_positions, int64_t *next);

/* Checks that image tokens and pictures match. */
fr_status fr_shown_check(const fr_shown *shown, int32_t image_token, const int32_t *ids, size_t count);

/* Keeps only those rows of assigned runs that are before position `end`. */
void fr_shown_cut(fr_shown *shown, size_t end);

#endif
