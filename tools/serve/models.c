/* Loads the models of a server, removes them from memory, and keeps the exchanges that wait for a model (models.h). */
#include "tools/serve/models.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tools/cli/interrupt.h"
#include "tools/serve/catalog.h"
#include "tools/serve/model_instance.h"

enum { USUAL_LOADED = 4 };

typedef enum state { AWAY, WANTED, LOADING, READY, FAILED } state;

/* An exchange that waits until its model is loaded. */
typedef struct waiter waiter;
struct waiter {
    waiter *next;
    fr_http_exchange *exchange; /* the waiter is one of this exchange's holders */
    fr_models_fn *then;
};

typedef struct entry {
    const char *name;  /* the model's name in requests */
    fr_arguments args; /* the command line's arguments, with the path of this model */
    /* used only by the loading thread until the model is ready; afterwards it stays unchanged */
    fr_model_instance instance;
    state state;
    size_t users;  /* number of threads that are handling an exchange for this model */
    uint64_t used; /* number of the exchange that used the model last */
    waiter *waiters;
    pthread_t loader;
    bool joins;  /* a loading thread was started and must be joined; only the engine's thread uses this */
    bool loaded; /* the loading thread has finished. The exchanges that waited have been passed on or answered */
    bool lost;   /* a file of the model was truncated or changed after it was opened, and this was noted */
    bool leaves; /* the model must be removed from memory when it becomes idle */
    int code;    /* if loading failed, the exit status */
    fr_models *models;
} entry;

struct fr_models {
    entry *entries;
    size_t count, most; /* most: the largest number of models in memory */
    fr_catalog catalog;
    bool on_demand; /* models are loaded when a request first asks for them */
    fr_metrics *metrics;
    void (*wake)(void *context);
    void *context;
    pthread_mutex_t lock; /* protects the members below, and the members of the entries except `instance` */
    uint64_t exchanges;
    bool closing;
};

int fr_models_open(fr_models **models, const fr_arguments *args, fr_metrics *metrics, void (*wake)(void *),
                   void *context) {
    fr_models *m = fr_resize(NULL, 1, sizeof *m);
    *m = (fr_models){.metrics = metrics,
                     .wake = wake,
                     .context = context,
                     .most = USUAL_LOADED,
                     .on_demand = args->given[FR_ARG_MODELS]};
    *models = m;
    pthread_mutex_init(&m->lock, NULL);
    if (args->given[FR_ARG_MODELS_MAX]) m->most = (size_t)args->number[FR_ARG_MODELS_MAX];
    int code = fr_catalog_read(&m->catalog, args);
    if (code) return code;
    m->entries = fr_resize(NULL, m->catalog.count, sizeof *m->entries);
    m->count = m->catalog.count;
    for (size_t i = 0; i < m->count; i++) {
        entry *e = &m->entries[i];
        const struct fr_catalog_model *found = &m->catalog.list[i];
        *e = (entry){.name = found->name, .args = *args, .models = m};
        e->args.text[FR_ARG_MODEL] = found->path;
        e->args.given[FR_ARG_MODEL] = true;
        e->instance = (fr_model_instance){.name = found->name, .path = found->path, .args = &e->args};
    }
    return 0;
}

void fr_models_close(fr_models *m) {
    if (!m) return;
    for (size_t i = 0; i < m->count; i++) {
        entry *e = &m->entries[i];
        if (e->joins) pthread_join(e->loader, NULL);
        if (e->state == READY) fr_model_instance_unload(&e->instance);
    }
    fr_catalog_free(&m->catalog);
    pthread_mutex_destroy(&m->lock);
    free(m->entries);
    free(m);
}

/* ---------------------------------------------------------------------------------------------------------- loading */

static void set_state(fr_models *m, entry *e, state now) {
    pthread_mutex_lock(&m->lock);
    e->state = now;
    pthread_mutex_unlock(&m->lock);
}

static const char going[] = "\"%.100s\" will not be loaded: the server is going down";

/* Handles the exchanges that waited for a model. If the status is 200, the model is ready, and the exchanges continue.
 * With any other status, the model can't be loaded, and the exchanges are answered with this status and message. */
static void serve_waiters(fr_models *m, entry *e, unsigned status, const char *message) {
    pthread_mutex_lock(&m->lock);
    waiter *waiters = e->waiters;
    e->waiters = NULL;
    pthread_mutex_unlock(&m->lock);
    for (waiter *w = waiters, *next; w; w = next) {
        next = w->next;
        if (status == 200)
            w->then(w->exchange, &e->instance);
        else
            fr_http_exchange_refuse(w->exchange, status, message, e->name);
        fr_http_exchange_release(w->exchange);
        free(w);
    }
}

