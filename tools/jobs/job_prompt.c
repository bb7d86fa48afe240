/* Makes the ids of a prompt (job_parts.h). The prompt is given as ids, as a text, or as a conversation, which the chat
 * template renders. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/conversation.h"
#include "tools/cli/prompt_pictures.h"
#include "tools/jobs/infill.h"
#include "tools/jobs/job_parts.h"

#define NORMALIZED 4 /* a tokenizer's normalizer makes a text shorter by at most this factor */

static bool take_ids(fr_job *job, const char *key, const json_t *ids) {
    fr_prompt *prompt = &job->prompt;
    prompt->count = json_array_size(ids);
    if (!json_is_array(ids) || prompt->count == 0)
        return fr_job_refuse(job, FR_USAGE, "%s must be an array of ids", key);
    prompt->ids = prompt->expanded = fr_resize(NULL, prompt->count, sizeof(*prompt->expanded));
    for (size_t i = 0; i < prompt->count; i++) {
        const json_t *id = json_array_get(ids, i);
        if (!fr_job_whole(id, 0, INT32_MAX)) return fr_job_refuse(job, FR_USAGE, "%s[%zu] is no id", key, i);
        prompt->expanded[i] = (int32_t)json_integer_value(id);
    }
    return true;
}

/* Refuses a prompt that has too many bytes to fit the context. This is checked before tokenizing, because tokenizing
 * such a prompt could take seconds. */
static bool check_bytes(fr_job *job, size_t bytes) {
    const fr_job_setting *setting = job->setting;
    size_t least = setting->longest ? bytes / (NORMALIZED * setting->longest) : 0;
    if (setting->context == 0 || least < (size_t)setting->context) return true;
    job->too_long = least;
    return fr_job_refuse(job, FR_INPUT, "the prompt has %zu bytes, which are %zu tokens or more, and " FR_JOB_TOO_LONG,
                         bytes, least, (long long)setting->context);
}

static void note_doubled(fr_job *job) {
    job->doubled =
        fr_prompt_doubled(fr_model_tokenizer(job->setting->loaded->model), job->prompt.ids, job->prompt.count);
}

static bool tokenize(fr_job *job) {
    const fr_job_setting *setting = job->setting;
    const fr_prompt *prompt = &job->prompt;
    if (!check_bytes(job, prompt->rendered.text ? prompt->rendered.length : prompt->length)) return false;
    if (!fr_job_check(job, fr_prompt_ids(&job->prompt, setting->loaded->model, job->pictures, job->picture_count,
                                         setting->args->given[FR_ARG_PARSE_SPECIAL])))
        return false;
    if (!prompt->rendered.text) note_doubled(job);
    return true;
}

static bool converse(fr_job *job, const json_t *messages) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(job->setting->loaded->model);
    fr_status status = fr_conversation_render(messages, tokenizer, job->settings, &job->prompt.rendered);
    if (!fr_job_check(job, status)) return false;
    if (!fr_job_is_served(job)) fr_conversation_note_changes(tokenizer, job->setting->args->given[FR_ARG_QUIET]);
    return tokenize(job);
}

/* Refuses messages that have unknown parts. A template would silently leave out such parts, and the model would answer
 * a different question. */
static bool check_parts(fr_job *job, const json_t *messages) {
    const char *other;
    const fr_model *model = job->setting->loaded->model;
    size_t pictures = fr_conversation_pictures(messages, &other);
    if (!fr_conversation_is_parts(messages))
        return fr_job_refuse(job, FR_USAGE,
                             "messages have a content that is neither a text nor an array of parts "
                             "with a \"type\"");
    if (other)
        return fr_job_refuse(job, FR_USAGE,
                             "messages have a part of type \"%s\": pictures are parts {\"type\": "
                             "\"image\"}, with their files in \"images\", and nothing else can be shown",
                             other);
    if (pictures && fr_model_fact(model, FR_FACT_IMAGE_TOKEN) < 0)
        return fr_job_refuse(job, FR_USAGE,
                             "messages have parts for pictures, and %s has no vision tower: leave them "
                             "out%s",
                             fr_job_is_served(job) ? "the model" : job->setting->args->text[FR_ARG_MODEL],
                             fr_job_is_served(job) ? "" : ", or give its --mmproj");
    return pictures <= job->picture_count ||
           fr_job_refuse(job, FR_USAGE,
                         "messages have %zu parts {\"type\": \"image\"}, and \"images\" names %zu "
                         "files: one is needed for each",
                         pictures, job->picture_count);
}

