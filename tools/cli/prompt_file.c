/* Reads a prompt's file (prompt_file.h). */
#include "tools/cli/prompt_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

#define PROMPT_MAX ((size_t)1 << 28) /* The most bytes that are read, because a device may give bytes without end. */

int fr_prompt_read_file(fr_prompt *prompt, const char *path) {
    *prompt = (fr_prompt){0};
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "rb");
    if (!file) return fr_bad_input("%s: %s", path, strerror(errno));
    size_t capacity = 0, got;
    do {
        if (prompt->length == capacity) prompt->bytes = fr_resize(prompt->bytes, capacity = 2 * capacity + 4096, 1);
        got = fread(prompt->bytes + prompt->length, 1, capacity - prompt->length, file);
        prompt->length += got;
    } while (got && prompt->length <= PROMPT_MAX);
    int code = 0;
    if (ferror(file))
        code = fr_bad_input("%s: %s", standard ? "standard input" : path, strerror(errno));
    else if (prompt->length > PROMPT_MAX)
        code = fr_bad_input("%s: more than %zu bytes", path, PROMPT_MAX);
    if (!standard) fclose(file);
    return code;
}

void fr_prompt_free(fr_prompt *prompt) {
    free(prompt->bytes);
    fr_marked_text_free(&prompt->rendered);
    fr_free(prompt->tokens);
    free(prompt->expanded);
    *prompt = (fr_prompt){0};
}
