/* Runs functions in a thread, one at a time: see worker.h. */
#include "base/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/thread_stack.h"

struct fr_worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    fr_worker_fn *fn; /* NULL: no function is running */
    void *context;
    bool stop;
    fr_failure failure; /* the failure of the last function, which the caller gets only once */
};

static void *serve(void *argument) {
    fr_worker *e = argument;
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

static int start_thread(fr_worker *e) {
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error) return error;
    pthread_attr_setstacksize(&attributes, FR_THREAD_STACK_BYTES);
    error = pthread_create(&e->thread, &attributes, serve, e);
    pthread_attr_destroy(&attributes);
    return error;
}

fr_status fr_worker_open(fr_worker **worker) {
    *worker = NULL;
    fr_worker *e = calloc(1, sizeof *e);
    if (!e) return fr_fail_memory("worker", sizeof *e);
    pthread_mutex_init(&e->mutex, NULL);
    pthread_cond_init(&e->changed, NULL);
    int error = start_thread(e);
    if (error) {
        free(e);
        errno = error;
        return fr_fail(FR_MEMORY, "can't start a thread: %m");
    }
    *worker = e;
    return FR_OK;
}

void fr_worker_wait(fr_worker *e) {
    pthread_mutex_lock(&e->mutex);
    while (e->fn) pthread_cond_wait(&e->changed, &e->mutex);
    pthread_mutex_unlock(&e->mutex);
}

void fr_worker_close(fr_worker *e) {
    if (!e) return;
    fr_worker_wait(e);
    pthread_mutex_lock(&e->mutex);
    e->stop = true;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->mutex);
    pthread_join(e->thread, NULL);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->mutex);
    free(e);
}

void fr_worker_start(fr_worker *e, fr_worker_fn *fn, void *context) {
    pthread_mutex_lock(&e->mutex);
    e->fn = fn;
    e->context = context;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->mutex);
}

/* Waits for the function and returns its failure, which is then forgotten. */
static fr_failure take_failure(fr_worker *e) {
    fr_worker_wait(e);
    pthread_mutex_lock(&e->mutex);
    fr_failure failure = e->failure;
    e->failure = (fr_failure){0};
    pthread_mutex_unlock(&e->mutex);
    return failure;
}

void fr_worker_drop(fr_worker *e) {
    take_failure(e);
}

fr_status fr_worker_join(fr_worker *e) {
    fr_failure failure = take_failure(e);
    return fr_failure_raise(&failure);
}
