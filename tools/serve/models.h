/* The models of a server: one that is loaded as it begins, or several (catalog.h), each loaded once somebody asks
 * for it.
 *
 * In: the command line. Out: for a request, its model, ready. Those in memory are limited in number, and by what the
 * system has: the one that was least lately used, and is idle, makes way. */
#ifndef FR_TOOLS_SERVE_MODELS_H
#define FR_TOOLS_SERVE_MODELS_H

#include "tools/serve/scheduler.h"

/* One that is in memory. */
typedef struct fr_model_instance {
    const char *name;
    const char *path;
    const fr_arguments *args;
    fr_loaded loaded;
    fr_job_setting jobs;
    fr_scheduler *scheduler;
    size_t slots;
    char fingerprint[96];
    time_t created;
} fr_model_instance;

typedef struct fr_models fr_models;

/* What is done with an exchange and its model; NULL model: it can't be had, and the exchange has its answer. */
typedef void fr_models_fn(fr_http_exchange *exchange, const fr_model_instance *model);

/* Finds out which models there are. wake: called where the engine's thread has something to do. Gives the exit
 * status. */
int fr_models_open(fr_models **models, const fr_arguments *args, fr_metrics *metrics, void (*wake)(void *),
                   void *context);
void fr_models_close(fr_models *models);

/* Loads the model of -m, or stops at a signal. Does nothing for several models. Gives the exit status. */
int fr_models_load_first(fr_models *models);

/* The model of -m; NULL: there are several. The second function says if a model is loading, which can't be
 * interrupted. */
const fr_model_instance *fr_models_first(const fr_models *models);
bool fr_models_loading(fr_models *models);

/* Of a rank that nobody asks: loads it and does as rank 0's does, until that ends. Gives the exit status. */
int fr_models_follow(fr_models *models);

/* Says if a client's name means the model of this name: ollama's clients may add ":latest". */
bool fr_model_is_called(const char *own, const char *name);

/* Calls `then` with the model of that name (NULL: the only one, or the first), in this thread if it is ready, in
 * another once it has been loaded; else the exchange is told why not. Any thread. */
void fr_models_with(fr_models *models, fr_http_exchange *exchange, const char *name, fr_models_fn *then);

/* The first says if requests can be answered, for /health. The second says if a file of a loaded model was cut or
 * written to: its requests then get 500 until the server is restarted. */
bool fr_models_ready(fr_models *models);
bool fr_models_lost(fr_models *models);

/* Lists all known models as {"id", ...} for /v1/models, a new value. */
json_t *fr_models_list(fr_models *models);

/* The same with their files, {"name", "path"}, and of those in memory "meta", as in that list, and "context". */
json_t *fr_models_files(fr_models *models);

/* Removes a model from memory once it is idle, except the model of -m. Gives the model's own name; NULL: unknown. Any
 * thread. */
const char *fr_models_release(fr_models *models, const char *name);

/* The engine's thread: what there is to do, a round of every model. False: nothing waits. */
bool fr_models_round(fr_models *models);

/* Requests that wait, and that are under way, of all models. Any thread. */
void fr_models_count(fr_models *models, size_t *waiting, size_t *running);

/* Tells whether texts are under way or wait, loads left aside; and ends them (fr_scheduler_interrupt,
 * fr_scheduler_abandon). */
bool fr_models_busy(fr_models *models);
void fr_models_interrupt(fr_models *models, fr_status status);
void fr_models_abandon(fr_models *models, fr_status status);

#endif
