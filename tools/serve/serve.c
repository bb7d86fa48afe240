/* Implements forerun serve: serves models over HTTP with the interfaces of OpenAI's and llama.cpp's servers.
 *
 * Threads of the HTTP server (http.h) read requests and write answers. The main thread is called the engine's thread.
 * It loads the model of -m, then runs rounds, and sleeps when there is nothing to do. If there are several models, each
 * model is loaded by a thread of its own. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab_ranks.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/ranks.h"
#include "tools/cli/verbs.h"
#include "tools/serve/http.h"
#include "tools/serve/keys.h"
#include "tools/serve/log.h"
#include "tools/serve/notes.h"
#include "tools/serve/routes.h"
#include "tools/serve/seconds.h"
#include "tools/serve/service.h"
#include "tools/serve/tls.h"

enum { USUAL_PORT = 8080, USUAL_BODY = 1 << 24, USUAL_CONNECTIONS = 1024, ALL_CONNECTIONS = 4096, USUAL_TIMEOUT = 60 };

/* GRACE: after the server was told to end, texts that have begun may run for this many seconds. RANKS_GRACE: the same
 * if there are several ranks. It is short, because the program that started the ranks kills them one second after it
 * has told them to end. SLEEP: the engine's thread sleeps for at most this many seconds. It is short, because signals,
 * clients that leave, and pings that are due do not wake the thread. */
#define GRACE       10.0
#define RANKS_GRACE 0.5
#define SLEEP       0.1

/* If the server fails or ends while the engine's thread is still computing, it spends at most this many milliseconds on
 * sending the last answers. */
#define TELL_MAX 300

typedef struct server {
    const fr_arguments *args;
    char **keys; /* NULL: requests need no key */
    fr_metrics *metrics;
    fr_models *models;
    fr_routes routes;
    fr_request_log log;
    fr_http *http;
    char *key_pem, *certificate_pem;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool work;              /* `wake` was called since the last round */
    pthread_mutex_t ending; /* only the thread that ends the server locks it, and never unlocks it */
} server;

/* ------------------------------------------------------------------------------------------------------------ sleep */

static void wake(void *context) {
    server *s = context;
    pthread_mutex_lock(&s->lock);
    s->work = true;
    pthread_cond_signal(&s->woken);
    pthread_mutex_unlock(&s->lock);
}

static void sleep_until_woken(server *s) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(SLEEP * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&s->lock);
    while (!s->work && pthread_cond_timedwait(&s->woken, &s->lock, &until) == 0) continue;
    s->work = false;
    pthread_mutex_unlock(&s->lock);
}

static void prepare_sleep(server *s) {
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_mutex_init(&s->ending, NULL);
    pthread_cond_init(&s->woken, &clock);
    pthread_condattr_destroy(&clock);
}

/* ----------------------------------------------------------------------------------------------------- keys and TLS */

static int read_text(const char *path, char **text) {
    fr_prompt file;
    *text = NULL;
    if (!path) return 0;
    int code = fr_prompt_read_file(&file, path);
    if (code) return code;
    *text = fr_resize(file.bytes, file.length + 1, 1);
    (*text)[file.length] = '\0';
    return 0;
}

/* Reads the keys and the certificate again. If they can't be used, an error line says so, and the old keys and
 * certificate stay in use. */
static void reload(server *s) {
    const fr_arguments *args = s->args;
    char **keys, *key_pem = NULL, *certificate_pem = NULL, error[128];
    if (fr_keys_read(args->text[FR_ARG_API_KEY], args->text[FR_ARG_API_KEY_FILE], &keys) != 0) {
        fr_note("the keys before stay");
    } else if (s->keys && keys) {
        fr_http_set_keys(s->http, (const char *const *)keys);
        fr_keys_free(s->keys);
        s->keys = keys;
    }
    if (!s->key_pem) return;
    bool read = read_text(args->text[FR_ARG_SSL_KEY], &key_pem) == 0 &&
                read_text(args->text[FR_ARG_SSL_CERT], &certificate_pem) == 0;
    if (read && !fr_tls_set(key_pem, certificate_pem, error, sizeof error))
        fr_note("--ssl-key-file and --ssl-cert-file can't be used, and those before stay: %s", error);
    free(key_pem);
    free(certificate_pem);
}

