/* Implements forerun features, which collects data for the training of drafters. It answers the prompts of a file,
 * several at once, as batch does. Then it runs each text, which is a prompt and its answer, through the model once
 * more. For each id of the text it writes the inputs of some layers to a folder (features_folder.h). Texts are written
 * in the order of their lines, so the same command writes the same bytes for any -np, threads or drafter. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/features_folder.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/verbs.h"
#include "tools/jobs/job_places.h"

enum { USUAL_JOBS = 4 };

/* The text of a line. It is stored here until the texts of all earlier lines are written. */
typedef struct answered {
    char *line; /* the text's line for the index; NULL: the text is not complete yet */
    int32_t *ids;
    size_t count; /* number of ids; 0: the prompt could not be run */
} answered;

typedef struct features {
    fr_job_places places;
    fr_features_kind kind;
    fr_features_folder folder;
    fr_session *session; /* session in which the texts are run a second time */
    answered *texts;     /* [input.total] */
    size_t failed;
    fr_progress progress;
} features;

/* ------------------------------------------------------------------------------------------------------------ texts */

/* Stores the ids of a complete text, and its line for the index. The line does not yet have the position of the text's
 * rows, which is known only when the text is written. */
static void end_job(void *owner, size_t place) {
    features *f = owner;
    fr_job *job = &f->places.jobs[place];
    answered *text = &f->texts[f->places.lines[place].number];
    json_t *rest = json_object();
    if (job->error[0]) {
        fr_json_put(rest, "error", fr_json_bytes(job->error, strlen(job->error)));
        f->failed++;
    } else {
        text->count = job->prompt.count + job->reply.count;
        text->ids = fr_resize(NULL, text->count, sizeof *text->ids);
        memcpy(text->ids, job->prompt.ids, job->prompt.count * sizeof *text->ids);
        if (job->reply.count)
            memcpy(text->ids + job->prompt.count, job->reply.ids, job->reply.count * sizeof *text->ids);
        fr_json_put(rest, "prompt", json_integer((json_int_t)job->prompt.count));
        fr_json_put(rest, "stop", json_string(fr_end_name(job->reply.end)));
        json_t *ids = json_array();
        for (size_t i = 0; i < text->count; i++) json_array_append_new(ids, json_integer(text->ids[i]));
        fr_json_put(rest, "ids", ids);
    }
    char begin[64];
    snprintf(begin, sizeof begin, "{\"line\":%zu,\"id\":", f->places.lines[place].number);
    text->line = fr_job_behind_id(begin, job->id, rest);
    json_decref(rest);
    fr_job_end(job);
}

/* Adds "at", the position of the text's rows, to the text's line in the index. The caller frees the result. */
static char *with_place(const char *line, uint64_t at) {
    size_t length = strlen(line), size = length + 64;
    char *placed = fr_resize(NULL, size, 1);
    snprintf(placed, size, "%.*s,\"at\":%llu}", (int)length - 1, line, (unsigned long long)at);
    return placed;
}

