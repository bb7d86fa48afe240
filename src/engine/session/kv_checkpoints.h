/* Checkpoints of a cache's sliding layers, or of its recurrent layers' states, with which a timeline goes back farther
 * than these hold.
 *
 * In: a cache whose frontier moves. Out: the pages that its sliding layers held at some frontiers of the past, or
 * states that its forwards left; the cache brought back as it was at the best of them. A checkpoint holds pages, it
 * copies none: the timeline goes on in a copy of the one at the frontier alone (kv.h). Layers that keep every position
 * need none. There are pages for as many as were asked for at open (fr_kv_layout).
 *
 * One is due whenever the frontier has moved on by what these layers keep since the last, and at the end of a prompt,
 * where a conversation forks: there already when the table alone no longer goes back to the last. With all places
 * taken, the one goes whose loss lengthens a re-run least, so that they stay spread over the timeline; spare ones go
 * before others. */
#ifndef FR_SRC_ENGINE_SESSION_KV_CHECKPOINTS_H
#define FR_SRC_ENGINE_SESSION_KV_CHECKPOINTS_H

#include "src/engine/cache/kv.h"

typedef struct fr_kv_checkpoint {
    size_t position; /* holds [from, position) of every sliding layer */
    size_t from;
    uint8_t **pages; /* [the cache's blocks] by position / 64; NULL: not held */
    uint8_t *states; /* a page of recurrent layers (recurrent.h), which serves its position alone; NULL: none */
    bool spare;      /* given up before those that are not: its states lie at regular distances */
} fr_kv_checkpoint;

typedef struct fr_kv_checkpoints {
    fr_kv_checkpoint *at; /* [capacity] by position, ascending */
    size_t count, capacity;
} fr_kv_checkpoints;

/* Takes as many as the cache has pages for from the arena, or measures them. */
void fr_kv_checkpoints_layout(fr_kv_checkpoints *checkpoints, fr_arena *arena, const fr_kv *kv);

/* The frontier has moved. */
void fr_kv_checkpoints_note(fr_kv_checkpoints *checkpoints, fr_kv *kv, bool prompt_end);

/* One behind all others that the forward which was claimed last will fill with its recurrent layers' states; none where
 * there is no room at all. */
void fr_kv_checkpoints_save(fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t position, bool spare);

/* One behind all others that holds pages of its own, whose contents are the caller's to write: what was saved, say.
 * NULL: there is no room at all, or there are not enough pages. */
fr_kv_checkpoint *fr_kv_checkpoints_restore(fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t position, size_t from);

/* Those of another timeline, whose fork `kv` is, in one that has none. */
void fr_kv_checkpoints_fork(fr_kv_checkpoints *fork, fr_kv *kv, const fr_kv_checkpoints *checkpoints);

/* A sliding layer as a checkpoint has it. */
fr_kv_layer fr_kv_checkpoint_layer(const fr_kv_checkpoint *checkpoint, const fr_kv_layer *layer);

/* The timeline has become its first `length` ids: what is held of others is let go of. */
void fr_kv_checkpoints_truncate(fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t length);

/* Moves the frontier back to `length`, or to the position nearest below it that the table or a checkpoint gives. */
void fr_kv_checkpoints_rewind(const fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t length);

#endif
