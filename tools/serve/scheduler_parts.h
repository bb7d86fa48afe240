/* Defines what the files of the scheduler share: its struct, and functions for slots, errands and chores
 * (scheduler.h). */
#ifndef FR_TOOLS_SERVE_SCHEDULER_PARTS_H
#define FR_TOOLS_SERVE_SCHEDULER_PARTS_H

#include <pthread.h>
#include <semaphore.h>

#include "tools/serve/history.h"
#include "tools/serve/prompt_throttle.h"
#include "tools/serve/scheduler.h"

/* A slot, which runs one text at a time. When the text has ended its session stays in the slot, so that /slots can
 * save it. */
typedef struct fr_slot {
    fr_generation_request *request; /* NULL: the slot is free */
    fr_choice *choice;
    fr_session *kept; /* session of the last text, or a restored session; NULL: none */
    /* The session was restored from a file. Its pages are not shared with other sessions, so they can only be used by
     * a text in this slot. */
    bool restored;
    uint64_t used; /* number of texts that had begun, in all slots together, when this slot was last used */
    bool aside;    /* the session was swapped out and has no pages */
    /* number of texts that had ended when the session was swapped out, or when swapping it in was last tried */
    uint64_t aside_since;
} fr_slot;

/* A copy of a slot's state, which other threads may read. */
typedef struct fr_slot_view {
    bool busy;
    uint64_t task; /* the request's number */
    /* numbers of ids. prompt: in the prompt; waiting: of the prompt that must still be run; decoded: of the reply so
     * far; length: on the timeline */
    size_t prompt, waiting, decoded, length;
    int64_t most; /* the most ids of the reply; -1: no limit */
} fr_slot_view;

/* An errand in the queue, for the engine's thread. */
typedef struct fr_errand fr_errand;
struct fr_errand {
    fr_errand *next;
    fr_http_exchange *exchange; /* the errand is one of the exchange's holders */
    fr_slot_errand what;
    size_t slot;
    char *path;
};

struct fr_scheduler {
    fr_scheduler_setting setting;
    fr_prompt_throttle throttle;
    fr_slot *slots;    /* [setting.slots] all slots */
    fr_slot **running; /* [setting.slots] slots in use, in the order in which their requests arrived */
    size_t running_count;
    fr_round *rounds;
    double round_seconds; /* seconds of the last round */
    int32_t (*ids)[FR_STEP_MAX];
    fr_history *history;
    bool short_of_pages;   /* a text has found no page since the last text ended */
    uint64_t texts, ended; /* number of texts that have begun, and of those that have ended */
    /* The queue: requests with choices that have not begun, in the order of arrival. Only the engine's thread uses
     * it. */
    fr_generation_request *line;
    /* The semaphore is 1 while the engine's thread computes. Another thread that decrements the semaphore may use all
     * members above, until it increments the semaphore again. */
    sem_t away;

    pthread_mutex_t lock;                          /* protects the members below */
    fr_generation_request *arrived, **arrived_end; /* requests that have arrived and are not in the queue yet */
    fr_errand *errands, **errands_end;
    fr_chore *chores, **chores_end;
    size_t chore_count;
    fr_slot_view *views;  /* [setting.slots] */
    size_t waiting, busy; /* waiting: number of requests that wait; busy: number of requests with a choice that runs */
    size_t taken;         /* number of slots in use */
    bool closed;          /* no more requests are accepted */
    uint64_t number;      /* number of the request that was added last */
};

/* Declares functions of scheduler_slots.c. fr_scheduler_show publishes the state of all slots, and
 * fr_scheduler_show_slot that of one slot; this must be done before the client gets the end of the answer.
 * fr_scheduler_run_errands runs errands. fr_slot_forget closes the session that a slot keeps. */
void fr_scheduler_show(fr_scheduler *scheduler);
void fr_scheduler_show_slot(fr_scheduler *scheduler, const fr_slot *slot);
void fr_scheduler_run_errands(fr_scheduler *scheduler);
void fr_slot_forget(fr_slot *slot);

/* Declares functions of scheduler_chores.c. fr_scheduler_run_chore runs a piece of the first chore, and returns false
 * if there is none. fr_scheduler_end_chores ends all chores. */
bool fr_scheduler_run_chore(fr_scheduler *scheduler);
void fr_scheduler_end_chores(fr_scheduler *scheduler);

#endif
