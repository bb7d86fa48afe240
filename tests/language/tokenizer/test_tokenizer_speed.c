/* Tests tokenizers of real size: a generated tokenizer with 262,144 tokens and 514,000 merges, and texts of ten million
 * bytes.
 *
 * The times are this process's processor time, so other programs on the machine don't matter. The limits are for builds
 * with -O2. With a sanitizer, or with the emulator that FORERUN_EMULATOR names, texts are shorter and times are not
 * checked. */
/* suite: speed */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "formats/tokenizer_json.h"
#include "src/language/tokenizer/tokenizer.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define OPEN_SECONDS   1.5
#define ENCODE_SECONDS 20.0 /* ten times the usual time; merging in quadratic time would take days */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#elif defined(__has_feature)
static const bool sanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(undefined_behavior_sanitizer);
#else
static const bool sanitized = false;
#endif

static bool is_timed(void) {
    return !sanitized && !getenv("FORERUN_EMULATOR");
}

static double processor_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---------------------------------------------------------------------------------------------------- the generator */

/* The functions below make the same tokenizer as large() in tests/data/tokenizers/make_cases.py. Its layout is that of
 * published files: one member per line, and each merge as an array on four lines. */
#define TOKENS    262144
#define MERGES    514000
#define SYLLABLES 64

static const char consonants[] = "bdfghjklmnprstvz", vowels[] = "aeio";

typedef struct token_writer {
    FILE *file;
    int tokens, merges;
} token_writer;

static const char *syllable(int index) {
    static char texts[SYLLABLES][3];
    snprintf(texts[index], sizeof texts[index], "%c%c", consonants[index / 4], vowels[index % 4]);
    return texts[index];
}

static void put_token(token_writer *writer, const char *a, const char *b, const char *c) {
    fprintf(writer->file, "%s\n      \"%s%s%s\": %d", writer->tokens ? "," : "", a, b, c, writer->tokens);
    writer->tokens++;
}

/* Writes a merge of two tokens. Each token is given in two halves. */
static void put_merge(token_writer *writer, const char *left_a, const char *left_b, const char *right_a,
                      const char *right_b) {
    if (writer->merges == MERGES) return;
    fprintf(writer->file, "%s\n      [\n        \"%s%s\",\n        \"%s%s\"\n      ]", writer->merges ? "," : "",
            left_a, left_b, right_a, right_b);
    writer->merges++;
}

static void put_added(FILE *file) {
    static const char *const names[] = {"<pad>", "<eos>", "<bos>", "<unk>"};
    fprintf(file, "{\n  \"version\": \"1.0\",\n  \"added_tokens\": [");
    for (int i = 0; i < 4; i++)
        fprintf(file, "%s\n    {\"id\": %d, \"content\": \"%s\", \"special\": true, \"normalized\": false}",
                i ? "," : "", i, names[i]);
    fprintf(file,
            "\n  ],\n  \"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"▁\"},\n"
            "  \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, \"behavior\": "
            "\"MergedWithPrevious\", \"invert\": false},\n  \"post_processor\": null,\n"
            "  \"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": "
            "\"▁\"}, \"content\": \" \"}, {\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}]},\n");
}

static void put_vocabulary(token_writer *writer) {
    static const char *const names[] = {"<pad>", "<eos>", "<bos>", "<unk>"};
    for (int i = 0; i < 4; i++) put_token(writer, names[i], "", "");
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", byte & 255);
        put_token(writer, name, "", "");
    }
    put_token(writer, "▁", "", "");
    for (int i = 0; i < 16; i++) put_token(writer, (char[]){consonants[i], 0}, "", "");
    for (int i = 0; i < 4; i++) put_token(writer, (char[]){vowels[i], 0}, "", "");
    for (int i = 0; i < SYLLABLES; i++) put_token(writer, syllable(i), "", "");
    for (int i = 0; i < SYLLABLES * SYLLABLES; i++) put_token(writer, syllable(i / 64), syllable(i % 64), "");
    for (int i = 0; writer->tokens < TOKENS; i++)
        put_token(writer, syllable(i / 4096), syllable(i / 64 % 64), syllable(i % 64));
}

