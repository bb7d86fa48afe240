/* Where a timeline of recurrent layers can be gone back to: see recurrent_points.h. */
#include "src/session/recurrent_points.h"

enum { EVERY = 1024 };

/* A message ends with an end of sequence. */
static bool is_wanted(const fr_session *s, size_t position, size_t certain) {
    bool ends_prompt = s->pending && position == certain && certain + 1 == s->length;
    return position % EVERY == EVERY - 1 || ends_prompt || fr_model_is_eos(s->model, s->ids[position - 1]);
}

static bool is_awaited(const fr_session *s, size_t position) {
    for (size_t i = 0; i < s->awaited_count; i++)
        if (s->awaited[i] == position) return true;
    return false;
}

void fr_recurrent_points_plan(fr_session *s, size_t certain) {
    fr_recurrent *r = &s->kv.recurrent;
    size_t points[FR_RECURRENT_POINTS], count = 0, awaited = 0;
    if (r->count == 0) return;
    fr_recurrent_certain(r, certain);
    for (size_t i = 0; i < s->awaited_count; i++) awaited += s->awaited[i] > r->at && s->awaited[i] <= certain;
    for (size_t p = certain; p > r->at && count < FR_RECURRENT_POINTS; p--) {
        bool waited = is_awaited(s, p);
        awaited -= waited;
        if (waited || (count + awaited < FR_RECURRENT_POINTS && is_wanted(s, p, certain))) points[count++] = p;
    }
    while (count) fr_kv_checkpoints_save(&s->kv_checkpoints, &s->kv, points[--count]);
}
