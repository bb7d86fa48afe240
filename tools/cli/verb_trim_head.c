/* Implements forerun trim-head: writes a list of the ids that occur in a text, the most frequent id first. A drafter
 * can then score only the ids of this list (--draft-head FILE). The file has a line "forerun draft head 1", and then
 * one id on each line. */
#include <stdlib.h>

#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"

typedef struct counted {
    int32_t id;
    size_t times;
} counted;

static int by_id(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* Comparison for qsort: the more frequent id comes first. If two ids are equally frequent, the lower id comes first. */
static int by_times(const void *a, const void *b) {
    const counted *x = a, *y = b;
    if (x->times != y->times) return x->times < y->times ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Counts how often each id occurs, and sorts the ids by frequency. Gives the number of different ids. */
static size_t count_ids(int32_t *ids, size_t count, counted *found) {
    size_t different = 0;
    qsort(ids, count, sizeof(*ids), by_id);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || ids[i] != ids[i - 1]) found[different++] = (counted){.id = ids[i]};
        found[different - 1].times++;
    }
    qsort(found, different, sizeof(*found), by_times);
    return different;
}

static int write_list(const char *path, const counted *found, size_t count) {
    fr_writer writer;
    int code = fr_writer_open(&writer, path);
    if (code) return code;
    fputs("forerun draft head 1\n", writer.file);
    for (size_t i = 0; i < count; i++) fprintf(writer.file, "%d\n", found[i].id);
    return fr_writer_close(&writer);
}

static int trim(const fr_tokenizer *tokenizer, const fr_prompt *prompt, const fr_arguments *args) {
    int32_t *ids = NULL;
    size_t count = 0;
    int code = fr_exit_status(fr_tokenize(tokenizer, prompt->bytes, prompt->length, false, true, &ids, &count));
    if (code) return code;
    if (count == 0) {
        fr_free(ids);
        return fr_bad_input("the text has no token");
    }
    counted *found = fr_resize(NULL, count, sizeof(*found));
    size_t different = count_ids(ids, count, found), kept = different;
    if (args->given[FR_ARG_MOST_IDS] && (size_t)args->number[FR_ARG_MOST_IDS] < kept)
        kept = (size_t)args->number[FR_ARG_MOST_IDS];
    code = write_list(args->text[FR_ARG_OUT_FILE], found, kept);
    size_t covered = 0; /* number of tokens in the text whose ids are in the list */
    for (size_t i = 0; i < kept; i++) covered += found[i].times;
    if (!code && !args->given[FR_ARG_QUIET])
        fr_note("%zu of %zu ids, %.2f%% of %zu tokens", kept, different, 100.0 * (double)covered / (double)count,
                count);
    free(found);
    fr_free(ids);
    return code;
}

int fr_verb_trim_head(const fr_arguments *args) {
    if (!args->given[FR_ARG_OUT_FILE]) return fr_wrong_usage("trim-head needs -o FILE");
    fr_tokenizer *tokenizer = NULL;
    fr_prompt prompt;
    int code = fr_prompt_read(&prompt, args);
    if (!code) code = fr_loaded_tokenizer_alone(&tokenizer, args);
    if (!code) code = trim(tokenizer, &prompt, args);
    fr_tokenizer_close(tokenizer);
    fr_prompt_free(&prompt);
    return code;
}
