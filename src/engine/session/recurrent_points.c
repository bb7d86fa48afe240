/* Chooses the positions whose recurrent states are kept: see recurrent_points.h. */
#include "src/engine/session/recurrent_points.h"

/* EVERY: distance between regular points; EVERY_AT_FIRST: the same near the beginning of the text. LEAST_MESSAGE: the
 * end of a message is a point only from this position on. */
enum { EVERY = 256, EVERY_AT_FIRST = 32, LEAST_MESSAGE = 16 };

/* The reasons to keep the states after a position, in order of importance. */
typedef enum wish { NOT_WANTED, REGULAR, MESSAGE, KEPT, AWAITED } wish;

/* Moves a point at the end of a page one position down. A drafter's entry for a position also depends on the next id.
 * So the id at a point must lie in the same page as the positions before it. */
static size_t within_page(size_t position) {
    return position - (position > 0 && position % FR_KV_PAGE == 0);
}

static bool is_awaited(const fr_session *s, size_t position) {
    for (size_t i = 0; i < s->cache.awaited_count; i++)
        if (s->cache.awaited[i] == position) return true;
    return false;
}

/* Returns true if the id before the position ends a message, as an end of sequence does. */
static bool ends_message(const fr_session *s, size_t position) {
    return position >= LEAST_MESSAGE && position <= s->length && fr_model_is_eos(s->model, s->ids[position - 1]);
}

/* Returns true at the end of the first message. That is the system message, with which other conversations often begin
 * too. */
static bool ends_first_message(const fr_session *s, size_t position) {
    for (size_t p = LEAST_MESSAGE; p < position; p++)
        if (ends_message(s, p)) return false;
    return true;
}

/* Returns true at the regular points: 31, 63, 127, 191, 255, 511 and so on. Their distance grows up to 256. So a short
 * prompt that shares a beginning with an earlier one runs at most half of that beginning again. */
static bool is_regular(size_t position) {
    size_t every = position < 2 * EVERY_AT_FIRST ? EVERY_AT_FIRST : position < EVERY ? FR_KV_PAGE : EVERY;
    return position % every == every - 1;
}

static wish wish_for(const fr_session *s, size_t position, size_t certain) {
    bool prompt = s->phase == FR_PHASE_PENDING, whole = prompt && certain + 1 == s->length;
    if (is_awaited(s, position)) return AWAITED;
    if ((whole && position == within_page(certain)) || (prompt && position == within_page(s->cache.branch)))
        return KEPT;
    for (size_t end = position; end <= position + 1; end++)
        if (position == within_page(end) && ends_message(s, end)) return ends_first_message(s, end) ? KEPT : MESSAGE;
    return is_regular(position) ? REGULAR : NOT_WANTED;
}

/* Returns true if this forward can store a regular point in addition to `count` other points. There must be a page for
 * it, and no more important point may be given up for it. */
static bool has_spare_page(const fr_session *s, size_t count) {
    const fr_kv_checkpoints *own = &s->cache.checkpoints;
    bool spare = false;
    for (size_t i = 0; i < own->count; i++) spare |= own->at[i].spare;
    if (own->count == own->capacity) return spare;
    return (s->engine->shares ? fr_kv_prefixes_spare_states(&s->engine->prefixes)
                              : s->cache.kv.recurrent.pages->free_count) > count;
}

void fr_recurrent_points_plan(fr_session *s, size_t certain) {
    fr_recurrent *r = &s->cache.kv.recurrent;
    size_t points[FR_RECURRENT_POINTS], count = 0;
    wish wishes[FR_RECURRENT_POINTS];
    if (r->count == 0) return;
    fr_recurrent_certain(r, certain);
    for (size_t p = certain; p > r->at; p--) {
        wish here = wish_for(s, p, certain);
        size_t least = 0;
        if (here == NOT_WANTED) continue;
        for (size_t i = 1; i < count; i++)
            if (wishes[i] <= wishes[least]) least = i; /* give up the earlier of two equally important points */
        bool full = count == FR_RECURRENT_POINTS;
        if (full && here <= wishes[least]) continue;
        if (full) {
            for (size_t i = least; i + 1 < count; i++) points[i] = points[i + 1], wishes[i] = wishes[i + 1];
            count--;
        }
        points[count] = p;
        wishes[count++] = here;
    }
    while (count--)
        if (wishes[count] != REGULAR || has_spare_page(s, count))
            fr_kv_checkpoints_save(&s->cache.checkpoints, &s->cache.kv, points[count], wishes[count] == REGULAR);
}
