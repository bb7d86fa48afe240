/* Runs the requests of one model round by round (scheduler.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "forerun_lab.h"
#include "tools/serve/answer.h"
#include "tools/serve/log.h"
#include "tools/serve/scheduler_parts.h"
#include "tools/serve/seconds.h"

/* The largest number of bytes of an answer that may wait for the client to read them. If more bytes wait, the texts of
 * the answer pause until the client reads again. */
#define UNREAD_MAX ((size_t)4 << 20)

/* Another thread waits at most this many nanoseconds until the engine's thread begins to compute. */
#define ABANDON_WAIT 100000000

static fr_engine *engine_of(const fr_scheduler *scheduler) {
    return scheduler->setting.jobs->engine;
}

/* The engine's thread may compute for a long time. Meanwhile another thread may use the scheduler to tell clients that
 * the server ends (fr_scheduler_abandon). The engine's thread calls go_away to allow this, and come_back to end the
 * permission. */
static void go_away(fr_scheduler *scheduler) {
    sem_post(&scheduler->away);
}

static void come_back(fr_scheduler *scheduler) {
    while (sem_wait(&scheduler->away) != 0) continue;
}

/* ------------------------------------------------------------------------------------------------------------ queue */

bool fr_scheduler_add(fr_scheduler *scheduler, fr_generation_request *request) {
    pthread_mutex_lock(&scheduler->lock);
    bool fits = !scheduler->closed &&
                scheduler->waiting < scheduler->setting.queue + scheduler->setting.slots - scheduler->taken;
    if (fits) {
        request->number = ++scheduler->number;
        request->next = NULL;
        *scheduler->arrived_end = request;
        scheduler->arrived_end = &request->next;
        scheduler->waiting++;
    }
    pthread_mutex_unlock(&scheduler->lock);
    if (fits) scheduler->setting.wake(scheduler->setting.context);
    return fits;
}

void fr_scheduler_busy(fr_scheduler *scheduler, size_t *waiting, size_t *running) {
    pthread_mutex_lock(&scheduler->lock);
    *waiting = scheduler->waiting;
    *running = scheduler->busy + scheduler->chore_count;
    pthread_mutex_unlock(&scheduler->lock);
}

bool fr_scheduler_full(fr_scheduler *scheduler) {
    pthread_mutex_lock(&scheduler->lock);
    bool full = scheduler->taken == scheduler->setting.slots;
    pthread_mutex_unlock(&scheduler->lock);
    return full;
}

/* Moves the requests that have arrived to the end of the queue. Only the engine's thread uses the queue. */
static void take_arrived(fr_scheduler *scheduler) {
    fr_generation_request **end = &scheduler->line;
    while (*end) end = &(*end)->next;
    pthread_mutex_lock(&scheduler->lock);
    *end = scheduler->arrived;
    scheduler->arrived = NULL;
    scheduler->arrived_end = &scheduler->arrived;
    pthread_mutex_unlock(&scheduler->lock);
}

static void count(fr_scheduler *scheduler, size_t *of, int change) {
    pthread_mutex_lock(&scheduler->lock);
    *of = change < 0 ? *of - 1 : *of + 1;
    pthread_mutex_unlock(&scheduler->lock);
}

static void unlink_request(fr_scheduler *scheduler, const fr_generation_request *request) {
    fr_generation_request **at = &scheduler->line;
    while (*at && *at != request) at = &(*at)->next;
    if (*at) *at = request->next;
}

/* Returns true if the request's remaining choices are not needed, because its client has gone or has got an error. */
static bool is_unwanted(const fr_generation_request *request) {
    return request->answered || fr_http_exchange_gone(request->exchange);
}

/* Removes the request from the counters. This must be done before the client gets the end of the answer. Then the
 * client's next request for /metrics no longer counts this request. */
static void discount(fr_scheduler *scheduler, const fr_generation_request *request) {
    count(scheduler, request->begun ? &scheduler->busy : &scheduler->waiting, -1);
}

/* Ends a request. Either all its choices have ended, or the remaining choices are not needed. */
static void end_request(fr_scheduler *scheduler, fr_generation_request *request) {
    unlink_request(scheduler, request);
    fr_log_generation_request(request);
    fr_generation_request_free(request);
}

