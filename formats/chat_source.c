/* Reads the chat templates of checkpoints (chat_source.h). */
#include "formats/chat_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/checkpoint.h"

#define JSON_MAX (8 * FR_CHAT_TEMPLATE_MAX) /* bytes of a file whose template's characters are all escaped */
#include "formats/json_wide.h"

/* ------------------------------------------------------------------------------------------------------------ texts */

/* Refuses a template that is not UTF-8, as the other texts of a model are refused. Replacing the invalid bytes would
 * give a prompt that the model never saw in training. */
static fr_status check_text(const char *bytes, size_t length, const char *where) {
    const utf8proc_uint8_t *text = (const utf8proc_uint8_t *)bytes;
    size_t line = 1;
    for (size_t at = 0; at < length;) {
        utf8proc_int32_t codepoint;
        size_t left = length - at;
        utf8proc_ssize_t step = utf8proc_iterate(text + at, left < 4 ? (utf8proc_ssize_t)left : 4, &codepoint);
        if (step <= 0) return fr_fail(FR_INPUT, "%s:%zu: this chat template is not UTF-8", where, line);
        line += codepoint == '\n';
        at += (size_t)step;
    }
    return FR_OK;
}

/* Stores a template. An empty text counts as no template. `where` and `part` together name the template's source in
 * error lines. */
static fr_status set(fr_chat_source *source, fr_text text, const char *where, const char *part) {
    if (text.length == 0) return FR_OK;
    size_t size = strlen(where) + strlen(part) + 3;
    if (text.length > FR_CHAT_TEMPLATE_MAX)
        return fr_fail(FR_INPUT, "%s: the chat template has %zu bytes, and at most %zu are read", where, text.length,
                       FR_CHAT_TEMPLATE_MAX);
    source->text = malloc(text.length + 1);
    source->where = malloc(size);
    if (!source->text || !source->where) return fr_fail_memory(where, text.length + size);
    memcpy(source->text, text.bytes, text.length);
    source->text[text.length] = 0;
    source->length = text.length;
    snprintf(source->where, size, "%s: %s", where, part);
    return check_text(source->text, source->length, source->where);
}

static fr_status read_file(fr_chat_source *source, const char *path) {
    source->where = strdup(path);
    if (!source->where) return fr_fail_memory("a path", strlen(path));
    FR_TRY(fr_read_text(path, FR_CHAT_TEMPLATE_MAX, &source->text, &source->length));
    return check_text(source->text, source->length, path);
}

static void close_source(fr_chat_source *source) {
    free(source->text);
    free(source->where);
    *source = (fr_chat_source){0};
}

void fr_chat_sources_close(fr_chat_sources *sources) {
    close_source(&sources->any);
    close_source(&sources->tools);
    free(sources->error);
    sources->error = NULL;
}

/* If the checkpoint's own templates can't be read, stores the reason in sources->error, so that the model can still be
 * opened. Only a lack of memory is returned as a failure. */
static fr_status settle(fr_chat_sources *sources, fr_status status) {
    if (status == FR_OK) return FR_OK;
    fr_chat_sources_close(sources);
    if (status == FR_MEMORY) return status;
    sources->error = strdup(fr_last_error());
    return sources->error ? FR_OK : fr_fail_memory("a chat template", strlen(fr_last_error()));
}

/* ---------------------------------------------------------------------------------------------------------- sources */

/* Stores a template by its name. If a name occurs twice, the last template is used. */
static fr_status set_named(fr_chat_sources *sources, const char *name, const char *text, const char *where) {
    bool any = strcmp(name, "default") == 0, tools = strcmp(name, "tool_use") == 0;
    if (!any && !tools) return FR_OK;
    fr_chat_source *source = any ? &sources->any : &sources->tools;
    close_source(source);
    return set(source, (fr_text){text, strlen(text)}, where, name);
}

static fr_status read_entry(fr_chat_sources *sources, const json_t *entry, const char *where) {
    const char *name, *text;
    FR_TRY(fr_json_text(entry, "name", where, &name));
    FR_TRY(fr_json_text(entry, "template", where, &text));
    if (!name || !text) return fr_fail(FR_INPUT, "%s: a \"chat_template\" without a name or a text", where);
    return set_named(sources, name, text, where);
}