static void put_merges(token_writer *writer) {
    for (int i = 0; i < SYLLABLES; i++)
        put_merge(writer, (char[]){syllable(i)[0], 0}, "", (char[]){syllable(i)[1], 0}, "");
    for (int i = 0; i < SYLLABLES * SYLLABLES; i++) put_merge(writer, syllable(i / 64), "", syllable(i % 64), "");
    for (int i = 0; writer->merges < MERGES; i++) {
        const char *one = syllable(i / 4096), *two = syllable(i / 64 % 64), *three = syllable(i % 64);
        put_merge(writer, one, two, three, "");
        put_merge(writer, one, "", two, three);
    }
}

static void generate(fr_test_folder *folder) {
    fr_folder_make(folder);
    token_writer writer = {.file = fr_folder_create(folder, "tokenizer.json")};
    put_added(writer.file);
    fprintf(writer.file,
            "  \"model\": {\n    \"type\": \"BPE\",\n    \"unk_token\": \"<unk>\",\n    \"fuse_unk\": true,\n"
            "    \"byte_fallback\": true,\n    \"vocab\": {");
    put_vocabulary(&writer);
    fprintf(writer.file, "\n    },\n    \"merges\": [");
    put_merges(&writer);
    fprintf(writer.file, "\n    ]\n  }\n}\n");
    ck_assert_int_gt(ftell(writer.file), 25000000);
    ck_assert_int_eq(fclose(writer.file), 0);
}

/* Writes the folder's tokenizer as GGUF metadata. */
static void write_gguf(const char *folder, const char *path) {
    fr_tokenizer_source source;
    fr_builder b = {0};
    ck_assert_msg(fr_tokenizer_json_open(&source, folder) == FR_OK, "%s", fr_last_error());
    int32_t *types = calloc(source.vocabulary_count, sizeof *types);
    for (size_t i = 0; i < source.added_count; i++) types[source.added[i].id] = 3;
    fr_build_header(&b, 0, 6);
    fr_build_key_string(&b, "tokenizer.ggml.model", "gemma4");
    fr_build_key_u32(&b, "tokenizer.ggml.bos_token_id", 2);
    fr_build_key_u32(&b, "tokenizer.ggml.unknown_token_id", 3);
    fr_build_key_array(&b, "tokenizer.ggml.token_type", FR_GGUF_I32, source.vocabulary_count);
    fr_build_bytes(&b, types, source.vocabulary_count * sizeof *types);
    fr_build_key_array(&b, "tokenizer.ggml.tokens", FR_GGUF_STRING, source.vocabulary_count);
    for (size_t i = 0; i < source.vocabulary_count; i++) {
        ck_assert_int_eq(source.vocabulary[i].id, (int32_t)i);
        fr_build_string(&b, source.vocabulary[i].text.bytes);
    }
    fr_build_key_array(&b, "tokenizer.ggml.merges", FR_GGUF_STRING, source.merge_count);
    for (size_t i = 0; i < source.merge_count; i++) {
        const fr_merge_entry *merge = &source.merges[i];
        fr_build_u64(&b, merge->left.length + 1 + merge->right.length);
        fr_build_bytes(&b, merge->left.bytes, merge->left.length);
        fr_build_bytes(&b, " ", 1);
        fr_build_bytes(&b, merge->right.bytes, merge->right.length);
    }
    fr_build_write(&b, path);
    fr_build_free(&b);
    free(types);
    fr_tokenizer_source_close(&source);
}

/* ------------------------------------------------------------------------------------------------------------ tests */

/* The same tokenizer is opened from the folder and from a GGUF file. Opening must be fast, and the ids must be
 * right. */
