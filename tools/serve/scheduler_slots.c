/* Publishes the state of slots for /slots. Saves, restores or erases the sessions of slots between rounds
 * (scheduler.h). */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/serve/adapter_scales.h"
#include "tools/serve/fault.h"
#include "tools/serve/scheduler_parts.h"
#include "tools/serve/seconds.h"

void fr_slot_forget(fr_slot *slot) {
    fr_session_close(slot->kept);
    slot->kept = NULL;
    slot->restored = false;
}

/* ------------------------------------------------------------------------------------------------------------ views */

static fr_slot_view view_of(const fr_slot *slot) {
    if (!slot->request) return (fr_slot_view){.length = slot->kept ? fr_session_length(slot->kept) : 0};
    const fr_job *job = &slot->choice->job;
    return (fr_slot_view){.busy = true,
                          .task = slot->request->number,
                          .prompt = job->prompt.count,
                          .waiting = job->session ? fr_session_waiting(job->session) : 0,
                          .decoded = job->reply.count,
                          .length = job->session ? fr_session_length(job->session) : 0,
                          .most = job->most};
}

void fr_scheduler_show_slot(fr_scheduler *scheduler, const fr_slot *slot) {
    fr_slot_view view = view_of(slot);
    pthread_mutex_lock(&scheduler->lock);
    scheduler->views[slot - scheduler->slots] = view;
    pthread_mutex_unlock(&scheduler->lock);
}

void fr_scheduler_show(fr_scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->setting.slots; i++) fr_scheduler_show_slot(scheduler, &scheduler->slots[i]);
}

static json_t *slot_of(const fr_scheduler *scheduler, size_t index, const fr_slot_view *view) {
    const fr_job_setting *jobs = scheduler->setting.jobs;
    bool drafts = jobs->loaded->drafter;
    size_t run = view->prompt - (view->waiting < view->prompt ? view->waiting : view->prompt);
    int64_t remain = view->most < 0 || !view->busy ? -1 : view->most - (int64_t)view->decoded;
    return json_pack("{s:I, s:I, s:b, s:b, s:I, s:I, s:I, s:I, s:[{s:b, s:b, s:I, s:I}]}", "id", (json_int_t)index,
                     "n_ctx", (json_int_t)jobs->context, "speculative", drafts, "is_processing", view->busy, "id_task",
                     view->busy ? (json_int_t)view->task : (json_int_t)-1, "n_prompt_tokens", (json_int_t)view->prompt,
                     "n_prompt_tokens_processed", (json_int_t)run, "n_prompt_tokens_cache", (json_int_t)view->length,
                     "next_token", "has_next_token", view->busy, "has_new_line", 0, "n_remain", (json_int_t)remain,
                     "n_decoded", (json_int_t)view->decoded);
}

json_t *fr_scheduler_slots(fr_scheduler *scheduler) {
    json_t *slots = json_array();
    pthread_mutex_lock(&scheduler->lock);
    for (size_t i = 0; i < scheduler->setting.slots; i++)
        json_array_append_new(slots, slot_of(scheduler, i, &scheduler->views[i]));
    pthread_mutex_unlock(&scheduler->lock);
    return slots;
}

json_t *fr_scheduler_rounds(fr_scheduler *scheduler, unsigned long long after) {
    return fr_history_json(scheduler->history, after);
}

/* ---------------------------------------------------------------------------------------------------------- errands */

void fr_scheduler_add_errand(fr_scheduler *scheduler, fr_http_exchange *exchange, fr_slot_errand what, size_t slot,
                             const char *path) {
    fr_errand *errand = fr_resize(NULL, 1, sizeof *errand);
    *errand = (fr_errand){.exchange = exchange, .what = what, .slot = slot, .path = path ? strdup(path) : NULL};
    fr_http_exchange_hold(exchange);
    pthread_mutex_lock(&scheduler->lock);
    *scheduler->errands_end = errand;
    scheduler->errands_end = &errand->next;
    pthread_mutex_unlock(&scheduler->lock);
    scheduler->setting.wake(scheduler->setting.context);
}

static void answer_status(const fr_errand *errand, fr_status status) {
    fr_http_exchange_refuse(errand->exchange, fr_fault_http(status), "%s",
                            status == FR_INPUT ? "that file holds no session of this "
                                                 "model that fits"
                                               : "the session could not be saved or restored");
}

/* Refuses a path that is not a regular file. Reading a pipe or a device could block all texts. Saving to a device could
 * overwrite it. */