/* -------------------------------------------------------------------------------------------------------------- run */

/* Runs rounds until the server is told to end, or until another rank fails. Gives FR_OK, or the status of the
 * failure. */
static fr_status serve(server *s) {
    fr_status status;
    while ((status = fr_lab_ranks_check()) == FR_OK && !fr_interrupt_came(NULL)) {
        if (fr_interrupt_reload()) reload(s);
        fr_service_is_alive();
        if (!fr_models_round(s->models)) sleep_until_woken(s);
    }
    return status;
}

/* Called if another rank has failed and the engine's thread does not return from its round. Ends the server from the
 * thread that watches the ranks. The process ends afterwards. */
static void fail_late(void *context) {
    server *s = context;
    fr_status status = fr_lab_ranks_check();
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TELL_MAX * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    /* if the lock is not free, the engine's thread itself is already informing the clients */
    if (pthread_mutex_timedlock(&s->ending, &until) != 0) return;
    fr_models_abandon(s->models, status);
    fr_http_drain(s->http, TELL_MAX);
}

/* Lets texts that have begun continue for some seconds, and then cuts them off. */
static void wind_down(server *s) {
    double until = fr_seconds() + (fr_rank_count() > 1 ? RANKS_GRACE : GRACE);
    fr_service_tell("STOPPING=1");
    fr_http_refuse_new(s->http);
    while (fr_models_busy(s->models) && fr_seconds() < until)
        if (!fr_models_round(s->models)) sleep_until_woken(s);
    fr_models_interrupt(s->models, FR_OK);
}

static void say_where(const server *s) {
    const fr_arguments *args = s->args;
    const char *host = args->text[FR_ARG_HOST];
    fprintf(stderr, "forerun: listening on %s\n", fr_http_url(s->http));
    bool beyond = host && strcmp(host, "localhost") != 0 && strncmp(host, "127.", 4) != 0 && strcmp(host, "::1") != 0;
    if (beyond && !s->keys && !args->given[FR_ARG_QUIET])
        fr_note("anybody who reaches %s may ask: --api-key-file FILE asks for a key", host);
}

