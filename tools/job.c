/* A line of a batch (job.h). */
#include "job.h"

#include <regex.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "chat_settings.h"
#include "conversation.h"
#include "figures.h"
#include "json_member.h"
#include "wide_json.h"

/* Why it can't be run; gives false. */
static bool refuse(fr_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(fr_job *job, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(job->error, sizeof(job->error), format, args);
    va_end(args);
    job->ended = true;
    return false;
}

static bool check(fr_job *job, fr_status status) {
    return status == FR_OK || refuse(job, "%s%s", fr_last_error(), fr_failure_hint());
}

/* ----------------------------------------------------------------------------------------------------------- fields */

typedef bool take_field(fr_job *job, const char *key, const json_t *value);

static bool take_count(fr_job *job, const char *key, const json_t *value) {
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < -1 || n > INT32_MAX)
        return refuse(job, "%s must be a whole number of ids up to %d, or -1", key, INT32_MAX);
    job->most = n;
    return true;
}

static bool take_seed(fr_job *job, const char *key, const json_t *value) {
    json_int_t seed = json_integer_value(value);
    if (!json_is_integer(value)) return refuse(job, "%s must be a whole number", key);
    if (seed == -1) seed = job->seed = fr_draw_seed();
    return check(job, fr_options_set(job->options, FR_OPT_SEED, seed));
}

static bool take_number(fr_job *job, const char *key, const json_t *value) {
    static const struct {
        const char *key;
        fr_option option;
        bool whole;
    } numbers[] = {{"temp", FR_OPT_TEMPERATURE, false},
                   {"top_k", FR_OPT_TOP_K, true},
                   {"top_p", FR_OPT_TOP_P, false},
                   {"min_p", FR_OPT_MIN_P, false}};
    size_t i = 0;
    while (strcmp(numbers[i].key, key) != 0) i++;
    bool fits = numbers[i].whole ? json_is_integer(value) : json_is_number(value);
    if (!fits) return refuse(job, "%s must be a %snumber", key, numbers[i].whole ? "whole " : "");
    if (numbers[i].whole) return check(job, fr_options_set(job->options, numbers[i].option, json_integer_value(value)));
    return check(job, fr_options_set_number(job->options, numbers[i].option, json_number_value(value)));
}

static bool take_switch(fr_job *job, const char *key, const json_t *value) {
    if (!json_is_boolean(value)) return refuse(job, "%s must be true or false", key);
    job->ignore_eos = json_is_true(value);
    return check(job, fr_options_set(job->options, FR_OPT_IGNORE_EOS, job->ignore_eos));
}

static bool take_stop(fr_job *job, const char *key, const json_t *value) {
    if (!json_is_string(value) || json_string_length(value) == 0) return refuse(job, "%s must be texts", key);
    if (strlen(json_string_value(value)) != json_string_length(value)) return refuse(job, "%s has a NUL in it", key);
    if (job->stop_count == FR_STOPS_MAX) return refuse(job, "%s may have %d texts", key, FR_STOPS_MAX);
    job->stops[job->stop_count++] = json_string_value(value);
    return true;
}

static bool take_stops(fr_job *job, const char *key, const json_t *value) {
    job->stop_count = 0;
    if (!json_is_array(value)) return take_stop(job, key, value);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!take_stop(job, key, json_array_get(value, i))) return false;
    return true;
}

static bool take_images(fr_job *job, const char *key, const json_t *value) {
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > FR_IMAGES_MAX)
        return refuse(job, "%s must be an array of %d paths at most", key, FR_IMAGES_MAX);
    for (size_t i = 0; i < count; i++) {
        const char *path = json_string_value(json_array_get(value, i));
        if (!path) return refuse(job, "%s must be an array of paths", key);
        if (!check(job, fr_picture_open(path, job->setting->loaded->model, &job->pictures[i]))) return false;
        job->picture_count++;
    }
    return true;
}

/* Read with the others there already: see take_prompt. */
static bool take_later(fr_job *job, const char *key, const json_t *value) {
    (void)job;
    (void)key;
    (void)value;
    return true;
}

