/* The scheduler of one model: it queues requests by arrival, and runs those under way together.
 *
 * In: requests. Out: their answers. A slot is a session of one engine; a round is one forward for all slots. Other
 * threads add requests and read figures; everything else is done by the engine's thread. */
#ifndef FR_TOOLS_SERVE_SCHEDULER_H
#define FR_TOOLS_SERVE_SCHEDULER_H

#include "tools/serve/generation_request.h"
#include "tools/serve/metrics.h"

typedef struct fr_scheduler fr_scheduler;

/* slots: texts under way at once; queue: requests that may wait. wake: called by fr_scheduler_add's thread when there
 * is something to do. */
typedef struct fr_scheduler_setting {
    size_t slots, queue;
    double ping; /* seconds; 0: none */
    fr_job_setting *jobs;
    fr_metrics *metrics;
    void (*wake)(void *context);
    void *context;
} fr_scheduler_setting;
fr_scheduler *fr_scheduler_open(const fr_scheduler_setting *setting);
void fr_scheduler_close(fr_scheduler *scheduler);

/* Adds a request. Returns false if the queue is full or the scheduler has closed: the request then stays the caller's.
 * Any thread. */
bool fr_scheduler_add(fr_scheduler *scheduler, fr_generation_request *request);

/* Runs a round. Returns false if no text is under way, or all of them wait for their clients to read. */
bool fr_scheduler_round(fr_scheduler *scheduler);

/* Ends the requests under way and in the queue, and closes the scheduler, because the server is ending. status: the
 * reason, with the message of the thread's last failure; FR_OK: the server was told to end. */
void fr_scheduler_interrupt(fr_scheduler *scheduler, fr_status status);

/* Does the same from another thread, if the engine's thread is computing and the process will end before it is back.
 * It only sends answers and does not touch sessions. If the engine's thread is not computing it does nothing. */
void fr_scheduler_abandon(fr_scheduler *scheduler, fr_status status);

/* Counts the requests that wait and those under way. Any thread. */
void fr_scheduler_busy(fr_scheduler *scheduler, size_t *waiting, size_t *running);

/* Returns true if every slot has a text. Any thread. */
bool fr_scheduler_full(fr_scheduler *scheduler);

/* Gives the answer of /slots, a new value. Any thread. */
json_t *fr_scheduler_slots(fr_scheduler *scheduler);

/* Gives the answer of /rounds, a new value: the last rounds after round `after`, as {"slots", "total", "rounds":
 * [{"ms", "rows": [[slot, rows, ids that it gave, true if they are a prompt's], ...]}, ...]}. Any thread. */
json_t *fr_scheduler_rounds(fr_scheduler *scheduler, unsigned long long after);

/* Adds an errand: the engine's thread saves, restores or erases a slot's session between rounds, and answers the
 * exchange. */
typedef enum fr_slot_errand { FR_SLOT_SAVE, FR_SLOT_RESTORE, FR_SLOT_ERASE } fr_slot_errand;
void fr_scheduler_add_errand(fr_scheduler *scheduler, fr_http_exchange *exchange, fr_slot_errand errand, size_t slot,
                             const char *path);

/* A chore is work besides the texts. The engine's thread runs one piece of it between two rounds, one chore after the
 * other, in a session that the engine has for this. */
typedef struct fr_chore fr_chore;
struct fr_chore {
    fr_chore *next; /* the scheduler's */
    /* Runs the next piece; returns false if that was the last one. */
    bool (*piece)(fr_chore *chore, const fr_job_setting *jobs);
    /* Answers the chore and frees it, after its last piece or when the server ends. */
    void (*end)(fr_chore *chore);
};

/* Counts a text that a chore's session ran, for /metrics. */
void fr_scheduler_count_chore(fr_scheduler *scheduler, const fr_session *session);

/* Adds a chore. Returns false if too many wait or the scheduler has closed: the chore then stays the caller's. Any
 * thread. */
bool fr_scheduler_add_chore(fr_scheduler *scheduler, fr_chore *chore);

#endif
