/* forerun batch: many prompts from a file, several at once in one forward; their answers to a file, in the same
 * order. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "interrupt.h"
#include "job.h"
#include "verbs.h"

enum { USUAL_JOBS = 4 };

/* A line of the file, and which. */
typedef struct batch_line {
    const char *text;
    size_t length, number;
} batch_line;

typedef struct batch {
    fr_job_setting setting;
    fr_prompt input; /* the file's bytes */
    size_t at;       /* of them have been read */
    fr_job *jobs;    /* [places] */
    batch_line *lines; /* [places] theirs */
    batch_line *aside; /* [aside_count] lines that were begun and must begin again, the first of them last */
    size_t aside_count;
    bool crowded; /* there were not pages enough for all: none begins before one has ended */
    int32_t (*ids)[FR_STEP_MAX];
    fr_round *rounds;
    size_t places;
    char **answers; /* [total] NULL: not there yet, or written */
    size_t total, begun, done, written, failed;
    size_t tokens;
    FILE *out;
    fr_progress progress;
} batch;

/* ---------------------------------------------------------------------------------------------------------- reading */

/* Bytes that are no text, NUL among them, are for the reader of JSON to refuse. */
static bool is_blank(const char *line, size_t length) {
    enum { BLANKS = 3 };
    while (length && memchr(" \t\r", line[length - 1], BLANKS)) length--;
    return length == 0;
}

/* The next line that is not empty; NULL: there is none. */
static const char *next_line(batch *b, size_t *length) {
    while (b->at < b->input.length) {
        const char *line = b->input.bytes + b->at, *end = memchr(line, '\n', b->input.length - b->at);
        *length = end ? (size_t)(end - line) : b->input.length - b->at;
        b->at += *length + 1;
        if (!is_blank(line, *length)) return line;
    }
    return NULL;
}

static void count_lines(batch *b) {
    size_t length;
    while (next_line(b, &length)) b->total++;
    b->at = 0;
}

/* What is to be begun next; false: nothing. */
static bool take_line(batch *b, batch_line *line) {
    if (b->crowded) return false;
    if (b->aside_count) {
        *line = b->aside[--b->aside_count];
        return true;
    }
    line->text = next_line(b, &line->length);
    if (line->text) line->number = b->begun++;
    return line->text != NULL;
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
    fr_progress_count(&b->progress, b->done, b->total, b->total == 1 ? "line" : "lines", so_far);
}

/* Those whose turn has come; with `all` those behind a line without an answer as well. */
static int write_answers(batch *b, bool all) {
    for (; b->written < b->begun && (all || b->answers[b->written]); b->written++) {
        char **answer = &b->answers[b->written];
        if (*answer) fprintf(b->out, "%s\n", *answer);
        free(*answer);
        *answer = NULL;
    }
    if (fflush(b->out) == 0) return 0;
    return fr_bad_input("%s: %s", b->setting.args->text[FR_ARG_OUT_FILE], strerror(errno));
}

static void end_job(batch *b, size_t place) {
    fr_job *job = &b->jobs[place];
    b->answers[b->lines[place].number] = fr_job_answer(job);
    b->crowded = false;
    b->failed += job->error[0] != '\0';
    b->done++;
    fr_job_end(job);
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

/* Lines for all places that are free; those that can't be run are answered at once. */
static void fill(batch *b) {
    for (size_t place = 0; place < b->places; place++) {
        batch_line *line = &b->lines[place];
        while (!b->jobs[place].setting && take_line(b, line)) {
            fr_job_begin(&b->jobs[place], &b->setting, line->text, line->length);
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

/* What is under way is answered with what there is of it. */
static int stop_here(batch *b) {
    for (size_t place = 0; place < b->places; place++) {
        if (!b->jobs[place].setting) continue;
        fr_job_interrupt(&b->jobs[place]);
        end_job(b, place);
    }
    return write_answers(b, true);
}

static int run(batch *b) {
    size_t under_way = 1;
    int code = 0;
    while (!code && under_way && !fr_interrupt_came(NULL)) {
        fill(b);
        code = run_round(b, &under_way);
        if (!code) code = write_answers(b, false);
        show_progress(b);
    }
    if (!code) code = stop_here(b);
    fr_progress_end(&b->progress);
    for (size_t place = 0; place < b->places; place++)
        if (b->jobs[place].setting) fr_job_end(&b->jobs[place]);
    return code;
}

/* ------------------------------------------------------------------------------------------------------------- verb */

static int open_output(batch *b) {
    const char *path = b->setting.args->text[FR_ARG_OUT_FILE];
    b->out = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    return b->out ? 0 : fr_bad_input("%s: %s", path, strerror(errno));
}

/* What the line that needs most needs, as generate would give it, or `usual`. Lines that can't be run ask for none. */
static int64_t longest(batch *b, int64_t usual) {
    size_t length, prompt;
    int64_t longest = usual, most;
    for (const char *line; !fr_interrupt_came(NULL) && (line = next_line(b, &length));) {
        if (!fr_job_measure(&b->setting, line, length, &prompt, &most)) continue;
        int64_t needed = fr_loaded_context(b->setting.loaded, b->setting.args, prompt, most);
        if (needed > longest && (int64_t)prompt <= needed) longest = needed;
    }
    b->at = 0;
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
    b->answers = fr_resize(NULL, b->total, sizeof(*b->answers));
    memset(b->answers, 0, b->total * sizeof(*b->answers));
}

static void close_batch(batch *b) {
    for (size_t i = 0; b->answers && i < b->total; i++) free(b->answers[i]);
    if (b->out && b->out != stdout) fclose(b->out);
    fr_engine_close(b->setting.engine);
    fr_prompt_free(&b->input);
    free(b->jobs);
    free(b->lines);
    free(b->aside);
    free(b->ids);
    free(b->rounds);
    free(b->answers);
}

static int run_batch(batch *b, fr_loaded *loaded) {
    fr_interrupt_watch();
    int code = open_engine(b, loaded);
    if (!code) code = open_output(b);
    if (code) return code;
    take_places(b);
    return run(b);
}

int fr_verb_batch(const fr_arguments *args) {
    fr_loaded loaded = {0};
    batch b = {.setting = {.args = args, .loaded = &loaded}, .places = USUAL_JOBS};
    if (args->given[FR_ARG_PARALLEL]) b.places = (size_t)args->number[FR_ARG_PARALLEL];
    if (b.places == 1 && args->given[FR_ARG_KV_MEMORY])
        return fr_wrong_usage("--kv-memory is for lines that share it: -np 2 or more");
    int code = fr_prompt_read_file(&b.input, args->text[FR_ARG_FILE]);
    if (!code) code = fr_loaded_open(&loaded, args);
    count_lines(&b);
    b.progress = fr_progress_begin("running", args->given[FR_ARG_QUIET]);
    if (!code) code = run_batch(&b, &loaded);
    close_batch(&b);
    fr_loaded_close(&loaded);
    if (!code) fr_interrupt_repeat();
    if (!code && b.failed)
        return fr_bad_input("%zu of %zu lines could not be run: each has its \"error\"", b.failed, b.total);
    return code;
}