/* The function of a loading thread: loads a model. Then the same thread reads the requests that waited for the model,
 * so that the engine's thread can continue with its texts. Meanwhile the model counts as in use. */
static void *run_load(void *context) {
    entry *e = context;
    fr_models *m = e->models;
    int code = fr_model_instance_load(&e->instance, m->metrics, m->wake, m->context);
    pthread_mutex_lock(&m->lock);
    e->state = code ? FAILED : READY;
    e->code = code;
    e->users += !code;
    pthread_mutex_unlock(&m->lock);
    m->wake(m->context);
    if (!code) serve_waiters(m, e, 200, NULL);
    pthread_mutex_lock(&m->lock);
    e->users -= !code;
    e->loaded = true;
    pthread_mutex_unlock(&m->lock);
    m->wake(m->context);
    return NULL;
}

int fr_models_follow(fr_models *m) {
    return fr_model_instance_follow(&m->entries[0].instance);
}

static state state_of(fr_models *m, const entry *e) {
    pthread_mutex_lock(&m->lock);
    state now = e->state;
    pthread_mutex_unlock(&m->lock);
    return now;
}

/* Returns true if no thread is handling an exchange for the model, and its scheduler has no requests. The caller must
 * hold the lock. */
static bool is_idle(const entry *e) {
    size_t waiting, running;
    fr_scheduler_busy(e->instance.scheduler, &waiting, &running);
    return e->users + waiting + running == 0;
}

/* Removes an idle model from memory. Of the idle models, the one that has not been used for the longest time is
 * removed. Returns false if all models are in use. */
static bool unload_one(fr_models *m) {
    entry *oldest = NULL;
    pthread_mutex_lock(&m->lock);
    for (entry *e = m->entries; e < m->entries + m->count; e++)
        if (e->state == READY && is_idle(e) && (!oldest || e->used < oldest->used)) oldest = e;
    if (oldest) oldest->state = AWAY;
    pthread_mutex_unlock(&m->lock);
    if (oldest) fr_model_instance_unload(&oldest->instance);
    return oldest != NULL;
}

static size_t count_in(fr_models *m, state where) {
    size_t count = 0;
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->count; i++) count += m->entries[i].state == where;
    pthread_mutex_unlock(&m->lock);
    return count;
}

static void begin_load(fr_models *m, entry *e) {
    pthread_mutex_lock(&m->lock);
    e->state = LOADING;
    e->loaded = false;
    pthread_mutex_unlock(&m->lock);
    e->joins = pthread_create(&e->loader, NULL, run_load, e) == 0;
    if (!e->joins) set_state(m, e, FAILED);
}

/* Loads the model of -m. With several ranks, all ranks load it at the same time, each in the thread that will run its
 * rounds. */
int fr_models_load_first(fr_models *m) {
    const struct timespec moment = {.tv_nsec = 5000000};
    entry *e = &m->entries[0];
    if (m->on_demand) return 0;
    if (fr_rank_count() > 1) {
        int code = fr_model_instance_load(&e->instance, m->metrics, m->wake, m->context);
        set_state(m, e, code ? FAILED : READY);
        return code;
    }
    begin_load(m, e);
    if (!e->joins) return fr_bad_input("%s can't be loaded: no more threads", e->name);
    while (state_of(m, e) == LOADING && !fr_interrupt_came(NULL)) nanosleep(&moment, NULL);
    return state_of(m, e) == FAILED ? e->code : 0;
}

const fr_model_instance *fr_models_first(const fr_models *m) {
    return m->on_demand ? NULL : &m->entries[0].instance;
}

bool fr_models_loading(fr_models *m) {
    return count_in(m, LOADING) > 0;
}

/* Starts to load a model for which exchanges wait, as soon as there is room for it. Only one model is loaded at a
 * time. */
static void load_wanted(fr_models *m) {
    if (count_in(m, LOADING)) return;
    for (entry *e = m->entries; e < m->entries + m->count; e++) {
        if (state_of(m, e) != WANTED || e->joins) continue;
        while (count_in(m, READY) && (count_in(m, READY) >= m->most || !fr_model_instance_fits(&e->instance)))
            if (!unload_one(m)) return;
        begin_load(m, e);
        return;
    }
}

static void end_load(fr_models *m, entry *e) {
    pthread_mutex_lock(&m->lock);
    bool done = e->joins && e->loaded;
    pthread_mutex_unlock(&m->lock);
    if (!done) return;
    pthread_join(e->loader, NULL);
    e->joins = false;
}

