/* The desk of one model: requests that wait, by arrival, and those under way, whose ids go through it together.
 *
 * In: asks. Out: their answers. Places are sessions of one engine; a round is one forward for all of them. Other
 * threads put asks and read figures; everything else is the engine thread's. */
#ifndef FR_TOOLS_SERVE_DESK_H
#define FR_TOOLS_SERVE_DESK_H

#include "tools/serve/ask.h"
#include "tools/serve/tally.h"

typedef struct fr_desk fr_desk;

/* places: texts under way at once; queue: asks that may wait. wake: called by fr_desk_put's thread when there is
 * something to do. */
typedef struct fr_desk_setting {
    size_t places, queue;
    double ping; /* seconds; 0: none */
    fr_job_setting *jobs;
    fr_tally *tally;
    void (*wake)(void *context);
    void *context;
} fr_desk_setting;
fr_desk *fr_desk_open(const fr_desk_setting *setting);
void fr_desk_close(fr_desk *desk);

/* Hands an ask over. False: too many wait already, or the desk takes none any more; it stays the caller's. Any
 * thread. */
bool fr_desk_put(fr_desk *desk, fr_ask *ask);

/* A round, if there is anything to do; false: nothing is under way, or all of it waits for its clients to read. */
bool fr_desk_round(fr_desk *desk);

/* Ends what is under way and what waits, and takes no more: the server is going. status: why, by the thread's last
 * failure, or FR_OK: it was told to. */
void fr_desk_interrupt(fr_desk *desk, fr_status status);

/* The same by another thread, and answers alone, where the engine's computes and the process ends before it is back:
 * sessions are not touched. Where it doesn't compute, nothing is done. */
void fr_desk_abandon(fr_desk *desk, fr_status status);

/* Asks that wait and that are under way. Any thread. */
void fr_desk_busy(fr_desk *desk, size_t *waiting, size_t *running);

/* Whether each place has a text. Any thread. */
bool fr_desk_full(fr_desk *desk);

/* What /slots tells, a new value. Any thread. */
json_t *fr_desk_slots(fr_desk *desk);

/* What /rounds tells of the last rounds behind round `after`, a new value: {"slots", "total", "rounds": [{"ms",
 * "rows": [[slot, rows, ids that it gave, whether they are a prompt's], ...]}, ...]}. Any thread. */
json_t *fr_desk_rounds(fr_desk *desk, unsigned long long after);

/* Something to be done by the engine's thread, between rounds, with a place's session: it answers the call. */
typedef enum fr_desk_errand { FR_SLOT_SAVE, FR_SLOT_RESTORE, FR_SLOT_ERASE } fr_desk_errand;
void fr_desk_send(fr_desk *desk, fr_call *call, fr_desk_errand errand, size_t slot, const char *path);

/* Work beside the texts, by the engine's thread: a piece between two rounds, of one chore after the other. The engine
 * has a session more for it. */
typedef struct fr_chore fr_chore;
struct fr_chore {
    fr_chore *next; /* the desk's */
    /* The next piece of it; false: that was all. */
    bool (*piece)(fr_chore *chore, const fr_job_setting *jobs);
    /* Once there is no more of it, or the server is going: answers, and frees it. */
    void (*end)(fr_chore *chore);
};

/* Counts a text that a chore's session ran, for /metrics. */
void fr_desk_count_chore(fr_desk *desk, const fr_session *session);

/* False: too many wait already, or the desk takes none any more; it stays the caller's. Any thread. */
bool fr_desk_take_chore(fr_desk *desk, fr_chore *chore);

#endif