static void say_ready(const server *s) {
    const fr_model_instance *model = fr_models_first(s->models);
    if (s->args->given[FR_ARG_QUIET] || fr_models_loading(s->models)) return;
    if (model)
        fr_note("ready: %s, %zu slot%s with a context of %lld tokens each, %s", model->name, model->slots,
                model->slots == 1 ? "" : "s", (long long)model->jobs.context, fr_http_url(s->http));
    else
        fr_note("ready: each model is loaded once it is asked for, %s", fr_http_url(s->http));
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static int64_t number_or(const fr_arguments *args, fr_arg arg, int64_t usual) {
    return args->given[arg] ? args->number[arg] : usual;
}

static void answer(void *context, fr_http_exchange *exchange) {
    fr_routes_answer(&((server *)context)->routes, exchange);
}

static void report(void *context, const fr_http_exchange_report *exchange) {
    const server *s = context;
    fr_metrics_add_http_exchange(s->metrics, exchange);
    fr_log_http_exchange(&s->log, exchange);
}

static int open_http(server *s) {
    const fr_arguments *args = s->args;
    const char *host = args->text[FR_ARG_HOST];
    int64_t each = number_or(args, FR_ARG_MAX_CONNECTIONS, USUAL_CONNECTIONS);
    const fr_http_setting setting = {
        .host = host ? host : "127.0.0.1",
        .port = (uint16_t)number_or(args, FR_ARG_PORT, USUAL_PORT),
        .keys = (const char *const *)s->keys,
        .hosts = args->text[FR_ARG_ALLOW_HOST],
        .origin = args->text[FR_ARG_CORS],
        .key_pem = s->key_pem,
        .certificate_pem = s->certificate_pem,
        .body_limit = (size_t)number_or(args, FR_ARG_MAX_BODY, USUAL_BODY),
        .connections = each > ALL_CONNECTIONS ? (unsigned)each : ALL_CONNECTIONS,
        .per_address = (unsigned)each,
        .timeout = (unsigned)number_or(args, FR_ARG_TIMEOUT, USUAL_TIMEOUT),
        .is_open = fr_routes_open,
        .is_slow = fr_routes_slow,
        .answer = answer,
        .report = report,
        .context = s,
    };
    return fr_http_open(&setting, &s->http);
}

static int open_all(server *s) {
    const fr_arguments *args = s->args;
    s->metrics = fr_metrics_new();
    s->log = fr_log_of(args);
    int code = fr_keys_read(args->text[FR_ARG_API_KEY], args->text[FR_ARG_API_KEY_FILE], &s->keys);
    if (!code && args->given[FR_ARG_SSL_KEY] != args->given[FR_ARG_SSL_CERT])
        code = fr_wrong_usage("--ssl-key-file and --ssl-cert-file go together");
    if (!code) code = read_text(args->text[FR_ARG_SSL_KEY], &s->key_pem);
    if (!code) code = read_text(args->text[FR_ARG_SSL_CERT], &s->certificate_pem);
    if (!code) code = fr_models_open(&s->models, args, s->metrics, wake, s);
    s->routes = (fr_routes){.args = args, .models = s->models, .metrics = s->metrics};
    return code ? code : open_http(s);
}

/* Closes everything. The HTTP server is closed before the models, because the server's threads use the models. */
static void close_all(server *s) {
    if (s->http) fr_http_close(s->http);
    fr_models_close(s->models);
    fr_metrics_free(s->metrics);
    fr_keys_free(s->keys);
    free(s->key_pem);
    free(s->certificate_pem);
    pthread_cond_destroy(&s->woken);
    pthread_mutex_destroy(&s->lock);
}

/* Runs a rank that serves no clients. The rank ends when rank 0 sends it the message to end. */
static int follow(const fr_arguments *args) {
    fr_models *models;
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    fr_lab_ranks_decide_alone();
    int code = fr_models_open(&models, args, NULL, NULL, NULL);
    if (!code) code = fr_models_follow(models);
    fr_models_close(models);
    return code;
}

int fr_verb_serve(const fr_arguments *args) {
    static server s; /* static, because the thread that ends the process may use it after this function has returned */
    s = (server){.args = args};
    if (fr_rank() > 0) return follow(args);
    if (fr_rank_count() > 1) fr_lab_ranks_decide_alone();
    prepare_sleep(&s);
    int code = open_all(&s);
    if (!code) {
        fr_interrupt_watch();
        if (s.log.level >= FR_LOG_OF_WARNINGS) fr_notes_begin(s.log.json);
        say_where(&s);
        fr_interrupt_watch_reload();
        code = fr_models_load_first(s.models);
        if (!code) say_ready(&s);
        if (!code) fr_service_tell("READY=1");
        fr_ranks_before_end(fail_late, &s);
        fr_status status = code ? FR_OK : serve(&s);
        /* the server was told to end. This is no error, even if the server's model was not loaded yet */
        if (code && fr_interrupt_came(NULL)) code = 0;
        if (status == FR_OK) wind_down(&s);
        pthread_mutex_lock(&s.ending);
        if (status != FR_OK) { /* streams end with this error, and requests that come now get it as their answer */
            code = fr_exit_status(status);
            /* fr_models_interrupt uses this thread's last failure. This call sets it again */
            fr_lab_ranks_check();
            fr_models_interrupt(s.models, status);
        }
    }
    /* loading can't be interrupted, so the process ends without waiting for it */
    if (s.models && fr_models_loading(s.models)) {
        fr_http_drain(s.http, TELL_MAX);
        _exit(code);
    }
    close_all(&s);
    return code;
}
