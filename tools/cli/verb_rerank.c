/* Implements forerun rerank: scores documents by how well they answer a query. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/embedding_texts.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"

typedef struct ranked {
    size_t document;
    float score;
} ranked;

/* Comparison for qsort: the highest score comes first. Documents with equal scores keep their order. */
static int compare(const void *one, const void *other) {
    const ranked *a = one, *b = other;
    if (a->score != b->score) return a->score < b->score ? 1 : -1;
    return a->document < b->document ? -1 : a->document > b->document;
}

static void print_text(const fr_texts *texts, const ranked *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const fr_span span = texts->spans[list[i].document];
        fr_float_print(list[i].score);
        printf("\t%zu\t", list[i].document);
        for (size_t at = span.begin; at < span.end; at++)
            putchar(texts->file.bytes[at] == '\n' ? ' ' : texts->file.bytes[at]);
        putchar('\n');
    }
}

static void print_json(const ranked *list, size_t count, bool best) {
    for (size_t i = 0; i < count; i++) {
        fputs(i ? ", " : "[", stdout);
        if (best) printf("{\"index\": %zu, \"score\": ", list[i].document);
        fr_float_print(list[i].score);
        if (best) putchar('}');
    }
    fputs("]\n", stdout);
}

static void print_scores(const fr_texts *texts, const float *scores, const fr_arguments *args) {
    const char *form = args->given[FR_ARG_EMBED_OUTPUT] ? args->text[FR_ARG_EMBED_OUTPUT] : "text";
    bool best = args->given[FR_ARG_TOP];
    size_t count = texts->count;
    ranked *list = fr_resize(NULL, count, sizeof *list);
    for (size_t i = 0; i < count; i++) list[i] = (ranked){i, scores[i]};
    if (best) qsort(list, count, sizeof *list, compare);
    if (best && (size_t)args->number[FR_ARG_TOP] < count) count = (size_t)args->number[FR_ARG_TOP];
    if (strcmp(form, "text") == 0)
        print_text(texts, list, count);
    else if (strcmp(form, "json") == 0)
        print_json(list, count, best);
    else
        fr_floats_write(scores, count);
    free(list);
}

static int run(fr_embedder *e, const fr_texts *texts, fr_embedder_text *pairs, const fr_arguments *args) {
    const char *query = args->text[FR_ARG_PROMPT], *instruction = args->text[FR_ARG_INSTRUCTION];
    float *scores = fr_resize(NULL, texts->count, sizeof *scores);
    fr_status status = fr_embedder_scores(e, NULL, 0, false, NULL); /* a model that gives no scores is refused first */
    for (size_t i = 0; i < texts->count && status == FR_OK; i++)
        status =
            fr_embedder_encode_pair(e, instruction, query, strlen(query), texts->file.bytes + texts->spans[i].begin,
                                    texts->spans[i].end - texts->spans[i].begin, &pairs[i]);
    if (status == FR_OK) {
        fr_embedder_note_cut(pairs, texts->count, "documents with the query", args);
        status = fr_embedder_scores(e, pairs, texts->count, args->given[FR_ARG_RAW_SCORES], scores);
    }
    if (status == FR_OK) print_scores(texts, scores, args);
    free(scores);
    return fr_exit_status(status);
}

int fr_verb_rerank(const fr_arguments *args) {
    if (!args->given[FR_ARG_PROMPT] || !args->given[FR_ARG_FILE])
        return fr_wrong_usage("rerank needs -p QUERY and -f FILE with a document in each line");
    if (args->given[FR_ARG_TOP] && args->given[FR_ARG_EMBED_OUTPUT] &&
        strcmp(args->text[FR_ARG_EMBED_OUTPUT], "f32") == 0)
        return fr_wrong_usage("--top-n orders documents, and -o f32 has only their scores");
    fr_loaded loaded = {0};
    fr_embedder *embedder = NULL;
    fr_texts texts;
    int code = fr_texts_read(&texts, args);
    if (code) return code;
    fr_embedder_text *pairs = calloc(texts.count, sizeof *pairs);
    if (!pairs) code = fr_bad_input("out of memory: %zu documents", texts.count);
    if (!code) code = fr_embedder_load(&loaded, &embedder, args);
    if (!code) code = run(embedder, &texts, pairs, args);
    for (size_t i = 0; pairs && i < texts.count; i++) fr_embedder_text_free(&pairs[i]);
    free(pairs);
    fr_embedder_close(embedder);
    fr_loaded_close(&loaded);
    fr_texts_free(&texts);
    return code;
}
