/* Implements token_files.h: opens tokenizers for tests. */
#include "tests/support/token_files.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

#include "formats/json_wide.h"
#include "formats/map.h"

json_t *fr_load_json(const char *path) {
    json_error_t error;
    char *text;
    size_t length;
    ck_assert_msg(fr_read_text(path, 1 << 28, &text, &length) == FR_OK, "%s", fr_last_error());
    json_t *root = fr_json_load_wide(text, length, JSON_ALLOW_NUL, &error);
    ck_assert_msg(root, "%s:%d: %s", path, error.line, error.text);
    free(text);
    return root;
}

char *fr_load_text(const char *path, size_t *length) {
    char *text;
    ck_assert_msg(fr_read_text(path, 1 << 20, &text, length) == FR_OK, "%s", fr_last_error());
    return text;
}

const json_t *fr_chat_case_text(const json_t *adapted, const char *style, const json_t *item) {
    const json_t *instead = json_object_get(adapted, "instead");
    for (size_t i = 0; i < json_array_size(instead); i++) {
        const json_t *other = json_array_get(instead, i);
        if (strcmp(json_string_value(json_object_get(other, "style")), style) == 0 &&
            json_equal(json_object_get(other, "title"), json_object_get(item, "title")))
            return json_object_get(other, "rendered");
    }
    return json_object_get(item, "rendered");
}

/* ---------------------------------------------------------------------------------------------------------- folders */

void fr_folder_make(fr_test_folder *folder) {
    snprintf(folder->path, sizeof folder->path, "/tmp/test_tokenizer_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder->path));
}

FILE *fr_folder_create(fr_test_folder *folder, const char *name) {
    snprintf(folder->file, sizeof folder->file, "%s/%s", folder->path, name);
    FILE *file = fopen(folder->file, "wb");
    ck_assert_ptr_nonnull(file);
    return file;
}

void fr_folder_remove(fr_test_folder *folder) {
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                                        "vocab.json",     "added_tokens.json",     "special_tokens_map.json",
                                        "merges.txt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(folder->file, sizeof folder->file, "%s/%s", folder->path, names[i]);
        unlink(folder->file);
    }
    ck_assert_int_eq(rmdir(folder->path), 0);
}

static void put_file(fr_test_folder *folder, const char *name, const char *text, size_t length) {
    FILE *file = fr_folder_create(folder, name);
    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
}

fr_status fr_open_text(const char *text, size_t length, const char *config, fr_tokenizer **tokenizer) {
    fr_test_folder folder;
    fr_folder_make(&folder);
    put_file(&folder, "tokenizer.json", text, length);
    if (config) put_file(&folder, "tokenizer_config.json", config, strlen(config));
    fr_status status = fr_tokenizer_open(folder.path, NULL, tokenizer);
    fr_folder_remove(&folder);
    ck_assert((*tokenizer != NULL) == (status == FR_OK));
    return status;
}

fr_tokenizer *fr_open_value(const json_t *value) {
    char *text = json_dumps(value, JSON_COMPACT);
    fr_tokenizer *tokenizer;
    fr_status status = fr_open_text(text, strlen(text), NULL, &tokenizer);
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
    free(text);
    return tokenizer;
}

/* ------------------------------------------------------------------------------------------------------------ cases */

int32_t *fr_ids_of(const json_t *array, size_t *count) {
    ck_assert(json_is_array(array));
    *count = json_array_size(array);
    int32_t *ids = calloc(*count + 1, sizeof *ids);
    for (size_t i = 0; i < *count; i++) ids[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return ids;
}

static void check_ids(const fr_tokenizer *tokenizer, const json_t *text, bool special, const json_t *expected,
                      const char *name) {
    if (!expected) return;
    size_t count, expected_count;
    int32_t *ids, *expected_ids = fr_ids_of(expected, &expected_count);
    ck_assert_int_eq(
        fr_tokenize(tokenizer, json_string_value(text), json_string_length(text), special, true, &ids, &count), FR_OK);
    bool same = count == expected_count && memcmp(ids, expected_ids, count * sizeof *ids) == 0;
    ck_assert_msg(same, "%s: other ids for \"%s\"", name, json_string_value(text));
    fr_free(ids);
    free(expected_ids);
}

/* Returns the number of bytes at the beginning of the text that are valid UTF-8. */
static size_t valid_length(const char *text, size_t length) {
    size_t valid = 0;
    while (valid < length) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t step =
            utf8proc_iterate((const utf8proc_uint8_t *)text + valid, (utf8proc_ssize_t)(length - valid), &codepoint);
        if (step <= 0) break;
        valid += (size_t)step;
    }
    return valid;
}

