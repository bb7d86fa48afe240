/* Declares the scheduler of a model. It queues requests in the order of their arrival and runs several of them at once.
 *
 * In: requests. Out: their answers. A slot is a session of one engine. A round is one forward for all slots. Other
 * threads only add requests and read figures. The engine's thread does everything else. */
#ifndef FR_TOOLS_SERVE_SCHEDULER_H
#define FR_TOOLS_SERVE_SCHEDULER_H

#include "tools/serve/generation_request.h"
#include "tools/serve/metrics.h"

typedef struct fr_scheduler fr_scheduler;

/* The settings of a scheduler. slots: number of texts that run at once. queue: number of requests that may wait. wake:
 * called when there is work, in the thread that adds the work. */
typedef struct fr_scheduler_setting {
    size_t slots, queue;
    double ping; /* seconds between pings; 0: no pings */
    fr_job_setting *jobs;
    fr_metrics *metrics;
    void (*wake)(void *context);
    void *context;
} fr_scheduler_setting;
fr_scheduler *fr_scheduler_open(const fr_scheduler_setting *setting);
void fr_scheduler_close(fr_scheduler *scheduler);

/* Adds a request. Returns false if the queue is full or the scheduler is closed. Then the request still belongs to the
 * caller. The function may be called from any thread. */
bool fr_scheduler_add(fr_scheduler *scheduler, fr_generation_request *request);

/* Runs a round. Returns false if no text could take part in it. Then either there is no text, or all texts wait until
 * their clients read. */
bool fr_scheduler_round(fr_scheduler *scheduler);

/* Ends all running and waiting requests and closes the scheduler, because the server is ending. status: FR_OK if the
 * server was told to end. Any other status is the reason of the end, and this thread's last failure has its message. */
void fr_scheduler_interrupt(fr_scheduler *scheduler, fr_status status);

/* Ends all requests from another thread. It is called if the process will end before the engine's thread has finished
 * computing. The function only sends answers and does not touch sessions. If the engine's thread is not computing, the
 * function does nothing. */
void fr_scheduler_abandon(fr_scheduler *scheduler, fr_status status);

/* Counts the requests that wait, and those that are being run. The function may be called from any thread. */
void fr_scheduler_busy(fr_scheduler *scheduler, size_t *waiting, size_t *running);

/* Returns true if all slots are in use. The function may be called from any thread. */
bool fr_scheduler_full(fr_scheduler *scheduler);

/* Gives the answer to /slots as a new value. The function may be called from any thread. */
json_t *fr_scheduler_slots(fr_scheduler *scheduler);

/* Gives the answer to /rounds as a new value. It has the recorded rounds after the round with the number `after`
 * (fr_history_json). The function may be called from any thread. */
json_t *fr_scheduler_rounds(fr_scheduler *scheduler, unsigned long long after);

/* Queues an errand, which is a task for a slot. Between two rounds, the engine's thread saves, restores or erases the
 * slot's session, and answers the exchange. */
typedef enum fr_slot_errand { FR_SLOT_SAVE, FR_SLOT_RESTORE, FR_SLOT_ERASE } fr_slot_errand;
void fr_scheduler_add_errand(fr_scheduler *scheduler, fr_http_exchange *exchange, fr_slot_errand errand, size_t slot,
                             const char *path);

/* A chore is work that does not generate text, such as computing embeddings. Between two rounds, the engine's thread
 * runs one piece of the first chore in the queue. For this the engine reserves a session. */
typedef struct fr_chore fr_chore;
struct fr_chore {
    fr_chore *next; /* the next chore in the scheduler's queue */
    /* Runs the next piece. Returns false if this piece was the last one. */
    bool (*piece)(fr_chore *chore, const fr_job_setting *jobs);
    /* Answers the chore and frees it. It is called after the last piece, or when the server ends. */
    void (*end)(fr_chore *chore);
};

/* Counts tokens that a chore has read, and the seconds that this took, for /metrics. */
void fr_scheduler_count_tokens(fr_scheduler *scheduler, size_t tokens, double seconds);

/* Adds a chore. Returns false if too many chores wait or the scheduler is closed. Then the chore still belongs to the
 * caller. The function may be called from any thread. */
bool fr_scheduler_add_chore(fr_scheduler *scheduler, fr_chore *chore);

/* Gives the chore after `chore` in the queue; NULL: there is none. Only the function `piece` of the first chore may
 * call this. So the first chore can run work of later chores together with its own work. */
fr_chore *fr_scheduler_next_chore(fr_scheduler *scheduler, const fr_chore *chore);

#endif
