/* Requests of one model, round by round (desk.h). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "forerun_lab.h"
#include "tools/serve/answer.h"
#include "tools/serve/answer_echo.h"
#include "tools/serve/desk_parts.h"
#include "tools/serve/log.h"
#include "tools/serve/seconds.h"

/* Bytes that a client may leave unread before its texts wait for it. */
#define UNREAD_MOST ((size_t)4 << 20)

/* Nanoseconds that another thread waits for the engine's to begin to compute. */
#define ABANDON_WAIT 100000000

static fr_engine *engine_of(const fr_desk *desk) {
    return desk->setting.jobs->engine;
}

/* The engine's thread begins to compute, for long perhaps; it is back. */
static void go_away(fr_desk *desk) {
    sem_post(&desk->away);
}

static void come_back(fr_desk *desk) {
    while (sem_wait(&desk->away) != 0) continue;
}

/* ------------------------------------------------------------------------------------------------------------- line */

bool fr_desk_put(fr_desk *desk, fr_ask *ask) {
    pthread_mutex_lock(&desk->lock);
    bool fits = !desk->closed && desk->waiting < desk->setting.queue + desk->setting.places - desk->taken;
    if (fits) {
        ask->number = ++desk->number;
        ask->next = NULL;
        *desk->arrived_end = ask;
        desk->arrived_end = &ask->next;
        desk->waiting++;
    }
    pthread_mutex_unlock(&desk->lock);
    if (fits) desk->setting.wake(desk->setting.context);
    return fits;
}

void fr_desk_busy(fr_desk *desk, size_t *waiting, size_t *running) {
    pthread_mutex_lock(&desk->lock);
    *waiting = desk->waiting;
    *running = desk->busy + desk->chore_count;
    pthread_mutex_unlock(&desk->lock);
}

bool fr_desk_full(fr_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    bool full = desk->taken == desk->setting.places;
    pthread_mutex_unlock(&desk->lock);
    return full;
}

/* What has arrived goes to the end of the line. */
static void take_arrived(fr_desk *desk) {
    fr_ask **end = &desk->line;
    while (*end) end = &(*end)->next;
    pthread_mutex_lock(&desk->lock);
    *end = desk->arrived;
    desk->arrived = NULL;
    desk->arrived_end = &desk->arrived;
    pthread_mutex_unlock(&desk->lock);
}

static void count(fr_desk *desk, size_t *of, int change) {
    pthread_mutex_lock(&desk->lock);
    *of = change < 0 ? *of - 1 : *of + 1;
    pthread_mutex_unlock(&desk->lock);
}

static void unlink_ask(fr_desk *desk, const fr_ask *ask) {
    fr_ask **at = &desk->line;
    while (*at && *at != ask) at = &(*at)->next;
    if (*at) *at = ask->next;
}

/* Its client has gone, or has been told of a failure: its other choices are not wanted any more. */
static bool is_unwanted(const fr_ask *ask) {
    return ask->answered || fr_call_gone(ask->call);
}

/* It neither waits nor is under way any more: before its client can know. */
static void discount(fr_desk *desk, const fr_ask *ask) {
    count(desk, ask->begun ? &desk->busy : &desk->waiting, -1);
}

/* All its choices have ended, or nobody wants the others. */
static void end_ask(fr_desk *desk, fr_ask *ask) {
    unlink_ask(desk, ask);
    fr_log_ask(ask);
    fr_ask_free(ask);
}

/* ----------------------------------------------------------------------------------------------------------- places */

/* How many ids a restored session's timeline shares with a prompt. */
static size_t shared_with(const fr_place *place, const fr_prompt *prompt) {
    const int32_t *ids;
    size_t length = place->restored ? fr_session_ids(place->kept, &ids) : 0, shared = 0;
    while (shared < length && shared < prompt->count && ids[shared] == prompt->ids[shared]) shared++;
    return shared;
}

/* A place that is free for a choice: the one that was asked for, one whose restored session begins as it does, else the
 * one that has not been used for longest. NULL: it has to wait. */
