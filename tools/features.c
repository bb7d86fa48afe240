/* forerun features: what drafters are trained on. Prompts from a file are answered as batch answers them, several at
 * once; then each text is run through the model once more, and what some of its layers were given for each id goes to a
 * folder (features_folder.h). Texts get there in the order of their lines, so the same command writes the same bytes
 * whatever -np, threads or drafter it has. */
#include <stdlib.h>
#include <string.h>

#include "batch_input.h"
#include "features_folder.h"
#include "interrupt.h"
#include "verbs.h"

enum { USUAL_JOBS = 4 };

/* A line that has been answered and waits for its turn. */
typedef struct answered {
    char *line; /* of the index; NULL: it is not there yet */
    int32_t *ids;
    size_t count; /* 0: it could not be run */
} answered;

typedef struct features {
    fr_job_setting setting;
    fr_batch_input input;
    fr_features_kind kind;
    fr_features_folder folder;
    fr_session *session; /* that texts are run through once more */
    fr_job *jobs;        /* [places] */
    fr_job_line *lines;  /* [places] theirs */
    answered *texts;     /* [input.total] */
    int32_t (*ids)[FR_STEP_MAX];
    fr_round *rounds;
    size_t places, begun, failed;
    fr_progress progress;
} features;

/* ------------------------------------------------------------------------------------------------------------ texts */

static void put_ids(json_t *line, const answered *text) {
    json_t *ids = json_array();
    for (size_t i = 0; i < text->count; i++) json_array_append_new(ids, json_integer(text->ids[i]));
    fr_json_put(line, "ids", ids);
}

/* {"line":..., "id":... and the members of the rest, at least one: an id stays as it was written. */
static char *index_line(size_t number, const char *id, const json_t *rest) {
    char *members = fr_json_line(rest), begin[64];
    snprintf(begin, sizeof begin, "{\"line\":%zu,\"id\":", number);
    size_t size = strlen(begin) + strlen(id) + strlen(members) + sizeof(",");
    char *line = fr_resize(NULL, size, 1);
    snprintf(line, size, "%s%s,%s", begin, id, members + 1);
    free(members);
    return line;
}

/* Of an answer the ids of its whole text stay; where its rows begin is said once its turn has come. */
static void end_job(features *f, size_t place) {
    fr_job *job = &f->jobs[place];
    answered *text = &f->texts[f->lines[place].number];
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
        put_ids(rest, text);
    }
    text->line = index_line(f->lines[place].number, job->id ? job->id : "null", rest);
    json_decref(rest);
    fr_job_end(job);
}

/* The line with "at" in it, before the brace that ends it; free. */
static char *with_place(const char *line, uint64_t at) {
    size_t length = strlen(line), size = length + 64;
    char *placed = fr_resize(NULL, size, 1);
    snprintf(placed, size, "%.*s,\"at\":%llu}", (int)length - 1, line, (unsigned long long)at);
    return placed;
}

static int run_text(features *f, const answered *text) {
    fr_status status = fr_session_rows(f->session, text->ids, text->count, f->kind.layers, f->kind.layer_count,
                                       fr_features_take, &f->folder);
    if (status != FR_OK && f->folder.line[0]) return fr_bad_input("%s/%s", f->folder.path, f->folder.line);
    return fr_exit_status(status);
}