START_TEST(real_size) {
    fr_test_folder folder;
    generate(&folder);
    char file[160];
    snprintf(file, sizeof file, "%s.gguf", folder.path);
    if (_i == 1) write_gguf(folder.path, file);
    double best = 1e9;
    fr_tokenizer *tokenizer = NULL;
    for (int i = 0; i < (is_timed() ? 3 : 1); i++) {
        fr_tokenizer_close(tokenizer);
        double begin = processor_seconds();
        fr_status status = fr_tokenizer_open(_i == 1 ? file : folder.path, NULL, &tokenizer);
        ck_assert_msg(status == FR_OK, "%s", fr_last_error());
        double seconds = processor_seconds() - begin;
        if (seconds < best) best = seconds;
    }
    fr_folder_remove(&folder);
    remove(file);
    printf("%d tokens, %d merges, %s: opened in %.2f s\n", TOKENS, MERGES, _i == 1 ? "GGUF" : "a folder", best);
    if (is_timed()) ck_assert_double_lt(best, OPEN_SECONDS);
    ck_assert_uint_eq(fr_tokenizer_count(tokenizer), TOKENS);
    json_t *root = fr_load_json(TOKENIZERS "large_cases.json");
    fr_check_encoding(tokenizer, json_object_get(root, "encode"), "the generated tokenizer");
    json_decref(root);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* For Gemma's tokenizer the whole text is one word of ten million bytes. So the tokenizer can't merge in shorter
 * pieces. */
START_TEST(long_texts) {
    static const char *const fills[] = {"a", " ", "the quick brown fox ", "\xFF", "\n", "\xE6\x97\xA5"};
    const char *fill = fills[_i];
    size_t length = is_timed() ? 10000000 : 200000, count, printed_length;
    length -= length % strlen(fill); /* ends with a whole character, since a part of one would become byte tokens */
    fr_tokenizer *tokenizer;
    ck_assert_int_eq(fr_tokenizer_open(TOKENIZERS "gemma", NULL, &tokenizer), FR_OK);
    char *text = malloc(length), *printed;
    for (size_t i = 0; i < length; i++) text[i] = fill[i % strlen(fill)];
    int32_t *ids;
    double begin = processor_seconds();
    ck_assert_int_eq(fr_tokenize(tokenizer, text, length, false, true, &ids, &count), FR_OK);
    double seconds = processor_seconds() - begin;
    printf("%zu bytes, text %d: %zu ids in %.2f s\n", length, _i, count, seconds);
    if (is_timed()) ck_assert_double_lt(seconds, ENCODE_SECONDS);
    ck_assert_int_eq(fr_detokenize(tokenizer, ids, count, &printed, &printed_length), FR_OK);
    ck_assert_uint_eq(printed_length, length);
    ck_assert_int_eq(memcmp(printed, text, length), 0);
    fr_free(printed);
    fr_free(ids);
    free(text);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* These tokenizers have different kinds of models and rules. The texts are those that take the longest time. */
START_TEST(long_texts_of_styles) {
    static const char *const styles[] = {"t5", "albert", "bert-uncased", "clip", "falcon", "byte-normalizer"};
    static const char *const fills[] = {"a", " ", "!a", "\xCC\x81", "9"};
    char path[96];
    snprintf(path, sizeof path, TOKENIZERS "styles/%s.json", styles[_i]);
    json_t *root = fr_load_json(path);
    fr_tokenizer *tokenizer = fr_open_value(json_object_get(root, "tokenizer"));
    size_t length = is_timed() ? 2000000 : 50000, count;
    char *text = malloc(length);
    double begin = processor_seconds();
    for (size_t fill = 0; fill < sizeof fills / sizeof *fills; fill++) {
        int32_t *ids;
        for (size_t i = 0; i < length; i++) text[i] = fills[fill][i % strlen(fills[fill])];
        ck_assert_int_eq(fr_tokenize(tokenizer, text, length, false, true, &ids, &count), FR_OK);
        fr_free(ids);
    }
    double seconds = processor_seconds() - begin;
    printf("%zu bytes five times, %s: %.2f s\n", length, styles[_i], seconds);
    if (is_timed()) ck_assert_double_lt(seconds, ENCODE_SECONDS);
    free(text);
    fr_tokenizer_close(tokenizer);
    json_decref(root);
}
END_TEST

FR_SUITE("tokenizer speed") {
    TCase *cases = tcase_create("speed");
    tcase_set_timeout(cases, 300);
    tcase_add_loop_test(cases, real_size, 0, 2);
    tcase_add_loop_test(cases, long_texts, 0, 6);
    tcase_add_loop_test(cases, long_texts_of_styles, 0, 6);
    suite_add_tcase(suite, cases);
}
