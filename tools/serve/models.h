/* The models of a server: one that is loaded as it begins, or several (catalog.h), each loaded once somebody asks
 * for it.
 *
 * In: the command line. Out: for a request, its model, ready. Those in memory are limited in number, and by what the
 * system has: the one that was least lately used, and is idle, makes way. */
#ifndef FR_TOOLS_SERVE_MODELS_H
#define FR_TOOLS_SERVE_MODELS_H

#include "tools/serve/desk.h"

/* One that is in memory. */
typedef struct fr_served {
    const char *name;
    const char *path;
    const fr_arguments *args;
    fr_loaded loaded;
    fr_job_setting jobs;
    fr_desk *desk;
    size_t places;
    char fingerprint[96];
    time_t created;
} fr_served;

typedef struct fr_models fr_models;

/* What is done with a call and its model; NULL model: it can't be had, and the call has its answer. */
typedef void fr_models_fn(fr_call *call, const fr_served *model);

/* Finds out which models there are. wake: called where the engine's thread has something to do. Gives the exit
 * status. */
int fr_models_open(fr_models **models, const fr_arguments *args, fr_tally *tally, void (*wake)(void *), void *context);
void fr_models_close(fr_models *models);

/* Loads the one model of -m, until a signal asks for the end; nothing to do for several. Gives the exit status. */
int fr_models_load_first(fr_models *models);

/* That model; NULL: there are several. And whether one is being loaded right now, which nothing can stop. */
const fr_served *fr_models_first(const fr_models *models);
bool fr_models_loading(fr_models *models);

/* Of a rank that nobody asks: loads it and does as rank 0's does, until that ends. Gives the exit status. */
int fr_models_follow(fr_models *models);

/* Tells whether a client's name means the model of this own one: ollama's clients may name the latest of a name. */
bool fr_model_is_called(const char *own, const char *name);

/* Calls `then` with the model of that name (NULL: the only one, or the first), in this thread if it is ready, in
 * another once it has been loaded; else the call is told why not. Any thread. */
void fr_models_with(fr_models *models, fr_call *call, const char *name, fr_models_fn *then);

/* Tells whether requests can be answered, for /health; and whether they can't be any more, until the server is started
 * anew: a file of a model in memory was cut or written to meanwhile. Then its requests are answered with 500. */
bool fr_models_ready(fr_models *models);
bool fr_models_lost(fr_models *models);

/* Lists all known models as {"id", ...} for /v1/models, a new value. */
json_t *fr_models_list(fr_models *models);

/* The same with their files, {"name", "path"}, and of those in memory "meta", as in that list, and "context". */
json_t *fr_models_files(fr_models *models);

/* Has a model leave memory once nobody uses it, unless it is the one of -m. Its own name; NULL: there is no such model.
 * Any thread. */
const char *fr_models_release(fr_models *models, const char *name);

/* The engine's thread: what there is to do, a round of every model. False: nothing waits. */
bool fr_models_round(fr_models *models);

/* Requests that wait, and that are under way, of all models. Any thread. */
void fr_models_count(fr_models *models, size_t *waiting, size_t *running);

/* Tells whether texts are under way or wait, loads left aside; and ends them (fr_desk_interrupt, fr_desk_abandon). */
bool fr_models_busy(fr_models *models);
void fr_models_interrupt(fr_models *models, fr_status status);
void fr_models_abandon(fr_models *models, fr_status status);

#endif
