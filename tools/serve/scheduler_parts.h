/* The inside of the scheduler, shared by its files: slots, errands and chores (scheduler.h). */
#ifndef FR_TOOLS_SERVE_SCHEDULER_PARTS_H
#define FR_TOOLS_SERVE_SCHEDULER_PARTS_H

#include <pthread.h>
#include <semaphore.h>

#include "tools/serve/history.h"
#include "tools/serve/prompt_throttle.h"
#include "tools/serve/scheduler.h"

/* A slot for one text. When the text has ended its session stays in the slot, so that /slots can save it. */
typedef struct fr_slot {
    fr_generation_request *request; /* NULL: it is free */
    fr_choice *choice;
    fr_session *kept;     /* of the text before, or restored; NULL: none */
    bool restored;        /* from a file: its pages are in no shared prefix, so that its own session must go on */
    uint64_t used;        /* when, in texts begun */
    bool aside;           /* its session has given up its pages to other texts */
    uint64_t aside_since; /* in texts ended */
} fr_slot;

/* A slot's state as other threads may read it. */
typedef struct fr_slot_view {
    bool busy;
    uint64_t task;
    size_t prompt, waiting, decoded, length;
    int64_t most;
} fr_slot_view;

/* An errand that waits. */
typedef struct fr_errand fr_errand;
struct fr_errand {
    fr_errand *next;
    fr_http_exchange *exchange; /* held */
    fr_slot_errand what;
    size_t slot;
    char *path;
};

struct fr_scheduler {
    fr_scheduler_setting setting;
    fr_prompt_throttle throttle;
    fr_slot *slots;    /* [setting.slots] */
    fr_slot **running; /* [setting.slots] those under way, by arrival */
    size_t running_count;
    fr_round *rounds;
    int32_t (*ids)[FR_STEP_MAX];
    fr_history *history;
    bool short_of_pages;         /* since the last text ended */
    uint64_t texts, ended;       /* begun, and ended, so far */
    fr_generation_request *line; /* requests of which a choice waits, by arrival; the engine thread's own */
    sem_t away;                  /* 1 while that thread computes: a thread that takes it owns all of the above */

    pthread_mutex_t lock;                          /* of what follows */
    fr_generation_request *arrived, **arrived_end; /* not in the line yet */
    fr_errand *errands, **errands_end;
    fr_chore *chores, **chores_end;
    size_t chore_count;
    fr_slot_view *views;  /* [setting.slots] */
    size_t waiting, busy; /* requests that wait, or that have a choice under way */
    size_t taken;         /* slots with a choice under way */
    bool closed;          /* no more requests are taken */
    uint64_t number;
};

/* In scheduler_slots.c: publish the state of all slots or of one; run errands; give up a slot's kept session. A slot
 * is published as free before its client gets the end of the answer. */
void fr_scheduler_show(fr_scheduler *scheduler);
void fr_scheduler_show_slot(fr_scheduler *scheduler, const fr_slot *slot);
void fr_scheduler_run_errands(fr_scheduler *scheduler);
void fr_slot_forget(fr_slot *slot);

/* In scheduler_chores.c: run a piece of the first chore (false: there is none); end all chores. */
bool fr_scheduler_run_chore(fr_scheduler *scheduler);
void fr_scheduler_end_chores(fr_scheduler *scheduler);

#endif
