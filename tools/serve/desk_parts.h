/* What the desk is made of: places, and what may be seen of them (desk.h). */
#ifndef FR_TOOLS_SERVE_DESK_PARTS_H
#define FR_TOOLS_SERVE_DESK_PARTS_H

#include <pthread.h>
#include <semaphore.h>

#include "tools/serve/desk.h"
#include "tools/serve/history.h"
#include "tools/serve/pace.h"

/* A place for one text. Where its text has ended the session stays for a while: what /slots saves. */
typedef struct fr_place {
    fr_ask *ask; /* NULL: nobody has it */
    fr_choice *choice;
    fr_session *kept; /* of the text before, or restored; NULL: none */
    bool restored;    /* from a file: its pages are in no shared prefix, so that its own session must go on */
    uint64_t used;    /* when, in texts begun */
    bool aside;       /* its session gave its pages up for others */
    uint64_t aside_since; /* in texts ended */
} fr_place;

/* A place as others see it. */
typedef struct fr_place_view {
    bool busy;
    uint64_t task;
    size_t prompt, waiting, decoded, length;
    int64_t most;
} fr_place_view;

/* An errand that waits. */
typedef struct fr_errand fr_errand;
struct fr_errand {
    fr_errand *next;
    fr_call *call; /* held */
    fr_desk_errand what;
    size_t slot;
    char *path;
};

struct fr_desk {
    fr_desk_setting setting;
    fr_pace pace;
    fr_place *places;   /* [setting.places] */
    fr_place **running; /* [setting.places] those under way, by arrival */
    size_t running_count;
    fr_round *rounds;
    int32_t (*ids)[FR_STEP_MAX];
    fr_history *history;
    bool short_of_pages; /* since the last text ended */
    uint64_t texts, ended; /* begun, and ended, so far */
    fr_ask *line; /* asks of which a choice waits, by arrival; the engine thread's own */
    sem_t away; /* 1 while that thread computes: whoever takes it has all of the above */

    pthread_mutex_t lock; /* of what follows */
    fr_ask *arrived, **arrived_end; /* not in the line yet */
    fr_errand *errands, **errands_end;
    fr_chore *chores, **chores_end;
    size_t chore_count;
    fr_place_view *views; /* [setting.places] */
    size_t waiting, busy; /* asks that wait, or that have a choice under way */
    size_t taken;         /* places with a choice under way */
    bool closed;          /* no more asks are taken */
    uint64_t number;
};

/* desk_slots.c: shows places as they are now, or one; runs errands; gives a place's kept session up. Who has an answer
 * sees its place free. */
void fr_desk_show(fr_desk *desk);
void fr_desk_show_place(fr_desk *desk, const fr_place *place);
void fr_desk_run_errands(fr_desk *desk);
void fr_desk_forget(fr_place *place);

/* desk_chores.c: a piece of the first chore; false: there is none. And the end of all. */
bool fr_desk_run_chore(fr_desk *desk);
void fr_desk_end_chores(fr_desk *desk);

#endif
