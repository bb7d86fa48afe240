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
    fr_generation_request *request; /* NULL: the slot is free */
    fr_choice *choice;
    fr_session *kept; /* session of the last text, or a restored one; NULL: none */
    /* the session comes from a file: its pages are not shared, so only this session itself can continue it */
    bool restored;
    uint64_t used;        /* number of texts that had begun when the slot was last used */
    bool aside;           /* its session was swapped out and has no pages */
    uint64_t aside_since; /* number of texts that had ended at that time */
} fr_slot;

/* A slot's state in the form that other threads may read. */
typedef struct fr_slot_view {
    bool busy;
    uint64_t task;
    size_t prompt, waiting, decoded, length;
    int64_t most;
} fr_slot_view;

/* An errand that waits for the engine's thread. */
typedef struct fr_errand fr_errand;
struct fr_errand {
    fr_errand *next;
    fr_http_exchange *exchange; /* held by the errand */
    fr_slot_errand what;
    size_t slot;
    char *path;
};

struct fr_scheduler {
    fr_scheduler_setting setting;
    fr_prompt_throttle throttle;
    fr_slot *slots;    /* [setting.slots] */
    fr_slot **running; /* [setting.slots] slots with a text, in the order of arrival */
    size_t running_count;
    fr_round *rounds;
    double round_seconds; /* time of the last round */
    int32_t (*ids)[FR_STEP_MAX];
    fr_history *history;
    bool short_of_pages;   /* a text found no page since the last text ended */
    uint64_t texts, ended; /* texts that have begun, and that have ended */
    /* requests that have a choice which waits, in the order of arrival; only the engine's thread uses it */
    fr_generation_request *line;
    /* 1 while the engine's thread computes; a thread that takes it owns all members above */
    sem_t away;

    pthread_mutex_t lock;                          /* protects the members below */
    fr_generation_request *arrived, **arrived_end; /* requests that are not in the line yet */
    fr_errand *errands, **errands_end;
    fr_chore *chores, **chores_end;
    size_t chore_count;
    fr_slot_view *views;  /* [setting.slots] */
    size_t waiting, busy; /* requests that wait; requests with a choice that runs */
    size_t taken;         /* slots with a choice that runs */
    bool closed;          /* no more requests are accepted */
    uint64_t number;
};

/* In scheduler_slots.c: publish the state of all slots, or of one; run errands; give up a slot's old session. A slot
 * is published as free before its client gets the end of the answer. */
void fr_scheduler_show(fr_scheduler *scheduler);
void fr_scheduler_show_slot(fr_scheduler *scheduler, const fr_slot *slot);
void fr_scheduler_run_errands(fr_scheduler *scheduler);
void fr_slot_forget(fr_slot *slot);

/* In scheduler_chores.c: run a piece of the first chore (false: there is none); end all chores. */
bool fr_scheduler_run_chore(fr_scheduler *scheduler);
void fr_scheduler_end_chores(fr_scheduler *scheduler);

#endif
