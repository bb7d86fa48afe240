/* Implements forerun batch: runs the prompts of a file, and writes their answers to another file in the same order.
 * Each forward runs several prompts at once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/batch_kept.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/verbs.h"
#include "tools/jobs/job_places.h"

enum { USUAL_JOBS = 4 };

typedef struct batch {
    fr_job_places places;
    /* kept.answers: [input.total] the answer to each line, from an earlier run or from this run; NULL: there is no
     * answer yet, or it was already written */
    fr_batch_kept kept;
    /* done: number of lines that have ended. written: number of answers that were written. failed: number of lines that
     * could not be run.
     * cut: number of texts that an interrupt cut off */
    size_t done, written, failed, cut;
    /* the note that a prompt begins with the same token twice was already printed, and is not printed again */
    bool told_doubled;
    FILE *out;
    fr_progress progress;
} batch;

/* ---------------------------------------------------------------------------------------------------------- reading */

/* Returns true if an earlier run has answered the line. */
static bool is_kept(const batch *b, const fr_job_line *line) {
    return line->number < b->kept.first || b->kept.answers[line->number];
}

static bool needs(void *owner, const fr_job_line *line) {
    batch *b = owner;
    bool kept = is_kept(b, line);
    b->done += kept;
    return !kept;
}

/* ---------------------------------------------------------------------------------------------------------- answers */

static void show_progress(batch *b) {
    char so_far[96];
    size_t waiting = 0; /* number of prompt ids that must still be run */
    for (size_t place = 0; place < b->places.count; place++)
        if (b->places.jobs[place].setting) waiting += fr_session_waiting(b->places.jobs[place].session);
    int length = snprintf(so_far, sizeof(so_far), ", %zu tokens", b->places.tokens);
    if (waiting) snprintf(so_far + length, sizeof(so_far) - (size_t)length, ", %zu of prompts to read", waiting);
    size_t total = b->places.input.total;
    fr_progress_count(&b->progress, b->done, total, total == 1 ? "line" : "lines", so_far);
}

/* Writes the answers that come next in the order of lines. The results of both fprintf and fflush are checked. If a
 * write fails within fprintf, fflush has nothing left to write and reports no error. */
static int write_answers(batch *b) {
    bool failed = false;
    for (; !failed && b->written < b->places.begun && b->kept.answers[b->written]; b->written++) {
        char **answer = &b->kept.answers[b->written];
        failed = fprintf(b->out, "%s\n", *answer) < 0;
        free(*answer);
        *answer = NULL;
    }
    if (!failed && fflush(b->out) == 0) return 0;
    return fr_bad_input("%s: %s", b->places.setting.args->text[FR_ARG_OUT_FILE], strerror(errno));
}