/* -------------------------------------------------------------------------------------------------------- exchanges */

bool fr_model_is_called(const char *own, const char *name) {
    size_t length = strlen(own);
    return strncmp(name, own, length) == 0 && (!name[length] || strcmp(name + length, ":latest") == 0);
}

/* Finds a model by its name. A server with only one model accepts any name, and also a request without a name, because
 * many clients always send the same name. */
static entry *find(fr_models *m, const char *name) {
    if (m->count == 1) return &m->entries[0];
    for (size_t i = 0; name && i < m->count; i++)
        if (fr_model_is_called(m->entries[i].name, name)) return &m->entries[i];
    return NULL;
}

static void wait_for(fr_models *m, entry *e, fr_http_exchange *exchange, fr_models_fn *then) {
    waiter *w = fr_resize(NULL, 1, sizeof *w), **end = &e->waiters;
    *w = (waiter){.exchange = exchange, .then = then};
    fr_http_exchange_hold(exchange);
    while (*end) end = &(*end)->next;
    *end = w;
    if (e->state == AWAY || e->state == FAILED) e->state = WANTED;
    m->wake(m->context);
}

/* Returns true if a file of the model was truncated or changed after it was opened. Notes this once. The model must be
 * ready, and this thread must be counted as one of its users. */
static bool is_lost(fr_models *m, entry *e) {
    bool lost = fr_lab_files_check(e->instance.loaded.model, e->instance.loaded.drafter) == FR_LOST;
    pthread_mutex_lock(&m->lock);
    bool unsaid = lost && !e->lost;
    e->lost |= lost;
    pthread_mutex_unlock(&m->lock);
    if (unsaid) fr_note("%s: requests are answered with 500 until the server is started anew", fr_last_error());
    return lost;
}

bool fr_models_lost(fr_models *m) {
    bool lost = false;
    for (entry *e = m->entries; e < m->entries + m->count; e++) {
        pthread_mutex_lock(&m->lock);
        bool ready = e->state == READY;
        e->users += ready;
        pthread_mutex_unlock(&m->lock);
        if (!ready) continue;
        lost |= is_lost(m, e);
        pthread_mutex_lock(&m->lock);
        e->users--;
        pthread_mutex_unlock(&m->lock);
    }
    return lost;
}

void fr_models_with(fr_models *m, fr_http_exchange *exchange, const char *name, fr_models_fn *then) {
    entry *e = find(m, name);
    if (!e) {
        if (name)
            fr_http_exchange_refuse(exchange, 404, "there is no model \"%.100s\" here", name);
        else
            fr_http_exchange_refuse(exchange, 400, "\"model\" is needed: GET /v1/models lists them");
        return;
    }
    pthread_mutex_lock(&m->lock);
    e->used = ++m->exchanges;
    e->leaves = false;
    bool ready = e->state == READY, loading = !ready && !m->on_demand, waits = !ready && !loading && !m->closing;
    e->users += ready;
    if (waits) wait_for(m, e, exchange, then);
    pthread_mutex_unlock(&m->lock);
    if (ready && is_lost(m, e))
        fr_http_exchange_refuse(exchange, 500,
                                "the file of the model \"%.100s\" was changed while the server had it open", e->name);
    else if (ready)
        then(exchange, &e->instance);
    else if (!waits)
        fr_http_exchange_refuse(exchange, 503, loading ? "Loading model" : "the server is going down");
    if (!ready) return;
    pthread_mutex_lock(&m->lock);
    e->users--;
    pthread_mutex_unlock(&m->lock);
}

bool fr_models_ready(fr_models *m) {
    pthread_mutex_lock(&m->lock);
    bool ready = m->on_demand || m->entries[0].state == READY;
    pthread_mutex_unlock(&m->lock);
    return ready;
}

static json_t *meta_of(const fr_model_instance *instance) {
    const fr_model *model = instance->loaded.model;
    json_t *meta = json_object();
    fr_json_put(meta, "n_vocab", json_integer(fr_model_fact(model, FR_FACT_VOCAB)));
    fr_json_put(meta, "n_ctx_train", json_integer(fr_model_fact(model, FR_FACT_CONTEXT_LIMIT)));
    fr_json_put(meta, "n_embd", json_integer(fr_model_fact(model, FR_FACT_HIDDEN)));
    fr_json_put(meta, "n_params", json_integer((json_int_t)fr_lab_model_parameters(model)));
    fr_json_put(meta, "ftype", json_string(fr_lab_model_type(model)));
    fr_json_put(meta, "size", json_integer(fr_model_fact(model, FR_FACT_WEIGHT_BYTES)));
    return meta;
}

