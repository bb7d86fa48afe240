/* Runs several lines of a file at once (job_places.h). */
#include "tools/jobs/job_places.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/interrupt.h"

/* ---------------------------------------------------------------------------------------------------------- opening */

int fr_job_places_read(fr_job_places *p, const fr_arguments *args) {
    int code = fr_batch_input_open(&p->input, args->text[FR_ARG_FILE]);
    p->setting.file = p->input.name;
    return code;
}

static int64_t longest(fr_job_places *p, int64_t usual) {
    size_t prompt;
    int64_t longest = usual, most;
    for (fr_job_line line; !fr_interrupt_came(NULL) && fr_batch_input_next(&p->input, &line);) {
        if (!fr_job_measure(&p->setting, &line, &prompt, &most)) continue;
        int64_t needed = fr_loaded_context(p->setting.loaded, p->setting.args, prompt, most);
        if (needed > longest && (int64_t)prompt <= needed) longest = needed;
    }
    fr_batch_input_rewind(&p->input);
    return longest;
}

int fr_job_places_context(fr_job_places *p, fr_loaded *loaded, int64_t *usual, int64_t *context) {
    const fr_arguments *args = p->setting.args;
    int code = fr_loaded_open_drafter(loaded, args);
    if (code) return code;
    fr_loaded_note_unused(loaded, args);
    *usual = fr_loaded_context(loaded, args, 0, 0);
    *context = args->given[FR_ARG_CONTEXT] ? *usual : longest(p, *usual);
    return 0;
}

void fr_job_places_take(fr_job_places *p) {
    p->jobs = fr_resize(NULL, p->count, sizeof(*p->jobs));
    memset(p->jobs, 0, p->count * sizeof(*p->jobs));
    p->lines = fr_resize(NULL, p->count, sizeof(*p->lines));
    p->aside = fr_resize(NULL, p->count, sizeof(*p->aside));
    p->ids = fr_resize(NULL, p->count, sizeof(*p->ids));
    p->rounds = fr_resize(NULL, p->count, sizeof(*p->rounds));
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

/* Gives the next line to begin. Returns false if there is no such line, or if no line may begin because too few pages
 * of the KV cache are free. */
static bool take_line(fr_job_places *p, fr_job_line *line) {
    if (p->crowded) return false;
    if (p->aside_count) {
        *line = p->aside[--p->aside_count];
        return true;
    }
    while (fr_batch_input_next(&p->input, line)) {
        p->begun++;
        if (p->needs(p->owner, line)) return true;
    }
    return false;
}

static void end_job(fr_job_places *p, size_t place) {
    p->ended(p->owner, place);
    p->crowded = false;
}

/* Returns true if the job has ended. If its line asks for more choices, the job has not ended: the next choice is begun
 * instead. */
static bool has_ended(fr_job *job) {
    while (job->ended)
        if (!fr_job_next_choice(job)) return true;
    return false;
}

void fr_job_places_fill(fr_job_places *p) {
    for (size_t place = 0; place < p->count; place++) {
        fr_job_line *line = &p->lines[place];
        while (!p->jobs[place].setting && take_line(p, line)) {
            fr_job_begin(&p->jobs[place], &p->setting, line);
            if (has_ended(&p->jobs[place])) end_job(p, place);
        }
    }
}

/* Swaps out a line, because none of the lines that are being run has found a free page of the KV cache. The last of
 * these lines gives up its pages and begins again later. A line that runs alone can use all pages, so the first line is
 * never swapped out. */
static void set_aside(fr_job_places *p, const size_t *places, size_t count) {
    size_t last = places[0];
    for (size_t i = 1; i < count; i++)
        if (p->lines[places[i]].number > p->lines[last].number) last = places[i];
    fr_job_end(&p->jobs[last]);
    size_t at = p->aside_count++;
    for (; at > 0 && p->aside[at - 1].number < p->lines[last].number; at--) p->aside[at] = p->aside[at - 1];
    p->aside[at] = p->lines[last];
    p->crowded = true;
}

/* Runs one round. If a line finds no free page of the KV cache while other lines run, that line waits, because pages
 * become free when the other lines end. */
int fr_job_places_round(fr_job_places *p, size_t *under_way) {
    size_t count = 0, waiting = 0, places[FR_SESSIONS_MAX];
    for (size_t place = 0; place < p->count; place++) {
        if (!p->jobs[place].setting) continue;
        places[count] = place;
        p->rounds[count] = fr_job_round(&p->jobs[place], p->ids[count]);
        count++;
    }
    *under_way = count;
    int code = count ? fr_exit_status(fr_engine_step(p->setting.engine, p->rounds, count)) : 0;
    for (size_t i = 0; i < count && !code; i++) {
        fr_job *job = &p->jobs[places[i]];
        if (p->rounds[i].status == FR_MEMORY && count > 1) {
            waiting++;
            continue;
        }
        fr_job_take(job, &p->rounds[i]);
        p->tokens += p->rounds[i].count;
        if (has_ended(job)) end_job(p, places[i]);
    }
    if (count && waiting == count) set_aside(p, places, count);
    return code;
}

/* -------------------------------------------------------------------------------------------------------------- end */

int fr_job_places_failed(const fr_job_places *p, size_t failed) {
    return fr_bad_input("%zu of %zu lines could not be run: each has its \"error\"", failed, p->input.total);
}

void fr_job_places_end(fr_job_places *p) {
    for (size_t place = 0; place < p->count; place++)
        if (p->jobs[place].setting) fr_job_end(&p->jobs[place]);
}

void fr_job_places_close(fr_job_places *p) {
    fr_engine_close(p->setting.engine);
    fr_batch_input_close(&p->input);
    free(p->jobs);
    free(p->lines);
    free(p->aside);
    free(p->ids);
    free(p->rounds);
}
