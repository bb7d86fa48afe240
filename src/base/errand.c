/* A thread for one thing at a time: see errand.h. */
#include "src/base/errand.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "kernels/fpenv.h"

struct fr_errand {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    fr_errand_fn *fn; /* NULL: none under way */
    void *context;
    bool stop;
    fr_failure failure; /* of the last one; handed over once */
};

static void *serve(void *argument) {
    fr_errand *e = argument;
    fr_fpenv_enter();
    pthread_mutex_lock(&e->mutex);
    while (!e->stop) {
        if (!e->fn) {
            pthread_cond_wait(&e->changed, &e->mutex);
            continue;
        }
        pthread_mutex_unlock(&e->mutex);
        fr_failure failure = fr_failure_keep(e->fn(e->context));
        pthread_mutex_lock(&e->mutex);
        e->failure = failure;
        e->fn = NULL;
        pthread_cond_broadcast(&e->changed);
    }
    pthread_mutex_unlock(&e->mutex);
    return NULL;
}

fr_status fr_errand_open(fr_errand **errand) {
    *errand = NULL;
    fr_errand *e = calloc(1, sizeof *e);
    if (!e) return fr_fail_memory("errand", sizeof *e);
    pthread_mutex_init(&e->mutex, NULL);
    pthread_cond_init(&e->changed, NULL);
    int error = pthread_create(&e->thread, NULL, serve, e);
    if (error) {
        free(e);
        return fr_fail(FR_MEMORY, "can't start a thread: %s", strerrordesc_np(error));
    }
    *errand = e;
    return FR_OK;
}

void fr_errand_close(fr_errand *e) {
    if (!e) return;
    pthread_mutex_lock(&e->mutex);
    while (e->fn) pthread_cond_wait(&e->changed, &e->mutex);
    e->stop = true;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->mutex);
    pthread_join(e->thread, NULL);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

void fr_errand_send(fr_errand *e, fr_errand_fn *fn, void *context) {
    pthread_mutex_lock(&e->mutex);
    e->fn = fn;
    e->context = context;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->mutex);
}

/* What became of it; from now on of nothing. */
static fr_failure take_failure(fr_errand *e) {
    pthread_mutex_lock(&e->mutex);
    while (e->fn) pthread_cond_wait(&e->changed, &e->mutex);
    fr_failure failure = e->failure;
    e->failure = (fr_failure){0};
    pthread_mutex_unlock(&e->mutex);
    return failure;
}

void fr_errand_drop(fr_errand *e) {
    take_failure(e);
}

fr_status fr_errand_join(fr_errand *e) {
    fr_failure failure = take_failure(e);
    return fr_failure_raise(&failure);
}
