/* Places as /slots has them, and what is done with their sessions between rounds (desk.h). */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/serve/desk_parts.h"
#include "tools/serve/fault.h"
#include "tools/serve/seconds.h"

void fr_desk_forget(fr_place *place) {
    fr_session_close(place->kept);
    place->kept = NULL;
    place->restored = false;
}

/* ------------------------------------------------------------------------------------------------------------ views */

static fr_place_view view_of(const fr_place *place) {
    if (!place->ask) return (fr_place_view){.length = place->kept ? fr_session_length(place->kept) : 0};
    const fr_job *job = &place->choice->job;
    return (fr_place_view){.busy = true,
                           .task = place->ask->number,
                           .prompt = job->prompt.count,
                           .waiting = job->session ? fr_session_waiting(job->session) : 0,
                           .decoded = job->reply.count,
                           .length = job->session ? fr_session_length(job->session) : 0,
                           .most = job->most};
}

void fr_desk_show_place(fr_desk *desk, const fr_place *place) {
    fr_place_view view = view_of(place);
    pthread_mutex_lock(&desk->lock);
    desk->views[place - desk->places] = view;
    pthread_mutex_unlock(&desk->lock);
}

void fr_desk_show(fr_desk *desk) {
    for (size_t i = 0; i < desk->setting.places; i++) fr_desk_show_place(desk, &desk->places[i]);
}

static json_t *slot_of(const fr_desk *desk, size_t index, const fr_place_view *view) {
    const fr_job_setting *jobs = desk->setting.jobs;
    bool drafts = jobs->loaded->drafter;
    size_t run = view->prompt - (view->waiting < view->prompt ? view->waiting : view->prompt);
    int64_t remain = view->most < 0 || !view->busy ? -1 : view->most - (int64_t)view->decoded;
    return json_pack("{s:I, s:I, s:b, s:b, s:I, s:I, s:I, s:I, s:[{s:b, s:b, s:I, s:I}]}", "id", (json_int_t)index,
                     "n_ctx", (json_int_t)jobs->context, "speculative", drafts, "is_processing", view->busy, "id_task",
                     view->busy ? (json_int_t)view->task : (json_int_t)-1, "n_prompt_tokens",
                     (json_int_t)view->prompt, "n_prompt_tokens_processed", (json_int_t)run, "n_prompt_tokens_cache",
                     (json_int_t)view->length, "next_token", "has_next_token", view->busy, "has_new_line", 0,
                     "n_remain", (json_int_t)remain, "n_decoded", (json_int_t)view->decoded);
}

json_t *fr_desk_slots(fr_desk *desk) {
    json_t *slots = json_array();
    pthread_mutex_lock(&desk->lock);
    for (size_t i = 0; i < desk->setting.places; i++)
        json_array_append_new(slots, slot_of(desk, i, &desk->views[i]));
    pthread_mutex_unlock(&desk->lock);
    return slots;
}

json_t *fr_desk_rounds(fr_desk *desk, unsigned long long after) {
    return fr_history_json(desk->history, after);
}

/* ---------------------------------------------------------------------------------------------------------- errands */

void fr_desk_send(fr_desk *desk, fr_call *call, fr_desk_errand what, size_t slot, const char *path) {
    fr_errand *errand = fr_resize(NULL, 1, sizeof *errand);
    *errand = (fr_errand){.call = call, .what = what, .slot = slot, .path = path ? strdup(path) : NULL};
    fr_call_hold(call);
    pthread_mutex_lock(&desk->lock);
    *desk->errands_end = errand;
    desk->errands_end = &errand->next;
    pthread_mutex_unlock(&desk->lock);
    desk->setting.wake(desk->setting.context);
}

static const char *name_of(const fr_errand *errand) {
    const char *slash = strrchr(errand->path, '/');
    return slash ? slash + 1 : errand->path;
}

static void answer_status(const fr_errand *errand, fr_status status) {
    fr_call_refuse(errand->call, fr_fault_http(status), "%s", status == FR_INPUT ? "that file holds no session of this "
                   "model that fits" : "the session could not be saved or restored");
}

