/* Tests tokenizers of all published styles. The ids and the printed texts must be those of Hugging Face's tokenizers. A
 * text is printed at once or token by token. Also tests regular expressions: they must match the same texts as in
 * Oniguruma, and some are refused.
 *
 * tests/data/tokenizers/styles has the tokenizers and the results of Hugging Face's package.
 * tests/references/tokenizer_styles.py makes this folder and makes more comparisons. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static const char *const styles[] = {
    "albert",         "bert-cased",
    "bert-uncased",   "bloom",
    "bpe-prefix",     "byte-normalizer",
    "chatglm",        "cl100k",
    "clip",           "command-r",
    "deepseek-coder", "deepseek-v3",
    "exaone",         "falcon",
    "gemma",          "gpt-neox",
    "gpt2",           "kimi",
    "llama2",         "llama2-metaspace",
    "llama3",         "mistral-metaspace",
    "o200k",          "openai-gpt",
    "phi3",           "qwen2",
    "roberta",        "smollm",
    "starcoder",      "t5",
    "tekken",         "unigram-bytes",
    "words",          "xlm-r",
};

/* ---------------------------------------------------------------------------------------------------------- styles */

static void check_ids(const fr_tokenizer *tokenizer, const char *name, const json_t *text, bool special,
                      const json_t *wanted) {
    size_t count, wanted_count;
    int32_t *ids, *wanted_ids = fr_ids_of(wanted, &wanted_count);
    const char *bytes = json_string_value(text);
    ck_assert_msg(fr_tokenize(tokenizer, bytes, json_string_length(text), special, true, &ids, &count) == FR_OK, "%s",
                  fr_last_error());
    ck_assert_msg(count == wanted_count && memcmp(ids, wanted_ids, count * sizeof *ids) == 0, "%s: ids of \"%s\"", name,
                  bytes);
    fr_free(ids);
    free(wanted_ids);
}

/* Decodes ids one by one and returns their text. Sets *length to the text's length. */
static char *print(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, bool special, size_t *length) {
    fr_decoder *decoder;
    const char *text;
    char *whole = NULL;
    size_t part;
    FILE *out = open_memstream(&whole, length);
    ck_assert_int_eq(fr_decoder_new(tokenizer, special, &decoder), FR_OK);
    for (size_t i = 0; i <= count; i++) {
        ck_assert_int_eq(i < count ? fr_decoder_feed(decoder, ids[i], &text, &part)
                                   : fr_decoder_finish(decoder, &text, &part),
                         FR_OK);
        ck_assert_uint_eq(fwrite(text, 1, part, out), part);
    }
    fr_decoder_free(decoder);
    ck_assert_int_eq(fclose(out), 0);
    return whole;
}

/* Checks decoders that continue a text. One decoder gets the first ids, and a second decoder gets the rest. The two
 * texts together must be the whole text. This is tried for every division of the text among its first ids, except where
 * the first decoder holds bytes back. */
static void check_continued(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, const char *whole,
                            size_t length) {
    fr_decoder *first, *next;
    const char *text;
    size_t part, at = 0, ended;
    ck_assert_int_eq(fr_decoder_new(tokenizer, true, &first), FR_OK);
    for (size_t cut = 1; cut < count && cut < 4; cut++) {
        ck_assert_int_eq(fr_decoder_feed(first, ids[cut - 1], &text, &part), FR_OK);
        at += part;
        fr_free(fr_print_ids(tokenizer, ids, cut, &ended));
        if (ended != at) continue;
        size_t end = at;
        bool same = true;
        ck_assert_int_eq(fr_decoder_new(tokenizer, true, &next), FR_OK);
        fr_decoder_follow(next);
        for (size_t i = cut; i <= count && same; i++, end += part) {
            ck_assert_int_eq(
                i < count ? fr_decoder_feed(next, ids[i], &text, &part) : fr_decoder_finish(next, &text, &part), FR_OK);
            same = end + part <= length && memcmp(whole + end, text, part) == 0;
        }
        ck_assert_msg(same && end == length, "cut at token %zu of \"%s\"", cut, whole);
        fr_decoder_free(next);
    }
    fr_decoder_free(first);
}

/* OpenAI's first GPT prints the space after a word only when the next token comes. If the text were divided there, the
 * space would be lost. So such divisions are not tested. */
static bool prints_blanks_late(const char *name) {
    return strcmp(name, "openai-gpt") == 0;
}

