/* Keeps checkpoints of a cache's sliding layers, or of its recurrent layers' states. With these a timeline can go back
 * farther than the layers themselves allow.
 *
 * In: a cache whose frontier moves, and later a length to go back to. Out: checkpoints, which hold the pages of the
 * sliding layers at some earlier frontiers, or the recurrent states there; and the cache as it was at the checkpoint
 * nearest to that length. A checkpoint shares pages and copies none: only the page at the frontier is copied when the
 * timeline continues (kv.h). Layers that keep every position need no checkpoint. There are pages for as many
 * checkpoints as were asked for at open (fr_kv_layout).
 *
 * A checkpoint of sliding layers is due when the frontier has moved far enough since the last checkpoint: by as many
 * positions as these layers hold. So the timeline can always go back to a checkpoint. At the end of a prompt, where
 * conversations fork, a checkpoint is due one window earlier. Checkpoints of recurrent states are made where
 * recurrent_points.h says. If all places are taken, spare checkpoints are dropped first. Then the checkpoint whose
 * neighbours are closest to each other is dropped, so that checkpoints stay spread over the timeline. */
#ifndef FR_SRC_ENGINE_SESSION_KV_CHECKPOINTS_H
#define FR_SRC_ENGINE_SESSION_KV_CHECKPOINTS_H

#include "src/engine/cache/kv.h"

typedef struct fr_kv_checkpoint {
    size_t position; /* the checkpoint holds positions [from, position) of every sliding layer */
    size_t from;
    uint8_t **pages; /* [the cache's blocks] pages, indexed by position / 64; NULL: not held */
    uint8_t *states; /* page with the recurrent states of `position` (recurrent.h); NULL: none */
    /* dropped before other checkpoints, because it was made only at a regular distance */
    bool spare;
} fr_kv_checkpoint;

typedef struct fr_kv_checkpoints {
    fr_kv_checkpoint *at; /* [capacity] the checkpoints by position, ascending */
    size_t count, capacity;
} fr_kv_checkpoints;

/* Takes memory for as many checkpoints as the cache has pages for. The arena may be one that only counts bytes
 * (base/arena.h). */
void fr_kv_checkpoints_layout(fr_kv_checkpoints *checkpoints, fr_arena *arena, const fr_kv *kv);

/* Makes a checkpoint if one is due, after the frontier has moved. */
void fr_kv_checkpoints_note(fr_kv_checkpoints *checkpoints, fr_kv *kv, bool prompt_end);

/* Makes a checkpoint and puts it after all others. The forward whose pages were claimed last (fr_kv_claim) will write
 * the checkpoint's recurrent states. If there are sliding layers, the forward will also write their positions, to pages
 * that the timeline and the checkpoint share. If there is no room for checkpoints, none is made. */
void fr_kv_checkpoints_save(fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t position, bool spare);

/* Makes a checkpoint, puts it after all others, and gives it pages of its own. The caller fills these pages, for
 * example from a file. Returns NULL if there is no room for checkpoints, or if there are not enough free pages. */
fr_kv_checkpoint *fr_kv_checkpoints_restore(fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t position, size_t from);

/* Copies another timeline's checkpoints. fork: has none yet; kv: a fork of the other timeline's cache. */
void fr_kv_checkpoints_fork(fr_kv_checkpoints *fork, fr_kv *kv, const fr_kv_checkpoints *checkpoints);

/* Gives a sliding layer's table as the checkpoint holds it. */
fr_kv_layer fr_kv_checkpoint_layer(const fr_kv_checkpoint *checkpoint, const fr_kv_layer *layer);

/* Makes all checkpoints forget positions after the first `length`, because the timeline was cut there. */
void fr_kv_checkpoints_truncate(fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t length);

/* Moves the frontier back to `length`, or to the nearest earlier position from which rows can be run. Rows can be run
 * from a position if the cache or a checkpoint holds all positions that these rows look back to. */
void fr_kv_checkpoints_rewind(const fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t length);

#endif
