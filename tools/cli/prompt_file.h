/* Reads a prompt's file.
 *
 * In: a path; "-" means standard input. Out: the file's bytes. If the file can't be read, an error line and an exit
 * status. */
#ifndef FR_TOOLS_CLI_PROMPT_FILE_H
#define FR_TOOLS_CLI_PROMPT_FILE_H

#include "forerun.h"

/* A prompt as it was given (bytes or ids), the rendered text, and the ids that were made of the text. */
typedef struct fr_prompt {
    char *bytes;
    size_t length;
    fr_marked_text rendered; /* the text that a chat template made of the bytes; empty without a template */
    int32_t *tokens;         /* ids that the tokenizer made of the bytes or of the rendered text */
    int32_t *expanded;       /* ids that a request gave as numbers; NULL: the request gave none */
    const int32_t *ids;
    size_t count;
} fr_prompt;

int fr_prompt_read_file(fr_prompt *prompt, const char *path);
void fr_prompt_free(fr_prompt *prompt);

#endif