/* ------------------------------------------------------------------------------------------------------------ slots */

/* Counts the ids that a restored session's timeline and a prompt have in common at their beginning. */
static size_t shared_with(const fr_slot *slot, const fr_prompt *prompt) {
    const int32_t *ids;
    size_t length = slot->restored ? fr_session_ids(slot->kept, &ids) : 0, shared = 0;
    while (shared < length && shared < prompt->count && ids[shared] == prompt->ids[shared]) shared++;
    return shared;
}

/* Finds a free slot for a choice. If the request names a slot, only that slot may be used. Otherwise the best slot is
 * the one whose restored session shares the most ids with the prompt. If several slots share equally many ids, the one
 * that has not been used for the longest time is chosen. NULL: there is no free slot. */
static fr_slot *find_free_slot(fr_scheduler *scheduler, const fr_generation_request *request, const fr_choice *choice) {
    fr_slot *best = NULL;
    size_t most = 0;
    if (request->slot >= 0) {
        best = &scheduler->slots[(size_t)request->slot % scheduler->setting.slots];
        return best->request ? NULL : best;
    }
    for (fr_slot *slot = scheduler->slots; slot < scheduler->slots + scheduler->setting.slots; slot++) {
        if (slot->request) continue;
        size_t shared = shared_with(slot, &choice->job.prompt);
        if (best && (shared < most || (shared == most && slot->used >= best->used))) continue;
        best = slot;
        most = shared;
    }
    return best;
}

/* Begins a text in a slot. If the slot has a restored session whose beginning is also the beginning of the prompt, the
 * text continues that session. */
static void begin_session(fr_slot *slot, fr_job *job) {
    void *bytes = NULL;
    size_t size = 0;
    int64_t reuses = 1;
    fr_options_get(job->options, FR_OPT_PROMPT_REUSE, &reuses);
    if (reuses && shared_with(slot, &job->prompt) && job->picture_count == 0)
        fr_session_save_bytes(slot->kept, &bytes, &size);
    fr_slot_forget(slot);
    fr_job_start(job, bytes, size);
    fr_free(bytes);
}

/* The state of a pause while a picture is run through the vision tower. The text to which the picture belongs has not
 * begun yet. */
typedef struct tower_pause {
    fr_scheduler *scheduler;
    const fr_generation_request *request;
    double since; /* time at which the current slice began */
} tower_pause;

static bool run_round(fr_scheduler *scheduler);
static void drop_unwanted(fr_scheduler *scheduler);
static void take_arrived(fr_scheduler *scheduler);
static void fill(fr_scheduler *scheduler, bool texts_alone);

/* Called between two slices of a picture that is run through the vision tower. The function does nothing until the
 * slices have taken as long as the last round. Then it begins texts without pictures that have arrived meanwhile, and
 * runs a round of all texts that have begun. So a picture slows down other texts about twofold, as a prompt does.
 * Returns true if the picture is no longer needed. */
static bool pause_tower(void *context) {
    tower_pause *pause = context;
    fr_scheduler *scheduler = pause->scheduler;
    if (is_unwanted(pause->request)) return true;
    if (fr_seconds() - pause->since < scheduler->round_seconds) return false;
    come_back(scheduler);
    drop_unwanted(scheduler);
    take_arrived(scheduler);
    fill(scheduler, true);
    run_round(scheduler);
    fr_scheduler_show(scheduler);
    go_away(scheduler);
    pause->since = fr_seconds();
    return false;
}

static void begin(fr_scheduler *scheduler, fr_generation_request *request, fr_slot *slot) {
    fr_choice *choice = &request->choices[request->begun];
    choice->slot = (size_t)(slot - scheduler->slots);
    *slot = (fr_slot){.request = request,
                      .choice = choice,
                      .kept = slot->kept,
                      .restored = slot->restored,
                      .used = ++scheduler->texts};
    if (!request->begun++) {
        count(scheduler, &scheduler->waiting, -1);
        count(scheduler, &scheduler->busy, 1);
    }
    count(scheduler, &scheduler->taken, 1);
    choice->began = fr_seconds();
    tower_pause pause = {scheduler, request, choice->began};
    choice->job.pause = pause_tower;
    choice->job.pause_context = &pause;
    go_away(scheduler); /* running a picture takes long, so from here on this thread counts as computing */
    begin_session(slot, &choice->job);
    come_back(scheduler);
    choice->job.pause = NULL;
    fr_answer_began(request, choice);
    size_t at = scheduler->running_count++;
    for (; at > 0 && scheduler->running[at - 1]->request->number > request->number; at--)
        scheduler->running[at] = scheduler->running[at - 1];
    scheduler->running[at] = slot;
}