static void answer_no_file(const fr_errand *errand) {
    fr_http_exchange_refuse(errand->exchange, 400, "\"filename\" names something that is not a regular file");
}

/* Answers an errand that has succeeded. names: the names of three members of the answer. Their values are the number of
 * ids, the number of bytes, and the milliseconds since `start`. */
static void answer_done(const fr_errand *errand, const char *const names[3], size_t ids, off_t bytes, double start) {
    const char *slash = strrchr(errand->path, '/'), *name = slash ? slash + 1 : errand->path;
    fr_http_exchange_answer_json(errand->exchange, 200,
                                 json_pack("{s:I, s:s, s:I, s:I, s:{s:f}}", "id_slot", (json_int_t)errand->slot,
                                           "filename", name, names[0], (json_int_t)ids, names[1], (json_int_t)bytes,
                                           "timings", names[2], 1e3 * (fr_seconds() - start)));
}

static void save(fr_slot *slot, const fr_errand *errand) {
    double start = fr_seconds();
    struct stat file = {0};
    if (!slot->kept) {
        fr_http_exchange_refuse(errand->exchange, 400, "slot %zu holds nothing", errand->slot);
        return;
    }
    if (stat(errand->path, &file) == 0 && !S_ISREG(file.st_mode)) {
        answer_no_file(errand);
        return;
    }
    fr_status status = fr_session_save(slot->kept, errand->path);
    if (status != FR_OK || stat(errand->path, &file) != 0) {
        answer_status(errand, FR_MACHINE);
        return;
    }
    const char *const names[] = {"n_saved", "n_written", "save_ms"};
    answer_done(errand, names, fr_session_length(slot->kept), file.st_size, start);
}

/* Restores a session from a file into a slot. The session in the file must have been run with the adapters that the
 * model uses now. If restoring fails, the slot keeps its old session. But if the old session was run with other
 * adapters, its timeline is emptied. */
static void restore(fr_scheduler *scheduler, fr_slot *slot, const fr_errand *errand) {
    const fr_job_setting *jobs = scheduler->setting.jobs;
    double start = fr_seconds();
    struct stat file = {0};
    bool held = slot->kept != NULL;
    if (stat(errand->path, &file) == 0 && !S_ISREG(file.st_mode)) {
        answer_no_file(errand);
        return;
    }
    double scales[FR_LOADED_ADAPTERS_MAX];
    fr_status status = held ? FR_OK : fr_engine_session(jobs->engine, jobs->loaded->options, &slot->kept);
    fr_adapter_scales_copy(&jobs->loaded->adapters, scales);
    if (status == FR_OK) status = fr_adapters_use(&jobs->loaded->adapters, scales, slot->kept);
    if (status == FR_OK) status = fr_session_restore(slot->kept, errand->path);
    if (status != FR_OK) {
        if (!held) fr_slot_forget(slot);
        answer_status(errand, status);
        return;
    }
    slot->restored = true;
    const char *const names[] = {"n_restored", "n_read", "restore_ms"};
    answer_done(errand, names, fr_session_length(slot->kept), file.st_size, start);
}

static void run_errand(fr_scheduler *scheduler, fr_errand *errand) {
    fr_slot *slot = &scheduler->slots[errand->slot];
    if (errand->what == FR_SLOT_SAVE) save(slot, errand);
    if (errand->what == FR_SLOT_RESTORE) restore(scheduler, slot, errand);
    if (errand->what == FR_SLOT_ERASE) {
        size_t length = slot->kept ? fr_session_length(slot->kept) : 0;
        fr_slot_forget(slot);
        fr_http_exchange_answer_json(
            errand->exchange, 200,
            json_pack("{s:I, s:I}", "id_slot", (json_int_t)errand->slot, "n_erased", (json_int_t)length));
    }
    fr_http_exchange_release(errand->exchange);
    free(errand->path);
    free(errand);
}

/* Removes the first errand whose slot is free from the queue, and gives it. NULL: there is no such errand. */
static fr_errand *next_errand(fr_scheduler *scheduler) {
    pthread_mutex_lock(&scheduler->lock);
    fr_errand **at = &scheduler->errands;
    while (*at && scheduler->slots[(*at)->slot].request) at = &(*at)->next;
    fr_errand *errand = *at;
    if (errand) *at = errand->next;
    if (errand && !*at) scheduler->errands_end = at;
    pthread_mutex_unlock(&scheduler->lock);
    return errand;
}

void fr_scheduler_run_errands(fr_scheduler *scheduler) {
    for (fr_errand *errand; (errand = next_errand(scheduler));) run_errand(scheduler, errand);
}
