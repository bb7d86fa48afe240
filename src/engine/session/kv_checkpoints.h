/* Keeps checkpoints of a cache's sliding layers, or of its recurrent layers' states, with which a timeline can go back
 * farther than these layers themselves allow.
 *
 * In: a cache whose frontier moves. Out: the pages that its sliding layers held at some earlier frontiers, or states
 * that its forwards left; the cache as it was at the best of these. A checkpoint holds pages and copies none: only the
 * page at the frontier is copied when the timeline goes on (kv.h). Layers that keep every position need no checkpoint.
 * There are pages for as many checkpoints as were asked for at open (fr_kv_layout).
 *
 * One is due whenever the frontier has moved, since the last one, by as many positions as these layers keep, and at
 * the end of a prompt, where conversations fork. So it is there before the table alone no longer reaches back to the
 * last one. If all places are taken, the checkpoint goes whose loss lengthens a re-run least, so that they stay spread
 * over the timeline; spare ones go first. */
#ifndef FR_SRC_ENGINE_SESSION_KV_CHECKPOINTS_H
#define FR_SRC_ENGINE_SESSION_KV_CHECKPOINTS_H

#include "src/engine/cache/kv.h"

typedef struct fr_kv_checkpoint {
    size_t position; /* holds [from, position) of every sliding layer */
    size_t from;
    uint8_t **pages; /* [the cache's blocks] by position / 64; NULL: not held */
    uint8_t *states; /* a page of recurrent states (recurrent.h), good for `position` alone; NULL: none */
    bool spare;      /* given up before others: its states lie at regular distances */
} fr_kv_checkpoint;

typedef struct fr_kv_checkpoints {
    fr_kv_checkpoint *at; /* [capacity] by position, ascending */
    size_t count, capacity;
} fr_kv_checkpoints;

/* Takes memory from the arena for as many checkpoints as the cache has pages for, or measures it. */
void fr_kv_checkpoints_layout(fr_kv_checkpoints *checkpoints, fr_arena *arena, const fr_kv *kv);

/* Makes a checkpoint if one is due, after the frontier has moved. */
void fr_kv_checkpoints_note(fr_kv_checkpoints *checkpoints, fr_kv *kv, bool prompt_end);

/* Makes a checkpoint after all others, which the forward that was claimed last will fill with its recurrent layers'
 * states. It makes none if there is no room for any. */
void fr_kv_checkpoints_save(fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t position, bool spare);

/* Makes a checkpoint after all others with pages of its own, which the caller fills, such as with saved ones. Returns
 * NULL if there is no room for any, or not enough pages. */
fr_kv_checkpoint *fr_kv_checkpoints_restore(fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t position, size_t from);

/* Copies the checkpoints of another timeline, of which `kv` is a fork, into one that has none. */
void fr_kv_checkpoints_fork(fr_kv_checkpoints *fork, fr_kv *kv, const fr_kv_checkpoints *checkpoints);

/* Gives a sliding layer as the checkpoint holds it. */
fr_kv_layer fr_kv_checkpoint_layer(const fr_kv_checkpoint *checkpoint, const fr_kv_layer *layer);

/* Lets go of all that is held of positions after the first `length`, to which the timeline was cut. */
void fr_kv_checkpoints_truncate(fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t length);

/* Moves the frontier back to `length`, or to the position nearest below it that the table or a checkpoint gives. */
void fr_kv_checkpoints_rewind(const fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t length);

#endif
