/* Opens the chat templates of a tokenizer (chat_templates.h). */
#include "src/language/chat/chat_templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static fr_status keep_error(fr_chat_template *template, const char *error) {
    template->error = strdup(error);
    return template->error ? FR_OK : fr_fail_memory("a chat template", strlen(error));
}

static fr_status compile(fr_chat_template *template, const char *source, size_t length, const char *where) {
    fr_status status = fr_template_compile(source, length, where, &template->ready);
    return status == FR_OK || status == FR_MEMORY ? status : keep_error(template, fr_last_error());
}

static fr_status say(char **note, const char *where, const char *what, const char *family) {
    size_t size = strlen(where) + strlen(what) + strlen(family) + 64;
    if (!(*note = malloc(size))) return fr_fail_memory(where, size);
    snprintf(*note, size, "%s: %s: forerun's own for %s is used", where, what, family);
    return FR_OK;
}

/* Compiles the family's template, which replaces the checkpoint's. what: the reason for that, which is put into the
 * note. */
static fr_status compile_family(fr_chat_template *template, const fr_chat_family *family, const char *where,
                                const char *what, char **note) {
    FR_TRY(say(note, where, what, family->name));
    return compile(template, family->source, strlen(family->source), family->name);
}

static fr_status compile_own(fr_chat_template *template, const fr_chat_source *source) {
    return source->text ? compile(template, source->text, source->length, source->where) : FR_OK;
}

static bool has_text(const fr_chat_source *source, const char *text) {
    return memmem(source->text, source->length, text, strlen(text)) != NULL;
}

/* Opens all templates. If the checkpoint's template writes the same turns as the family's template but leaves pictures
 * out, the family's template is used for pictures. The turns are compared because a vocabulary may have the tokens of
 * two families. */
static fr_status open_all(fr_chat_templates *chat, const fr_chat_sources *sources, const char *where) {
    const char *picture = chat->family ? chat->family->picture : NULL;
    if (sources->error) return keep_error(&chat->any, sources->error);
    FR_TRY(compile_own(&chat->tools, &sources->tools));
    chat->built_in = chat->family && !sources->any.text;
    if (chat->built_in)
        return compile_family(&chat->any, chat->family, where, "no chat template beside it", &chat->note);
    if (picture && has_text(&sources->any, chat->family->tokens[0]) && !has_text(&sources->any, picture))
        FR_TRY(compile_family(&chat->pictures, chat->family, sources->any.where,
                              "this chat template leaves pictures out", &chat->picture_note));
    return compile_own(&chat->any, &sources->any);
}

fr_status fr_chat_templates_open(fr_chat_templates *chat, const fr_chat_sources *sources, const fr_chat_family *family,
                                 const char *where) {
    *chat = (fr_chat_templates){.family = family};
    fr_kept_answers_open(&chat->answers);
    fr_status status = open_all(chat, sources, where);
    if (status != FR_OK) fr_chat_templates_close(chat);
    return status;
}

static void close_template(fr_chat_template *template) {
    fr_template_close(template->ready);
    free(template->error);
}

void fr_chat_templates_close(fr_chat_templates *chat) {
    close_template(&chat->any);
    close_template(&chat->tools);
    close_template(&chat->pictures);
    free(chat->note);
    free(chat->picture_note);
    fr_kept_answers_close(&chat->answers);
    *chat = (fr_chat_templates){0};
}

static bool is_there(const fr_chat_template *template) {
    return template->ready || template->error;
}

const fr_chat_template *fr_chat_templates_for(const fr_chat_templates *chat, const json_t *options) {
    if (is_there(&chat->pictures) && json_is_true(json_object_get(options, "pictures"))) return &chat->pictures;
    if (is_there(&chat->tools) && json_is_array(json_object_get(options, "tools"))) return &chat->tools;
    return &chat->any;
}