static void end_job(void *owner, size_t place) {
    batch *b = owner;
    fr_job *job = &b->places.jobs[place];
    b->kept.answers[b->places.lines[place].number] = fr_job_answer(job);
    if (job->doubled && !b->told_doubled && !b->places.setting.args->given[FR_ARG_QUIET]) {
        fr_note("%s:%zu: " FR_DOUBLED_NOTE, b->places.setting.file, job->row, job->doubled);
        b->told_doubled = true;
    }
    b->failed += job->error[0] != '\0';
    b->cut += !job->error[0] && job->reply.end == FR_END_INTERRUPT;
    b->done++;
    fr_job_end(job);
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

/* Answers a line that is not run, because the batch was interrupted. */
static void pass_over(batch *b, const fr_job_line *line) {
    b->places.lines[0] = *line;
    fr_job_pass_over(&b->places.jobs[0], &b->places.setting, line);
    end_job(b, 0);
}

/* Stops the batch after an interrupt. Lines that are being run are answered with their text so far. Lines that were
 * swapped out are answered without a text. A line that was not begun, but comes before a line with a kept answer, is
 * answered without a text too, because answers are written in the order of lines. */
static int stop_here(batch *b) {
    for (size_t place = 0; place < b->places.count; place++) {
        if (!b->places.jobs[place].setting) continue;
        fr_job_interrupt(&b->places.jobs[place]);
        end_job(b, place);
    }
    for (; b->places.aside_count; b->places.aside_count--) pass_over(b, &b->places.aside[b->places.aside_count - 1]);
    size_t last = b->places.input.total; /* number of lines up to and including the last line that has an answer */
    while (last > b->places.begun && !b->kept.answers[last - 1]) last--;
    for (fr_job_line line; b->places.begun < last && fr_batch_input_next(&b->places.input, &line); b->places.begun++)
        if (!is_kept(b, &line)) pass_over(b, &line);
    return write_answers(b);
}

static int run(batch *b) {
    size_t under_way = 1;
    int code = 0;
    while (!code && under_way && !fr_interrupt_came(NULL)) {
        fr_job_places_fill(&b->places);
        code = fr_job_places_round(&b->places, &under_way);
        if (!code) code = write_answers(b);
        show_progress(b);
    }
    if (!code) code = stop_here(b);
    fr_progress_end(&b->progress);
    fr_job_places_end(&b->places);
    return code;
}

/* ------------------------------------------------------------------------------------------------------------- verb */

/* Opens the output file. If the run resumes, the file keeps those answers at its beginning that are still valid. */
static int open_output(batch *b) {
    const char *path = b->places.setting.args->text[FR_ARG_OUT_FILE];
    bool resumes = b->places.setting.args->given[FR_ARG_RESUME];
    b->out = strcmp(path, "-") == 0 ? stdout : fopen(path, resumes ? "ab" : "wb");
    bool opened = b->out && (!resumes || ftruncate(fileno(b->out), b->kept.bytes) == 0);
    b->written = b->kept.first;
    return opened ? 0 : fr_bad_input("%s: %s", path, strerror(errno));
}

static fr_status open_for(batch *b, int64_t context) {
    const fr_loaded *loaded = b->places.setting.loaded;
    fr_status status = fr_options_set(loaded->options, FR_OPT_CONTEXT, context);
    if (status != FR_OK) return status;
    return fr_engine_open(loaded->model, loaded->drafter, loaded->options, b->places.count, &b->places.setting.engine);
}

/* Opens the engine. If the memory does not suffice for the longest line, the engine gets a smaller context. Then only
 * the lines that fit into this context are run. */
static int open_engine(batch *b, fr_loaded *loaded) {
    int64_t usual, context;
    int code = fr_job_places_context(&b->places, loaded, &usual, &context);
    if (code) return code;
    fr_status status = open_for(b, context);
    if (status != FR_OK && context > usual) status = open_for(b, usual);
    return fr_exit_status(status);
}

static int read_input(batch *b) {
    const fr_arguments *args = b->places.setting.args;
    int code = fr_job_places_read(&b->places, args);
    b->kept.answers = fr_resize(NULL, b->places.input.total, sizeof(*b->kept.answers));
    memset(b->kept.answers, 0, b->places.input.total * sizeof(*b->kept.answers));
    if (code || !args->given[FR_ARG_RESUME]) return code;
    return fr_batch_kept_read(&b->kept, args->text[FR_ARG_OUT_FILE], &b->places.input);
}

/* After an interrupt, prints a note that says how to resume. Answers on standard output can't be resumed, so there is
 * no note for them. */
static void note_interrupt(const batch *b) {
    const fr_arguments *args = b->places.setting.args;
    const char *path = args->text[FR_ARG_OUT_FILE];
    if (!fr_interrupt_came(NULL) || args->given[FR_ARG_QUIET] || strcmp(path, "-") == 0) return;
    fr_note("interrupted: %s has the answers to %zu of %zu lines; the same command with --resume goes on from there",
            path, b->written - b->failed - b->cut, b->places.input.total);
}

static int run_batch(batch *b, fr_loaded *loaded) {
    const fr_arguments *args = b->places.setting.args;
    const char *path = args->text[FR_ARG_OUT_FILE];
    /* fr_batch_kept_save is called before fr_interrupt_watch, because it sets signal handlers of its own.
     * fr_interrupt_watch must replace them */
    int code = args->given[FR_ARG_RESUME] ? fr_batch_kept_save(&b->kept, b->places.input.total, path) : 0;
    if (code) return code;
    fr_interrupt_watch();
    code = open_engine(b, loaded);
    if (!code) code = open_output(b);
    if (code) return code;
    if (!args->given[FR_ARG_RESUME]) fr_batch_kept_drop(path);
    fr_job_places_take(&b->places);
    code = run(b);
    /* all answers are on the disk now, so OUT.before is no longer needed */
    if (!code && args->given[FR_ARG_RESUME] && fsync(fileno(b->out)) == 0) fr_batch_kept_drop(path);
    return code;
}

int fr_verb_batch(const fr_arguments *args) {
    fr_loaded loaded = {0};
    batch b = {.places = {.setting = {.args = args, .loaded = &loaded},
                          .count = USUAL_JOBS,
                          .owner = &b,
                          .needs = needs,
                          .ended = end_job}};
    if (args->given[FR_ARG_PARALLEL]) b.places.count = (size_t)args->number[FR_ARG_PARALLEL];
    if (b.places.count == 1 && args->given[FR_ARG_KV_MEMORY])
        return fr_wrong_usage("--kv-memory is for lines that share it: -np 2 or more");
    int code = read_input(&b);
    if (!code) code = fr_loaded_open(&loaded, args);
    b.progress = fr_progress_begin("running", args->given[FR_ARG_QUIET]);
    if (!code) code = run_batch(&b, &loaded);
    if (!code) note_interrupt(&b);
    for (size_t i = 0; b.kept.answers && i < b.places.input.total; i++) free(b.kept.answers[i]);
    if (b.out && b.out != stdout) fclose(b.out);
    fr_job_places_close(&b.places);
    free(b.kept.answers);
    fr_loaded_close(&loaded);
    if (!code) fr_interrupt_repeat();
    return !code && b.failed ? fr_job_places_failed(&b.places, b.failed) : code;
}
