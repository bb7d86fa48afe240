/* Finds the chat templates of a checkpoint, as text: Jinja, which is not read here.
 *
 * In: one of
 *     chat_template.jinja in a folder, and additional_chat_templates/default.jinja, which goes before it, and
 *     tool_use.jinja there
 *     "chat_template" in chat_template.json, where older processors keep it, else in tokenizer_config.json, else in
 *     processor_config.json: a string, or [{"name": "default" or "tool_use", "template"}, ...], or
 *     {"default": a string, "tool_use": a string}
 *     GGUF's tokenizer.chat_template and tokenizer.chat_template.tool_use
 *     a file of the user's
 * Out: the template for any conversation, and the one for conversations with tools where that has its own. */
#ifndef FR_FORMATS_CHAT_SOURCE_H
#define FR_FORMATS_CHAT_SOURCE_H

#include "formats/gguf.h"
#include "formats/json.h"

#define FR_CHAT_TEMPLATE_LIMIT ((size_t)1 << 20) /* bytes; the largest published ones have 30 thousand */

typedef struct fr_chat_source {
    char *text; /* NUL-terminated; NULL: there is none */
    size_t length;
    char *where; /* it was, for error lines */
} fr_chat_source;

typedef struct fr_chat_sources {
    fr_chat_source any, tools;
    char *error; /* why what the checkpoint carries can't be read, which leaves the two empty; NULL: it can */
} fr_chat_sources;

/* config: of tokenizer_config.json, NULL if there is none. Only the user's file is FR_INPUT where it can't be read. A
 * failure leaves nothing open. */
fr_status fr_chat_sources_read_folder(fr_chat_sources *sources, const char *folder, const json_t *config);
fr_status fr_chat_sources_read_gguf(fr_chat_sources *sources, const fr_gguf *gguf);
fr_status fr_chat_sources_read_file(fr_chat_sources *sources, const char *path);
void fr_chat_sources_close(fr_chat_sources *sources);

#endif
