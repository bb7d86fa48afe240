/* Compiles and renders templates (template.h). */
#include "src/language/jinja/template.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "formats/json_wide.h"
#include "src/language/jinja/template_render.h"
#include "src/language/jinja/template_wide.h"

#define SOURCE_MAX ((size_t)1 << 20)
#define MEMORY_MAX ((size_t)256 << 20) /* limit on the bytes of a compiled template */

/* -------------------------------------------------------------------------------------------------------- compiling */

fr_status fr_template_fail(const fr_template *template, uint32_t line, const char *format, ...) {
    char what[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return fr_fail(FR_INPUT, "%s:%u: %s", template->name, (unsigned)line, what);
}

fr_status fr_template_fail_memory(const fr_template *template, uint32_t line, const fr_jinja_bump *memory) {
    if (memory->refused == FR_MEMORY) return fr_fail_memory(template->name, memory->taken);
    return fr_template_fail(template, line, "more than %zu MiB of memory", memory->limit >> 20);
}

static char *copy_bytes(fr_jinja_bump *memory, const char *bytes, size_t length) {
    char *copy = fr_jinja_bump_take(memory, length + 1, 1);
    if (copy && length > 0) memcpy(copy, bytes, length);
    return copy;
}

static fr_status compile(fr_template *template, const char *source, size_t length, const char *name) {
    template->memory.limit = MEMORY_MAX;
    template->name = copy_bytes(&template->memory, name, strlen(name));
    if (!template->name) return fr_fail_memory(name, strlen(name));
    if (length > SOURCE_MAX) return fr_template_fail(template, 1, "a template of more than %zu bytes", SOURCE_MAX);
    template->source = copy_bytes(&template->memory, source, length);
    if (!template->source) return fr_template_fail_memory(template, 1, &template->memory);
    template->length = length;
    FR_TRY(fr_template_parse(template));
    return fr_template_resolve(template);
}

fr_status fr_template_compile(const char *source, size_t length, const char *name, fr_template **template) {
    *template = NULL;
    fr_template *compiled = calloc(1, sizeof *compiled);
    if (!compiled) return fr_fail_memory(name, sizeof *compiled);
    fr_status status = compile(compiled, source, length, name);
    if (status == FR_OK)
        *template = compiled;
    else
        fr_template_close(compiled);
    return status;
}

void fr_template_close(fr_template *template) {
    if (!template) return;
    fr_jinja_bump_free(&template->memory);
    free(template);
}

const char *fr_template_source(const fr_template *template, size_t *length) {
    *length = template->length;
    return template->source;
}

/* -------------------------------------------------------------------------------------------------------- variables */

static fr_jinja_value value_of(fr_jinja_render *render, const json_t *json, bool foreign);

static fr_jinja_value value_of_list(fr_jinja_render *render, const json_t *json, bool foreign) {
    size_t count = json_array_size(json);
    fr_jinja_list *list = fr_jinja_list_new(render, count);
    for (size_t i = 0; i < count && fr_jinja_render_step(render, 0); i++)
        fr_jinja_list_append(render, list, value_of(render, json_array_get(json, i), foreign));
    return fr_jinja_of_list(list, foreign);
}

static fr_jinja_value value_of_object(fr_jinja_render *render, const json_t *json, bool foreign) {
    fr_jinja_dict *dict = fr_jinja_dict_new(render, json_object_size(json));
    json_t *object = (json_t *)(uintptr_t)json; /* jansson's iterators do not accept a const object */
    for (void *at = json_object_iter(object); at && fr_jinja_render_step(render, 0);
         at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        fr_jinja_value name = fr_jinja_of_string(fr_jinja_string_new(render, key, strlen(key), foreign));
        fr_jinja_dict_set(render, dict, name, value_of(render, json_object_iter_value(at), foreign));
    }
    return fr_jinja_of_dict(dict, foreign);
}

static fr_jinja_value value_of_string(fr_jinja_render *render, const json_t *json, bool foreign) {
    size_t length;
    const char *digits = fr_json_wide_digits(json, &length);
    if (digits) return fr_of_wide(fr_jinja_string_new(render, digits, length, foreign));
    return fr_jinja_of_string(fr_jinja_string_new(render, json_string_value(json), json_string_length(json), foreign));
}

/* Converts a JSON value. The bytes of strings are not copied; they belong to jansson. */
static fr_jinja_value value_of(fr_jinja_render *render, const json_t *json, bool foreign) {
    if (!fr_jinja_render_enter(render)) return fr_jinja_none();
    fr_jinja_value value = {.kind = FR_KIND_NONE, .foreign = foreign};
    switch (json_typeof(json)) {
    case JSON_OBJECT: value = value_of_object(render, json, foreign); break;
    case JSON_ARRAY: value = value_of_list(render, json, foreign); break;
    case JSON_STRING: value = value_of_string(render, json, foreign); break;
    case JSON_INTEGER: value = fr_jinja_of_int(json_integer_value(json), foreign); break;
    case JSON_REAL: value = fr_jinja_of_real(json_real_value(json), foreign); break;
    case JSON_TRUE:
    case JSON_FALSE:
        value.kind = FR_KIND_BOOL;
        value.truth = json_is_true(json);
        break;
    case JSON_NULL: break;
    }
    fr_jinja_render_leave(render);
    return value;
}

static fr_jinja_value variables_of(fr_jinja_render *render, const json_t *json, bool foreign) {
    if (json_is_object(json)) return value_of(render, json, foreign);
    return fr_jinja_of_dict(fr_jinja_dict_new(render, 0), foreign);
}

static bool is_usual_role(const json_t *role) {
    static const char *const roles[] = {"system", "developer", "user",     "assistant",
                                        "model",  "tool",      "function", "ipython"};
    const char *word = json_string_value(role);
    if (!word || strlen(word) != json_string_length(role)) return false; /* text may follow a NUL */
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(word, roles[i]) == 0) return true;
    return false;
}