/* Returns true if the next choice may begin. If several choices have the same prompt, the first choice runs the prompt.
 * The other choices wait until the whole prompt has been run. */
static bool may_begin(const fr_generation_request *request) {
    const fr_choice *next = &request->choices[request->begun];
    for (const fr_choice *c = request->choices; c < next; c++)
        if (c->prompt == next->prompt && c->job.session && fr_session_waiting(c->job.session)) return false;
    return true;
}

/* Returns true if at least one prompt of a request has pictures. */
static bool sees_pictures(const fr_generation_request *request) {
    for (size_t i = 0; i < request->count; i++)
        if (request->choices[i].job.picture_count) return true;
    return false;
}

/* Removes requests whose clients left while the requests waited, and begins choices in free slots. texts_alone: the
 * vision tower is running a picture, so requests with pictures stay in the queue. */
static void fill(fr_scheduler *scheduler, bool texts_alone) {
    for (fr_generation_request *request = scheduler->line, *next; request; request = next) {
        fr_slot *slot;
        next = request->next;
        bool sees = sees_pictures(request);
        if (texts_alone && sees) continue;
        if (is_unwanted(request)) {
            if (request->begun > request->done) continue;
            discount(scheduler, request);
            end_request(scheduler, request);
            continue;
        }
        size_t begun = request->begun;
        while (request->begun < request->count && may_begin(request) &&
               (slot = find_free_slot(scheduler, request, &request->choices[request->begun])))
            begin(scheduler, request, slot);
        bool ran = sees && request->begun > begun;
        if (request->begun == request->count) unlink_request(scheduler, request);
        /* while the pictures of this request were run, other requests may have ended, even the one to which `next`
         * points */
        if (ran) return;
    }
}

/* ------------------------------------------------------------------------------------------------------------- ends */

static void leave(fr_scheduler *scheduler, fr_slot *slot) {
    size_t at = 0;
    while (scheduler->running[at] != slot) at++;
    scheduler->running_count--;
    memmove(scheduler->running + at, scheduler->running + at + 1,
            (scheduler->running_count - at) * sizeof *scheduler->running);
    if (slot->aside) fr_session_reset(slot->choice->job.session);
    *slot = (fr_slot){.kept = slot->choice->job.session, .used = slot->used};
    count(scheduler, &scheduler->taken, -1);
    scheduler->ended++;
    scheduler->short_of_pages = false;
    fr_scheduler_show_slot(scheduler, slot);
}

/* Ends a choice, whether it is complete or not. Its session stays in the slot. */
static void end_choice(fr_scheduler *scheduler, fr_slot *slot) {
    fr_generation_request *request = slot->request;
    fr_choice *choice = slot->choice;
    if (choice->job.session) fr_metrics_add_text(scheduler->setting.metrics, choice->job.session);
    leave(scheduler, slot);
    request->done++;
    bool whole = request->done == request->count,
         ends = whole || (request->done == request->begun && is_unwanted(request));
    if (ends) discount(scheduler, request);
    if (whole) fr_answer_end(request);
    if (fr_job_leave(&choice->job) != FR_OK) fr_slot_forget(slot);
    choice->job.session = NULL;
    if (ends) end_request(scheduler, request);
}