static void copy_text(fr_job *job, const json_t *text) {
    size_t length = json_string_length(text);
    job->prompt.bytes = fr_resize(NULL, length + 1, 1);
    memcpy(job->prompt.bytes, json_string_value(text), length);
    job->prompt.length = length;
}

/* Makes a text the prompt. If there are pictures and the text has no marks for them, the text and the pictures become
 * the turn of a user. */
static bool take_text(fr_job *job, const json_t *text) {
    const fr_model *model = job->setting->loaded->model;
    size_t length = json_string_length(text);
    if (!json_is_string(text)) return fr_job_refuse(job, FR_USAGE, "prompt must be a text");
    bool placed = job->picture_count && fr_has_picture_place(model, json_string_value(text), length);
    if (job->picture_count && !placed) {
        json_t *messages = fr_conversation_new(NULL);
        fr_conversation_add(messages, "user", json_string_value(text), length, job->picture_count);
        bool good = converse(job, messages);
        json_decref(messages);
        return good;
    }
    copy_text(job, text);
    if (placed) fr_mark_picture_places(model, FR_PICTURE_PLACE, true, &job->prompt.bytes, &job->prompt.length);
    return tokenize(job);
}

/* Makes the prompt from an object with "multimodal_data". llama.cpp's clients put llama.cpp's own mark into the text at
 * the place of each picture. There must be one mark for each picture. */
static bool take_text_with_media(fr_job *job, const json_t *text) {
    size_t marks = 0;
    if (!json_is_string(text))
        return fr_job_refuse(job, FR_USAGE, "prompt_string must be a text if there is multimodal_data");
    if (job->echo) return fr_job_refuse(job, FR_UNBUILT, "echo with multimodal_data is not built yet");
    copy_text(job, text);
    const char *at = job->prompt.bytes, *end = at + job->prompt.length;
    while ((at = memmem(at, (size_t)(end - at), FR_JOB_MEDIA_MARK, strlen(FR_JOB_MEDIA_MARK)))) {
        at += strlen(FR_JOB_MEDIA_MARK);
        marks++;
    }
    if (marks != job->picture_count)
        return fr_job_refuse(job, FR_USAGE,
                             "prompt_string has %zu marks " FR_JOB_MEDIA_MARK " and multimodal_data %zu pictures: one "
                             "mark is needed for each",
                             marks, job->picture_count);
    fr_mark_picture_places(job->setting->loaded->model, FR_JOB_MEDIA_MARK, true, &job->prompt.bytes,
                           &job->prompt.length);
    return tokenize(job);
}

bool fr_job_take_around(fr_job *job, const json_t *prompt) {
    char error[FR_INFILL_ERROR];
    const fr_tokenizer *tokenizer = fr_model_tokenizer(job->setting->loaded->model);
    json_t *ids = fr_infill_around(tokenizer, prompt, job->suffix, error);
    fr_status why = fr_infill_can(tokenizer) ? FR_USAGE : FR_UNBUILT;
    bool taken = ids ? fr_job_take_text_or_ids(job, ids) : fr_job_refuse(job, why, "%s", error);
    json_decref(ids);
    return taken;
}

/* Reads the prompt of a line in OpenAI's form. It is a text, a list of ids, or an array that contains one text or one
 * list of ids. */
static bool take_prompt_of_request(fr_job *job, const json_t *prompt) {
    const json_t *first = json_array_get(prompt, 0);
    if (!json_is_array(prompt)) return job->suffix ? fr_job_take_around(job, prompt) : take_text(job, prompt);
    if (json_array_size(prompt) > 1 && !json_is_integer(first))
        return fr_job_refuse(job, FR_UNBUILT, "several prompts in one line are not built yet: give each its own");
    bool wrapped = json_is_array(first) || json_is_string(first);
    if (job->suffix) return fr_job_take_around(job, wrapped ? first : prompt);
    return json_is_array(first)    ? take_ids(job, "prompt[0]", first)
           : json_is_string(first) ? take_text(job, first)
                                   : take_ids(job, "prompt", prompt);
}

