/* Grammars of requests: see job_grammar.h. */
#include "job_grammar.h"

#include <stdlib.h>
#include <string.h>

struct fr_job_grammar {
    size_t holders;      /* jobs */
    const char *member;  /* that asked for it */
    fr_grammar_kind kind;
    char *text;
    size_t length;
    fr_grammar *grammar; /* NULL: not made yet */
};

/* ---------------------------------------------------------------------------------------------------------- members */

/* Takes `text`. */
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
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    if (!text) return fr_job_refuse(job, FR_MEMORY, "out of memory: %s", member);
    return keep(job, member, FR_GRAMMAR_JSON_SCHEMA, text, strlen(text));
}

/* An empty one is none, as in llama.cpp's server. */
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

/* Any object, or, as llama.cpp's server has it, one of a schema beside the type. */
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
        return fr_job_refuse(job, FR_UNBUILT, "%s of type \"%.60s\" is not built: text, json_object and json_schema "
                             "are", key, json_string_value(type));
    const json_t *schema = json_object_get(json_is_object(inner) ? inner : value, "schema");
    if (!schema) return fr_job_refuse(job, FR_USAGE, "%s has no json_schema.schema", key);
    return take_schema(job, inner ? "response_format.json_schema.schema" : "response_format.schema", schema);
}

/* ------------------------------------------------------------------------------------------------------ the grammar */

/* The first mask is made here too, which may take some milliseconds: this thread has no text under way. */
static fr_status open(fr_job_grammar *g, const fr_token_tree *tree) {
    const uint64_t *bits;
    bool ends;
    fr_status status = fr_grammar_open(tree, g->kind, g->text, g->length, &g->grammar);
    return status == FR_OK ? fr_grammar_allowed(g->grammar, NULL, 0, &bits, &ends) : status;
}

bool fr_job_make_grammar(fr_job *job) {
    fr_job_grammar *g = job->grammar;
    const fr_token_tree *tree;
    if (!g || g->grammar) return true;
    fr_status status = fr_loaded_tokens(job->setting->loaded, &tree);
    if (status == FR_OK) status = open(g, tree);
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
