/* Runs chores. Between two rounds it runs one piece of a chore (scheduler.h). */
#include "tools/serve/scheduler_parts.h"

bool fr_scheduler_add_chore(fr_scheduler *scheduler, fr_chore *chore) {
    chore->next = NULL;
    pthread_mutex_lock(&scheduler->lock);
    /* the first chore is already being run, so the queue may have one chore more than the setting allows to wait */
    bool fits = !scheduler->closed && scheduler->chore_count < scheduler->setting.queue + 1;
    if (fits) {
        *scheduler->chores_end = chore;
        scheduler->chores_end = &chore->next;
        scheduler->chore_count++;
    }
    pthread_mutex_unlock(&scheduler->lock);
    if (fits) scheduler->setting.wake(scheduler->setting.context);
    return fits;
}

void fr_scheduler_count_tokens(fr_scheduler *scheduler, size_t tokens, double seconds) {
    fr_metrics_add_round(scheduler->setting.metrics, 1);
    fr_metrics_add_prompt(scheduler->setting.metrics, tokens, seconds);
}

fr_chore *fr_scheduler_next_chore(fr_scheduler *scheduler, const fr_chore *chore) {
    pthread_mutex_lock(&scheduler->lock);
    fr_chore *next = chore->next;
    pthread_mutex_unlock(&scheduler->lock);
    return next;
}

static fr_chore *first_of(fr_scheduler *scheduler) {
    pthread_mutex_lock(&scheduler->lock);
    fr_chore *first = scheduler->chores;
    pthread_mutex_unlock(&scheduler->lock);
    return first;
}

/* Ends the first chore. The chore is removed from the queue before its client gets the answer. */
static void end_first(fr_scheduler *scheduler) {
    pthread_mutex_lock(&scheduler->lock);
    fr_chore *first = scheduler->chores;
    scheduler->chores = first->next;
    if (!scheduler->chores) scheduler->chores_end = &scheduler->chores;
    scheduler->chore_count--;
    pthread_mutex_unlock(&scheduler->lock);
    first->end(first);
}

bool fr_scheduler_run_chore(fr_scheduler *scheduler) {
    fr_chore *first = first_of(scheduler);
    if (first && !first->piece(first, scheduler->setting.jobs)) end_first(scheduler);
    return first != NULL;
}

void fr_scheduler_end_chores(fr_scheduler *scheduler) {
    while (first_of(scheduler)) end_first(scheduler);
}