/* A pipe or a device would hold up every text, or be written over. */
static void answer_no_file(const fr_errand *errand) {
    fr_call_refuse(errand->call, 400, "\"filename\" is of no regular file");
}

/* names: of the ids, the bytes and the milliseconds since `start`. */
static void answer_done(const fr_errand *errand, const char *const names[3], size_t ids, off_t bytes, double start) {
    fr_call_answer_json(errand->call, 200,
                        json_pack("{s:I, s:s, s:I, s:I, s:{s:f}}", "id_slot", (json_int_t)errand->slot, "filename",
                                  name_of(errand), names[0], (json_int_t)ids, names[1], (json_int_t)bytes, "timings",
                                  names[2], 1e3 * (fr_seconds() - start)));
}

static void save(fr_place *place, const fr_errand *errand) {
    double start = fr_seconds();
    struct stat file = {0};
    if (!place->kept) {
        fr_call_refuse(errand->call, 400, "slot %zu holds nothing", errand->slot);
        return;
    }
    if (stat(errand->path, &file) == 0 && !S_ISREG(file.st_mode)) {
        answer_no_file(errand);
        return;
    }
    fr_status status = fr_session_save(place->kept, errand->path);
    if (status != FR_OK || stat(errand->path, &file) != 0) {
        answer_status(errand, FR_MACHINE);
        return;
    }
    const char *const names[] = {"n_saved", "n_written", "save_ms"};
    answer_done(errand, names, fr_session_length(place->kept), file.st_size, start);
}

/* A file that can't be restored changes nothing: the slot holds what it held. */
static void restore(fr_desk *desk, fr_place *place, const fr_errand *errand) {
    const fr_job_setting *jobs = desk->setting.jobs;
    double start = fr_seconds();
    struct stat file = {0};
    bool held = place->kept != NULL;
    if (stat(errand->path, &file) == 0 && !S_ISREG(file.st_mode)) {
        answer_no_file(errand);
        return;
    }
    fr_status status = held ? FR_OK : fr_engine_session(jobs->engine, jobs->loaded->options, &place->kept);
    if (status == FR_OK) status = fr_session_restore(place->kept, errand->path);
    if (status != FR_OK) {
        if (!held) fr_desk_forget(place);
        answer_status(errand, status);
        return;
    }
    place->restored = true;
    const char *const names[] = {"n_restored", "n_read", "restore_ms"};
    answer_done(errand, names, fr_session_length(place->kept), file.st_size, start);
}

static void erase(fr_place *place, const fr_errand *errand) {
    size_t length = place->kept ? fr_session_length(place->kept) : 0;
    fr_desk_forget(place);
    fr_call_answer_json(errand->call, 200, json_pack("{s:I, s:I}", "id_slot", (json_int_t)errand->slot, "n_erased",
                                                     (json_int_t)length));
}

static void run_errand(fr_desk *desk, fr_errand *errand) {
    fr_place *place = &desk->places[errand->slot];
    if (errand->what == FR_SLOT_SAVE) save(place, errand);
    if (errand->what == FR_SLOT_RESTORE) restore(desk, place, errand);
    if (errand->what == FR_SLOT_ERASE) erase(place, errand);
    fr_call_release(errand->call);
    free(errand->path);
    free(errand);
}

/* Takes out one whose place has no text under way; NULL: there is none. */
static fr_errand *next_errand(fr_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    fr_errand **at = &desk->errands;
    while (*at && desk->places[(*at)->slot].ask) at = &(*at)->next;
    fr_errand *errand = *at;
    if (errand) *at = errand->next;
    if (errand && !*at) desk->errands_end = at;
    pthread_mutex_unlock(&desk->lock);
    return errand;
}

void fr_desk_run_errands(fr_desk *desk) {
    for (fr_errand *errand; (errand = next_errand(desk));) run_errand(desk, errand);
}
