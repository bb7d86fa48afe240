/* Reads the messages of a chat request (generation_request_parts.h). Pictures in them are data: URIs, and become parts
 * {"type": "image"}, which templates know. If the model can't read a tool's result, the result is replaced by a short
 * text that says so. A refusal would end the conversation, because an agent sends the same result again with every
 * turn. If the last message is the assistant's, the reply continues that message, as in llama.cpp's server. The request
 * can ask for another behaviour. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/conversation.h"
#include "tools/cli/wide_json.h"
#include "tools/serve/base64.h"
#include "tools/serve/changing_header.h"
#include "tools/serve/generation_request_parts.h"
#include "tools/serve/notes.h"

/* --------------------------------------------------------------------------------------------------------- pictures */

/* Gives the base64 text of a url that begins with "data:image/png;base64,". Any format may be in the place of png. The
 * format is ignored, because clients often name a wrong one, and the picture's first bytes show the format. NULL: the
 * url has another form. */
static const char *data_of(const char *url) {
    static const char begin[] = "data:image/", end[] = ";base64,";
    if (strncasecmp(url, begin, strlen(begin)) != 0) return NULL;
    const char *comma = strchr(url, ',');
    bool base64 = comma && (size_t)(comma - url) > strlen(begin) + strlen(end) - 1 &&
                  strncasecmp(comma + 1 - strlen(end), end, strlen(end)) == 0;
    return base64 ? comma + 1 : NULL;
}