/* Returns all bytes that a decoder outputs for the ids. If the bytes together are valid UTF-8, each part that the
 * decoder returned must be valid too. */
static char *decode(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, bool special, size_t *length) {
    fr_decoder *decoder;
    ck_assert_int_eq(fr_decoder_new(tokenizer, special, &decoder), FR_OK);
    char *all = NULL;
    bool cut = false;
    *length = 0;
    for (size_t i = 0; i <= count; i++) {
        const char *part;
        size_t part_length;
        fr_status status = i < count ? fr_decoder_feed(decoder, ids[i], &part, &part_length)
                                     : fr_decoder_finish(decoder, &part, &part_length);
        ck_assert_int_eq(status, FR_OK);
        all = realloc(all, *length + part_length + 1);
        memcpy(all + *length, part, part_length);
        *length += part_length;
        cut |= valid_length(part, part_length) < part_length;
    }
    all[*length] = 0;
    fr_decoder_free(decoder);
    ck_assert_msg(!cut || valid_length(all, *length) < *length, "a decoder cut a character of \"%s\"", all);
    return all;
}

char *fr_print_ids(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, size_t *length) {
    size_t streamed_length;
    char *text, *streamed = decode(tokenizer, ids, count, true, &streamed_length);
    ck_assert_int_eq(fr_detokenize(tokenizer, ids, count, &text, length), FR_OK);
    ck_assert_uint_eq(*length, streamed_length);
    ck_assert_mem_eq(text, streamed, *length + 1);
    free(streamed);
    return text;
}

/* Compares the printed text with the expected text. If the expected text contains U+FFFD, it does not show the original
 * bytes, so it is skipped. Other cases test these bytes. */
static void check_text(const char *text, size_t length, const json_t *expected, const char *name) {
    if (!expected || strstr(json_string_value(expected), "\uFFFD")) return;
    bool same = length == json_string_length(expected) && memcmp(text, json_string_value(expected), length) == 0;
    ck_assert_msg(same, "%s: printed \"%s\", not \"%s\"", name, text, json_string_value(expected));
}

static void check_case(const fr_tokenizer *tokenizer, const json_t *item, const char *name) {
    const json_t *text = json_object_get(item, "text");
    check_ids(tokenizer, text, false, json_object_get(item, "ids"), name);
    check_ids(tokenizer, text, true, json_object_get(item, "ids_with_special"), name);
    size_t count, length;
    int32_t *ids = fr_ids_of(json_object_get(item, "ids"), &count);
    char *printed = fr_print_ids(tokenizer, ids, count, &length);
    check_text(printed, length, json_object_get(item, "decoded"), name);
    fr_free(printed);
    printed = decode(tokenizer, ids, count, false, &length);
    check_text(printed, length, json_object_get(item, "decoded_skip_special"), name);
    free(printed);
    free(ids);
}

void fr_check_encoding(const fr_tokenizer *tokenizer, const json_t *cases, const char *name) {
    ck_assert_uint_gt(json_array_size(cases), 0);
    for (size_t i = 0; i < json_array_size(cases); i++) check_case(tokenizer, json_array_get(cases, i), name);
}

bool fr_is_utf8(const char *bytes, size_t length) {
    json_t *string = json_stringn(bytes, length);
    json_decref(string);
    return string != NULL;
}

size_t fr_print_replaced(const char *bytes, size_t length, char *out) {
    char *begin = out;
    for (size_t at = 0, size; at < length; at += size) {
        for (size = 4; size > 0 && (at + size > length || !fr_is_utf8(bytes + at, size)); size--) {}
        if (size > 0) {
            memcpy(out, bytes + at, size);
            out += size;
            /* Valid bytes are copied unchanged, at most four at once. They may be several characters. */
            continue;
        }
        static const char *const ends[] = {"\x80", "\x80\x80", "\x90\x80", "\x90", "\xA0", "\x9F"};
        for (size = 3; size > 1; size--) {
            bool begins = false;
            for (size_t e = 0; e < sizeof ends / sizeof *ends && at + size <= length; e++) {
                char whole[8];
                memcpy(whole, bytes + at, size);
                memcpy(whole + size, ends[e], strlen(ends[e]) + 1);
                /* The bytes are the beginning of a character if they can be completed to exactly one valid
                 * character. */
                size_t all = size + strlen(ends[e]), lead = (unsigned char)whole[0];
                size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
                begins |= lead >= 0xC2 && all == wanted && fr_is_utf8(whole, all);
            }
            if (begins) break;
        }
        memcpy(out, "\uFFFD", 3);
        out += 3;
    }
    *out = 0;
    return (size_t)(out - begin);
}
