/* forerun batch: many prompts from a file, several at once in one forward; their answers to a file, in the same
 * order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "batch_kept.h"
#include "interrupt.h"
#include "verbs.h"

enum { USUAL_JOBS = 4 };

typedef struct batch {
    fr_job_setting setting;
    fr_batch_input input;
    fr_batch_kept kept; /* what an earlier run has answered; answers: [input.total] NULL: not there yet, or written */
    fr_job *jobs;       /* [places] */
    fr_job_line *lines; /* [places] theirs */
    fr_job_line *aside; /* [aside_count] lines that were begun and must begin again, the first of them last */
    size_t aside_count;
    bool crowded; /* there were not pages enough for all: none begins before one has ended */
    int32_t (*ids)[FR_STEP_MAX];
    fr_round *rounds;
    size_t places;
    size_t begun, done, written, failed, cut; /* cut: by an interrupt */
    size_t tokens;
    FILE *out;
    fr_progress progress;
} batch;

/* ---------------------------------------------------------------------------------------------------------- reading */

/* Whether an earlier run has answered it. */
static bool is_kept(const batch *b, const fr_job_line *line) {
    return line->number < b->kept.first || b->kept.answers[line->number];
}

/* What is to be begun next; false: nothing. */
static bool take_line(batch *b, fr_job_line *line) {
    if (b->crowded) return false;
    if (b->aside_count) {
        *line = b->aside[--b->aside_count];
        return true;
    }
    while (fr_batch_input_next(&b->input, line)) {
        b->begun++;
        if (!is_kept(b, line)) return true;
        b->done++;
    }
    return false;
}

/* ---------------------------------------------------------------------------------------------------------- answers */

/* Ids of prompts under way that are still to be run. */
static size_t waiting_of(const batch *b) {
    size_t waiting = 0;
    for (size_t place = 0; place < b->places; place++)
        if (b->jobs[place].setting) waiting += fr_session_waiting(b->jobs[place].session);
    return waiting;
}

static void show_progress(batch *b) {
    char so_far[96];
    size_t waiting = waiting_of(b);
    int length = snprintf(so_far, sizeof(so_far), ", %zu tokens", b->tokens);
    if (waiting) snprintf(so_far + length, sizeof(so_far) - (size_t)length, ", %zu of prompts to read", waiting);
    fr_progress_count(&b->progress, b->done, b->input.total, b->input.total == 1 ? "line" : "lines", so_far);
}

/* Those whose turn has come. A write that fails within fprintf leaves nothing to be flushed. */
static int write_answers(batch *b) {
    bool failed = false;
    for (; !failed && b->written < b->begun && b->kept.answers[b->written]; b->written++) {
        char **answer = &b->kept.answers[b->written];
        failed = fprintf(b->out, "%s\n", *answer) < 0;
        free(*answer);
        *answer = NULL;
    }
    if (!failed && fflush(b->out) == 0) return 0;
    return fr_bad_input("%s: %s", b->setting.args->text[FR_ARG_OUT_FILE], strerror(errno));
}