static bool is_remote(const char *url) {
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

static bool add_picture(fr_generation_request *request, fr_job *job, const json_t *part) {
    /* some clients send the url itself instead of an object */
    const json_t *image = json_object_get(part, "image_url");
    const json_t *url = json_is_object(image) ? json_object_get(image, "url") : image;
    const char *text = fr_job_plain_text(url), *data = text ? data_of(text) : NULL;
    if (fr_model_fact(job->setting->loaded->model, FR_FACT_IMAGE_TOKEN) < 0)
        return fr_job_refuse(job, FR_USAGE, "image_url: this model sees no pictures");
    if (text && is_remote(text))
        return fr_job_refuse(job, FR_USAGE,
                             "image_url: pictures at http:// and https:// URLs are not fetched: send their bytes, "
                             "as \"data:image/png;base64,...\"");
    if (!data)
        return fr_job_refuse(job, FR_USAGE,
                             "image_url must be {\"url\": \"data:image/png;base64,...\"}, or jpeg, webp or gif: "
                             "other urls and paths are not opened");
    return fr_generation_request_take_picture(request, job, "image_url", data,
                                              json_string_length(url) - (size_t)(data - text));
}

static void set_text(json_t *part, json_t *text) {
    json_object_clear(part);
    fr_json_put(part, "type", json_string("text"));
    fr_json_put(part, "text", text);
}

/* Turns a part of another type that contains text into a part of type "text". Such parts are refusals, and parts in the
 * form of OpenAI's /v1/responses. */
static bool take_text_part(json_t *part) {
    static const char *const words[][2] = {{"refusal", "refusal"}, {"output_text", "text"}, {"input_text", "text"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        json_t *text = json_object_get(part, words[i][1]);
        if (!fr_job_is_word(json_object_get(part, "type"), words[i][0]) || !fr_is_json_text(text)) continue;
        set_text(part, json_incref(text));
        return true;
    }
    return false;
}

/* If a file was sent as a data: URI of text or JSON, gives its text as a new value. NULL: the file was sent in another
 * way. */
static json_t *text_of_file(const json_t *file) {
    static const char *const kinds[] = {"data:text/", "data:application/json"};
    const json_t *data = json_object_get(file, "file_data");
    const char *url = fr_job_plain_text(data), *begin = url ? strstr(url, ";base64,") : NULL;
    size_t size, i = 0, count = sizeof kinds / sizeof *kinds;
    while (begin && i < count && strncasecmp(url, kinds[i], strlen(kinds[i])) != 0) i++;
    if (!begin || i == count) return NULL;
    begin += strlen(";base64,");
    unsigned char *bytes = fr_base64_read(begin, json_string_length(data) - (size_t)(begin - url), &size);
    json_t *text = bytes ? fr_json_bytes((const char *)bytes, size) : NULL;
    free(bytes);
    return text;
}

/* Replaces a file by its name and its text. If the model can't read the file, replaces it by a note that says so. */
static void set_file(json_t *part) {
    const json_t *inner = json_object_get(part, "file"), *file = inner ? inner : part;
    const json_t *named = json_object_get(file, "filename");
    const char *name = fr_job_plain_text(named);
    json_t *text = text_of_file(file), *said;
    if (text) {
        json_t *line = name ? json_sprintf("%s\n", name) : json_string("");
        said = fr_json_joined(line, text);
        json_decref(line);
    } else {
        said = json_sprintf("[The file%s%s is left out: this model can't read it.]", name ? " " : "", name ? name : "");
        fr_notes_say("files in messages are left out, and the model is told so: texts alone can be read");
    }
    json_decref(text);
    set_text(part, said);
}

/* If the model can't read a part of a tool's result, replaces the part by a note. If the model can read the part,
 * changes nothing and returns false. */
static bool leave_out(const fr_job *job, json_t *part, const char *type) {
    bool picture = strcmp(type, "image_url") == 0;
    if (picture && fr_model_fact(job->setting->loaded->model, FR_FACT_IMAGE_TOKEN) >= 0) return false;
    fr_notes_say("parts of type \"%.60s\" in the results of tools are left out, and the model is told so: it can't "
                 "read them",
                 type);
    set_text(part, picture ? json_string("[A picture is left out: this model sees none.]")
                           : json_sprintf("[A part of type \"%s\" is left out: this model can't read it.]", type));
    return true;
}

/* Reads a part of a message's content. of_tool: the message is a tool's result. */
static bool take_part(fr_generation_request *request, fr_job *job, json_t *part, bool of_tool) {
    const json_t *named = json_object_get(part, "type");
    if (!json_is_string(named)) return fr_job_refuse(job, FR_USAGE, "messages have a part without a \"type\"");
    const char *type = json_string_value(named);
    if (strcmp(type, "text") == 0 || take_text_part(part)) return true;
    if (strcmp(type, "file") == 0 || strcmp(type, "input_file") == 0) {
        set_file(part);
        return true;
    }
    if (of_tool && leave_out(job, part, type)) return true;
    if (strcmp(type, "image_url") != 0)
        return fr_job_refuse(job, FR_UNBUILT,
                             "messages have a part of type \"%.60s\": \"text\", \"image_url\" and \"file\" are "
                             "known",
                             type);
    if (!add_picture(request, job, part)) return false;
    json_object_clear(part);
    fr_json_put(part, "type", json_string("image"));
    return true;
}

/* Removes thoughts from the parts of a content, because a chat has the thought of a message in "reasoning_content". */
static void drop_thoughts(json_t *content) {
    for (size_t i = json_array_size(content); i-- > 0;) {
        const json_t *type = json_object_get(json_array_get(content, i), "type");
        if (!fr_job_is_word(type, "thinking") && !fr_job_is_word(type, "redacted_thinking")) continue;
        fr_notes_say("parts of type \"thinking\" are passed over: a message's thought is its reasoning_content");
        json_array_remove(content, i);
    }
}

static bool take_parts(fr_generation_request *request, fr_job *job, const json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        json_t *content = json_object_get(message, "content");
        const json_t *role = json_object_get(message, "role");
        bool of_tool = fr_job_is_word(role, "tool") || fr_job_is_word(role, "function");
        drop_thoughts(content);
        for (size_t part = 0; part < json_array_size(content); part++)
            if (!take_part(request, job, json_array_get(content, part), of_tool)) return false;
    }
    if (job->picture_count) fr_json_put(job->settings, "pictures", json_true());
    return true;
}

/* ----------------------------------------------------------------------------------------------------- last message */

static bool is_assistant(const json_t *message) {
    return fr_job_is_word(json_object_get(message, "role"), "assistant");
}

/* Decides whether the reply continues the last message. If the request does not say, the reply continues the last
 * message if that message is the assistant's. */
static bool choose_end(fr_job *job, const json_t *messages, bool *goes_on) {
    const json_t *continues = json_object_get(job->request, "continue_final_message");
    const json_t *opens = json_object_get(job->request, "add_generation_prompt");
    const json_t *last = fr_conversation_last(messages);
    bool asked = json_is_true(continues) || fr_job_is_word(continues, "content");
    bool silent = !continues || json_is_null(continues), unsaid = silent && (!opens || json_is_null(opens));
    if (!silent && !asked && !json_is_false(continues)) return fr_job_unbuilt(job, "continue_final_message");
    if (asked && json_is_true(opens))
        return fr_job_refuse(job, FR_USAGE, "add_generation_prompt and continue_final_message exclude each other");
    if (asked && !is_assistant(last))
        return fr_job_refuse(job, FR_USAGE, "continue_final_message: the last message is not the assistant's");
    *goes_on = asked || (unsaid && is_assistant(last));
    if (*goes_on && json_array_size(json_object_get(last, "tool_calls")))
        return fr_job_refuse(job, FR_USAGE, "an assistant's message with tool_calls can't be gone on with");
    if (json_is_false(opens)) fr_json_put(job->settings, "add_generation_prompt", json_false());
    return true;
}

static bool is_nothing(const json_t *text) {
    if (!text || json_is_null(text)) return true;
    return json_is_string(text) && strspn(json_string_value(text), " \t\r\n") == json_string_length(text);
}

/* Returns true if a message has neither a text nor a thought. If such a message is the last one and the assistant's, it
 * is ignored. */
static bool is_silent(const json_t *message) {
    static const char *const members[] = {"content", "reasoning", "reasoning_content", "thinking"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (!is_nothing(json_object_get(message, members[i]))) return false;
    return true;
}

/* Checks that each message of a user or a tool has a content. Some clients send null as a content; it counts as an
 * empty text. */
static bool check_contents(fr_job *job, const json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *message = json_array_get(messages, i);
        bool silent = json_is_object(message) && !json_object_get(message, "content");
        if (silent && json_object_get(message, "role") && !is_assistant(message))
            return fr_job_refuse(job, FR_USAGE, "messages[%zu] has no content", i);
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- results */

/* At most this many results of one message are sorted. If a message has more results, their order is not changed. */
enum { RESULTS_MAX = 256 };

/* Finds the index of the call with this id. -1: no call has this id. */
static int find_call(const json_t *calls, const json_t *id) {
    for (size_t i = 0; json_is_string(id) && i < json_array_size(calls); i++)
        if (json_equal(json_object_get(json_array_get(calls, i), "id"), id)) return (int)i;
    return -1;
}

/* Sorts the results that follow messages[at] into the order of that message's calls. Many templates write results
 * without ids, so results in another order would be matched to the wrong calls. A result without a matching call keeps
 * its place. */
static void order_results(json_t *messages, size_t at) {
    const json_t *calls = json_object_get(json_array_get(messages, at), "tool_calls");
    struct {
        size_t index;
        int call;
        json_t *message;
    } found[RESULTS_MAX];
    size_t count = 0;
    if (json_array_size(calls) < 2 || json_array_size(calls) > RESULTS_MAX) return;
    for (size_t i = at + 1; i < json_array_size(messages) && count < RESULTS_MAX; i++) {
        json_t *message = json_array_get(messages, i);
        const json_t *role = json_object_get(message, "role");
        if (fr_job_is_word(role, "user") || fr_job_is_word(role, "assistant")) break;
        int call = fr_job_is_word(role, "tool") ? find_call(calls, json_object_get(message, "tool_call_id")) : -1;
        if (call < 0) continue;
        size_t rank = count++;
        found[rank].index = i;
        for (; rank > 0 && found[rank - 1].call > call; rank--) {
            found[rank].call = found[rank - 1].call;
            found[rank].message = found[rank - 1].message;
        }
        found[rank].call = call;
        found[rank].message = json_incref(message);
    }
    for (size_t i = 0; i < count; i++) json_array_set_new(messages, found[i].index, found[i].message);
}

/* ----------------------------------------------------------------------------------------------------- all messages */

bool fr_generation_request_take_messages(fr_generation_request *request, fr_job *job) {
    json_t *messages = json_object_get(request->body, "messages");
    if (!messages || json_is_null(messages)) return fr_job_refuse(job, FR_USAGE, "messages are missing");
    if (!json_is_array(messages)) return fr_job_refuse(job, FR_USAGE, "messages must be an array");
    if (!check_contents(job, messages)) return false;
    fr_changing_header_drop(messages);
    for (size_t i = 0; i < json_array_size(messages); i++) order_results(messages, i);
    if (!take_parts(request, job, messages) || !choose_end(job, messages, &job->continues)) return false;
    if (job->continues && is_silent(fr_conversation_last(messages))) {
        json_array_remove(messages, json_array_size(messages) - 1);
        job->continues = false;
    }
    if (job->continues) fr_json_put(job->settings, "continue_final_message", json_true());
    if (!fr_job_take_messages(job, messages)) return false;
    for (const char *line; (line = fr_chat_change(fr_model_tokenizer(job->setting->loaded->model)));)
        fr_notes_say("%s", line);
    return true;
}
