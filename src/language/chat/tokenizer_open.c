/* Opens and closes a tokenizer with its chat templates (tokenizer_open.h). */
#include "src/language/chat/tokenizer_open.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/options.h"
#include "formats/checkpoint.h"
#include "formats/gguf_folder.h"
#include "formats/tokenizer_gguf.h"
#include "formats/tokenizer_json.h"
#include "src/language/chat/chat_templates.h"
#include "src/language/tokenizer/tokenizer_parts.h"

/* Builds the tokenizer in two steps, and opens the templates between them. The second step needs the templates: if a
 * template contains the text of an added token, that token becomes a control token. */
static fr_status build(fr_tokenizer *tokenizer, const fr_tokenizer_source *source, const fr_chat_sources *sources) {
    fr_chat_templates *chat = tokenizer->chat;
    FR_TRY(fr_tokenizer_start(tokenizer, source));
    FR_TRY(fr_chat_templates_open(chat, sources, fr_chat_family_find(&tokenizer->vocabulary), source->path));
    const char *family = chat->built_in ? chat->family->source : "";
    fr_text texts[] = {{sources->any.text, sources->any.length},
                       {sources->tools.text, sources->tools.length},
                       {family, strlen(family)}};
    return fr_tokenizer_finish(tokenizer, source, texts, sizeof texts / sizeof *texts);
}

/* Builds the tokenizer if `status` says that the chat templates could be read. Closes both sources, even after a
 * failure. */
static fr_status open_sources(fr_tokenizer_source *source, fr_chat_sources *sources, fr_status status,
                              fr_tokenizer **tokenizer) {
    fr_tokenizer *opened = calloc(1, sizeof *opened);
    if (opened) opened->chat = calloc(1, sizeof *opened->chat);
    if (status == FR_OK)
        status = opened && opened->chat ? build(opened, source, sources)
                                        : fr_fail_memory("a tokenizer", sizeof *opened + sizeof *opened->chat);
    fr_tokenizer_source_close(source);
    fr_chat_sources_close(sources);
    if (status == FR_OK)
        *tokenizer = opened;
    else
        fr_tokenizer_close(opened);
    return status;
}

fr_status fr_tokenizer_from_gguf(const fr_gguf *gguf, const char *chat_template, const char *pre,
                                 fr_tokenizer **tokenizer) {
    fr_tokenizer_source source;
    fr_chat_sources sources;
    *tokenizer = NULL;
    FR_TRY(fr_tokenizer_gguf_open(&source, gguf, pre));
    fr_status status =
        *chat_template ? fr_chat_sources_read_file(&sources, chat_template) : fr_chat_sources_read_gguf(&sources, gguf);
    return open_sources(&source, &sources, status, tokenizer);
}

fr_status fr_tokenizer_from_folder(const char *folder, const char *chat_template, const char *pre,
                                   fr_tokenizer **tokenizer) {
    fr_tokenizer_source source;
    fr_chat_sources sources;
    *tokenizer = NULL;
    if (*pre)
        return fr_fail(FR_USAGE, "tokenizer-pre %s is for GGUF files: the tokenizer.json of %s says how texts are cut",
                       pre, folder);
    FR_TRY(fr_tokenizer_json_open(&source, folder));
    fr_status status = *chat_template ? fr_chat_sources_read_file(&sources, chat_template)
                                      : fr_chat_sources_read_folder(&sources, folder, source.config);
    return open_sources(&source, &sources, status, tokenizer);
}

static fr_status open_gguf_file(const char *path, const char *chat_template, const char *pre,
                                fr_tokenizer **tokenizer) {
    fr_checkpoint files;
    FR_TRY(fr_checkpoint_open(&files, path, true));
    fr_status status = fr_tokenizer_from_gguf(files.gguf, chat_template, pre, tokenizer);
    fr_checkpoint_close(&files);
    return status;
}

fr_status fr_tokenizer_open(const char *path, const fr_options *options, fr_tokenizer **tokenizer) {
    const char *chat_template = options ? options->chat_template : "", *pre = options ? options->tokenizer_pre : "";
    if (tokenizer) *tokenizer = NULL;
    if (!path || !tokenizer) return fr_fail(FR_USAGE, "fr_tokenizer_open: a path and a place for it are needed");
    char *place;
    struct stat info;
    FR_TRY(fr_gguf_folder_place(path, &place));
    bool file = stat(place, &info) == 0 && S_ISREG(info.st_mode);
    fr_status status = (file ? open_gguf_file : fr_tokenizer_from_folder)(place, chat_template, pre, tokenizer);
    free(place);
    return status;
}

void fr_tokenizer_close(fr_tokenizer *tokenizer) {
    if (!tokenizer) return;
    if (tokenizer->chat) fr_chat_templates_close(tokenizer->chat);
    free(tokenizer->chat);
    fr_tokenizer_free(tokenizer);
}
