/* Keeps the models of a server. A single model is loaded at the start. If there are several (catalog.h), each model is
 * loaded when a request first asks for it.
 *
 * In: the command line. Out: the model for a request, ready to run. Both the number of models in memory and the memory
 * that they take are limited. To make room for a new model, the idle model that has not been used for the longest time
 * is removed. */
#ifndef FR_TOOLS_SERVE_MODELS_H
#define FR_TOOLS_SERVE_MODELS_H

#include "tools/serve/scheduler.h"

/* A model that is in memory. */
typedef struct fr_model_instance {
    const char *name;
    const char *path;
    const fr_arguments *args;
    fr_loaded loaded;
    fr_job_setting jobs;   /* the setting of the model's jobs; if the model is a text encoder, its engine is NULL */
    fr_embedder *embedder; /* makes embeddings and scores on the engine's thread. It is open for a text encoder. With
                            * --embeddings it is also open for a model that generates text. NULL: it is not open */
    fr_scheduler *scheduler;
    size_t slots;
    char fingerprint[96];
    time_t created;
} fr_model_instance;

typedef struct fr_models fr_models;

/* Continues an exchange when its model is ready. If the model could not be loaded, `model` is NULL, and the exchange
 * has been answered. */
typedef void fr_models_fn(fr_http_exchange *exchange, const fr_model_instance *model);

/* Makes the list of the command line's models. wake: called when there is work for the engine's thread. Gives the exit
 * status. */
int fr_models_open(fr_models **models, const fr_arguments *args, fr_metrics *metrics, void (*wake)(void *),
                   void *context);
void fr_models_close(fr_models *models);

/* Loads the model of -m. A signal can end the loading. If there are several models, this function does nothing. Gives
 * the exit status. */
int fr_models_load_first(fr_models *models);

/* fr_models_first gives the model of -m. NULL: there are several models. fr_models_loading returns true while a model
 * is being loaded. Loading can't be interrupted. */
const fr_model_instance *fr_models_first(const fr_models *models);
bool fr_models_loading(fr_models *models);

/* Loads the model on a rank that serves no clients, and runs the rounds of rank 0 until rank 0 ends. Gives the exit
 * status. */
int fr_models_follow(fr_models *models);

/* Returns true if a name from a client means the model `own`. ollama's clients may add ":latest". */
bool fr_model_is_called(const char *own, const char *name);

/* Calls `then` with the model of that name. name: NULL means the only model, or the first of several. If the model is
 * ready, this thread makes the call. Otherwise another thread makes it when the model is loaded. If the model can't be
 * loaded, the exchange is answered with the reason. The function may be called from any thread. */
void fr_models_with(fr_models *models, fr_http_exchange *exchange, const char *name, fr_models_fn *then);

/* fr_models_ready returns true if requests can be answered; /health shows this. fr_models_lost returns true if a file
 * of a loaded model was truncated or changed. Requests for that model then get the status 500 until the server is
 * restarted. */
bool fr_models_ready(fr_models *models);
bool fr_models_lost(fr_models *models);

/* Lists all models as {"id", ...} for /v1/models. The list is a new value. */
json_t *fr_models_list(fr_models *models);

/* Lists all models with their files, as {"name", "path"}. A model in memory also has "context", and "meta" as in
 * fr_models_list. */
json_t *fr_models_files(fr_models *models);

/* Removes a model from memory when it is idle. The model of -m is never removed. Gives the model's own name. NULL:
 * there is no such model. The function may be called from any thread. */
const char *fr_models_release(fr_models *models, const char *name);

/* Runs a round of each model in the engine's thread. Returns false if no model had anything to run. */
bool fr_models_round(fr_models *models);

/* Counts the requests that wait and those that are being run, for all models together. The function may be called from
 * any thread. */
void fr_models_count(fr_models *models, size_t *waiting, size_t *running);

/* fr_models_busy returns true if texts are being run or wait. Requests that wait until a model is loaded don't count.
 * fr_models_interrupt and fr_models_abandon end these texts (fr_scheduler_interrupt, fr_scheduler_abandon). */
bool fr_models_busy(fr_models *models);
void fr_models_interrupt(fr_models *models, fr_status status);
void fr_models_abandon(fr_models *models, fr_status status);

#endif
