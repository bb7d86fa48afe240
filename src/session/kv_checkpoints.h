/* Checkpoints of the rings: how a timeline goes back farther than its sliding layers hold.
 *
 * In: a cache whose frontier moves. Out: copies of all its rings at some frontiers of the past, and the rings brought
 * back as they were at the best of them. Layers that keep every position need no copy. Memory is taken at open; a
 * checkpoint's pages cost nothing before it is first taken.
 *
 * One is due whenever the frontier has moved on by a ring's length since the last, and at the end of a prompt, where a
 * conversation forks: there already when the rings alone no longer go back to the last. With all places taken, the
 * one goes whose loss lengthens a re-run least, so that they stay spread over the timeline. */
#ifndef FR_SRC_KV_CHECKPOINTS_H
#define FR_SRC_KV_CHECKPOINTS_H

#include "src/decoder/kv.h"

typedef struct fr_kv_checkpoint {
    size_t position; /* holds [from, position) of every ring */
    size_t from;
    uint8_t *rows; /* each ring's keys and values, as they lay */
} fr_kv_checkpoint;

typedef struct fr_kv_checkpoints {
    fr_kv_checkpoint *at; /* [capacity] by position, ascending */
    size_t count, capacity;
} fr_kv_checkpoints;

/* Room for as many as are wanted and as a timeline of `context` has a use for. */
void fr_kv_checkpoints_layout(fr_kv_checkpoints *checkpoints, fr_arena *arena, const fr_kv *kv, size_t wanted,
                              size_t context);

/* The frontier has moved. */
void fr_kv_checkpoints_note(fr_kv_checkpoints *checkpoints, const fr_kv *kv, bool prompt_end);

/* A place for a checkpoint behind all others, its bounds filled in; NULL: there is no room at all. */
fr_kv_checkpoint *fr_kv_checkpoints_place(fr_kv_checkpoints *checkpoints, size_t position, size_t from);

/* A ring as it lies in a checkpoint; *rows moves past it. */
fr_kv_layer fr_kv_checkpoint_ring(const fr_kv_layer *layer, uint8_t **rows);

/* The timeline has become its first `length` ids: what was copied behind them is forgotten. */
void fr_kv_checkpoints_truncate(fr_kv_checkpoints *checkpoints, const fr_kv *kv, size_t length);

/* Moves the frontier back to `length`, or to the position nearest below it that the rings or a checkpoint give. */
void fr_kv_checkpoints_rewind(const fr_kv_checkpoints *checkpoints, fr_kv *kv, size_t length);

#endif