static bool check_tokenizer(fr_job *job) {
    return fr_model_tokenizer(job->setting->loaded->model) ||
           fr_job_refuse(job, FR_INPUT, "the model has no tokenizer: only ids can be run");
}

static bool check_count(fr_job *job) {
    return job->prompt.count > 0 || fr_job_refuse(job, FR_INPUT, "the prompt is empty: it has no token");
}

/* Appends ids to a prompt. *room: the number of ids for which memory is allocated. */
static void append(fr_prompt *prompt, const int32_t *ids, size_t count, size_t *room) {
    while (*room - prompt->count < count) *room = 2 * *room + 64;
    prompt->ids = prompt->expanded = fr_resize(prompt->expanded, *room, sizeof(*prompt->expanded));
    if (count) memcpy(prompt->expanded + prompt->count, ids, count * sizeof(*ids));
    prompt->count += count;
}

/* Reads an array of texts and ids. If a text comes first, it gets the tokens that the tokenizer puts at the beginning
 * of every text. Later texts don't. */
static bool take_pieces(fr_job *job, const json_t *pieces) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(job->setting->loaded->model);
    size_t room = 0, count;
    for (size_t i = 0; i < json_array_size(pieces); i++) {
        const json_t *piece = json_array_get(pieces, i);
        int32_t *ids, one = (int32_t)json_integer_value(piece);
        if (json_is_string(piece)) {
            const char *text = json_string_value(piece);
            size_t length = json_string_length(piece);
            if (!check_bytes(job, length)) return false;
            if (!fr_job_check(job, fr_tokenize(tokenizer, text, length, i == 0, true, &ids, &count))) return false;
            append(&job->prompt, ids, count, &room);
            fr_free(ids);
        } else if (fr_job_whole(piece, 0, INT32_MAX)) {
            append(&job->prompt, &one, 1, &room);
        } else {
            return fr_job_refuse(job, FR_USAGE, "prompt[%zu] is neither a text nor an id", i);
        }
    }
    if (json_is_string(json_array_get(pieces, 0))) note_doubled(job);
    return true;
}

static bool has_text(const json_t *pieces) {
    for (size_t i = 0; i < json_array_size(pieces); i++)
        if (json_is_string(json_array_get(pieces, i))) return true;
    return false;
}

bool fr_job_take_text_or_ids(fr_job *job, const json_t *prompt) {
    const json_t *inner = json_object_get(prompt, "prompt_string");
    bool media = inner && job->picture_count;
    if (inner) prompt = inner;
    if (!prompt || json_is_null(prompt)) return fr_job_refuse(job, FR_USAGE, "prompt is missing");
    if (!json_is_string(prompt) && !json_is_array(prompt))
        return fr_job_refuse(job, FR_USAGE, "prompt must be a text, or an array of ids, texts or both");
    bool several = has_text(prompt), needs_text = media || several || json_is_string(prompt) || job->stop_count;
    if (needs_text && !check_tokenizer(job)) return false;
    bool taken = media                    ? take_text_with_media(job, prompt)
                 : json_is_string(prompt) ? take_text(job, prompt)
                 : several                ? take_pieces(job, prompt)
                                          : take_ids(job, "prompt", prompt);
    return taken && check_count(job);
}

bool fr_job_take_messages(fr_job *job, const json_t *messages) {
    return check_tokenizer(job) && check_parts(job, messages) && converse(job, messages) && check_count(job);
}

bool fr_job_take_prompt(fr_job *job) {
    const json_t *text = json_object_get(job->request, "prompt"), *ids = json_object_get(job->request, "ids");
    const json_t *messages = json_object_get(job->request, "messages");
    bool own = job->form == FR_JOB_PLAIN, needs_text = messages || json_is_string(text) || job->stop_count;
    if (own && !!text + !!ids + !!messages != 1)
        return fr_job_refuse(job, FR_USAGE, "just one of prompt, ids and messages is needed");
    if (!own && !text && !messages)
        return fr_job_refuse(job, FR_USAGE, "the body has no %s", job->form == FR_JOB_CHAT ? "messages" : "prompt");
    if (needs_text && !check_tokenizer(job)) return false;
    if (ids) return take_ids(job, "ids", ids);
    if (messages) return fr_job_take_messages(job, messages);
    return (own ? take_text(job, text) : take_prompt_of_request(job, text)) && check_count(job);
}