/* Texts whose turn has come. */
static int write_texts(features *f) {
    int code = 0;
    while (!code && f->folder.texts < f->begun && f->texts[f->folder.texts].line) {
        answered *text = &f->texts[f->folder.texts];
        if (text->count) code = run_text(f, text);
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

static bool take_line(features *f, fr_job_line *line) {
    while (fr_batch_input_next(&f->input, line)) {
        f->begun++;
        if (line->number >= f->folder.texts) return true;
    }
    return false;
}

static void fill(features *f) {
    for (size_t place = 0; place < f->places; place++)
        while (!f->jobs[place].setting && take_line(f, &f->lines[place])) {
            fr_job_begin(&f->jobs[place], &f->setting, &f->lines[place]);
            if (f->jobs[place].ended) end_job(f, place);
        }
}

static int run_round(features *f, size_t *under_way) {
    size_t count = 0, places[FR_SESSIONS_MAX];
    for (size_t place = 0; place < f->places; place++) {
        if (!f->jobs[place].setting) continue;
        places[count] = place;
        f->rounds[count] = fr_job_round(&f->jobs[place], f->ids[count]);
        count++;
    }
    *under_way = count;
    int code = count ? fr_exit_status(fr_engine_step(f->setting.engine, f->rounds, count)) : 0;
    for (size_t i = 0; i < count && !code; i++) {
        fr_job_take(&f->jobs[places[i]], &f->rounds[i]);
        if (f->jobs[places[i]].ended) end_job(f, places[i]);
    }
    return code;
}

static void show_progress(features *f) {
    char so_far[96];
    snprintf(so_far, sizeof so_far, ", %llu rows", (unsigned long long)f->folder.row_count);
    fr_progress_count(&f->progress, f->folder.texts, f->input.total, "lines", so_far);
}

static int run(features *f) {
    size_t under_way = 1;
    int code = 0;
    while (!code && under_way && !fr_interrupt_came(NULL)) {
        fill(f);
        code = run_round(f, &under_way);
        if (!code) code = write_texts(f);
        show_progress(f);
    }
    fr_progress_end(&f->progress);
    for (size_t place = 0; place < f->places; place++)
        if (f->jobs[place].setting) fr_job_end(&f->jobs[place]);
    return code;
}

/* ------------------------------------------------------------------------------------------------------------- verb */

/* Early, middle and late, as EAGLE-3's drafters see a model, and what its head is given but for the norm. */
static int choose_layers(features *f) {
    const fr_arguments *args = f->setting.args;
    const fr_model *model = f->setting.loaded->model;
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

/* What the line that needs most needs, or `usual`. Lines that can't be run ask for none. */
static int64_t longest(features *f, int64_t usual) {
    size_t prompt;
    int64_t longest = usual, most;
    for (fr_job_line line; !fr_interrupt_came(NULL) && fr_batch_input_next(&f->input, &line);) {
        if (!fr_job_measure(&f->setting, &line, &prompt, &most)) continue;
        int64_t needed = fr_loaded_context(f->setting.loaded, f->setting.args, prompt, most);
        if (needed > longest && (int64_t)prompt <= needed) longest = needed;
    }
    fr_batch_input_rewind(&f->input);
    return longest;
}

/* One session more than texts under way: that which they are run through once more, without a drafter that would want
 * rows of its own. */
static int open_engine(features *f, fr_loaded *loaded) {
    const fr_arguments *args = f->setting.args;
    int code = fr_loaded_open_drafter(loaded, args);
    if (code) return code;
    fr_loaded_note_unused(loaded, args);
    int64_t usual = fr_loaded_context(loaded, args, 0, 0);
    int64_t context = args->given[FR_ARG_CONTEXT] ? usual : longest(f, usual);
    fr_status status = fr_options_set(loaded->options, FR_OPT_CONTEXT, context);
    if (status == FR_OK)
        status = fr_engine_open(loaded->model, loaded->drafter, loaded->options, f->places + 1, &f->setting.engine);
    fr_options *plain = status == FR_OK ? fr_options_new() : NULL;
    if (status == FR_OK && !plain) return fr_bad_input("out of memory: options");
    if (status == FR_OK) status = fr_options_set_text(plain, FR_OPT_SPEC_TYPE, "none");
    if (status == FR_OK) status = fr_engine_session(f->setting.engine, plain, &f->session);
    fr_options_free(plain);
    return fr_exit_status(status);
}

static void take_places(features *f) {
    f->jobs = fr_resize(NULL, f->places, sizeof(*f->jobs));
    memset(f->jobs, 0, f->places * sizeof(*f->jobs));
    f->lines = fr_resize(NULL, f->places, sizeof(*f->lines));
    f->ids = fr_resize(NULL, f->places, sizeof(*f->ids));
    f->rounds = fr_resize(NULL, f->places, sizeof(*f->rounds));
    f->texts = fr_resize(NULL, f->input.total, sizeof(*f->texts));
    memset(f->texts, 0, f->input.total * sizeof(*f->texts));
}

static void close_features(features *f) {
    for (size_t i = 0; f->texts && i < f->input.total; i++) {
        free(f->texts[i].line);
        free(f->texts[i].ids);
    }
    fr_features_close(&f->folder);
    fr_session_close(f->session);
    fr_engine_close(f->setting.engine);
    fr_batch_input_close(&f->input);
    free(f->jobs);
    free(f->lines);
    free(f->ids);
    free(f->rounds);
    free(f->texts);
}

static int run_features(features *f, fr_loaded *loaded) {
    const fr_arguments *args = f->setting.args;
    const char *path = args->text[FR_ARG_OUT_FILE];
    int code = choose_layers(f);
    if (!code) code = fr_features_open(&f->folder, path, &f->kind, args->given[FR_ARG_RESUME], f->input.total);
    fr_interrupt_watch();
    if (!code) code = open_engine(f, loaded);
    if (code) return code;
    take_places(f);
    code = run(f);
    if (!code && fr_interrupt_came(NULL) && !args->given[FR_ARG_QUIET])
        fr_note("interrupted: %s has %zu of %zu texts; the same command with --resume goes on from there", path,
                f->folder.texts, f->input.total);
    return code;
}

int fr_verb_features(const fr_arguments *args) {
    fr_loaded loaded = {0};
    features f = {.setting = {.args = args, .loaded = &loaded}, .places = USUAL_JOBS};
    if (args->given[FR_ARG_PARALLEL]) f.places = (size_t)args->number[FR_ARG_PARALLEL];
    if (f.places == FR_SESSIONS_MAX) f.places--; /* one is for the rows */
    int code = fr_batch_input_open(&f.input, args->text[FR_ARG_FILE]);
    f.setting.file = f.input.name;
    if (!code) code = fr_loaded_open(&loaded, args);
    f.progress = fr_progress_begin("running", args->given[FR_ARG_QUIET]);
    if (!code) code = run_features(&f, &loaded);
    close_features(&f);
    fr_loaded_close(&loaded);
    if (!code) fr_interrupt_repeat();
    if (!code && f.failed)
        return fr_bad_input("%zu of %zu lines could not be run: each has its \"error\"", f.failed, f.input.total);
    return code;
}