static void drop_unwanted(fr_scheduler *scheduler) {
    for (size_t i = scheduler->running_count; i-- > 0;)
        if (is_unwanted(scheduler->running[i]->request)) end_choice(scheduler, scheduler->running[i]);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

/* Closes the sessions of texts that have ended, so that their pages of the KV cache become free. Returns false if there
 * were no such sessions. */
static bool forget_kept(fr_scheduler *scheduler) {
    bool any = false;
    for (fr_slot *slot = scheduler->slots; slot < scheduler->slots + scheduler->setting.slots; slot++) {
        any |= !slot->request && slot->kept;
        if (!slot->request) fr_slot_forget(slot);
    }
    return any;
}

/* Swaps out a text, because no text has found a free page of the KV cache. The text gives up its pages and continues
 * later. A text with pictures can't be swapped out; it fails instead. */
static void set_aside(fr_scheduler *scheduler, fr_slot *slot) {
    fr_session *session = slot->choice->job.session;
    slot->aside = fr_lab_session_set_aside(session) == FR_OK;
    slot->aside_since = scheduler->ended;
    if (slot->aside) return;
    fr_job_fail(&slot->choice->job, FR_MEMORY);
    fr_answer_step(slot->request, slot->choice);
    end_choice(scheduler, slot);
}

/* Gives a swapped-out text its pages back if there are enough free pages. Otherwise the next attempt is made when
 * another text has ended. alone: no other text runs. Then an attempt is made at once. If this attempt fails, the text
 * fails, because all pages are free. */
static bool take_up(fr_scheduler *scheduler, fr_slot *slot, bool alone) {
    if (!slot->aside) return true;
    if (slot->aside_since == scheduler->ended && !alone) return false;
    slot->aside_since = scheduler->ended;
    fr_session *session = slot->choice->job.session;
    fr_status status = fr_lab_session_take_up(session);
    if (status == FR_MEMORY && forget_kept(scheduler)) status = fr_lab_session_take_up(session);
    if (status == FR_OK) status = fr_job_resume(&slot->choice->job);
    if (status != FR_OK && alone) fr_job_fail(&slot->choice->job, status);
    if (status != FR_OK) return false;
    slot->aside = false;
    return true;
}

/* Frees pages for texts that found no free page. count: the number of these texts. ran: the number of all texts in the
 * round. While pages are short, no text pauses for the prompts of other texts, because a text that pauses keeps its
 * pages. */
static void make_room(fr_scheduler *scheduler, fr_slot *const *hungry, size_t count, size_t ran) {
    bool known = scheduler->short_of_pages;
    scheduler->short_of_pages |= count > 0;
    if (count == 0 || forget_kept(scheduler) || count < ran || !known) return;
    if (ran > 1) {
        set_aside(scheduler, hungry[count - 1]);
        return;
    }
    fr_job_fail(&hungry[0]->choice->job, FR_MEMORY);
    fr_answer_step(hungry[0]->request, hungry[0]->choice);
    end_choice(scheduler, hungry[0]);
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

/* Lists the numbers of the requests whose prompts are being run. */
static size_t list_prompts(const fr_scheduler *scheduler, uint64_t numbers[FR_SESSIONS_MAX]) {
    size_t count = 0;
    for (size_t i = 0; i < scheduler->running_count; i++) {
        const fr_slot *slot = scheduler->running[i];
        const fr_session *session = slot->choice->job.session;
        if (!slot->aside && session && fr_session_waiting(session)) numbers[count++] = slot->request->number;
    }
    return count;
}

static bool waits_for_others(const fr_scheduler *scheduler, fr_slot *slot) {
    fr_choice *choice = slot->choice;
    uint64_t prompts[FR_SESSIONS_MAX];
    if (choice->job.reply.count != 1 || scheduler->short_of_pages) return false;
    double now = fr_seconds();
    if (choice->ready == 0) {
        choice->ready = now;
        choice->behind = scheduler->running[scheduler->running_count - 1]->request->number;
    }
    const fr_prompt_throttle_first first = {choice->began, choice->ready, choice->behind};
    return fr_prompt_throttle_waits(&first, now, scheduler->setting.slots, prompts, list_prompts(scheduler, prompts));
}

/* Collects the slots that take part in a round. A slot takes part if its text has not ended, its client reads the
 * answer, its session has pages, and it does not pause for prompts. Gives the number of the collected slots. *texts:
 * the number of collected slots whose whole prompt has been run. */
static size_t assemble(fr_scheduler *scheduler, fr_slot **slots, size_t *texts) {
    size_t count = 0;
    *texts = 0;
    for (size_t i = 0; i < scheduler->running_count; i++) {
        fr_slot *slot = scheduler->running[i];
        fr_job *job = &slot->choice->job;
        if (job->ended || fr_http_exchange_unread(slot->request->exchange) > UNREAD_MAX ||
            !take_up(scheduler, slot, count == 0 && i + 1 == scheduler->running_count) ||
            waits_for_others(scheduler, slot))
            continue;
        *texts += fr_session_waiting(job->session) == 0;
        slots[count] = slot;
        scheduler->rounds[count] = fr_job_round(job, scheduler->ids[count]);
        count++;
    }
    return count;
}

static double left_of(fr_slot *const *slots, size_t count) {
    double left = 0;
    for (size_t i = 0; i < count; i++) left += fr_history_left(slots[i]->choice->job.session);
    return left;
}

/* Returns true if the text has used up its time (request->most) and contains a line break. */
static bool is_late(const fr_generation_request *request, const fr_choice *choice) {
    const fr_stream *text = &choice->job.text;
    bool over = request->most > 0 && choice->first > 0 && fr_seconds() - choice->first > request->most;
    return over && text->bytes && memchr(text->bytes, '\n', text->length);
}

/* Handles the ids that a round has given to a slot, and sends them to the client. */
static void take(fr_scheduler *scheduler, fr_slot *slot, const fr_round *round) {
    fr_job *job = &slot->choice->job;
    fr_job_take(job, round);
    if (!job->ended && is_late(slot->request, slot->choice)) fr_job_limit(job);
    if (round->count == 0 && !job->ended)
        fr_answer_progress(slot->request, slot->choice);
    else
        fr_answer_step(slot->request, slot->choice);
    if (job->ended) end_choice(scheduler, slot);
}

/* Runs a round. Returns false if no slot takes part in it. */
static bool run_round(fr_scheduler *scheduler) {
    fr_slot *slots[FR_SESSIONS_MAX], *hungry[FR_SESSIONS_MAX];
    size_t texts, hungry_count = 0, count = assemble(scheduler, slots, &texts);
    if (count == 0) return false;
    double left = left_of(slots, count);
    fr_engine_set_piece(engine_of(scheduler), fr_prompt_throttle_rows(&scheduler->throttle, texts));
    for (size_t i = 0; i < count; i++)
        fr_history_before(scheduler->history, slots[i]->choice->slot, &scheduler->rounds[i]);
    double start = fr_seconds();
    go_away(scheduler);
    fr_status status = fr_engine_step(engine_of(scheduler), scheduler->rounds, count);
    come_back(scheduler);
    double seconds = scheduler->round_seconds = fr_seconds() - start, rows = left - left_of(slots, count);
    fr_prompt_throttle_learn(&scheduler->throttle, seconds, texts, rows > 0 ? (size_t)rows : 0);
    fr_metrics_add_round(scheduler->setting.metrics, count);
    for (size_t i = 0; i < count; i++)
        fr_history_behind(scheduler->history, slots[i]->choice->slot, &scheduler->rounds[i]);
    fr_history_end(scheduler->history, seconds);
    for (size_t i = 0; i < count; i++) {
        fr_round *round = &scheduler->rounds[i];
        if (status != FR_OK) *round = (fr_round){.status = status, .error = fr_last_error()};
        if (round->status == FR_MEMORY)
            hungry[hungry_count++] = slots[i];
        else
            take(scheduler, slots[i], round);
    }
    make_room(scheduler, hungry, hungry_count, count);
    return true;
}

/* Ends the choices whose jobs have ended without a round. Some of these jobs could not start. The others need no new
 * ids. */
static void end_refused(fr_scheduler *scheduler) {
    for (size_t i = scheduler->running_count; i-- > 0;) {
        fr_slot *slot = scheduler->running[i];
        if (!slot->choice->job.ended) continue;
        fr_answer_step(slot->request, slot->choice);
        end_choice(scheduler, slot);
    }
}

static void ping(const fr_scheduler *scheduler, fr_generation_request *request) {
    double most = request->ping >= 0 ? (double)request->ping : scheduler->setting.ping;
    if (request->stream && most > 0 && fr_http_exchange_silent(request->exchange) > most) fr_answer_ping(request);
}

static void ping_all(const fr_scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->running_count; i++) ping(scheduler, scheduler->running[i]->request);
    for (fr_generation_request *request = scheduler->line; request; request = request->next) ping(scheduler, request);
}

bool fr_scheduler_round(fr_scheduler *scheduler) {
    uint64_t before = scheduler->texts + scheduler->ended;
    take_arrived(scheduler);
    fr_scheduler_run_errands(scheduler);
    drop_unwanted(scheduler);
    fill(scheduler, false);
    end_refused(scheduler);
    bool ran = run_round(scheduler);
    ran |= fr_scheduler_run_chore(scheduler);
    ping_all(scheduler);
    fr_scheduler_show(scheduler);
    return ran || scheduler->texts + scheduler->ended != before;
}

static void close_line(fr_scheduler *scheduler) {
    pthread_mutex_lock(&scheduler->lock);
    scheduler->closed = true;
    pthread_mutex_unlock(&scheduler->lock);
    take_arrived(scheduler);
}

static bool take_over(fr_scheduler *scheduler) {
    struct timespec until;
    int taken;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ABANDON_WAIT;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while ((taken = sem_timedwait(&scheduler->away, &until)) != 0 && errno == EINTR) continue;
    return taken == 0;
}

void fr_scheduler_abandon(fr_scheduler *scheduler, fr_status status) {
    if (!take_over(scheduler)) return;
    close_line(scheduler);
    for (size_t i = 0; i < scheduler->running_count; i++) {
        fr_job *job = &scheduler->running[i]->choice->job;
        if (!job->ended) fr_job_fail(job, status);
        fr_answer_step(scheduler->running[i]->request, scheduler->running[i]->choice);
    }
    for (fr_generation_request *request = scheduler->line; request; request = request->next) fr_answer_end(request);
}

void fr_scheduler_interrupt(fr_scheduler *scheduler, fr_status status) {
    close_line(scheduler);
    while (scheduler->running_count) {
        fr_slot *slot = scheduler->running[scheduler->running_count - 1];
        fr_job *job = &slot->choice->job;
        if (!job->ended && status != FR_OK) fr_job_fail(job, status);
        if (!job->ended) fr_job_interrupt(job);
        fr_answer_step(slot->request, slot->choice);
        end_choice(scheduler, slot);
    }
    while (scheduler->line) {
        discount(scheduler, scheduler->line);
        fr_answer_end(scheduler->line);
        end_request(scheduler, scheduler->line);
    }
    fr_scheduler_run_errands(scheduler);
    fr_scheduler_end_chores(scheduler);
}

/* -------------------------------------------------------------------------------------------------------- scheduler */

fr_scheduler *fr_scheduler_open(const fr_scheduler_setting *setting) {
    fr_scheduler *scheduler = fr_resize(NULL, 1, sizeof *scheduler);
    size_t slots = setting->slots;
    *scheduler = (fr_scheduler){.setting = *setting};
    scheduler->slots = fr_resize(NULL, slots, sizeof *scheduler->slots);
    memset(scheduler->slots, 0, slots * sizeof *scheduler->slots);
    scheduler->running = fr_resize(NULL, slots, sizeof *scheduler->running);
    scheduler->rounds = fr_resize(NULL, slots, sizeof *scheduler->rounds);
    scheduler->ids = fr_resize(NULL, slots, sizeof *scheduler->ids);
    scheduler->history = fr_history_new(slots);
    scheduler->views = fr_resize(NULL, slots, sizeof *scheduler->views);
    memset(scheduler->views, 0, slots * sizeof *scheduler->views);
    pthread_mutex_init(&scheduler->lock, NULL);
    sem_init(&scheduler->away, 0, 0);
    scheduler->arrived_end = &scheduler->arrived;
    scheduler->errands_end = &scheduler->errands;
    scheduler->chores_end = &scheduler->chores;
    return scheduler;
}

void fr_scheduler_close(fr_scheduler *scheduler) {
    if (!scheduler) return;
    fr_scheduler_interrupt(scheduler, FR_OK);
    for (size_t i = 0; i < scheduler->setting.slots; i++) fr_slot_forget(&scheduler->slots[i]);
    pthread_mutex_destroy(&scheduler->lock);
    sem_destroy(&scheduler->away);
    free(scheduler->slots);
    free(scheduler->running);
    free(scheduler->rounds);
    free(scheduler->ids);
    free(scheduler->views);
    fr_history_free(scheduler->history);
    free(scheduler);
}
