/* The scheduler of one model: requests that wait, by arrival, and those under way, whose ids go through it together.
 *
 * In: requests. Out: their answers. Slots are sessions of one engine; a round is one forward for all of them. Other
 * threads put requests and read figures; everything else is the engine thread's. */
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

/* Hands a request over. False: too many wait already, or the scheduler takes none any more; it stays the caller's. Any
 * thread. */
bool fr_scheduler_add(fr_scheduler *scheduler, fr_generation_request *request);

/* A round, if there is anything to do; false: nothing is under way, or all of it waits for its clients to read. */
bool fr_scheduler_round(fr_scheduler *scheduler);

/* Ends what is under way and what waits, and takes no more: the server is going. status: why, by the thread's last
 * failure, or FR_OK: it was told to. */
void fr_scheduler_interrupt(fr_scheduler *scheduler, fr_status status);

/* The same by another thread, and answers alone, where the engine's computes and the process ends before it is back:
 * sessions are not touched. Where it doesn't compute, nothing is done. */
void fr_scheduler_abandon(fr_scheduler *scheduler, fr_status status);

/* Requests that wait and that are under way. Any thread. */
void fr_scheduler_busy(fr_scheduler *scheduler, size_t *waiting, size_t *running);

/* Whether each slot has a text. Any thread. */
bool fr_scheduler_full(fr_scheduler *scheduler);

/* What /slots tells, a new value. Any thread. */
json_t *fr_scheduler_slots(fr_scheduler *scheduler);

/* What /rounds tells of the last rounds behind round `after`, a new value: {"slots", "total", "rounds": [{"ms",
 * "rows": [[slot, rows, ids that it gave, whether they are a prompt's], ...]}, ...]}. Any thread. */
json_t *fr_scheduler_rounds(fr_scheduler *scheduler, unsigned long long after);

/* Something to be done by the engine's thread, between rounds, with a slot's session: it answers the exchange. */
typedef enum fr_slot_errand { FR_SLOT_SAVE, FR_SLOT_RESTORE, FR_SLOT_ERASE } fr_slot_errand;
void fr_scheduler_add_errand(fr_scheduler *scheduler, fr_http_exchange *exchange, fr_slot_errand errand, size_t slot,
                             const char *path);

/* Work beside the texts, by the engine's thread: a piece between two rounds, of one chore after the other. The engine
 * has a session more for it. */
typedef struct fr_chore fr_chore;
struct fr_chore {
    fr_chore *next; /* the scheduler's */
    /* The next piece of it; false: that was all. */
    bool (*piece)(fr_chore *chore, const fr_job_setting *jobs);
    /* Once there is no more of it, or the server is going: answers, and frees it. */
    void (*end)(fr_chore *chore);
};

/* Counts a text that a chore's session ran, for /metrics. */
void fr_scheduler_count_chore(fr_scheduler *scheduler, const fr_session *session);

/* False: too many wait already, or the scheduler takes none any more; it stays the caller's. Any thread. */
bool fr_scheduler_add_chore(fr_scheduler *scheduler, fr_chore *chore);

#endif