static void check_text(const fr_tokenizer *tokenizer, const char *name, const json_t *list, bool special,
                       const json_t *wanted) {
    size_t count, length, whole_length;
    int32_t *ids = fr_ids_of(list, &count);
    char *text = print(tokenizer, ids, count, special, &length), *replaced = malloc(3 * length + 1);
    size_t printed = fr_print_replaced(text, length, replaced);
    ck_assert_msg(printed == json_string_length(wanted) && memcmp(replaced, json_string_value(wanted), printed) == 0,
                  "%s: \"%s\" instead of \"%s\"", name, replaced, json_string_value(wanted));
    if (special) {
        char *whole = fr_print_ids(tokenizer, ids, count, &whole_length);
        ck_assert_uint_eq(whole_length, length);
        ck_assert_int_eq(length ? memcmp(whole, text, length) : 0, 0);
        if (!prints_blanks_late(name)) check_continued(tokenizer, ids, count, text, length);
        fr_free(whole);
    }
    free(replaced);
    free(text);
    free(ids);
}

START_TEST(style) {
    char path[96];
    snprintf(path, sizeof path, TOKENIZERS "styles/%s.json", styles[_i]);
    json_t *root = fr_load_json(path), *item, *letter = json_string("a");
    fr_tokenizer *tokenizer = fr_open_value(json_object_get(root, "tokenizer"));
    size_t i;
    check_ids(tokenizer, styles[_i], letter, true, json_object_get(root, "around"));
    json_array_foreach (json_object_get(root, "cases"), i, item) {
        const json_t *text = json_array_get(item, 0), *decoded = json_array_get(item, 2);
        check_ids(tokenizer, styles[_i], text, false, json_array_get(item, 1));
        check_text(tokenizer, styles[_i], json_array_get(item, 1), true, decoded ? decoded : text);
    }
    ck_assert_uint_eq(i, 200);
    json_array_foreach (json_object_get(root, "printed"), i, item) {
        check_text(tokenizer, styles[_i], json_array_get(item, 0), true, json_array_get(item, 1));
        check_text(tokenizer, styles[_i], json_array_get(item, 0), false, json_array_get(item, 2));
    }
    ck_assert_uint_eq(i, 60);
    fr_tokenizer_close(tokenizer);
    json_decref(letter);
    json_decref(root);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- expressions */

/* Makes a tokenizer whose normalizer replaces each match of a pattern by "|". Its tokens are single bytes, so the ids
 * show the normalized text. */
static json_t *replacing(const json_t *pattern) {
    json_t *vocabulary = json_object();
    for (int byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte & 255);
        json_object_set_new(vocabulary, name, json_integer(byte));
    }
    return json_pack("{s{sssss{sO}}s{ss}s{sssbsos[]}}", "normalizer", "type", "Replace", "content", "|", "pattern",
                     "Regex", pattern, "decoder", "type", "Fuse", "model", "type", "BPE", "byte_fallback", 1, "vocab",
                     vocabulary, "merges");
}

static void check_matches(const json_t *pattern, const json_t *texts, const json_t *wanted) {
    json_t *value = replacing(pattern);
    fr_tokenizer *tokenizer = fr_open_value(value);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i), *replaced = json_array_get(wanted, i);
        int32_t *ids;
        size_t count, length = json_string_length(replaced);
        ck_assert_int_eq(
            fr_tokenize(tokenizer, json_string_value(text), json_string_length(text), false, true, &ids, &count),
            FR_OK);
        bool same = count == length;
        for (size_t at = 0; at < length && same; at++) same = ids[at] == (unsigned char)json_string_value(replaced)[at];
        ck_assert_msg(same, "\"%s\" in \"%s\"", json_string_value(pattern), json_string_value(text));
        fr_free(ids);
    }
    fr_tokenizer_close(tokenizer);
    json_decref(value);
}

START_TEST(expressions) {
    json_t *root = fr_load_json(TOKENIZERS "patterns.json"), *item;
    size_t i;
    json_array_foreach (json_object_get(root, "matched"), i, item)
        check_matches(json_array_get(item, 0), json_object_get(root, "texts"), json_array_get(item, 1));
    ck_assert_uint_ge(i, 75);
    json_decref(root);
}
END_TEST

/* If PCRE2 would read an expression differently, or would take too long for it, the expression must be refused with a
 * line that contains it. */
START_TEST(refused_expressions) {
    json_t *root = fr_load_json(TOKENIZERS "patterns.json"), *item;
    size_t i;
    json_array_foreach (json_object_get(root, "refused"), i, item) {
        json_t *value = replacing(item);
        char *text = json_dumps(value, 0);
        fr_tokenizer *tokenizer;
        ck_assert_msg(fr_open_text(text, strlen(text), NULL, &tokenizer) == FR_UNBUILT, "%s", json_string_value(item));
        ck_assert_msg(strstr(fr_last_error(), json_string_value(item)) && strstr(fr_last_error(), ": not built"), "%s",
                      fr_last_error());
        free(text);
        json_decref(value);
    }
    ck_assert_uint_ge(i, 20);
    json_decref(root);
}
END_TEST

FR_SUITE("tokenizer_styles") {
    TCase *cases = tcase_create("tokenizer_styles");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, style, 0, (int)COUNT_OF(styles));
    tcase_add_test(cases, expressions);
    tcase_add_test(cases, refused_expressions);
    suite_add_tcase(suite, cases);
}
