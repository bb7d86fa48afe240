/* libFuzzer's target for the changes that a tokenizer makes to a text before it splits the text. The input has three
 * parts, separated by NULs: a regular expression in Oniguruma's syntax, a text, and SentencePiece's map of characters.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error, or if the pieces of a split don't add up to the text. */
#include "src/language/tokenizer/charsmap.h"
#include "src/language/tokenizer/text_pattern.h"
#include "tests/fuzz/harness.h"

/* Checks that each piece begins where the previous piece ended. */
static fr_status follow(void *context, size_t begin, size_t end, bool is_match) {
    size_t *at = context;
    (void)is_match;
    if (begin != *at || end < begin) abort();
    *at = end;
    return FR_OK;
}

static void find_matches(fr_text source, fr_text text) {
    fr_text_pattern pattern;
    uint64_t allowance = fr_text_pattern_allowance(text.length);
    size_t at = 0;
    if (fr_text_pattern_open(&pattern, source, true, false, "input") == FR_OK &&
        fr_text_pattern_walk(&pattern, text.bytes, text.length, &allowance, follow, &at) == FR_OK) {
        fuzz_inputs_read++;
        if (at != text.length) abort();
    }
    fr_text_pattern_close(&pattern);
}

static void rewrite(fr_text bytes, fr_text text) {
    fr_charsmap map;
    fr_text_buffer out = {0};
    if (fr_charsmap_open(&map, bytes, "input") == FR_OK) {
        fuzz_inputs_read++;
        fr_charsmap_rewrite(&map, text, &out);
    }
    fr_text_free(&out);
}

static fr_text text_of(const uint8_t *bytes, size_t size) {
    return (fr_text){bytes ? (const char *)bytes : "", bytes ? size : 0};
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    fuzz_halves first = fuzz_divide(bytes, size, '\0'), rest = {.first = NULL};
    if (first.second) rest = fuzz_divide(first.second, first.second_size, '\0');
    fr_text text = text_of(rest.first, rest.first_size);
    fuzz_hush(true);
    if (first.first_size > 0) find_matches(text_of(first.first, first.first_size), text);
    if (rest.second) rewrite(text_of(rest.second, rest.second_size), text);
    fuzz_hush(false);
    return 0;
}
