/* Implements forerun embed: computes and writes an embedding of each text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/embedding_texts.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"

/* number of texts whose embeddings are computed together, before they are written */
enum { TOGETHER = 1024 };

static void write_rows(const float *rows, size_t first, size_t count, size_t width, const char *form) {
    if (strcmp(form, "f32") == 0) {
        fr_floats_write(rows, count * width);
        return;
    }
    bool json = strcmp(form, "json") == 0;
    for (size_t t = 0; t < count; t++, rows += width) {
        if (json) fputs(first + t ? ",\n[" : "[[", stdout);
        for (size_t i = 0; i < width; i++) {
            if (i) fputs(json ? "," : " ", stdout);
            fr_float_print(rows[i]);
        }
        fputs(json ? "]" : "\n", stdout);
    }
}

/* Finds the prompt that is put before each text. *prompt: NULL if there is none. */
static int find_prompt(const fr_embedder *e, const fr_arguments *args, const char **prompt) {
    const char *name = args->text[FR_ARG_PROMPT_NAME];
    *prompt = args->given[FR_ARG_INSTRUCTION] ? args->text[FR_ARG_INSTRUCTION] : NULL;
    if (args->given[FR_ARG_INSTRUCTION]) return 0;
    if (name && strcmp(name, "none") == 0 && !fr_embedder_prompt(e, "none")) return 0;
    *prompt = fr_embedder_prompt(e, name);
    if (*prompt || !name) return 0;
    char names[512] = "";
    for (size_t i = 0, length = 0; fr_embedder_prompt_name(e, i) && length < sizeof names; i++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "",
                                   fr_embedder_prompt_name(e, i));
    return fr_bad_input("%s has no prompt %s; it has %s", args->text[FR_ARG_MODEL], name, *names ? names : "none");
}

static int encode(const fr_embedder *e, const fr_texts *texts, const char *prompt, fr_embedder_text *encoded) {
    fr_status status = FR_OK;
    for (size_t i = 0; i < texts->count && status == FR_OK; i++)
        status = fr_embedder_encode(e, prompt, texts->file.bytes + texts->spans[i].begin,
                                    texts->spans[i].end - texts->spans[i].begin, &encoded[i]);
    return fr_exit_status(status);
}

static int run(fr_embedder *e, const fr_embedder_text *texts, size_t count, const fr_arguments *args) {
    size_t dimensions = args->given[FR_ARG_DIMENSIONS] ? (size_t)args->number[FR_ARG_DIMENSIONS] : 0;
    size_t width = dimensions ? dimensions : (size_t)fr_embedder_fact_of(e, FR_EMBEDDER_WIDTH);
    int normalize = !args->given[FR_ARG_NORMALIZE] ? -1 : args->number[FR_ARG_NORMALIZE] == 2;
    const char *form = args->given[FR_ARG_EMBED_OUTPUT] ? args->text[FR_ARG_EMBED_OUTPUT] : "json";
    float *rows = fr_resize(NULL, width * (count < TOGETHER ? count : TOGETHER), sizeof *rows);
    fr_status status = FR_OK;
    for (size_t first = 0; first < count && status == FR_OK; first += TOGETHER) {
        size_t many = count - first < TOGETHER ? count - first : TOGETHER;
        status = fr_embedder_rows(e, texts + first, many, dimensions, normalize, rows);
        if (status == FR_OK) write_rows(rows, first, many, width, form);
    }
    if (status == FR_OK && strcmp(form, "json") == 0) fputs("]\n", stdout);
    free(rows);
    return fr_exit_status(status);
}

int fr_verb_embed(const fr_arguments *args) {
    bool text = args->given[FR_ARG_PROMPT];
    if (text == args->given[FR_ARG_FILE]) return fr_wrong_usage("embed needs either -p TEXT or -f FILE");
    if (args->given[FR_ARG_NORMALIZE] && args->number[FR_ARG_NORMALIZE] != 2 && args->number[FR_ARG_NORMALIZE] != -1)
        return fr_wrong_usage("--embd-normalize %lld is not built yet: 2 and -1 are",
                              (long long)args->number[FR_ARG_NORMALIZE]);
    fr_loaded loaded = {0};
    fr_embedder *embedder = NULL;
    fr_texts texts = {0};
    fr_span whole = {0, text ? strlen(args->text[FR_ARG_PROMPT]) : 0};
    const char *prompt = NULL;
    int code = text ? 0 : fr_texts_read(&texts, args);
    if (code) return code;
    fr_texts used =
        text ? (fr_texts){.file = {.bytes = (char *)(uintptr_t)args->text[FR_ARG_PROMPT]}, .spans = &whole, .count = 1}
             : texts;
    fr_embedder_text *encoded = calloc(used.count, sizeof *encoded);
    if (!encoded) code = fr_bad_input("out of memory: %zu texts", used.count);
    if (!code) code = fr_embedder_load(&loaded, &embedder, args);
    if (!code) code = find_prompt(embedder, args, &prompt);
    if (!code) code = encode(embedder, &used, prompt, encoded);
    if (!code) fr_embedder_note_cut(encoded, used.count, "texts", args);
    if (!code) code = run(embedder, encoded, used.count, args);
    for (size_t i = 0; encoded && i < used.count; i++) fr_embedder_text_free(&encoded[i]);
    free(encoded);
    fr_embedder_close(embedder);
    fr_loaded_close(&loaded);
    fr_texts_free(&texts);
    return code;
}