static fr_place *free_place(fr_desk *desk, const fr_ask *ask, const fr_choice *choice) {
    fr_place *best = NULL;
    size_t most = 0;
    if (ask->slot >= 0) {
        best = &desk->places[(size_t)ask->slot % desk->setting.places];
        return best->ask ? NULL : best;
    }
    for (fr_place *place = desk->places; place < desk->places + desk->setting.places; place++) {
        if (place->ask) continue;
        size_t shared = shared_with(place, &choice->job.prompt);
        if (best && (shared < most || (shared == most && place->used >= best->used))) continue;
        best = place;
        most = shared;
    }
    return best;
}

/* The text that a place begins with: its session, which goes on from a restored one where they begin alike. */
static void begin_session(fr_place *place, fr_job *job) {
    void *bytes = NULL;
    size_t size = 0;
    int64_t reuses = 1;
    fr_options_get(job->options, FR_OPT_PROMPT_REUSE, &reuses);
    if (reuses && shared_with(place, &job->prompt) && job->picture_count == 0)
        fr_session_save_bytes(place->kept, &bytes, &size);
    fr_desk_forget(place);
    fr_job_start(job, bytes, size);
    fr_free(bytes);
}

static void begin(fr_desk *desk, fr_ask *ask, fr_place *place) {
    fr_choice *choice = &ask->choices[ask->begun];
    choice->place = (size_t)(place - desk->places);
    *place = (fr_place){.ask = ask, .choice = choice, .kept = place->kept, .restored = place->restored,
                        .used = ++desk->texts};
    if (!ask->begun++) {
        count(desk, &desk->waiting, -1);
        count(desk, &desk->busy, 1);
    }
    count(desk, &desk->taken, 1);
    choice->began = fr_seconds();
    go_away(desk); /* a picture takes its time */
    begin_session(place, &choice->job);
    come_back(desk);
    fr_answer_began(ask, choice);
    size_t at = desk->running_count++;
    for (; at > 0 && desk->running[at - 1]->ask->number > ask->number; at--) desk->running[at] = desk->running[at - 1];
    desk->running[at] = place;
}

/* A further choice waits until the prompt, which it shares with the first, has been run. */
static bool may_begin(const fr_ask *ask) {
    const fr_choice *next = &ask->choices[ask->begun];
    for (const fr_choice *c = ask->choices; c < next; c++)
        if (c->prompt == next->prompt && c->job.session && fr_session_waiting(c->job.session)) return false;
    return true;
}

/* Whoever has gone while waiting, and choices for all places that are free. */
static void fill(fr_desk *desk) {
    for (fr_ask *ask = desk->line, *next; ask; ask = next) {
        fr_place *place;
        next = ask->next;
        if (is_unwanted(ask)) {
            if (ask->begun > ask->done) continue;
            discount(desk, ask);
            end_ask(desk, ask);
            continue;
        }
        while (ask->begun < ask->count && may_begin(ask) && (place = free_place(desk, ask, &ask->choices[ask->begun])))
            begin(desk, ask, place);
        if (ask->begun == ask->count) unlink_ask(desk, ask);
    }
}

/* ------------------------------------------------------------------------------------------------------------- ends */

static void leave(fr_desk *desk, fr_place *place) {
    size_t at = 0;
    while (desk->running[at] != place) at++;
    desk->running_count--;
    memmove(desk->running + at, desk->running + at + 1, (desk->running_count - at) * sizeof *desk->running);
    if (place->aside) fr_session_reset(place->choice->job.session);
    *place = (fr_place){.kept = place->choice->job.session, .used = place->used};
    count(desk, &desk->taken, -1);
    desk->ended++;
    desk->short_of_pages = false;
    fr_desk_show_place(desk, place);
}

/* A choice has ended, by itself or not. Its session stays in its place. */
static void end_choice(fr_desk *desk, fr_place *place) {
    fr_ask *ask = place->ask;
    fr_choice *choice = place->choice;
    if (choice->job.session) fr_tally_text(desk->setting.tally, choice->job.session);
    leave(desk, place);
    ask->done++;
    bool whole = ask->done == ask->count, ends = whole || (ask->done == ask->begun && is_unwanted(ask));
    if (ends) discount(desk, ask);
    if (whole) fr_answer_end(ask);
    if (fr_job_leave(&choice->job) != FR_OK) fr_desk_forget(place);
    choice->job.session = NULL;
    if (ends) end_ask(desk, ask);
}

