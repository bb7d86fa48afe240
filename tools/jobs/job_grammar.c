/* Makes the grammars of requests (job_grammar.h). */
#include "tools/jobs/job_grammar.h"

#include <stdlib.h>
#include <string.h>

struct fr_job_grammar {
    size_t holders;     /* number of jobs that share the grammar */
    const char *member; /* the member of the request that gave the grammar */
    fr_grammar_kind kind;
    char *text;
    size_t length;
    fr_grammar *grammar; /* NULL: not made yet */
};

/* ---------------------------------------------------------------------------------------------------------- members */

/* Stores the source of the job's grammar, and takes ownership of `text`. */
static bool keep(fr_job *job, const char *member, fr_grammar_kind kind, char *text, size_t length) {
    if (job->grammar) {
        free(text);
        return fr_job_refuse(job, FR_USAGE, "%s and %s exclude each other: a text is of one grammar", member,
                             job->grammar->member);
    }
    job->grammar = fr_resize(NULL, 1, sizeof *job->grammar);
    *job->grammar = (fr_job_grammar){.holders = 1, .member = member, .kind = kind, .text = text, .length = length};
    return true;
}

static bool take_text(fr_job *job, const char *member, fr_grammar_kind kind, const json_t *value) {
    size_t length = json_string_length(value);
    if (!json_is_string(value)) return fr_job_refuse(job, FR_USAGE, "%s must be a text", member);
    char *text = fr_resize(NULL, length + 1, 1);
    memcpy(text, json_string_value(value), length + 1);
    return keep(job, member, kind, text, length);
}

static bool take_schema(fr_job *job, const char *member, const json_t *value) {
    if (!json_is_object(value) && !json_is_boolean(value))
        return fr_job_refuse(job, FR_USAGE, "%s must be a schema: an object, true or false", member);
    char *text = fr_json_line(value);
    return keep(job, member, FR_GRAMMAR_JSON_SCHEMA, text, strlen(text));
}

/* Reads a grammar. An empty text means that there is no grammar, as in llama.cpp's server. */
bool fr_job_take_grammar(fr_job *job, const char *key, const json_t *value) {
    (void)key;
    return fr_job_is_word(value, "") || take_text(job, "grammar", FR_GRAMMAR_GBNF, value);
}

bool fr_job_take_regex(fr_job *job, const char *key, const json_t *value) {
    (void)key;
    return take_text(job, "regex", FR_GRAMMAR_REGEX, value);
}

bool fr_job_take_json_schema(fr_job *job, const char *key, const json_t *value) {
    (void)key;
    return take_schema(job, "json_schema", value);
}

/* Reads a format of type "json_object". It allows any object. If the format also has a schema, as llama.cpp's server
 * accepts it, only objects that follow the schema are allowed. */
static bool take_any_object(fr_job *job, const json_t *format) {
    const json_t *schema = json_object_get(format, "schema");
    if (schema && !json_is_null(schema)) return take_schema(job, "response_format.schema", schema);
    json_t *object = json_pack("{s:s}", "type", "object");
    bool taken = take_schema(job, "response_format", object);
    json_decref(object);
    return taken;
}

bool fr_job_take_response_format(fr_job *job, const char *key, const json_t *value) {
    const json_t *type = json_object_get(value, "type"), *inner = json_object_get(value, "json_schema");
    if (!json_is_object(value) || !json_is_string(type))
        return fr_job_refuse(job, FR_USAGE, "%s must be an object with a \"type\"", key);
    if (fr_job_is_word(type, "text")) return true;
    if (fr_job_is_word(type, "json_object")) return take_any_object(job, value);
    if (!fr_job_is_word(type, "json_schema"))
        return fr_job_refuse(job, FR_UNBUILT,
                             "%s of type \"%.60s\" is not built: text, json_object and "
                             "json_schema are",
                             key, json_string_value(type));
    const json_t *schema = json_object_get(json_is_object(inner) ? inner : value, "schema");
    if (!schema) return fr_job_refuse(job, FR_USAGE, "%s has no json_schema.schema", key);
    return take_schema(job, inner ? "response_format.json_schema.schema" : "response_format.schema", schema);
}

/* Gives the name of a tool, or of the tool that a choice names. The name is inside "function", or next to "type". NULL:
 * there is no name. */
static const char *name_of(const json_t *tool) {
    const json_t *inner = json_object_get(tool, "function");
    return fr_job_plain_text(json_object_get(inner ? inner : tool, "name"));
}

/* Gives the object with "mode" and "tools" of a tool choice whose type is "allowed_tools". The object is the choice's
 * member "allowed_tools" if it has one, otherwise the choice itself. NULL: the choice has another type. */
static const json_t *allowed_tools(const json_t *choice) {
    const json_t *inner = json_object_get(choice, "allowed_tools");
    return !fr_job_is_word(json_object_get(choice, "type"), "allowed_tools") ? NULL : inner ? inner : choice;
}

/* Forces the reply to call a tool. The reply ends after its first call, because many clients read only one call. If the
 * request asks for several calls, it goes on. */
static bool must_call(fr_job *job) {
    job->must_call = true;
    job->one_call = !job->several;
    return true;
}

