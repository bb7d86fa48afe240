/* Defines what the files of the scheduler share (scheduler.h): its struct, and functions for slots, errands and
 * chores. */
#ifndef FR_TOOLS_SERVE_SCHEDULER_PARTS_H
#define FR_TOOLS_SERVE_SCHEDULER_PARTS_H

#include <pthread.h>
#include <semaphore.h>

#include "tools/serve/history.h"
#include "tools/serve/prompt_throttle.h"
#include "tools/serve/scheduler.h"

/* A slot. It runs one text at a time. When the text has ended, its session stays in the slot, so that a request to
 * /slots can save it. */
typedef struct fr_slot {
    fr_generation_request *request; /* NULL: the slot is free */
    fr_choice *choice;
    fr_session *kept; /* session of the last text, or a restored session; NULL: the slot has no session */
    /* The session was restored from a file. Its pages are not shared with other sessions, so only a text in this slot
     * can use them. */
    bool restored;
    uint64_t used; /* number of texts that had begun in all slots together, at the time when this slot was last used */
    bool aside;    /* the session was swapped out and has no pages */
    /* number of texts that had ended when the session was swapped out, or at the last attempt to swap it in */
    uint64_t aside_since;
} fr_slot;

/* A copy of a slot's state, which other threads may read. */
typedef struct fr_slot_view {
    bool busy;
    uint64_t task; /* the request's number */
    /* prompt: number of ids of the prompt. waiting: number of ids of the prompt that must still be run. decoded: number
     * of ids of the reply so far. length: number of ids on the timeline */
    size_t prompt, waiting, decoded, length;
    int64_t most; /* the most ids of the reply; -1: no limit */
} fr_slot_view;

/* An errand, which waits in the queue for the engine's thread. */
typedef struct fr_errand fr_errand;
struct fr_errand {
    fr_errand *next;
    fr_http_exchange *exchange; /* the errand is one of this exchange's holders */
    fr_slot_errand what;
    size_t slot;
    char *path;
};

struct fr_scheduler {
    fr_scheduler_setting setting;
    fr_prompt_throttle throttle;
    fr_slot *slots;    /* [setting.slots] all slots */
    fr_slot **running; /* [setting.slots] the slots in use, in the order in which their requests arrived */
    size_t running_count;
    fr_round *rounds;
    double round_seconds; /* seconds of the last round */
    int32_t (*ids)[FR_STEP_MAX];
    fr_history *history;
    bool short_of_pages;   /* since the last text ended, a text has found no free page */
    uint64_t texts, ended; /* number of texts that have begun, and number of texts that have ended */
    /* The queue. It has the requests with choices that have not begun, in the order of arrival. Only the engine's
     * thread uses it. */
    fr_generation_request *line;
    /* The semaphore is 1 while the engine's thread computes. Another thread may decrement the semaphore. From then on
     * that thread may use all members above, until it increments the semaphore again. */
    sem_t away;

    pthread_mutex_t lock; /* protects the members below */
    /* requests that have arrived and have not been moved to the queue yet */
    fr_generation_request *arrived, **arrived_end;
    fr_errand *errands, **errands_end;
    fr_chore *chores, **chores_end;
    size_t chore_count;
    fr_slot_view *views; /* [setting.slots] */
    /* waiting: number of requests that wait; busy: number of requests that have a running choice */
    size_t waiting, busy;
    size_t taken;    /* number of slots in use */
    bool closed;     /* no more requests are accepted */
    uint64_t number; /* number of the request that was added last */
};

/* Declares functions of scheduler_slots.c. fr_scheduler_show publishes the state of all slots. fr_scheduler_show_slot
 * publishes the state of one slot, and must be called before the client gets the end of the answer.
 * fr_scheduler_run_errands runs errands. fr_slot_forget closes the session that a slot keeps. */
void fr_scheduler_show(fr_scheduler *scheduler);
void fr_scheduler_show_slot(fr_scheduler *scheduler, const fr_slot *slot);
void fr_scheduler_run_errands(fr_scheduler *scheduler);
void fr_slot_forget(fr_slot *slot);

/* Declares functions of scheduler_chores.c. fr_scheduler_run_chore runs a piece of the first chore. It returns false if
 * there is no chore. fr_scheduler_end_chores ends all chores. */
bool fr_scheduler_run_chore(fr_scheduler *scheduler);
void fr_scheduler_end_chores(fr_scheduler *scheduler);

#endif
