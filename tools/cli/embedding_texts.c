/* Reads the texts of embed and rerank (embedding_texts.h). */
#include "tools/cli/embedding_texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/escapes.h"
#include "tools/cli/output.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is the memory, so that must be little-endian too");

static void add_text(fr_texts *texts, size_t begin, size_t end) {
    if ((texts->count & (texts->count - 1)) == 0)
        texts->spans = fr_resize(texts->spans, texts->count ? 2 * texts->count : 1, sizeof *texts->spans);
    texts->spans[texts->count++] = (fr_span){begin, end};
}

int fr_texts_read(fr_texts *texts, const fr_arguments *args) {
    *texts = (fr_texts){0};
    int code = fr_prompt_read_file(&texts->file, args->text[FR_ARG_FILE]);
    if (code) return code;
    const char *given = args->given[FR_ARG_SEPARATOR] ? args->text[FR_ARG_SEPARATOR] : "\n";
    size_t length = strlen(given), size = texts->file.length, at = 0;
    char *separator = fr_resize(NULL, length + 1, 1);
    memcpy(separator, given, length + 1);
    length = fr_escapes_read(separator, length);
    if (length == 0) {
        free(separator);
        return fr_wrong_usage("--embd-separator must not be empty");
    }
    while (at < size) {
        const char *found = memmem(texts->file.bytes + at, size - at, separator, length);
        size_t end = found ? (size_t)(found - texts->file.bytes) : size;
        bool line = !args->given[FR_ARG_SEPARATOR];
        add_text(texts, at, end - (line && end > at && texts->file.bytes[end - 1] == '\r'));
        at = found ? end + length : size;
    }
    free(separator);
    return texts->count ? 0 : fr_bad_input("%s has no text", args->text[FR_ARG_FILE]);
}

void fr_texts_free(fr_texts *texts) {
    fr_prompt_free(&texts->file);
    free(texts->spans);
    *texts = (fr_texts){0};
}

int fr_embedder_load(fr_loaded *loaded, fr_embedder **embedder, const fr_arguments *args) {
    static const char *const words[] = {
        [FR_POOLING_NONE] = "", [FR_POOLING_MEAN] = "mean", [FR_POOLING_CLS] = "cls", [FR_POOLING_LAST] = "last"};
    fr_pooling pooling = FR_POOLING_NONE;
    int code = fr_loaded_open(loaded, args);
    if (code) return code;
    for (int i = FR_POOLING_MEAN; args->given[FR_ARG_POOLING] && i <= FR_POOLING_LAST; i++)
        if (strcmp(words[i], args->text[FR_ARG_POOLING]) == 0) pooling = (fr_pooling)i;
    return fr_exit_status(fr_embedder_open(loaded->model, NULL, loaded->options, pooling, embedder));
}

void fr_embedder_note_cut(const fr_embedder_text *texts, size_t count, const char *what, const fr_arguments *args) {
    size_t cut = 0, longest = 0;
    for (size_t i = 0; i < count; i++) {
        if (texts[i].whole > texts[i].count) cut++;
        if (texts[i].whole > texts[longest].whole) longest = i;
    }
    if (cut && !args->given[FR_ARG_QUIET])
        fr_note("%zu of %zu %s %s longer than the model reads, and the end is left out: the longest has %zu tokens, "
                "of which %zu are read",
                cut, count, what, cut == 1 ? "is" : "are", texts[longest].whole, texts[longest].count);
}

void fr_floats_write(const float *values, size_t count) {
    fwrite(values, sizeof *values, count, stdout); /* a write that fails is reported at the end of the command */
}

void fr_float_print(float value) {
    printf("%.9g", (double)value);
}