static fr_status read_object(fr_chat_sources *sources, const json_t *object, const char *where) {
    static const char *const names[] = {"default", "tool_use"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text;
        FR_TRY(fr_json_text(object, names[i], where, &text));
        if (text) FR_TRY(set_named(sources, names[i], text, where));
    }
    return FR_OK;
}

static fr_status read_config(fr_chat_sources *sources, const json_t *config, const char *where) {
    const json_t *found = json_object_get(config, "chat_template"), *entry;
    size_t i;
    if (fr_json_is_text(found))
        return set(&sources->any, (fr_text){json_string_value(found), json_string_length(found)}, where,
                   "chat_template");
    if (json_is_object(found)) return read_object(sources, found, where);
    if (found && !json_is_null(found) && !json_is_array(found))
        return fr_fail(FR_INPUT, "%s: \"chat_template\" is neither a string nor a list of them", where);
    json_array_foreach (found, i, entry) FR_TRY(read_entry(sources, entry, where));
    return FR_OK;
}

/* Reads the file of a template, if it exists. The file's template replaces the template with the same name in the
 * configuration. */
static fr_status read_beside(fr_chat_source *source, const char *folder, const char *name) {
    char *path = fr_path_join(folder, name);
    if (!path) return fr_fail_memory("a path", strlen(folder));
    fr_status status = FR_OK;
    if (fr_file_exists(path)) {
        close_source(source);
        status = read_file(source, path);
    }
    free(path);
    return status;
}

/* Reads the "chat_template" of a JSON file, if the file exists and no template was found yet. */
static fr_status read_json_beside(fr_chat_sources *sources, const char *folder, const char *name) {
    if (sources->any.text) return FR_OK;
    char *path = fr_path_join(folder, name);
    json_t *config = NULL;
    if (!path) return fr_fail_memory("a path", strlen(folder));
    fr_status status = fr_file_exists(path) ? fr_json_read(path, JSON_MAX, &config) : FR_OK;
    if (status == FR_OK && config) status = read_config(sources, config, path);
    json_decref(config);
    free(path);
    return status;
}

/* Reads the templates of a folder. If there is a template file for any conversation, it replaces all templates in the
 * configuration, including those with a name. */
static fr_status read_folder(fr_chat_sources *sources, const char *folder, const json_t *config, const char *where) {
    if (!where) return fr_fail_memory("a path", strlen(folder));
    FR_TRY(read_beside(&sources->any, folder, "chat_template.jinja"));
    FR_TRY(read_beside(&sources->any, folder, "additional_chat_templates/default.jinja"));
    FR_TRY(read_json_beside(sources, folder, "chat_template.json"));
    if (!sources->any.text) FR_TRY(read_config(sources, config, where));
    FR_TRY(read_json_beside(sources, folder, "processor_config.json"));
    return read_beside(&sources->tools, folder, "additional_chat_templates/tool_use.jinja");
}

fr_status fr_chat_sources_read_folder(fr_chat_sources *sources, const char *folder, const json_t *config) {
    *sources = (fr_chat_sources){0};
    char *where = fr_path_join(folder, "tokenizer_config.json");
    fr_status status = read_folder(sources, folder, config, where);
    free(where);
    return settle(sources, status);
}

fr_status fr_chat_sources_read_gguf(fr_chat_sources *sources, const fr_gguf *gguf) {
    static const char *const keys[] = {"tokenizer.chat_template", "tokenizer.chat_template.tool_use"};
    fr_chat_source *found[] = {&sources->any, &sources->tools};
    fr_status status = FR_OK;
    *sources = (fr_chat_sources){0};
    for (size_t i = 0; i < 2 && status == FR_OK; i++) {
        fr_text text;
        status = fr_gguf_text(gguf, keys[i], &text);
        if (status == FR_OK && text.bytes) status = set(found[i], text, gguf->path, keys[i]);
    }
    return settle(sources, status);
}

fr_status fr_chat_sources_read_file(fr_chat_sources *sources, const char *path) {
    *sources = (fr_chat_sources){0};
    fr_status status = read_file(&sources->any, path);
    if (status != FR_OK) fr_chat_sources_close(sources);
    return status;
}