static void end_job(batch *b, size_t place) {
    fr_job *job = &b->jobs[place];
    b->kept.answers[b->lines[place].number] = fr_job_answer(job);
    b->crowded = false;
    b->failed += job->error[0] != '\0';
    b->cut += !job->error[0] && job->reply.end == FR_END_INTERRUPT;
    b->done++;
    fr_job_end(job);
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

/* Lines for all places that are free; those that can't be run are answered at once. */
static void fill(batch *b) {
    for (size_t place = 0; place < b->places; place++) {
        fr_job_line *line = &b->lines[place];
        while (!b->jobs[place].setting && take_line(b, line)) {
            fr_job_begin(&b->jobs[place], &b->setting, line);
            if (b->jobs[place].ended) end_job(b, place);
        }
    }
}

/* Nobody of all under way has found a page: the last line gives up its own, and begins again later. The first is never
 * set aside, and alone it has all pages there are. */
static void set_aside(batch *b, const size_t *places, size_t count) {
    size_t last = places[0];
    for (size_t i = 1; i < count; i++)
        if (b->lines[places[i]].number > b->lines[last].number) last = places[i];
    fr_job_end(&b->jobs[last]);
    size_t at = b->aside_count++;
    for (; at > 0 && b->aside[at - 1].number < b->lines[last].number; at--) b->aside[at] = b->aside[at - 1];
    b->aside[at] = b->lines[last];
    b->crowded = true;
}

/* One round of all that are under way; *under_way: how many they were. Who finds no page waits for one, if there are
 * others to end. */
static int run_round(batch *b, size_t *under_way) {
    size_t count = 0, waiting = 0, places[FR_SESSIONS_MAX];
    for (size_t place = 0; place < b->places; place++) {
        if (!b->jobs[place].setting) continue;
        places[count] = place;
        b->rounds[count] = fr_job_round(&b->jobs[place], b->ids[count]);
        count++;
    }
    *under_way = count;
    int code = count ? fr_exit_status(fr_engine_step(b->setting.engine, b->rounds, count)) : 0;
    for (size_t i = 0; i < count && !code; i++) {
        fr_job *job = &b->jobs[places[i]];
        if (b->rounds[i].status == FR_MEMORY && count > 1) {
            waiting++;
            continue;
        }
        fr_job_take(job, &b->rounds[i]);
        b->tokens += b->rounds[i].count;
        if (job->ended) end_job(b, places[i]);
    }
    if (count && waiting == count) set_aside(b, places, count);
    return code;
}

/* Answered with nothing. */
static void pass_over(batch *b, const fr_job_line *line) {
    b->lines[0] = *line;
    fr_job_pass_over(&b->jobs[0], &b->setting, line);
    end_job(b, 0);
}

/* Behind the last line that has an answer. */
static size_t behind_answers(const batch *b) {
    size_t last = b->input.total;
    while (last > b->begun && !b->kept.answers[last - 1]) last--;
    return last;
}

/* What is under way is answered with what there is of it. Other lines that have none yet, set aside or before kept
 * answers, are passed over: so every answer of the file has its line's place. */
static int stop_here(batch *b) {
    for (size_t place = 0; place < b->places; place++) {
        if (!b->jobs[place].setting) continue;
        fr_job_interrupt(&b->jobs[place]);
        end_job(b, place);
    }
    for (; b->aside_count; b->aside_count--) pass_over(b, &b->aside[b->aside_count - 1]);
    size_t last = behind_answers(b);
    for (fr_job_line line; b->begun < last && fr_batch_input_next(&b->input, &line); b->begun++)
        if (!is_kept(b, &line)) pass_over(b, &line);
    return write_answers(b);
}

static int run(batch *b) {
    size_t under_way = 1;
    int code = 0;
    while (!code && under_way && !fr_interrupt_came(NULL)) {
        fill(b);
        code = run_round(b, &under_way);
        if (!code) code = write_answers(b);
        show_progress(b);
    }
    if (!code) code = stop_here(b);
    fr_progress_end(&b->progress);
    for (size_t place = 0; place < b->places; place++)
        if (b->jobs[place].setting) fr_job_end(&b->jobs[place]);
    return code;
}

/* ------------------------------------------------------------------------------------------------------------- verb */

/* Of what is kept the first lines stay in the file, where they are. */
static int open_output(batch *b) {
    const char *path = b->setting.args->text[FR_ARG_OUT_FILE];
    bool resumes = b->setting.args->given[FR_ARG_RESUME];
    b->out = strcmp(path, "-") == 0 ? stdout : fopen(path, resumes ? "ab" : "wb");
    bool opened = b->out && (!resumes || ftruncate(fileno(b->out), b->kept.bytes) == 0);
    b->written = b->kept.first;
    return opened ? 0 : fr_bad_input("%s: %s", path, strerror(errno));
}

/* What the line that needs most needs, as generate would give it, or `usual`. Lines that can't be run ask for none. */
static int64_t longest(batch *b, int64_t usual) {
    size_t prompt;
    int64_t longest = usual, most;
    for (fr_job_line line; !fr_interrupt_came(NULL) && fr_batch_input_next(&b->input, &line);) {
        if (!fr_job_measure(&b->setting, &line, &prompt, &most)) continue;
        int64_t needed = fr_loaded_context(b->setting.loaded, b->setting.args, prompt, most);
        if (needed > longest && (int64_t)prompt <= needed) longest = needed;
    }
    fr_batch_input_rewind(&b->input);
    return longest;
}

static fr_status open_for(batch *b, int64_t context) {
    const fr_loaded *loaded = b->setting.loaded;
    fr_status status = fr_options_set(loaded->options, FR_OPT_CONTEXT, context);
    if (status != FR_OK) return status;
    return fr_engine_open(loaded->model, loaded->drafter, loaded->options, b->places, &b->setting.engine);
}

/* Where there is no memory for the longest line, the others still are run. */
static int open_engine(batch *b, fr_loaded *loaded) {
    const fr_arguments *args = b->setting.args;
    int code = fr_loaded_open_drafter(loaded, args);
    if (code) return code;
    fr_loaded_note_unused(loaded, args);
    int64_t usual = fr_loaded_context(loaded, args, 0, 0);
    int64_t context = args->given[FR_ARG_CONTEXT] ? usual : longest(b, usual);
    fr_status status = open_for(b, context);
    if (status != FR_OK && context > usual) status = open_for(b, usual);
    return fr_exit_status(status);
}

static void take_places(batch *b) {
    b->jobs = fr_resize(NULL, b->places, sizeof(*b->jobs));
    memset(b->jobs, 0, b->places * sizeof(*b->jobs));
    b->lines = fr_resize(NULL, b->places, sizeof(*b->lines));
    b->aside = fr_resize(NULL, b->places, sizeof(*b->aside));
    b->ids = fr_resize(NULL, b->places, sizeof(*b->ids));
    b->rounds = fr_resize(NULL, b->places, sizeof(*b->rounds));
}

static int read_input(batch *b) {
    const fr_arguments *args = b->setting.args;
    int code = fr_batch_input_open(&b->input, args->text[FR_ARG_FILE]);
    b->setting.file = b->input.name;
    b->kept.answers = fr_resize(NULL, b->input.total, sizeof(*b->kept.answers));
    memset(b->kept.answers, 0, b->input.total * sizeof(*b->kept.answers));
    if (code || !args->given[FR_ARG_RESUME]) return code;
    return fr_batch_kept_read(&b->kept, args->text[FR_ARG_OUT_FILE], &b->input);
}

static void close_batch(batch *b) {
    for (size_t i = 0; b->kept.answers && i < b->input.total; i++) free(b->kept.answers[i]);
    if (b->out && b->out != stdout) fclose(b->out);
    fr_engine_close(b->setting.engine);
    fr_batch_input_close(&b->input);
    free(b->jobs);
    free(b->lines);
    free(b->aside);
    free(b->ids);
    free(b->rounds);
    free(b->kept.answers);
}

/* Standard output can't be gone on with. */
static void note_interrupt(const batch *b) {
    const fr_arguments *args = b->setting.args;
    const char *path = args->text[FR_ARG_OUT_FILE];
    if (!fr_interrupt_came(NULL) || args->given[FR_ARG_QUIET] || strcmp(path, "-") == 0) return;
    fr_note("interrupted: %s has the answers to %zu of %zu lines; the same command with --resume goes on from there",
            path, b->written - b->failed - b->cut, b->input.total);
}

static int run_batch(batch *b, fr_loaded *loaded) {
    const fr_arguments *args = b->setting.args;
    const char *path = args->text[FR_ARG_OUT_FILE];
    /* It takes signals over, so it comes first. */
    int code = args->given[FR_ARG_RESUME] ? fr_batch_kept_save(&b->kept, b->input.total, path) : 0;
    if (code) return code;
    fr_interrupt_watch();
    code = open_engine(b, loaded);
    if (!code) code = open_output(b);
    if (code) return code;
    if (!args->given[FR_ARG_RESUME]) fr_batch_kept_drop(path);
    take_places(b);
    code = run(b);
    /* All of it is in the file again: on the disk. */
    if (!code && args->given[FR_ARG_RESUME] && fsync(fileno(b->out)) == 0) fr_batch_kept_drop(path);
    return code;
}

int fr_verb_batch(const fr_arguments *args) {
    fr_loaded loaded = {0};
    batch b = {.setting = {.args = args, .loaded = &loaded}, .places = USUAL_JOBS};
    if (args->given[FR_ARG_PARALLEL]) b.places = (size_t)args->number[FR_ARG_PARALLEL];
    if (b.places == 1 && args->given[FR_ARG_KV_MEMORY])
        return fr_wrong_usage("--kv-memory is for lines that share it: -np 2 or more");
    int code = read_input(&b);
    if (!code) code = fr_loaded_open(&loaded, args);
    b.progress = fr_progress_begin("running", args->given[FR_ARG_QUIET]);
    if (!code) code = run_batch(&b, &loaded);
    if (!code) note_interrupt(&b);
    close_batch(&b);
    fr_loaded_close(&loaded);
    if (!code) fr_interrupt_repeat();
    if (!code && b.failed)
        return fr_bad_input("%zu of %zu lines could not be run: each has its \"error\"", b.failed, b.input.total);
    return code;
}
