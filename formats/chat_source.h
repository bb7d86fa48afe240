/* Finds the chat templates of a checkpoint and gives them as text.
 *
 * In: one of
 *     a folder with chat_template.jinja; if additional_chat_templates/default.jinja exists, it is used instead, and
 *     tool_use.jinja may be in the same folder
 *     a folder whose chat_template.json (of older processors), tokenizer_config.json or processor_config.json, in this
 *     order, has "chat_template": a string, or [{"name": "default" or "tool_use", "template"}, ...], or
 *     {"default": a string, "tool_use": a string}
 *     a GGUF file with tokenizer.chat_template and tokenizer.chat_template.tool_use
 *     a template file that the user gives
 * Out: the template for any conversation, and the template for conversations with tools, if the checkpoint has a
 * separate one. The Jinja in the templates is not parsed here. */
#ifndef FR_FORMATS_CHAT_SOURCE_H
#define FR_FORMATS_CHAT_SOURCE_H

#include "formats/gguf.h"
#include "formats/json.h"

#define FR_CHAT_TEMPLATE_MAX ((size_t)1 << 20) /* bytes; the largest published templates have 30 thousand */

typedef struct fr_chat_source {
    char *text; /* NUL-terminated; NULL if there is no template */
    size_t length;
    char *where; /* the file or key that the template came from, for error lines */
} fr_chat_source;

typedef struct fr_chat_sources {
    fr_chat_source any, tools;
    /* the reason why the checkpoint's templates can't be read; NULL: they were read */
    char *error;
} fr_chat_sources;

/* Each reads templates: those of a folder, those of a GGUF file, or the one in a file that the user gives. `config` is
 * the content of tokenizer_config.json, NULL if there is none. Only the user's file fails with FR_INPUT if it is
 * unreadable. A failure leaves nothing open. */
fr_status fr_chat_sources_read_folder(fr_chat_sources *sources, const char *folder, const json_t *config);
fr_status fr_chat_sources_read_gguf(fr_chat_sources *sources, const fr_gguf *gguf);
fr_status fr_chat_sources_read_file(fr_chat_sources *sources, const char *path);
void fr_chat_sources_close(fr_chat_sources *sources);

#endif