bool fr_job_take_tool_choice(fr_job *job, const char *key, const json_t *value) {
    const json_t *allowed = allowed_tools(value);
    const json_t *mode = allowed ? json_object_get(allowed, "mode") : value;
    if (allowed && !json_array_size(json_object_get(allowed, "tools")))
        return fr_job_refuse(job, FR_USAGE, "%s of type allowed_tools must have a mode and tools", key);
    if (fr_job_is_word(mode, "auto") || (!allowed && fr_job_is_word(mode, "none"))) return true;
    if (fr_job_is_word(mode, "required")) return must_call(job);
    if (allowed) return fr_job_refuse(job, FR_USAGE, "%s: the mode of allowed_tools must be auto or required", key);
    bool function = fr_job_is_word(json_object_get(value, "type"), "function");
    if (json_is_object(value) && !function) return fr_job_unbuilt(job, key);
    job->tool = function ? name_of(value) : NULL;
    return job->tool ? must_call(job)
                     : fr_job_refuse(job, FR_USAGE,
                                     "%s must be none, auto, required, allowed_tools or a function with its name", key);
}

static const json_t *find_tool(const json_t *tools, const char *name) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const char *own = name_of(json_array_get(tools, i));
        if (own && strcmp(own, name) == 0) return json_array_get(tools, i);
    }
    return NULL;
}

bool fr_job_keep_allowed_tools(fr_job *job, const json_t *tools, json_t **kept) {
    const json_t *list = json_object_get(allowed_tools(json_object_get(job->request, "tool_choice")), "tools");
    *kept = list ? json_array() : json_incref((json_t *)(uintptr_t)tools);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = name_of(json_array_get(list, i));
        if (name && !find_tool(tools, name)) {
            json_decref(*kept);
            return fr_job_refuse(job, FR_INPUT, "tool_choice: there is no tool \"%.100s\"", name);
        }
    }
    for (size_t i = 0; list && i < json_array_size(tools); i++) {
        const char *name = name_of(json_array_get(tools, i));
        if (name && find_tool(list, name)) json_array_append(*kept, json_array_get(tools, i));
    }
    return true;
}

/* Reads "parallel_tool_calls". If it is false, the reply ends after its first call, even if no call is forced. */
bool fr_job_take_parallel(fr_job *job, const char *key, const json_t *value) {
    if (!json_is_boolean(value)) return fr_job_refuse(job, FR_USAGE, "%s must be true or false", key);
    job->several = json_is_true(value);
    job->one_call = !job->several;
    return true;
}

/* ------------------------------------------------------------------------------------------------------ the grammar */

static fr_status open_reply(const fr_job *job, fr_job_grammar *g, const fr_token_tree *tree) {
    char *settings = fr_json_line(job->settings);
    bool may_call = json_array_size(json_object_get(job->settings, "tools")) > 0;
    const fr_reply_rule rule = {.prompt = &job->prompt.rendered,
                                .options_json = settings,
                                .calls = job->must_call ? FR_REPLY_CALLS_MUST
                                         : may_call     ? FR_REPLY_CALLS_MAY
                                                        : FR_REPLY_CALLS_NONE,
                                .tool = job->tool,
                                .several = !job->one_call,
                                .kind = g->kind,
                                .text = g->text,
                                .length = g->length};
    fr_status status = fr_grammar_open_reply(tree, &rule, &g->grammar);
    free(settings);
    return status;
}

bool fr_job_make_grammar(fr_job *job) {
    const fr_token_tree *tree;
    if (job->must_call && job->continues)
        return fr_job_refuse(job, FR_USAGE, "tool_choice: a message that is gone on with is no call");
    if (job->must_call && !job->grammar) keep(job, "tool_choice", FR_GRAMMAR_REGEX, NULL, 0);
    fr_job_grammar *g = job->grammar;
    if (!g || g->grammar) return true;
    fr_status status = fr_loaded_tokens(job->setting->loaded, &tree);
    bool reply = job->prompt.rendered.text && !job->continues, ends;
    if (status == FR_OK && reply) status = open_reply(job, g, tree);
    if (status == FR_OK && !reply) status = fr_grammar_open(tree, g->kind, g->text, g->length, &g->grammar);
    /* The first mask may take some milliseconds. It is computed here in the request's thread, because the engine's
     * thread has other texts to run. */
    const uint64_t *bits;
    if (status == FR_OK) status = fr_grammar_allowed(g->grammar, NULL, 0, &bits, &ends);
    return status == FR_OK || fr_job_refuse(job, status, "%s: %s", g->member, fr_last_error());
}

fr_status fr_job_set_grammar(const fr_job *job) {
    return job->grammar ? fr_session_set_grammar(job->session, job->grammar->grammar) : FR_OK;
}

void fr_job_hold_grammar(fr_job *job) {
    if (job->grammar) job->grammar->holders++;
}

void fr_job_drop_grammar(fr_job *job) {
    fr_job_grammar *g = job->grammar;
    job->grammar = NULL;
    if (!g || --g->holders > 0) return;
    fr_grammar_close(g->grammar);
    free(g->text);
    free(g);
}
