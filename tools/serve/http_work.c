/* Runs the threads that answer slow requests (http_parts.h). A request is slow if reading it takes long: megabytes of a
 * prompt, pictures or grammars take seconds. The thread that received the request must serve other connections
 * meanwhile. The helper threads have a lower priority. So if a helper thread and a thread of the engine share a core,
 * the helper thread gets the smaller share. */
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/serve/http_parts.h"

#define SHORT 16384 /* if a body has at least this many bytes, a helper thread reads the request */
/* With this priority, a thread gets a third of the time that a thread of the engine gets on the same core */
#define NICE  5

struct fr_http_task {
    fr_http_task *next;
    fr_http_exchange *exchange; /* the task is one of this exchange's holders */
};

/* Queues a task. If the server is closing, the task is dropped, and its connection ends. */
static void put_task(fr_http *http, fr_http_task *task) {
    pthread_mutex_lock(&http->lock);
    if (http->closing) {
        free(task);
    } else {
        fr_http_task **end = &http->tasks;
        while (*end) end = &(*end)->next;
        *end = task;
        fr_http_exchange_hold(task->exchange);
        pthread_cond_signal(&http->handed);
    }
    pthread_mutex_unlock(&http->lock);
}

void fr_http_hand(fr_http *http, fr_http_exchange *exchange) {
    const fr_http_setting *s = &http->setting;
    bool slow = exchange->length >= SHORT || (s->is_slow && s->is_slow(exchange->body, exchange->length));
    if (!slow) {
        s->answer(s->context, exchange);
        return;
    }
    fr_http_task *task = fr_resize(NULL, 1, sizeof(*task));
    *task = (fr_http_task){.exchange = exchange};
    put_task(http, task);
}

/* Waits for a task. NULL: the server is closing. */
static fr_http_task *take_task(fr_http *http) {
    pthread_mutex_lock(&http->lock);
    while (!http->tasks && !http->closing) pthread_cond_wait(&http->handed, &http->lock);
    fr_http_task *task = http->tasks;
    if (task) http->tasks = task->next;
    pthread_mutex_unlock(&http->lock);
    return task;
}

static void end_task(fr_http_task *task) {
    fr_http_exchange_release(task->exchange);
    free(task);
}

void *fr_http_work(void *context) {
    fr_http *http = context;
    /* On Linux this sets the priority of the calling thread only. If it fails, the priority stays as it is */
    setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
    for (fr_http_task *task; (task = take_task(http));) {
        http->setting.answer(http->setting.context, task->exchange);
        end_task(task);
    }
    return NULL;
}

void fr_http_drop_tasks(fr_http *http) {
    while (http->tasks) {
        fr_http_task *task = http->tasks;
        http->tasks = task->next;
        end_task(task);
    }
    pthread_cond_broadcast(&http->handed);
}
