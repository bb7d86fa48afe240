/* Pictures on their way into a prompt.
 *
 * In: images, a model with a vision tower. Out: rows that stand in the timeline where the image tokens are,
 * and where those tokens are on the axes of rotary positions. */
#ifndef FR_SRC_ENGINE_VISION_PICTURE_H
#define FR_SRC_ENGINE_VISION_PICTURE_H

#include "base/pool.h"
#include "base/sha256.h"
#include "src/engine/layers/forward.h"
#include "src/engine/vision/vision.h"

/* What a picture's rows are a function of, for one model: its size and its pixels. */
typedef struct fr_picture_digest {
    uint8_t bytes[FR_SHA256_BYTES];
} fr_picture_digest;

struct fr_picture {
    const fr_vision *vision; /* that it is for */
    fr_image image;
    fr_image_grid grid;
    fr_picture_digest digest;
};

/* Of an image that has been opened, and is the picture's from here on, whether this fails or not. */
fr_status fr_picture_load(fr_image *image, const fr_vision *vision, fr_picture **picture);
void fr_picture_unload(fr_picture *picture);

/* Pictures that a session was shown, run through the tower, until the prompt that they are for has been run. */
typedef struct fr_shown {
    fr_vision_rows *rows;            /* [count] */
    fr_image_grid *grids;            /* [count] */
    fr_picture_digest *digests;      /* [count] */
    fr_input_embeddings *embeddings; /* [count + 1]; the last has no rows */
    size_t count;
} fr_shown;

/* A prompt of text: every embedding is that of its id. */
extern const fr_input_embeddings fr_no_input_embeddings;

/* Asked before each picture; a failure ends the run with it. */
typedef struct fr_shown_ask {
    fr_status (*goes_on)(void *context);
    void *context;
} fr_shown_ask;

/* Replaces what was shown before. */
fr_status fr_shown_run(fr_shown *shown, fr_pool *pool, size_t threads, const fr_picture *const *pictures, size_t count,
                       const fr_shown_ask *ask);
void fr_shown_free(fr_shown *shown);

/* What was run, for another rank (malloc'd); it replaces there what was shown before. hidden: a row's floats. */
fr_status fr_shown_pack(const fr_shown *shown, size_t hidden, void **bytes, size_t *size);
fr_status fr_shown_unpack(fr_shown *shown, size_t hidden, const void *bytes, size_t size);

/* Room for so many, in place of those before. */
fr_status fr_shown_open(fr_shown *shown, size_t count);

/* Assigns rotary positions to the ids from position `first` on, beginning with *next, which moves behind them, and to
 * each picture the image tokens that its rows stand for. FR_INPUT where image tokens and pictures don't fit. */
fr_status fr_pictures_assign(fr_shown *shown, int32_t image_token, const int32_t *ids, size_t count, size_t first,
                             fr_rope_position *rope_positions, int64_t *next);

/* That they fit. */
fr_status fr_shown_check(const fr_shown *shown, int32_t image_token, const int32_t *ids, size_t count);

/* Of pictures that have been assigned, what stands before position `end` is left. */
void fr_shown_cut(fr_shown *shown, size_t end);

#endif