static void drop_unwanted(fr_desk *desk) {
    for (size_t i = desk->running_count; i-- > 0;)
        if (is_unwanted(desk->running[i]->ask)) end_choice(desk, desk->running[i]);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

/* Sessions whose texts have ended give way first. */
static bool forget_kept(fr_desk *desk) {
    bool any = false;
    for (fr_place *place = desk->places; place < desk->places + desk->setting.places; place++) {
        any |= !place->ask && place->kept;
        if (!place->ask) fr_desk_forget(place);
    }
    return any;
}

/* Nobody of all under way has found a page: the last one gives its own up, and goes on later. What can't be saved, a
 * text with pictures, fails. */
static void set_aside(fr_desk *desk, fr_place *place) {
    fr_session *session = place->choice->job.session;
    place->aside = fr_lab_session_set_aside(session) == FR_OK;
    place->aside_since = desk->ended;
    if (place->aside) return;
    fr_job_fail(&place->choice->job, FR_MEMORY);
    fr_answer_step(place->ask, place->choice);
    end_choice(desk, place);
}

/* It takes its pages up again, if there are some: tried once another text has ended, or where no other is run. What
 * fails then, with all pages free, fails for good. */
static bool take_up(fr_desk *desk, fr_place *place, bool alone) {
    if (!place->aside) return true;
    if (place->aside_since == desk->ended && !alone) return false;
    place->aside_since = desk->ended;
    fr_session *session = place->choice->job.session;
    fr_status status = fr_lab_session_take_up(session);
    if (status == FR_MEMORY && forget_kept(desk)) status = fr_lab_session_take_up(session);
    if (status == FR_OK) status = fr_job_resume(&place->choice->job);
    if (status != FR_OK && alone) fr_job_fail(&place->choice->job, status);
    if (status != FR_OK) return false;
    place->aside = false;
    return true;
}

/* Those that found no page, of so many that ran. From then on nobody waits, holding pages, for others. */
static void make_room(fr_desk *desk, fr_place *const *hungry, size_t count, size_t ran) {
    bool known = desk->short_of_pages;
    desk->short_of_pages |= count > 0;
    if (count == 0 || forget_kept(desk) || count < ran || !known) return;
    if (ran > 1) {
        set_aside(desk, hungry[count - 1]);
        return;
    }
    fr_job_fail(&hungry[0]->choice->job, FR_MEMORY);
    fr_answer_step(hungry[0]->ask, hungry[0]->choice);
    end_choice(desk, hungry[0]);
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

/* Requests whose prompts are being run, by their numbers. */
static size_t list_prompts(const fr_desk *desk, uint64_t numbers[FR_SESSIONS_MAX]) {
    size_t count = 0;
    for (size_t i = 0; i < desk->running_count; i++) {
        const fr_place *place = desk->running[i];
        const fr_session *session = place->choice->job.session;
        if (!place->aside && session && fr_session_waiting(session)) numbers[count++] = place->ask->number;
    }
    return count;
}

static bool waits_for_others(const fr_desk *desk, fr_place *place) {
    fr_choice *choice = place->choice;
    uint64_t prompts[FR_SESSIONS_MAX];
    if (choice->job.reply.count != 1 || desk->short_of_pages) return false;
    double now = fr_seconds();
    if (choice->ready == 0) {
        choice->ready = now;
        choice->behind = desk->running[desk->running_count - 1]->ask->number;
    }
    const fr_pace_first first = {choice->began, choice->ready, choice->behind};
    return fr_pace_waits(&first, now, desk->setting.places, prompts, list_prompts(desk, prompts));
}

/* Who takes part: whoever's client reads, and who has pages. Gives how many, and of how many prompts are still to be
 * run. */
static size_t assemble(fr_desk *desk, fr_place **places, size_t *texts) {
    size_t count = 0;
    *texts = 0;
    for (size_t i = 0; i < desk->running_count; i++) {
        fr_place *place = desk->running[i];
        fr_job *job = &place->choice->job;
        if (job->ended || fr_echo_is_due(place->ask, place->choice) || fr_call_unread(place->ask->call) > UNREAD_MOST ||
            !take_up(desk, place, count == 0 && i + 1 == desk->running_count) || waits_for_others(desk, place))
            continue;
        *texts += fr_session_waiting(job->session) == 0;
        places[count] = place;
        desk->rounds[count] = fr_job_round(job, desk->ids[count]);
        count++;
    }
    return count;
}

static double left_of(fr_place *const *places, size_t count) {
    double left = 0;
    for (size_t i = 0; i < count; i++) left += fr_history_left(places[i]->choice->job.session);
    return left;
}

/* It has had its time, and a line is whole. */
static bool is_late(const fr_ask *ask, const fr_choice *choice) {
    const fr_stream *text = &choice->job.text;
    bool over = ask->most > 0 && choice->first > 0 && fr_seconds() - choice->first > ask->most;
    return over && text->bytes && memchr(text->bytes, '\n', text->length);
}

/* What a round gave one of them. */
static void take(fr_desk *desk, fr_place *place, const fr_round *round) {
    fr_job *job = &place->choice->job;
    fr_job_take(job, round);
    if (!job->ended && is_late(place->ask, place->choice)) fr_job_limit(job);
    if (round->count == 0 && !job->ended) fr_answer_progress(place->ask, place->choice);
    else fr_answer_step(place->ask, place->choice);
    if (job->ended) end_choice(desk, place);
}

/* False: nobody can take part. */
static bool run_round(fr_desk *desk) {
    fr_place *places[FR_SESSIONS_MAX], *hungry[FR_SESSIONS_MAX];
    size_t texts, hungry_count = 0, count = assemble(desk, places, &texts);
    if (count == 0) return false;
    double left = left_of(places, count);
    fr_engine_set_piece(engine_of(desk), fr_pace_rows(&desk->pace, texts));
    for (size_t i = 0; i < count; i++) fr_history_before(desk->history, places[i]->choice->place, &desk->rounds[i]);
    double start = fr_seconds();
    go_away(desk);
    fr_status status = fr_engine_step(engine_of(desk), desk->rounds, count);
    come_back(desk);
    double seconds = fr_seconds() - start, rows = left - left_of(places, count);
    fr_pace_learn(&desk->pace, seconds, texts, rows > 0 ? (size_t)rows : 0);
    fr_tally_round(desk->setting.tally, count);
    for (size_t i = 0; i < count; i++) fr_history_behind(desk->history, places[i]->choice->place, &desk->rounds[i]);
    fr_history_end(desk->history, seconds);
    for (size_t i = 0; i < count; i++) {
        fr_round *round = &desk->rounds[i];
        if (status != FR_OK) *round = (fr_round){.status = status, .error = fr_last_error()};
        if (round->status == FR_MEMORY) hungry[hungry_count++] = places[i];
        else take(desk, places[i], round);
    }
    make_room(desk, hungry, hungry_count, count);
    return true;
}

/* Computes the log-probabilities of the first prompt that is to be echoed with them, in one go. False: there is none,
 * or it waits for pages that running texts hold. */
static bool score_prompt(fr_desk *desk) {
    fr_place *due = NULL;
    bool others = false;
    for (size_t i = desk->running_count; i-- > 0;) {
        fr_place *place = desk->running[i];
        if (fr_echo_is_due(place->ask, place->choice)) due = place;
        else others |= !place->aside;
    }
    if (!due) return false;
    go_away(desk);
    fr_status status = fr_echo_score(due->ask, due->choice);
    come_back(desk);
    if (status == FR_MEMORY && (forget_kept(desk) || others)) return !others;
    if (status == FR_OK || status == FR_ABORTED) return true;
    fr_job_fail(&due->choice->job, status);
    return true;
}

/* Ends jobs that were over before any round: those that could not start, and those without new ids whose prompt has
 * been scored. */
static void end_refused(fr_desk *desk) {
    for (size_t i = desk->running_count; i-- > 0;) {
        fr_place *place = desk->running[i];
        if (!place->choice->job.ended || fr_echo_is_due(place->ask, place->choice)) continue;
        fr_answer_step(place->ask, place->choice);
        end_choice(desk, place);
    }
}

static void ping(const fr_desk *desk, fr_ask *ask) {
    double most = ask->ping >= 0 ? (double)ask->ping : desk->setting.ping;
    if (ask->stream && most > 0 && fr_call_silent(ask->call) > most) fr_answer_ping(ask);
}

static void ping_all(const fr_desk *desk) {
    for (size_t i = 0; i < desk->running_count; i++) ping(desk, desk->running[i]->ask);
    for (fr_ask *ask = desk->line; ask; ask = ask->next) ping(desk, ask);
}

bool fr_desk_round(fr_desk *desk) {
    uint64_t before = desk->texts + desk->ended;
    take_arrived(desk);
    fr_desk_run_errands(desk);
    drop_unwanted(desk);
    fill(desk);
    bool ran = score_prompt(desk);
    end_refused(desk);
    ran |= run_round(desk);
    ran |= fr_desk_run_chore(desk);
    ping_all(desk);
    fr_desk_show(desk);
    return ran || desk->texts + desk->ended != before;
}

static void close_line(fr_desk *desk) {
    pthread_mutex_lock(&desk->lock);
    desk->closed = true;
    pthread_mutex_unlock(&desk->lock);
    take_arrived(desk);
}

static bool take_over(fr_desk *desk) {
    struct timespec until;
    int taken;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ABANDON_WAIT;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while ((taken = sem_timedwait(&desk->away, &until)) != 0 && errno == EINTR) continue;
    return taken == 0;
}

void fr_desk_abandon(fr_desk *desk, fr_status status) {
    if (!take_over(desk)) return;
    close_line(desk);
    for (size_t i = 0; i < desk->running_count; i++) {
        fr_job *job = &desk->running[i]->choice->job;
        if (!job->ended) fr_job_fail(job, status);
        fr_answer_step(desk->running[i]->ask, desk->running[i]->choice);
    }
    for (fr_ask *ask = desk->line; ask; ask = ask->next) fr_answer_end(ask);
}

void fr_desk_interrupt(fr_desk *desk, fr_status status) {
    close_line(desk);
    while (desk->running_count) {
        fr_place *place = desk->running[desk->running_count - 1];
        fr_job *job = &place->choice->job;
        if (!job->ended && status != FR_OK) fr_job_fail(job, status);
        if (!job->ended) fr_job_interrupt(job);
        fr_answer_step(place->ask, place->choice);
        end_choice(desk, place);
    }
    while (desk->line) {
        discount(desk, desk->line);
        fr_answer_end(desk->line);
        end_ask(desk, desk->line);
    }
    fr_desk_run_errands(desk);
    fr_desk_end_chores(desk);
}

/* ------------------------------------------------------------------------------------------------------------- desk */

fr_desk *fr_desk_open(const fr_desk_setting *setting) {
    fr_desk *desk = fr_resize(NULL, 1, sizeof *desk);
    size_t places = setting->places;
    *desk = (fr_desk){.setting = *setting};
    desk->places = fr_resize(NULL, places, sizeof *desk->places);
    memset(desk->places, 0, places * sizeof *desk->places);
    desk->running = fr_resize(NULL, places, sizeof *desk->running);
    desk->rounds = fr_resize(NULL, places, sizeof *desk->rounds);
    desk->ids = fr_resize(NULL, places, sizeof *desk->ids);
    desk->history = fr_history_new(places);
    desk->views = fr_resize(NULL, places, sizeof *desk->views);
    memset(desk->views, 0, places * sizeof *desk->views);
    pthread_mutex_init(&desk->lock, NULL);
    sem_init(&desk->away, 0, 0);
    desk->arrived_end = &desk->arrived;
    desk->errands_end = &desk->errands;
    desk->chores_end = &desk->chores;
    return desk;
}

void fr_desk_close(fr_desk *desk) {
    if (!desk) return;
    fr_desk_interrupt(desk, FR_OK);
    for (size_t i = 0; i < desk->setting.places; i++) fr_desk_forget(&desk->places[i]);
    pthread_mutex_destroy(&desk->lock);
    sem_destroy(&desk->away);
    free(desk->places);
    free(desk->running);
    free(desk->rounds);
    free(desk->ids);
    free(desk->views);
    fr_history_free(desk->history);
    free(desk);
}