json_t *fr_models_list(fr_models *m) {
    json_t *data = json_array();
    pthread_mutex_lock(&m->lock);
    for (entry *e = m->entries; e < m->entries + m->count; e++) {
        bool ready = e->state == READY;
        json_t *one = json_pack("{s:s, s:s, s:I, s:s}", "id", e->name, "object", "model", "created",
                                (json_int_t)(ready ? e->instance.created : time(NULL)), "owned_by", "forerun");
        if (ready) fr_json_put(one, "meta", meta_of(&e->instance));
        json_array_append_new(data, one);
    }
    pthread_mutex_unlock(&m->lock);
    return json_pack("{s:s, s:o}", "object", "list", "data", data);
}

json_t *fr_models_files(fr_models *m) {
    json_t *all = json_array();
    pthread_mutex_lock(&m->lock);
    for (entry *e = m->entries; e < m->entries + m->count; e++) {
        const char *path = e->instance.path;
        json_t *one = json_pack("{s:o, s:o}", "name", fr_json_bytes(e->name, strlen(e->name)), "path",
                                fr_json_bytes(path, strlen(path)));
        if (e->state == READY) fr_json_put(one, "meta", meta_of(&e->instance));
        if (e->state == READY) fr_json_put(one, "context", json_integer(e->instance.jobs.context));
        json_array_append_new(all, one);
    }
    pthread_mutex_unlock(&m->lock);
    return all;
}

const char *fr_models_release(fr_models *m, const char *name) {
    entry *e = find(m, name);
    if (!e || !m->on_demand) return e ? e->name : NULL;
    pthread_mutex_lock(&m->lock);
    e->leaves = true;
    pthread_mutex_unlock(&m->lock);
    m->wake(m->context);
    return e->name;
}

void fr_models_count(fr_models *m, size_t *waiting, size_t *running) {
    *waiting = *running = 0;
    pthread_mutex_lock(&m->lock);
    for (entry *e = m->entries; e < m->entries + m->count; e++) {
        size_t waits = 0, runs = 0;
        if (e->state == READY) fr_scheduler_busy(e->instance.scheduler, &waits, &runs);
        for (const waiter *w = e->waiters; w; w = w->next) waits++;
        *waiting += waits;
        *running += runs;
    }
    pthread_mutex_unlock(&m->lock);
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

/* Removes a model from memory if a client has asked for that and the model is idle. */
static void let_go(fr_models *m, entry *e) {
    pthread_mutex_lock(&m->lock);
    bool goes = e->leaves && e->state == READY && is_idle(e);
    if (goes) e->state = AWAY;
    e->leaves &= !goes;
    pthread_mutex_unlock(&m->lock);
    if (goes) fr_model_instance_unload(&e->instance);
}

bool fr_models_round(fr_models *m) {
    bool busy = false;
    for (entry *e = m->entries; e < m->entries + m->count; e++) end_load(m, e);
    load_wanted(m);
    for (entry *e = m->entries; e < m->entries + m->count; e++) {
        state now = state_of(m, e);
        if (now == FAILED && fr_interrupt_came(NULL))
            serve_waiters(m, e, 503, going);
        else if (now == FAILED)
            serve_waiters(m, e, 500, "the model \"%.100s\" can't be loaded");
        if (now != READY) continue;
        busy |= fr_scheduler_round(e->instance.scheduler);
        let_go(m, e);
    }
    return busy;
}

bool fr_models_busy(fr_models *m) {
    bool busy = false;
    pthread_mutex_lock(&m->lock);
    for (entry *e = m->entries; e < m->entries + m->count; e++) busy |= e->state == READY && !is_idle(e);
    pthread_mutex_unlock(&m->lock);
    return busy;
}

void fr_models_abandon(fr_models *m, fr_status status) {
    for (entry *e = m->entries; e < m->entries + m->count; e++)
        if (state_of(m, e) == READY) fr_scheduler_abandon(e->instance.scheduler, status);
}

void fr_models_interrupt(fr_models *m, fr_status status) {
    pthread_mutex_lock(&m->lock);
    m->closing = true;
    pthread_mutex_unlock(&m->lock);
    for (entry *e = m->entries; e < m->entries + m->count; e++) {
        if (state_of(m, e) == READY) fr_scheduler_interrupt(e->instance.scheduler, status);
        serve_waiters(m, e, 503, going);
    }
}