/* Writes all complete texts that come next in the order of the lines. */
static int write_texts(features *f) {
    int code = 0;
    while (!code && f->folder.texts < f->places.begun && f->texts[f->folder.texts].line) {
        answered *text = &f->texts[f->folder.texts];
        if (text->count) {
            fr_status status = fr_session_rows(f->session, text->ids, text->count, f->kind.layers, f->kind.layer_count,
                                               fr_features_take, &f->folder);
            bool told = status != FR_OK && f->folder.line[0];
            code = told ? fr_bad_input("%s/%s", f->folder.path, f->folder.line) : fr_exit_status(status);
        }
        char *line = text->count ? with_place(text->line, f->folder.row_count) : strdup(text->line);
        if (!line) return fr_bad_input("out of memory: a line of the index");
        if (!code) code = fr_features_end_text(&f->folder, line, text->count);
        free(line);
        free(text->line);
        free(text->ids);
        *text = (answered){0};
    }
    return code;
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

static bool needs(void *owner, const fr_job_line *line) {
    const features *f = owner;
    return line->number >= f->folder.texts;
}

static int run(features *f) {
    size_t under_way = 1;
    int code = 0;
    while (!code && under_way && !fr_interrupt_came(NULL)) {
        fr_job_places_fill(&f->places);
        code = fr_job_places_round(&f->places, &under_way);
        if (!code) code = write_texts(f);
        char so_far[96];
        snprintf(so_far, sizeof so_far, ", %llu rows", (unsigned long long)f->folder.row_count);
        fr_progress_count(&f->progress, f->folder.texts, f->places.input.total, "lines", so_far);
    }
    fr_progress_end(&f->progress);
    fr_job_places_end(&f->places);
    return code;
}

/* ------------------------------------------------------------------------------------------------------------- verb */

/* Chooses the layers whose inputs are written. The default is an early, a middle and a late layer, as EAGLE-3's
 * drafters use them. The output of the last layer, before the final norm, is written too. */
static int choose_layers(features *f) {
    const fr_arguments *args = f->places.setting.args;
    const fr_model *model = f->places.setting.loaded->model;
    int64_t layers = fr_model_fact(model, FR_FACT_LAYERS), asked[FR_ROWS_LAYERS_MAX + 1];
    size_t count = fr_arguments_numbers(args, FR_ARG_TAPS, asked, FR_ROWS_LAYERS_MAX + 1);
    f->kind = (fr_features_kind){.hidden = fr_model_fact(model, FR_FACT_HIDDEN),
                                 .vocab = fr_model_fact(model, FR_FACT_VOCAB),
                                 .model_layers = layers};
    if (!count && layers < 3) return fr_wrong_usage("the model has %d layers: name some with --taps", (int)layers);
    if (!count) {
        const int64_t usual[] = {2, layers / 2, layers - 3, layers};
        count = sizeof usual / sizeof *usual;
        memcpy(asked, usual, sizeof usual);
    }
    if (count > FR_ROWS_LAYERS_MAX) return fr_wrong_usage("--taps: at most %d layers", FR_ROWS_LAYERS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (asked[i] > layers)
            return fr_bad_input("--taps: layer %d is beyond the model's %d", (int)asked[i], (int)layers);
        f->kind.layers[i] = (size_t)asked[i];
    }
    f->kind.layer_count = count;
    return 0;
}

/* Opens the engine. It has one session more than the number of texts that are run at once. The texts are run a second
 * time in this last session. The engine has no drafter, because a drafter would need memory and rows of its own. */
static int open_engine(features *f, fr_loaded *loaded) {
    int64_t usual, context;
    int code = fr_job_places_context(&f->places, loaded, &usual, &context);
    if (code) return code;
    fr_status status = fr_options_set(loaded->options, FR_OPT_CONTEXT, context);
    if (status == FR_OK)
        status = fr_engine_open(loaded->model, loaded->drafter, loaded->options, f->places.count + 1,
                                &f->places.setting.engine);
    fr_options *plain = status == FR_OK ? fr_options_new() : NULL;
    if (status == FR_OK && !plain) return fr_bad_input("out of memory: options");
    if (status == FR_OK) status = fr_options_set_text(plain, FR_OPT_SPEC_TYPE, "none");
    if (status == FR_OK) status = fr_engine_session(f->places.setting.engine, plain, &f->session);
    if (status == FR_OK) status = fr_adapters_use(&loaded->adapters, NULL, f->session);
    fr_options_free(plain);
    return fr_exit_status(status);
}

static void close_features(features *f) {
    for (size_t i = 0; f->texts && i < f->places.input.total; i++) {
        free(f->texts[i].line);
        free(f->texts[i].ids);
    }
    fr_features_close(&f->folder);
    fr_session_close(f->session);
    fr_job_places_close(&f->places);
    free(f->texts);
}

static int run_features(features *f, fr_loaded *loaded) {
    const fr_arguments *args = f->places.setting.args;
    const char *path = args->text[FR_ARG_OUT_FILE];
    int code = choose_layers(f);
    if (!code) code = fr_features_open(&f->folder, path, &f->kind, args->given[FR_ARG_RESUME], f->places.input.total);
    fr_interrupt_watch();
    if (!code) code = open_engine(f, loaded);
    if (code) return code;
    fr_job_places_take(&f->places);
    f->texts = fr_resize(NULL, f->places.input.total, sizeof(*f->texts));
    memset(f->texts, 0, f->places.input.total * sizeof(*f->texts));
    code = run(f);
    if (!code && fr_interrupt_came(NULL) && !args->given[FR_ARG_QUIET])
        fr_note("interrupted: %s has %zu of %zu texts; the same command with --resume goes on from there", path,
                f->folder.texts, f->places.input.total);
    return code;
}

int fr_verb_features(const fr_arguments *args) {
    fr_loaded loaded = {0};
    features f = {.places = {.setting = {.args = args, .loaded = &loaded},
                             .count = USUAL_JOBS,
                             .owner = &f,
                             .needs = needs,
                             .ended = end_job}};
    if (args->given[FR_ARG_PARALLEL]) f.places.count = (size_t)args->number[FR_ARG_PARALLEL];
    /* one session must stay free for the second run of the texts */
    if (f.places.count == FR_SESSIONS_MAX) f.places.count--;
    int code = fr_job_places_read(&f.places, args);
    if (!code) code = fr_loaded_open(&loaded, args);
    f.progress = fr_progress_begin("running", args->given[FR_ARG_QUIET]);
    if (!code) code = run_features(&f, &loaded);
    close_features(&f);
    fr_loaded_close(&loaded);
    if (!code) fr_interrupt_repeat();
    return !code && f.failed ? fr_job_places_failed(&f.places, f.failed) : code;
}