/* Marks the usual names of roles in messages as trusted, because some templates build control tokens from a role, such
 * as Phi-4's <|user|>. Such a name can do no more than the template's own text. */
static void trust_roles(fr_jinja_render *render, const json_t *given) {
    const json_t *messages = json_object_get(given, "messages");
    fr_jinja_value name = fr_jinja_of_string(fr_jinja_string_new(render, "messages", strlen("messages"), false));
    fr_jinja_value key = fr_jinja_of_string(fr_jinja_string_new(render, "role", strlen("role"), false));
    const fr_jinja_entry *found = json_is_array(messages) ? fr_jinja_dict_find(render, render->given.dict, name) : NULL;
    const fr_jinja_list *list = found && found->value.kind == FR_KIND_LIST ? found->value.list : NULL;
    for (size_t i = 0; list && i < list->count; i++) {
        const json_t *role = json_object_get(json_array_get(messages, i), "role");
        if (!is_usual_role(role) || list->items[i].kind != FR_KIND_DICT) continue;
        const fr_jinja_string *word =
            fr_jinja_string_new(render, json_string_value(role), json_string_length(role), false);
        fr_jinja_dict_set(render, list->items[i].dict, key, fr_jinja_of_string(word));
    }
}

/* -------------------------------------------------------------------------------------------------------- rendering */

/* Finds the first offset after `at` at which trusted text changes to foreign text (text that is not trusted), or
 * back. */
static size_t end_of_run(const fr_jinja_render *render, size_t at) {
    const uint8_t *change = memchr(render->marks + at, !render->marks[at], render->length - at);
    return change ? (size_t)(change - render->marks) : render->length;
}

static size_t count_trusted(const fr_jinja_render *render, fr_span *spans) {
    size_t count = 0;
    for (size_t at = 0, end; at < render->length; at = end) {
        end = end_of_run(render, at);
        if (render->marks[at]) continue;
        if (spans) spans[count] = (fr_span){at, end};
        count++;
    }
    return count;
}

static fr_status give(const fr_jinja_render *render, fr_marked_text *out) {
    size_t count = count_trusted(render, NULL);
    out->text = malloc(render->length + 1);
    out->trusted = malloc((count + 1) * sizeof *out->trusted);
    if (!out->text || !out->trusted) {
        fr_marked_text_free(out);
        return fr_fail_memory("a chat", render->length + count * sizeof *out->trusted);
    }
    if (render->length > 0) memcpy(out->text, render->bytes, render->length);
    out->text[render->length] = 0;
    out->length = render->length;
    out->trusted_count = count_trusted(render, out->trusted);
    return FR_OK;
}

static void run(fr_jinja_render *render, const json_t *own, const json_t *given) {
    const fr_template *template = render->template;
    render->own = variables_of(render, own, false);
    render->given = variables_of(render, given, true);
    trust_roles(render, given);
    fr_jinja_frame *frame = fr_jinja_frame_new(render, &template->routine, NULL);
    if (!frame) return;
    fr_jinja_enter_scope(render, frame, &template->routine.scope);
    fr_jinja_run(render, frame, &template->routine.body);
}

fr_status fr_template_render(const fr_template *template, const json_t *own, const json_t *given, int64_t now,
                             fr_marked_text *out) {
    *out = (fr_marked_text){0};
    fr_jinja_render render = {.template = template, .line = 1, .steps = FR_RENDER_STEPS_MAX, .now = now};
    render.memory.limit = FR_RENDER_MEMORY_MAX;
    locale_t usual = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(usual);
    if (!usual) return fr_fail_memory("a locale", sizeof usual);
    run(&render, own, given);
    uselocale(before);
    freelocale(usual);
    fr_status status = fr_jinja_render_failed(&render) ? render.status : give(&render, out);
    free(render.bytes);
    free(render.marks);
    fr_jinja_bump_free(&render.memory);
    return status;
}

void fr_marked_text_free(fr_marked_text *text) {
    if (!text) return;
    free(text->text);
    free(text->trusted);
    *text = (fr_marked_text){0};
}
