/* libFuzzer's target for marked texts. In such a text some bytes are trusted, because a chat template wrote them. All
 * other bytes come from users.
 *
 * In: a first line and then the text. Each byte of the first line is the length of a run of the text; the first run is
 * not trusted, the second is, and so on in turn. If the line begins with '!', its other bytes are the starts and ends
 * of trusted spans, in any order. Out: a crash if a sanitizer finds an error, or if the text has other control tokens
 * than its trusted runs have when each is tokenized alone. */
#include "src/language/tokenizer/tokenizer_parts.h"
#include "tests/fuzz/harness.h"

static const char *const folders[] = {"tests/data/tokenizers/gemma", "tests/data/tokenizers/qwen35",
                                      "tests/data/tokenizers/deepseek3"};
enum { FOLDERS = sizeof folders / sizeof *folders, SPANS = 64 };

static bool next_control(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, size_t *at) {
    while (*at < count && !tokenizer->vocabulary.tokens[ids[*at]].control) ++*at;
    return *at < count;
}

/* Tokenizes one trusted run alone. Checks that its control tokens are the next control tokens in the ids of the whole
 * text, from ids[*at] on. Moves *at past them. */
static void match_run(const fr_tokenizer *tokenizer, const char *run, size_t length, const int32_t *ids, size_t count,
                      size_t *at) {
    int32_t *own;
    size_t own_count;
    if (refused(fr_tokenize(tokenizer, run, length, false, true, &own, &own_count))) return;
    for (size_t i = 0; next_control(tokenizer, own, own_count, &i); i++, ++*at)
        if (!next_control(tokenizer, ids, count, at) || ids[*at] != own[i]) abort();
    fr_free(own);
}

static void use(const fr_tokenizer *tokenizer, const fr_marked_text *text) {
    int32_t *ids;
    size_t count, at = 0;
    if (refused(fr_tokenize_marked(tokenizer, text, &ids, &count))) return;
    fuzz_inputs_read++;
    for (size_t i = 0; i < text->trusted_count;) {
        size_t begin = text->trusted[i].begin, end = begin;
        for (; i < text->trusted_count && text->trusted[i].begin == end; i++) end = text->trusted[i].end;
        match_run(tokenizer, text->text + begin, end - begin, ids, count, &at);
    }
    if (next_control(tokenizer, ids, count, &at)) abort();
    fr_free(ids);
}

static size_t read_runs(const uint8_t *lengths, size_t count, size_t size, fr_span *spans) {
    size_t found = 0, at = 0;
    for (size_t i = 0; i + 1 < count && found < SPANS && at + lengths[i] < size; i += 2) {
        size_t begin = at + lengths[i];
        at = lengths[i + 1] < size - begin ? begin + lengths[i + 1] : size;
        spans[found++] = (fr_span){begin, at};
    }
    return found;
}

static size_t read_spans(const uint8_t *ends, size_t count, fr_span *spans) {
    size_t found = 0;
    for (size_t i = 0; i + 1 < count && found < SPANS; i += 2) spans[found++] = (fr_span){ends[i], ends[i + 1]};
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static fr_tokenizer *tokenizers[FOLDERS];
    fr_span spans[SPANS];
    for (size_t i = 0; i < FOLDERS; i++)
        if (!tokenizers[i] && fr_tokenizer_open(folders[i], NULL, &tokenizers[i]) != FR_OK) die(fr_last_error(), "");
    fuzz_halves halves = fuzz_divide(bytes, size, '\n');
    bool any = halves.first_size > 0 && halves.first[0] == '!';
    size_t length = halves.second ? halves.second_size : 0;
    size_t count = any ? read_spans(halves.first + 1, halves.first_size - 1, spans)
                       : read_runs(halves.first, halves.first_size, length, spans);
    char *text = malloc(length + 1);
    if (!text) die("no memory for", "a text");
    if (length > 0) memcpy(text, halves.second, length);
    fr_marked_text marked = {text, length, spans, count};
    for (size_t i = 0; i < FOLDERS; i++) use(tokenizers[i], &marked);
    free(text);
    return 0;
}