static bool take_fields(fr_job *job) {
    static const struct {
        const char *key;
        take_field *take;
    } fields[] = {{"id", take_later},       {"prompt", take_later},      {"ids", take_later},
                  {"messages", take_later}, {"n", take_count},           {"temp", take_number},
                  {"top_k", take_number},   {"top_p", take_number},      {"min_p", take_number},
                  {"seed", take_seed},      {"stop", take_stops},        {"ignore_eos", take_switch},
                  {"images", take_images}};
    const char *key;
    json_t *value;
    json_object_foreach(job->line, key, value) {
        size_t i = 0, count = sizeof(fields) / sizeof(*fields);
        while (i < count && strcmp(fields[i].key, key) != 0) i++;
        if (strcmp(key, "messages") != 0 && fr_json_has_wide(value))
            return refuse(job, "no JSON that can be read: too big integer");
        if (i == count)
            return refuse(job, "\"%.60s\" is not known (id; prompt, ids or messages; n temp top_k top_p min_p seed "
                               "stop ignore_eos images)", key);
        if (!fields[i].take(job, key, value)) return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- prompt */

static bool take_ids(fr_job *job, const json_t *ids) {
    fr_prompt *prompt = &job->prompt;
    prompt->count = json_array_size(ids);
    if (!json_is_array(ids) || prompt->count == 0) return refuse(job, "ids must be an array of ids");
    prompt->ids = prompt->expanded = fr_resize(NULL, prompt->count, sizeof(*prompt->expanded));
    for (size_t i = 0; i < prompt->count; i++) {
        const json_t *id = json_array_get(ids, i);
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value > INT32_MAX) return refuse(job, "ids[%zu] is no id", i);
        prompt->expanded[i] = (int32_t)value;
    }
    return true;
}

static bool tokenize(fr_job *job) {
    const fr_job_setting *setting = job->setting;
    return check(job, fr_prompt_ids(&job->prompt, setting->loaded->model, job->pictures, job->picture_count,
                                    setting->args->given[FR_ARG_PARSE_SPECIAL]));
}

static bool converse(fr_job *job, const json_t *messages) {
    json_t *settings = fr_chat_settings(job->setting->args, job->picture_count > 0);
    fr_status status = fr_conversation_render(messages, fr_model_tokenizer(job->setting->loaded->model), settings,
                                              &job->prompt.rendered);
    json_decref(settings);
    return check(job, status) && tokenize(job);
}

/* No part may be dropped: a template leaves out what it does not know, and the reply would be to something else. */
static bool check_parts(fr_job *job, const json_t *messages) {
    const char *other;
    const fr_model *model = job->setting->loaded->model;
    size_t pictures = fr_conversation_pictures(messages, &other);
    if (!fr_conversation_is_parts(messages))
        return refuse(job, "messages have a content that is neither a text nor an array of parts with a \"type\"");
    if (other)
        return refuse(job, "messages have a part of type \"%s\": pictures are parts {\"type\": \"image\"}, with "
                           "their files in \"images\", and nothing else can be shown", other);
    if (pictures && fr_model_fact(model, FR_FACT_IMAGE_TOKEN) < 0)
        return refuse(job, "messages have parts for pictures, and %s has no vision tower: leave them out, or give its "
                           "--mmproj", job->setting->args->text[FR_ARG_MODEL]);
    return pictures <= job->picture_count ||
           refuse(job, "messages have %zu parts {\"type\": \"image\"}, and \"images\" names %zu files: one is needed "
                       "for each", pictures, job->picture_count);
}

/* With pictures it is a user's turn. */
static bool take_text(fr_job *job, const json_t *text) {
    size_t length = json_string_length(text);
    if (!json_is_string(text)) return refuse(job, "prompt must be a text");
    if (job->picture_count) {
        json_t *messages = fr_conversation_new(NULL);
        fr_conversation_add(messages, "user", json_string_value(text), length, job->picture_count);
        bool good = converse(job, messages);
        json_decref(messages);
        return good;
    }
    job->prompt.bytes = fr_resize(NULL, length + 1, 1);
    memcpy(job->prompt.bytes, json_string_value(text), length);
    job->prompt.length = length;
    return tokenize(job);
}

static bool take_prompt(fr_job *job) {
    const json_t *text = json_object_get(job->line, "prompt"), *ids = json_object_get(job->line, "ids");
    const json_t *messages = json_object_get(job->line, "messages");
    const fr_tokenizer *tokenizer = fr_model_tokenizer(job->setting->loaded->model);
    if (!!text + !!ids + !!messages != 1) return refuse(job, "just one of prompt, ids and messages is needed");
    if ((!ids || job->stop_count) && !tokenizer) return refuse(job, "the model has no tokenizer: only ids can be run");
    if (ids) return take_ids(job, ids);
    if (messages && !check_parts(job, messages)) return false;
    if (!(text ? take_text(job, text) : converse(job, messages))) return false;
    return job->prompt.count > 0 || refuse(job, "the prompt is empty: it has no token");
}

/* ---------------------------------------------------------------------------------------------------------- session */

static fr_status open_view(fr_job *job) {
    const fr_job_setting *setting = job->setting;
    if (!job->prompt.rendered.text) return FR_OK;
    return fr_reply_view_open(&job->view, fr_model_tokenizer(setting->loaded->model), setting->args,
                              &job->prompt.rendered, job->picture_count > 0, &job->text);
}

static fr_status start(fr_job *job) {
    fr_status status = fr_engine_session(job->setting->engine, job->options, &job->session);
    if (status == FR_OK && job->picture_count)
        status = fr_session_show(job->session, (const fr_picture *const *)job->pictures, job->picture_count);
    if (status == FR_OK) status = fr_session_put(job->session, job->prompt.ids, job->prompt.count);
    job->text = (fr_stream){.stops = job->stops, .stop_count = job->stop_count};
    if (status == FR_OK) status = open_view(job);
    if (status != FR_OK) return status;
    const fr_model *model = job->setting->loaded->model;
    const fr_reply_setting reply = {.model = model,
                                    .session = job->session,
                                    .most = job->most,
                                    .best = -1,
                                    .ignore_eos = job->ignore_eos,
                                    .text = fr_model_tokenizer(model) ? &job->text : NULL,
                                    .view = job->prompt.rendered.text ? &job->view : NULL};
    status = fr_reply_begin(&job->reply, &reply);
    if (job->most == 0) job->reply.end = FR_END_LENGTH;
    job->ended = job->most == 0;
    return status;
}

enum { ID_FLAGS = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL };

/* The line with null in the place of its id. */
static json_t *read_without(const char *line, size_t length, const char *id, size_t size, json_error_t *error) {
    const char *behind = id + size;
    char *rest;
    size_t rest_length;
    FILE *out = open_memstream(&rest, &rest_length);
    if (!out) return NULL;
    fwrite(line, 1, (size_t)(id - line), out);
    fputs("null", out);
    fwrite(behind, 1, (size_t)(line + length - behind), out);
    bool whole = fclose(out) == 0;
    json_t *object = whole ? fr_json_load(rest, rest_length, error) : NULL;
    free(rest);
    return object;
}

/* Whether a text is a JSON number, of any size. */
static bool is_number(const char *text) {
    static const char form[] = "^-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?$";
    regex_t number;
    if (regcomp(&number, form, REG_EXTENDED | REG_NOSUB) != 0) return false;
    bool is = regexec(&number, text, 0, NULL, 0) == 0;
    regfree(&number);
    return is;
}

/* Keeps an id's text, if it is JSON. */
static bool keep_id(fr_job *job, const char *id, size_t size, json_error_t *error) {
    json_t *alone = json_loadb(id, size, ID_FLAGS, error);
    char *text = fr_resize(NULL, size + 1, 1);
    memcpy(text, id, size);
    text[size] = '\0';
    if (alone || is_number(text)) job->id = text;
    else free(text);
    json_decref(alone);
    return job->id != NULL;
}

/* The line, and its id's text: an id may be what no number of C holds. NULL: it is no JSON, and why. Jansson passes a
 * NUL behind a number over. */
static json_t *read_line(fr_job *job, const char *line, size_t length, json_error_t *error) {
    const char *id;
    size_t size;
    *error = (json_error_t){.text = "there is a NUL in it"};
    if (memchr(line, '\0', length)) return NULL;
    *error = (json_error_t){.text = "out of memory"};
    if (!fr_json_member(line, length, "id", &id, &size)) {
        json_t *object = fr_json_load(line, length, error);
        const json_t *escaped = json_object_get(object, "id");
        if (escaped) job->id = fr_json_line(escaped);
        return object;
    }
    return keep_id(job, id, size, error) ? read_without(line, length, id, size, error) : NULL;
}

/* All but the session: that needs an engine, whose size depends on the lines. */
static void read_job(fr_job *job, const fr_job_setting *setting, const char *line, size_t length) {
    const fr_arguments *args = setting->args;
    json_error_t error;
    *job = (fr_job){.setting = setting,
                    .options = fr_options_copy(setting->loaded->options),
                    .most = args->number[FR_ARG_PREDICT],
                    .ignore_eos = args->given[FR_ARG_IGNORE_EOS],
                    .seed = -1,
                    .stop_count = args->stop_count};
    memcpy(job->stops, args->stops, sizeof(job->stops));
    job->line = read_line(job, line, length, &error);
    if (!job->options) refuse(job, "out of memory: options");
    else if (!job->line) refuse(job, "no JSON that can be read: %s", error.text);
    else if (!json_is_object(job->line)) refuse(job, "no JSON object");
    else if (take_fields(job)) take_prompt(job);
}

bool fr_job_measure(const fr_job_setting *setting, const char *line, size_t length, size_t *prompt, int64_t *most) {
    fr_job job;
    read_job(&job, setting, line, length);
    bool runs = !job.ended;
    *prompt = job.prompt.count;
    *most = job.most;
    fr_job_end(&job);
    return runs;
}

void fr_job_begin(fr_job *job, const fr_job_setting *setting, const char *line, size_t length) {
    read_job(job, setting, line, length);
    if (!job->ended) check(job, start(job));
}

fr_round fr_job_round(const fr_job *job, int32_t *ids) {
    return (fr_round){.session = job->session, .ids = ids, .limit = fr_reply_room(&job->reply)};
}

void fr_job_take(fr_job *job, const fr_round *round) {
    if (round->status != FR_OK) {
        refuse(job, "%s", round->error);
        return;
    }
    if (round->count == 0 && fr_session_waiting(job->session) > 0) return;
    if (!check(job, fr_reply_take(&job->reply, round->ids, round->count, round->accepted))) return;
    job->ended = job->reply.end != FR_END_NONE;
    if (job->ended) check(job, fr_reply_finish(&job->reply));
}

void fr_job_interrupt(fr_job *job) {
    job->ended = true;
    job->reply.end = FR_END_INTERRUPT;
    check(job, fr_reply_finish(&job->reply));
}

/* ----------------------------------------------------------------------------------------------------------- answer */

/* {"id":..., and the members of the answer, at least one. */
static char *behind_id(const char *id, const json_t *answer) {
    char *members = fr_json_line(answer);
    size_t size = strlen(id) + strlen(members) + sizeof("{\"id\":");
    char *line = fr_resize(NULL, size, 1);
    snprintf(line, size, "{\"id\":%s,%s", id, members + 1);
    free(members);
    return line;
}

char *fr_job_answer(fr_job *job) {
    json_t *answer = json_object();
    if (job->error[0]) {
        fr_json_put(answer, "error", fr_json_bytes(job->error, strlen(job->error)));
    } else {
        fr_figures figures = fr_figures_take(job->session);
        figures.of[FR_STAT_GENERATED_TOKENS] = (double)job->reply.kept;
        check(job, fr_reply_put(&job->reply, answer));
        json_t *stats = fr_figures_json(&figures, job->session);
        bool drawn = job->setting->args->seed_drawn && !json_object_get(job->line, "seed");
        if (drawn) fr_json_put(stats, "seed", json_integer(job->setting->args->number[FR_ARG_SEED]));
        if (job->seed >= 0) fr_json_put(answer, "seed", json_integer(job->seed));
        fr_json_put(answer, "stats", stats);
    }
    char *line = behind_id(job->id ? job->id : "null", answer);
    json_decref(answer);
    return line;
}

void fr_job_end(fr_job *job) {
    fr_reply_view_close(&job->view);
    fr_reply_free(&job->reply);
    fr_stream_free(&job->text);
    fr_session_close(job->session);
    while (job->picture_count) fr_picture_close(job->pictures[--job->picture_count]);
    fr_prompt_free(&job->prompt);
    fr_options_free(job->options);
    json_decref(job->line);
    free(job->id);
    *job = (fr_job){0};
}
