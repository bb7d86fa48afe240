/* The scheduler of one model: it queues requests by arrival, and runs several at once.
 *
 * In: requests. Out: their answers. A slot is a session of one engine; a round is one forward for all slots. Other
 * threads add requests and read figures; only the engine's thread does everything else. */
#ifndef FR_TOOLS_SERVE_SCHEDULER_H
#define FR_TOOLS_SERVE_SCHEDULER_H

#include "tools/serve/generation_request.h"
#include "tools/serve/metrics.h"

typedef struct fr_scheduler fr_scheduler;

/* slots: texts that run at once; queue: requests that may wait. wake: called by the thread of fr_scheduler_add when
 * there is work. */
typedef struct fr_scheduler_setting {
    size_t slots, queue;
    double ping; /* seconds between pings; 0: none */
    fr_job_setting *jobs;
    fr_metrics *metrics;
    void (*wake)(void *context);
    void *context;
} fr_scheduler_setting;
fr_scheduler *fr_scheduler_open(const fr_scheduler_setting *setting);
void fr_scheduler_close(fr_scheduler *scheduler);

/* Adds a request. Returns false if the queue is full or the scheduler has closed: the caller then still owns the
 * request. May be called from any thread. */
bool fr_scheduler_add(fr_scheduler *scheduler, fr_generation_request *request);

/* Runs a round. Returns false if no text is being run, or if all of them wait for their clients to read. */
bool fr_scheduler_round(fr_scheduler *scheduler);

/* Ends all requests, those that run and those in the queue, and closes the scheduler, because the server is ending.
 * status: the reason, with the message of the thread's last failure; FR_OK: the server was told to end. */
void fr_scheduler_interrupt(fr_scheduler *scheduler, fr_status status);

/* Does the same from another thread, if the engine's thread is computing and the process will end before it is done.
 * It only sends answers and does not touch sessions. It does nothing if the engine's thread is not computing. */
void fr_scheduler_abandon(fr_scheduler *scheduler, fr_status status);

/* Counts the requests that wait and those that run. May be called from any thread. */
void fr_scheduler_busy(fr_scheduler *scheduler, size_t *waiting, size_t *running);

/* Returns true if every slot has a text. May be called from any thread. */
bool fr_scheduler_full(fr_scheduler *scheduler);

/* Gives the answer of /slots, as a new value. May be called from any thread. */
json_t *fr_scheduler_slots(fr_scheduler *scheduler);

/* Gives the answer of /rounds, a new value: the last rounds after round `after`, as {"slots", "total", "rounds":
 * [{"ms", "rows": [[slot, rows, ids that it gave, true if the rows are a prompt's], ...]}, ...]}. May be called from
 * any thread. */
json_t *fr_scheduler_rounds(fr_scheduler *scheduler, unsigned long long after);

/* Adds an errand: between two rounds, the engine's thread saves, restores or erases a slot's session, and answers the
 * exchange. */
typedef enum fr_slot_errand { FR_SLOT_SAVE, FR_SLOT_RESTORE, FR_SLOT_ERASE } fr_slot_errand;
void fr_scheduler_add_errand(fr_scheduler *scheduler, fr_http_exchange *exchange, fr_slot_errand errand, size_t slot,
                             const char *path);

/* A chore is other work than texts. Between two rounds the engine's thread runs one piece of the first chore, in a
 * session that the engine reserves for chores. */
typedef struct fr_chore fr_chore;
struct fr_chore {
    fr_chore *next; /* used by the scheduler */
    /* Runs the next piece; returns false if that was the last one. */
    bool (*piece)(fr_chore *chore, const fr_job_setting *jobs);
    /* Answers the chore and frees it, after its last piece or when the server ends. */
    void (*end)(fr_chore *chore);
};

/* Counts a text that a chore's session ran, for /metrics. */
void fr_scheduler_count_chore(fr_scheduler *scheduler, const fr_session *session);

/* Adds a chore. Returns false if too many wait or the scheduler has closed: the caller then still owns the chore. May
 * be called from any thread. */
bool fr_scheduler_add_chore(fr_scheduler *scheduler, fr_chore *chore);

#endif
