/* Work beside the texts, piece by piece between rounds (desk.h). */
#include "tools/serve/desk_parts.h"

bool fr_desk_take_chore(fr_desk *desk, fr_chore *chore) {
    chore->next = NULL;
    pthread_mutex_lock(&desk->lock);
    bool fits = !desk->closed && desk->chore_count < desk->setting.queue + 1; /* one is under way */
    if (fits) {
        *desk->chores_end = chore;
        desk->chores_end = &chore->next;
        desk->chore_count++;
    }
    pthread_mutex_unlock(&desk->lock);
    if (fits) desk->setting.wake(desk->setting.context);
    return fits;
}

void fr_desk_count_chore(fr_desk *desk, const fr_session *session) {
    fr_tally_round(desk->setting.tally, 1);
    fr_tally_text(desk->setting.tally, session);
}

static fr_chore *first_of(fr_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    fr_chore *first = desk->chores;
    pthread_mutex_unlock(&desk->lock);
    return first;
}

/* It counts no more before its client can know. */
static void end_first(fr_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    fr_chore *first = desk->chores;
    desk->chores = first->next;
    if (!desk->chores) desk->chores_end = &desk->chores;
    desk->chore_count--;
    pthread_mutex_unlock(&desk->lock);
    first->end(first);
}

bool fr_desk_run_chore(fr_desk *desk) {
    fr_chore *first = first_of(desk);
    if (first && !first->piece(first, desk->setting.jobs)) end_first(desk);
    return first != NULL;
}

void fr_desk_end_chores(fr_desk *desk) {
    while (first_of(desk)) end_first(desk);
}
