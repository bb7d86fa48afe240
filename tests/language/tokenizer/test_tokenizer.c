/* Tests tokenizers. The ids and texts must be those of Hugging Face's tokenizers. A text may have any bytes. Wrong
 * files are refused.
 *
 * The expected values are in tests/data/tokenizers, where make_cases.py makes them. */
/* suite: hostile native */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/language/tokenizer/tokenizer.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static fr_tokenizer *open_gemma(void) {
    fr_tokenizer *tokenizer;
    ck_assert_int_eq(fr_tokenizer_open(TOKENIZERS "gemma", NULL, &tokenizer), FR_OK);
    return tokenizer;
}

/* The state of a xorshift generator. It gives the same numbers on any machine. */
static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(uint64_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % limit;
}

/* ------------------------------------------------------------------------------------- comparison with Hugging Face */

START_TEST(reference_cases) {
    static const char *const files[] = {"gemma/tokenizer_cases.json", "gemma/random_cases.json"};
    char path[96];
    snprintf(path, sizeof path, TOKENIZERS "%s", files[_i]);
    fr_tokenizer *tokenizer = open_gemma();
    json_t *root = fr_load_json(path);
    fr_check_encoding(tokenizer, json_object_get(root, "encode"), path);
    json_decref(root);
    fr_tokenizer_close(tokenizer);
}
END_TEST

static const char *const byte_level[] = {"glm4", "qwen35", "deepseek3", "llama3"};

START_TEST(byte_level_cases) {
    char path[96];
    fr_tokenizer *tokenizer;
    snprintf(path, sizeof path, TOKENIZERS "%s", byte_level[_i]);
    ck_assert_msg(fr_tokenizer_open(path, NULL, &tokenizer) == FR_OK, "%s", fr_last_error());
    snprintf(path, sizeof path, TOKENIZERS "%s/tokenizer_cases.json", byte_level[_i]);
    json_t *root = fr_load_json(path);
    ck_assert_uint_ge(json_array_size(json_object_get(root, "encode")), 376);
    fr_check_encoding(tokenizer, json_object_get(root, "encode"), path);
    json_decref(root);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* Small tokenizers. Each differs from all others in one setting. */
START_TEST(variants) {
    json_t *root = fr_load_json(TOKENIZERS "variants.json"), *variant;
    size_t i;
    json_array_foreach (root, i, variant) {
        fr_tokenizer *tokenizer = fr_open_value(json_object_get(variant, "tokenizer"));
        fr_check_encoding(tokenizer, json_object_get(variant, "cases"),
                          json_string_value(json_object_get(variant, "name")));
        fr_tokenizer_close(tokenizer);
    }
    ck_assert_uint_ge(i, 40);
    json_decref(root);
}
END_TEST

/* Prints ids as Hugging Face's tokenizers do. If a run of byte tokens is not UTF-8, each of its bytes becomes
 * U+FFFD. */
static void print_as_reference(const fr_tokenizer *tokenizer, const bool *is_byte, const int32_t *ids, size_t count,
                               char *out) {
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = begin + 1;
        while (is_byte[ids[begin]] && end < count && is_byte[ids[end]]) end++;
        char *text;
        size_t length;
        ck_assert_int_eq(fr_detokenize(tokenizer, ids + begin, end - begin, &text, &length), FR_OK);
        if (!is_byte[ids[begin]] || fr_is_utf8(text, length)) {
            memcpy(out, text, length);
            out += length;
        } else {
            for (size_t i = begin; i < end; i++, out += 3) memcpy(out, "\uFFFD", 3);
        }
        fr_free(text);
    }
    *out = 0;
}

START_TEST(decode_cases) {
    fr_tokenizer *tokenizer = open_gemma();
    bool is_byte[2048] = {false};
    for (int byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)byte & 255);
        is_byte[fr_tokenizer_id(tokenizer, name)] = true;
    }
    json_t *root = fr_load_json(TOKENIZERS "gemma/tokenizer_cases.json"), *cases = json_object_get(root, "decode");
    ck_assert_uint_eq(json_array_size(cases), 99);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        size_t count, length;
        int32_t *ids = fr_ids_of(json_object_get(json_array_get(cases, i), "ids"), &count);
        char printed[1024];
        print_as_reference(tokenizer, is_byte, ids, count, printed);
        ck_assert_str_eq(printed, json_string_value(json_object_get(json_array_get(cases, i), "text")));
        fr_free(fr_print_ids(tokenizer, ids, count, &length));
        free(ids);
    }
    json_decref(root);
    fr_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(byte_level_decode_cases) {
    char path[96];
    fr_tokenizer *tokenizer;
    snprintf(path, sizeof path, TOKENIZERS "%s", byte_level[_i]);
    ck_assert_int_eq(fr_tokenizer_open(path, NULL, &tokenizer), FR_OK);
    snprintf(path, sizeof path, TOKENIZERS "%s/tokenizer_cases.json", byte_level[_i]);
    json_t *root = fr_load_json(path), *cases = json_object_get(root, "decode");
    ck_assert_uint_ge(json_array_size(cases), 131);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        size_t count, length;
        int32_t *ids = fr_ids_of(json_object_get(json_array_get(cases, i), "ids"), &count);
        char *text = fr_print_ids(tokenizer, ids, count, &length), *printed = malloc(3 * length + 1);
        fr_print_replaced(text, length, printed);
        ck_assert_str_eq(printed, json_string_value(json_object_get(json_array_get(cases, i), "text")));
        fr_free(text);
        free(printed);
        free(ids);
    }
    json_decref(root);
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- any bytes */

/* A byte that is not part of valid UTF-8 becomes its byte token. Valid characters next to such a byte must still be
 * recognized. */
START_TEST(invalid_utf8) {
    static const struct {
        const char *bytes;
        size_t length;
        const char *tokens[8];
    } cases[] = {
        {"\xFF", 1, {"<0xFF>"}},
        {"z\xFF\xFEz", 4, {"z", "<0xFF>", "<0xFE>", "z"}},
        {"\xE6\x97", 2, {"<0xE6>", "<0x97>"}}, /* an incomplete character */
        {"\xE6\x97z", 3, {"<0xE6>", "<0x97>", "z"}},
        {"\xC0\x80", 2, {"<0xC0>", "<0x80>"}},                             /* an overlong NUL */
        {"\xED\xA0\x80", 3, {"<0xED>", "<0xA0>", "<0x80>"}},               /* a surrogate */
        {"\xF4\x90\x80\x80", 4, {"<0xF4>", "<0x90>", "<0x80>", "<0x80>"}}, /* beyond U+10FFFF */
        {"\x80\xC3\xA9", 3, {"<0x80>", "é"}},
        {"a\0a", 3, {"a", "<0x00>", "a"}},
        {"\xFF<bos>\xFF", 7, {"<0xFF>", "<bos>", "<0xFF>"}},
    };
    fr_tokenizer *tokenizer = open_gemma();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int32_t *ids;
        size_t count, length;
        ck_assert_int_eq(fr_tokenize(tokenizer, cases[i].bytes, cases[i].length, false, true, &ids, &count), FR_OK);
        for (size_t j = 0; j < count; j++) {
            ck_assert_ptr_nonnull(cases[i].tokens[j]);
            ck_assert_int_eq(ids[j], fr_tokenizer_id(tokenizer, cases[i].tokens[j]));
        }
        ck_assert_ptr_null(cases[i].tokens[count]);
        char *text = fr_print_ids(tokenizer, ids, count, &length);
        ck_assert_uint_eq(length, cases[i].length);
        ck_assert_mem_eq(text, cases[i].bytes, length);
        fr_free(text);
        fr_free(ids);
    }
    fr_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(random_bytes_round_trip) {
    fr_tokenizer *tokenizer = open_gemma();
    for (int round = 0; round < 300; round++) {
        char bytes[64];
        size_t size = next_random(sizeof bytes + 1), count, length;
        for (size_t i = 0; i < size; i++) bytes[i] = next_random(4) ? (char)next_random(256) : " \xE3\x81\x82"[i % 4];
        int32_t *ids;
        ck_assert_int_eq(fr_tokenize(tokenizer, bytes, size, false, true, &ids, &count), FR_OK);
        char *text = fr_print_ids(tokenizer, ids, count, &length);
        ck_assert_uint_eq(length, size);
        if (size > 0) ck_assert_mem_eq(text, bytes, size);
        fr_free(text);
        fr_free(ids);
    }
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* The decoder outputs all bytes of a character when the last one has come. Bytes that can't become a character are
 * output at once. */
START_TEST(decoder_holds_back) {
    static const struct {
        const char *token, *text;
    } steps[] = {
        {"<0xF0>", ""},         {"<0x9F>", ""},     {"<0x98>", ""},         {"<0x80>", "\xF0\x9F\x98\x80"},
        {"<0x80>", "\x80"},     {"<0xE6>", ""},     {"<0x97>", ""},         {"z", "\xE6\x97z"},
        {"<0xE6>", ""},         {"<0xE6>", "\xE6"}, {"<0xC0>", "\xE6\xC0"}, {"<0xE0>", ""},
        {"<0x80>", "\xE0\x80"}, {"<0xED>", ""},     {"<0x9F>", ""},         {"<0xED>", "\xED\x9F"},
        {"<0xA0>", "\xED\xA0"}, {"<0xF4>", ""},     {"<0x90>", "\xF4\x90"}, {"<0xF5>", "\xF5"},
        {"<bos>", "<bos>"},     {"<0xF1>", ""},     {"<0x80>", ""},
    };
    fr_tokenizer *tokenizer = open_gemma();
    fr_decoder *decoder;
    const char *text;
    size_t length;
    ck_assert_int_eq(fr_decoder_new(tokenizer, true, &decoder), FR_OK);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        ck_assert_int_eq(fr_decoder_feed(decoder, fr_tokenizer_id(tokenizer, steps[i].token), &text, &length), FR_OK);
        ck_assert_msg(length == strlen(steps[i].text) && memcmp(text, steps[i].text, length) == 0, "step %zu", i);
    }
    ck_assert_int_eq(fr_decoder_finish(decoder, &text, &length), FR_OK);
    ck_assert_uint_eq(length, 2);
    ck_assert_mem_eq(text, "\xF1\x80", 2);
    fr_decoder_free(decoder);
    fr_tokenizer_close(tokenizer);
}
END_TEST

START_TEST(ids_outside) {
    fr_tokenizer *tokenizer = open_gemma();
    ck_assert_uint_eq(fr_tokenizer_count(tokenizer), 1500);
    ck_assert_int_eq(fr_tokenizer_id(tokenizer, "<bos>"), 2);
    ck_assert_int_eq(fr_tokenizer_id(tokenizer, "no such token"), -1);
    ck_assert_str_eq(fr_tokenizer_begin(tokenizer), "<bos>");
    const int32_t bad[] = {-1, 1500, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char *text;
        size_t length;
        ck_assert_int_eq(fr_detokenize(tokenizer, &bad[i], 1, &text, &length), FR_INPUT);
        ck_assert_ptr_null(text);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "is not the id of a token"));
    }
    fr_tokenizer_close(tokenizer);
    fr_tokenizer_close(NULL);
    fr_decoder_free(NULL);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------ wrong files */

/* A complete tokenizer.json. Each case replaces a part of it. */
static const char sample[] =
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"special\":true,\"normalized\":false},"
    "{\"id\":7,\"content\":\"<x>\",\"normalized\":false}],\"normalizer\":null,\"pre_tokenizer\":null,"
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},"
    "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\",\"ids\":[0]}}},"
    "\"decoder\":{\"type\":\"Fuse\"},\"model\":{\"type\":\"BPE\",\"unk_token\":null,"
    "\"vocab\":{\"<s>\":0,\"a\":1,\"b\":2,\"ab\":3},\"merges\":[[\"a\",\"b\"]]}}";

/* Returns the sample with the first occurrence of `old` replaced by `new`. The caller frees it. */
static char *edited(const char *old, const char *new) {
    const char *at = strstr(sample, old);
    ck_assert_msg(at, "the sample has no %s", old);
    char *text = malloc(sizeof sample + strlen(new));
    memcpy(text, sample, (size_t)(at - sample));
    snprintf(text + (at - sample), sizeof sample + strlen(new) - (size_t)(at - sample), "%s%s", new, at + strlen(old));
    return text;
}

static const struct {
    const char *old, *new, *line;
} lies[] = {
    {"{\"added", "[{\"added", "not valid JSON"},
    {"{\"added", "{\"model\":1,\"added", "duplicate"},
    {"\"a\":1", "\"a\":16777216", "from 0 to 16777215"},
    {"\"a\":1", "\"a\":-1", "from 0 to 16777215"},
    {"\"a\":1", "\"a\":1.5", "from 0 to 16777215"},
    {"\"a\":1", "\"a\":\"1\"", "from 0 to 16777215"},
    {"\"a\":1", "\"a\":99999999999999999999", "from 0 to 16777215"},
    {"\"a\":1", "\"a\":2", "id 2 is both"},
    {"\"a\":1", "\"a\":1,\"a\":4", "duplicate"},
    {"\"a\":1", "\"a\\u0000\":1", "\\u0000"},
    {"\"a\":1", "\"\\ud800\":1", "not valid JSON"},
    {"\"a\":1", "\"\xFF\":1", "not valid JSON"},
    {"{\"<s>\":0,\"a\":1,\"b\":2,\"ab\":3}", "[\"a\"]", "\"vocab\" is not an object"},
    {"{\"<s>\":0,\"a\":1,\"b\":2,\"ab\":3}", "null", "lacks \"vocab\""},
    {"[[\"a\",\"b\"]]", "{}", "\"merges\" is not an array"},
    {"[[\"a\",\"b\"]]", "null", "lacks \"vocab\" or \"merges\""},
    {"[\"a\",\"b\"]", "[\"a\"]", "merge 0 is neither"},
    {"[\"a\",\"b\"]", "[\"a\",\"b\",\"c\"]", "merge 0 is neither"},
    {"[\"a\",\"b\"]", "[\"a\",1]", "merge 0 is neither"},
    {"[\"a\",\"b\"]", "\"a b c\"", "merge 0 is neither"},
    {"[\"a\",\"b\"]", "\"ab\"", "merge 0 is neither"},
    {"[\"a\",\"b\"]", "7", "merge 0 is neither"},
    {"[\"a\",\"b\"]", "[\"a\",\"z\"]", "one of them is not in the vocabulary"},
    {"[\"a\",\"b\"]", "[\"<x>\",\"a\"]", "one of them is not in the vocabulary"},
    {"[\"a\",\"b\"]", "[\"b\",\"a\"]", "what they make is not in the vocabulary"},
    {"[\"a\",\"b\"]", "[\"ab\",\"ab\"]", "what they make is not in the vocabulary"},
    {"\"unk_token\":null", "\"unk_token\":\"?\"", "unk_token \"?\" is not in the vocabulary"},
    {"\"unk_token\":null", "\"unk_token\":1", "\"unk_token\" is not a string"},
    {"\"unk_token\":null", "\"dropout\":0.1", "\"dropout\" is 0.1"},
    {"\"unk_token\":null", "\"byte_fallback\":1", "neither true nor false"},
    {"\"type\":\"BPE\"", "\"type\":\"Bigram\"", "model \"Bigram\" is not built yet"},
    {"\"type\":\"BPE\"", "\"type\":\"Unigram\"", "\"vocab\" is not an array"},
    {"\"type\":\"BPE\",\"unk_token\":null", "\"type\":\"WordPiece\"", "\"unk_token\" is missing"},
    {"\"type\":\"BPE\",\"unk_token\":null", "\"type\":\"WordLevel\",\"unk_token\":\"?\"",
     "unk_token \"?\" is not in the vocabulary"},
    {"\"type\":\"BPE\"", "\"type\":3", "\"type\" is not a string"},
    {"\"model\":", "\"mode\":", "\"model\" is missing"},
    {"\"normalizer\":null", "\"normalizer\":{\"type\":\"Uppercase\"}", "normalizer \"Uppercase\" is not built yet"},
    {"\"normalizer\":null", "\"normalizer\":\"NFC\"", "\"normalizer\" is not an object"},
    {"\"normalizer\":null", "\"normalizer\":{\"type\":\"Sequence\"}", "\"normalizers\" is missing"},
    {"\"normalizer\":null", "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[1]}",
     "\"normalizer\" is not an object"},
    {"\"normalizer\":null", "\"normalizer\":{\"type\":\"Replace\",\"content\":\"\"}", "\"pattern\" is neither"},
    {"\"normalizer\":null", "\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"String\":\"\"}}",
     "\"pattern\" is neither"},
    {"\"normalizer\":null", "\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"Regex\":\"(\"}}",
     "not a regular expression"},
    {"\"normalizer\":null",
     "\"normalizer\":{\"type\":\"Replace\",\"content\":\"\",\"pattern\":{\"Regex\":\"(a)\\\\1\"}}", "refers back"},
    {"\"normalizer\":null", "\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAA\"}",
     "has no tree"},
    {"\"normalizer\":null", "\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"A\"}", "is no base64"},
    {"\"pre_tokenizer\":null", "\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}",
     "pre_tokenizer \"UnicodeScripts\" is not built yet"},
    {"\"pre_tokenizer\":null", "\"pre_tokenizer\":{\"type\":\"FixedLength\",\"length\":0}", "not in 1 to"},
    {"\"pre_tokenizer\":null", "\"pre_tokenizer\":{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"ab\"}",
     "not one character"},
    {"\"pre_tokenizer\":null",
     "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"last\"}",
     "\"last\" is not known"},
    {"\"pre_tokenizer\":null",
     "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"X\"}", "\"X\" is not known"},
    {"{\"type\":\"Fuse\"}", "{\"type\":\"CTC\"}", "decoder \"CTC\" is not built yet"},
    {"{\"type\":\"Fuse\"}", "{\"type\":\"Metaspace\"}", "\"replacement\" is missing"},
    {"{\"type\":\"Fuse\"}", "{\"type\":\"BPEDecoder\",\"suffix\":\"\"}", "empty \"suffix\" is not built"},
    {"{\"type\":\"Fuse\"}",
     "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"BPEDecoder\",\"suffix\":\"w\"}]}", "order"},
    {"{\"type\":\"Fuse\"}", "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"},{\"type\":\"ByteFallback\"}]}",
     "order"},
    {"\"type\":\"TemplateProcessing\"", "\"type\":\"PairProcessing\"",
     "post_processor \"PairProcessing\" is not built yet"},
    {"\"type\":\"TemplateProcessing\"", "\"type\":\"BertProcessing\"", "\"cls\" has bad or too many \"ids\""},
    {"\"ids\":[0]", "\"ids\":[99]", "the id 99, which no token has"},
    {"\"ids\":[0]", "\"ids\":[5]", "the id 5, which no token has"},
    {"\"ids\":[0]", "\"ids\":[-1]", "bad or too many"},
    {"\"ids\":[0]", "\"ids\":0", "\"ids\" is not an array"},
    {"\"Sequence\":{\"id\":\"A\"}", "\"Sequence\":{\"id\":\"B\"}", "more than one text"},
    {"\"Sequence\":{\"id\":\"A\"}", "\"SpecialToken\":{\"id\":\"<s>\"}", "leaves the text out"},
    {"\"Sequence\":{\"id\":\"A\"}", "\"Sequenz\":{}", "no known kind"},
    {"\"id\":7", "\"id\":1", "id 1 is both"},
    {"\"id\":7", "\"id\":16777216", "not in 0 to 16777215"},
    {"\"id\":0,\"content\"", "\"id\":1,\"content\"", "\"<s>\" has the ids 0 and 1"},
    {"\"content\":\"<x>\"", "\"content\":\"<s>\"", "has the ids 0 and 7"},
    {"\"content\":\"<x>\"", "\"content\":\"\"", "0 bytes"},
    {"\"content\":\"<x>\"", "\"content\":[]", "\"content\" is not a string"},
    {"{\"id\":7,\"content\":\"<x>\",\"normalized\":false}", "7", "added token 1 is not an object"},
    {"{\"id\":7,\"content\":\"<x>\",\"normalized\":false}", "{\"id\":0,\"content\":\"<s>\",\"normalized\":false}",
     "two added tokens"},
    {"\"special\":true", "\"special\":\"yes\"", "neither true nor false"},
};

START_TEST(lying_files) {
    fr_tokenizer *tokenizer;
    ck_assert_int_eq(fr_open_text(sample, strlen(sample), NULL, &tokenizer), FR_OK);
    ck_assert_uint_eq(fr_tokenizer_count(tokenizer), 8);
    char *printed;
    size_t length;
    /* no token has the id 5 */
    ck_assert_int_eq(fr_detokenize(tokenizer, (int32_t[]){5}, 1, &printed, &length), FR_INPUT);
    fr_tokenizer_close(tokenizer);
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        char *text = edited(lies[i].old, lies[i].new);
        fr_status status = fr_open_text(text, strlen(text), NULL, &tokenizer);
        ck_assert_msg(status == (strstr(fr_last_error(), "not built") ? FR_UNBUILT : FR_INPUT), "status %d: %s", status,
                      lies[i].new);
        ck_assert_msg(strstr(fr_last_error(), lies[i].line), "%s: \"%s\"", lies[i].new, fr_last_error());
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "tokenizer.json"));
        free(text);
    }
}
END_TEST

/* Token 7 includes the white space after it. Token 4 is a line break and includes the space before it. A line break
 * after token 7 becomes a part of token 7, so it is not token 4 as well. tokenizers 0.23.3 gives the ids 1, 7, 2. */
START_TEST(white_space_taken_once) {
    char *text =
        edited("{\"id\":7,\"content\":\"<x>\",", "{\"id\":4,\"content\":\"\\n\",\"lstrip\":true,\"normalized\":false},"
                                                 "{\"id\":7,\"content\":\"<x>\",\"rstrip\":true,");
    static const int32_t wanted[] = {1, 7, 2};
    fr_tokenizer *tokenizer;
    int32_t *ids;
    size_t count;
    ck_assert_int_eq(fr_open_text(text, strlen(text), NULL, &tokenizer), FR_OK);
    ck_assert_int_eq(fr_tokenize(tokenizer, "a<x>\nb", 6, false, true, &ids, &count), FR_OK);
    ck_assert_uint_eq(count, COUNT_OF(wanted));
    ck_assert_mem_eq(ids, wanted, sizeof wanted);
    fr_free(ids);
    fr_tokenizer_close(tokenizer);
    free(text);
}
END_TEST

/* These files lack the type of their model, so the type is inferred from other members. The expected ids are those that
 * Tokenizer.from_str of tokenizers 0.23 gives for the same file and text. */
START_TEST(models_without_a_type) {
#define WORDS "\"vocab\":{\"[U]\":0,\"a\":1,\"b\":2,\"ab\":3,\"##b\":4,\"[X]\":5}"
#define X     "{\"id\":5,\"content\":\"[X]\",\"special\":true,\"normalized\":false}"
    static const struct {
        const char *model, *added;
        int32_t ids[3];
        const char *text;
    } files[] = {
        {WORDS ",\"merges\":[\"a b\"]", "", {3, -1}, "abx"},
        {WORDS ",\"merges\":[\"#version: 0.2\",\"a b\"]", "", {3, -1}, "abx"},
        {WORDS ",\"merges\":[],\"unk_token\":\"[U]\",\"continuing_subword_prefix\":\"##\","
               "\"max_input_chars_per_word\":100",
         "",
         {1, 4, 0},
         "abx"},
        {WORDS ",\"unk_token\":\"[U]\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100",
         "",
         {3, -1},
         "ab"},
        {WORDS ",\"unk_token\":\"[U]\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100",
         "",
         {3, 4, -1},
         "abb"},
        {WORDS ",\"unk_token\":\"[U]\",\"continuing_subword_prefix\":\"##\"", "", {0, -1}, "abb"},
        {WORDS ",\"unk_token\":\"[U]\",\"max_input_chars_per_word\":100", "", {0, -1}, "abb"},
        {WORDS ",\"unk_token\":\"[U]\"", "", {3, -1}, "ab"},
        {"\"vocab\":[[\"[U]\",0.0],[\"a\",-1.0],[\"b\",-1.0],[\"ab\",-1.5]],\"unk_id\":0", "", {3, 0, -1}, "abx"},
        {WORDS ",\"merges\":[]", X "," X, {1, 5, 2}, "a[X]b"},
    };
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char text[512];
        fr_tokenizer *tokenizer;
        int32_t *ids;
        size_t count, wanted = 0;
        snprintf(text, sizeof text, "{\"added_tokens\":[%s],\"model\":{%s}}", files[i].added, files[i].model);
        ck_assert_msg(fr_open_text(text, strlen(text), NULL, &tokenizer) == FR_OK, "%s: %s", text, fr_last_error());
        ck_assert_int_eq(fr_tokenize(tokenizer, files[i].text, strlen(files[i].text), true, true, &ids, &count), FR_OK);
        while (wanted < 3 && files[i].ids[wanted] >= 0) wanted++;
        ck_assert_msg(count == wanted && memcmp(ids, files[i].ids, count * sizeof *ids) == 0, "%s: %zu ids, %d ...",
                      text, count, count ? ids[0] : -1);
        fr_free(ids);
        fr_tokenizer_close(tokenizer);
    }
}
END_TEST

START_TEST(config_file) {
    static const struct {
        const char *config, *begin; /* if begin is NULL, the config is refused */
        size_t adds;
    } cases[] = {
        {"{\"bos_token\":\"<s>\",\"add_bos_token\":false,\"model_max_length\":1000000000000000019884624838656}", "<s>",
         0},
        {"{\"bos_token\":{\"content\":\"<x>\",\"lstrip\":false}}", "<x>", 1},
        {"{\"bos_token\":\"<s>\",\"add_bos_token\":true, \"cls_token\": Infinity2}", NULL, 0},
        {"{\"bos_token\":\"<s>\",\"add_bos_token\":true, \"x_token\": Infinity}", "<s>", 1},
        {"{\"bos_token\":\"<x>\",\"add_bos_token\":true}", "<x>", 2},
        {"{\"bos_token\":\"<x>\",\"add_bos_token\":false}", "<x>", 1},
        {"{\"bos_token\":\"<s>\",\"add_bos_token\":null}", "<s>", 1},
        {"{\"eos_token\":\"<x>\",\"add_eos_token\":true}", "", 2},
        {"{\"bos_token\":null}", "", 1},
        {"{}", "", 1},
        {"{\"bos_token\":NaN}", NULL, 0},
        {"{\"bos_token\":3}", NULL, 0},
        {"{\"bos_token\":{}}", NULL, 0},
        {"[]", NULL, 0},
        {"{", NULL, 0},
        {"", NULL, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fr_tokenizer *tokenizer;
        fr_status status = fr_open_text(sample, strlen(sample), cases[i].config, &tokenizer);
        ck_assert_int_eq(status, cases[i].begin ? FR_OK : FR_INPUT);
        if (status != FR_OK) {
            ck_assert_ptr_nonnull(strstr(fr_last_error(), "tokenizer_config.json"));
            continue;
        }
        const char *begin = fr_tokenizer_begin(tokenizer);
        ck_assert_str_eq(begin ? begin : "", cases[i].begin);
        int32_t *ids;
        size_t count;
        ck_assert_int_eq(fr_tokenize(tokenizer, "a", 1, true, true, &ids, &count), FR_OK);
        ck_assert_msg(count == 1 + cases[i].adds, "%s: %zu ids", cases[i].config, count);
        fr_free(ids);
        fr_tokenizer_close(tokenizer);
    }
}
END_TEST

/* Opens DeepSeek-V3's tokenizer. If `published` is true, it is the published one, whose post-processor adds nothing.
 * Otherwise it is the reference's tokenizer, which adds bos. */
static fr_tokenizer *open_deepseek(bool published, json_t *config) {
    json_t *root = fr_load_json(TOKENIZERS "deepseek3/tokenizer.json");
    if (published)
        json_object_set_new(root, "post_processor",
                            json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 1,
                                      "trim_offsets", 0, "use_regex", 1));
    char *text = json_dumps(root, JSON_COMPACT), *settings = json_dumps(config, JSON_COMPACT);
    fr_tokenizer *tokenizer;
    fr_status status = fr_open_text(text, strlen(text), settings, &tokenizer);
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
    free(settings);
    free(text);
    json_decref(config);
    json_decref(root);
    return tokenizer;
}

#define BOS        "<\uFF5Cbegin\u2581of\u2581sentence\uFF5C>"
#define BOS_OBJECT "{\"__type\":\"AddedToken\",\"content\":\"" BOS "\",\"special\":true}"

static const struct {
    bool published;
    const char *config;
    bool adds;
} begins[] = {
    {true, "{\"add_bos_token\":true,\"bos_token\":" BOS_OBJECT "}", true},
    {true, "{\"add_bos_token\":true,\"bos_token\":\"" BOS "\"}", true},
    {true, "{\"add_bos_token\":false,\"bos_token\":\"" BOS "\"}", false},
    {true, "{\"bos_token\":\"" BOS "\"}", false},
    {true, "{\"add_bos_token\":true}", false},
    {true, "{\"add_bos_token\":true,\"bos_token\":null}", false},
    {true, "{\"add_bos_token\":true,\"bos_token\":\"<no token>\"}", false},
    {false, "{\"add_bos_token\":true,\"bos_token\":\"" BOS "\"}", true},
    {false, "{\"add_bos_token\":false,\"bos_token\":\"" BOS "\"}", false},
    {false, "{\"bos_token\":\"" BOS "\"}", true},
};

/* If the tokenizer adds bos, the ids must be the reference's, which begin with one bos. Otherwise an empty text must
 * have no ids. */
START_TEST(begin_that_the_config_adds) {
    fr_tokenizer *tokenizer = open_deepseek(begins[_i].published, json_loads(begins[_i].config, 0, NULL));
    if (begins[_i].adds) {
        json_t *root = fr_load_json(TOKENIZERS "deepseek3/tokenizer_cases.json");
        fr_check_encoding(tokenizer, json_object_get(root, "encode"), begins[_i].config);
        json_decref(root);
    } else {
        int32_t *ids;
        size_t count;
        ck_assert_int_eq(fr_tokenize(tokenizer, "", 0, true, true, &ids, &count), FR_OK);
        ck_assert_uint_eq(count, 0);
        fr_free(ids);
    }
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* The chat template writes bos, so the tokenizer must not add another one. */
START_TEST(one_begin_of_a_chat) {
    size_t length, count, times = 0;
    char *template = fr_load_text(TOKENIZERS "deepseek3/chat_template.jinja", &length);
    fr_tokenizer *tokenizer = open_deepseek(
        true, json_pack("{s:b, s:s, s:s}", "add_bos_token", 1, "bos_token", BOS, "chat_template", template));
    int32_t begin = fr_tokenizer_id(tokenizer, BOS), *ids;
    fr_marked_text text;
    ck_assert_msg(fr_chat_render(tokenizer, "[{\"role\":\"user\",\"content\":\"a\"}]", NULL, &text) == FR_OK, "%s",
                  fr_last_error());
    ck_assert_int_eq(fr_tokenize_marked(tokenizer, &text, &ids, &count), FR_OK);
    for (size_t i = 0; i < count; i++) times += ids[i] == begin;
    ck_assert_uint_gt(count, 2);
    ck_assert_int_eq(ids[0], begin);
    ck_assert_uint_eq(times, 1);
    fr_free(ids);
    fr_marked_text_free(&text);
    fr_tokenizer_close(tokenizer);
    free(template);
}
END_TEST

START_TEST(missing_files) {
    fr_tokenizer *tokenizer;
    ck_assert_int_eq(fr_tokenizer_open("tests/data/no such folder", NULL, &tokenizer), FR_INPUT);
    ck_assert_ptr_null(tokenizer);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "tests/data/no such folder/tokenizer.json"));
    ck_assert_int_eq(fr_tokenizer_open(TOKENIZERS "gemma/tokenizer.json", NULL, &tokenizer), FR_INPUT);
}
END_TEST

/* A file that is nested much more deeply than any real file must give an error line. It must not overflow the stack. */
START_TEST(deep_json) {
    size_t depth = 1 << 20;
    char *text = malloc(depth + 1);
    fr_tokenizer *tokenizer;
    memset(text, '[', depth);
    ck_assert_int_eq(fr_open_text(text, depth, NULL, &tokenizer), FR_INPUT);
    free(text);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- slow patterns */

/* For each of these patterns, a matcher without limits would take exponential or quadratic time. */
START_TEST(hostile_patterns) {
    static const char *const patterns[] = {"(a+)+[bc]",
                                           "(a|a)*[^a]",
                                           "(a*)*\\\\z(?!)",
                                           "(?>a+)[bc]",
                                           "\\\\p{L}+[12]",
                                           "(?<=a)x|a+?[xy]",
                                           "a*a*a*[xy]",
                                           "(?=(a+)+[xy])",
                                           "((?:a{0,5}){0,5}){0,5}[xy]",
                                           "(?:a?){40}a{40}[xy]",
                                           "(?:(?:a|b)(?=.*[xy]))+"};
    size_t length = 200000;
    char *letters = malloc(length);
    memset(letters, 'a', length);
    for (size_t i = 0; i < COUNT_OF(patterns); i++) {
        char rule[256], *text;
        snprintf(rule, sizeof rule,
                 "\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"%s\"}}",
                 patterns[i]);
        text = edited("\"pre_tokenizer\":null", rule);
        fr_tokenizer *tokenizer;
        ck_assert_int_eq(fr_open_text(text, strlen(text), NULL, &tokenizer), FR_OK);
        int32_t *ids;
        size_t count;
        fr_status status = fr_tokenize(tokenizer, letters, length, false, true, &ids, &count);
        ck_assert_msg(status == FR_INPUT, "%s: %s", patterns[i], fr_status_name(status));
        ck_assert_ptr_null(ids);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "too many steps"));
        fr_tokenizer_close(tokenizer);
        free(text);
    }
    free(letters);
}
END_TEST

/* Each of six rules of a normalizer or decoder makes the text twenty times as long, and the last rule makes it short
 * again. The text must be refused before it becomes too long. */
START_TEST(rules_that_grow) {
    static const char grow[] = "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"
                               "\"content\":\"aaaaaaaaaaaaaaaaaaaa\"}";
    char rules[1024], rule[1200];
    fr_tokenizer *tokenizer;
    int32_t *ids;
    size_t count;
    snprintf(rules, sizeof rules,
             "[%s,%s,%s,%s,%s,%s,{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"
             "\"content\":\"\"}]",
             grow, grow, grow, grow, grow, grow);
    snprintf(rule, sizeof rule, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":%s}", rules);
    char *text = edited("\"normalizer\":null", rule);
    ck_assert_int_eq(fr_open_text(text, strlen(text), NULL, &tokenizer), FR_OK);
    ck_assert_int_eq(fr_tokenize(tokenizer, "ab", 2, false, true, &ids, &count), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "make it too long"));
    fr_tokenizer_close(tokenizer);
    free(text);
    snprintf(rule, sizeof rule, "\"decoder\":{\"type\":\"Sequence\",\"decoders\":%s}", rules);
    text = edited("\"decoder\":{\"type\":\"Fuse\"}", rule);
    ck_assert_int_eq(fr_open_text(text, strlen(text), NULL, &tokenizer), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "make it too long"));
    free(text);
}
END_TEST

/* The pattern of a published tokenizer must not reach the matcher's limit, even with the texts that take the longest
 * time. */
START_TEST(real_pattern) {
    char *text = edited("\"pre_tokenizer\":null",
                        "\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":"
                        "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| "
                        "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"}}");
    static const char *const fills[] = {" ", "a", "\n", "1", "a ", "' ", " \n", "\xFF", "\xC3\xA9 ", "  a"};
    size_t length = 120000;
    char *bytes = malloc(length);
    fr_tokenizer *tokenizer;
    ck_assert_int_eq(fr_open_text(text, strlen(text), NULL, &tokenizer), FR_OK);
    for (size_t i = 0; i < COUNT_OF(fills); i++) {
        for (size_t j = 0; j < length; j++) bytes[j] = fills[i][j % strlen(fills[i])];
        int32_t *ids;
        size_t count;
        ck_assert_int_eq(fr_tokenize(tokenizer, bytes, length, false, true, &ids, &count), FR_OK);
        fr_free(ids);
    }
    fr_tokenizer_close(tokenizer);
    free(bytes);
    free(text);
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- mutations */

/* Checks that a damaged file is either refused with a line, or opened and usable. */
static void check_damaged(const char *text, size_t length) {
    fr_tokenizer *tokenizer;
    fr_status status = fr_open_text(text, length, NULL, &tokenizer);
    ck_assert_msg(status == FR_OK || status == FR_INPUT, "%s: %s", fr_status_name(status), fr_last_error());
    if (status != FR_OK) {
        ck_assert_uint_gt(strlen(fr_last_error()), 20);
        return;
    }
    static const char words[] = "The <bos> quick\n\nbrown \xF0\x9F\x98\x80 fox<|turn>\xFF";
    int32_t *ids;
    size_t count, printed;
    ck_assert_int_eq(fr_tokenize(tokenizer, words, strlen(words), true, true, &ids, &count), FR_OK);
    fr_free(fr_print_ids(tokenizer, ids, count, &printed));
    fr_free(ids);
    fr_tokenizer_close(tokenizer);
}

START_TEST(mutations) {
    static const char bytes[] = "\"{}[],:0129-.eEtfn\\u \xFF\xC3";
    size_t length;
    char *text = fr_load_text(TOKENIZERS "gemma/tokenizer.json", &length), *damaged = malloc(length);
    for (int round = 0; round < 100; round++) {
        memcpy(damaged, text, length);
        size_t begin = next_random(length), span = next_random(length - begin < 300 ? length - begin : 300);
        switch (round % 4) {
        case 0: damaged[begin] = bytes[next_random(sizeof bytes)]; break;
        case 1: damaged[begin] ^= (char)(1 << next_random(8)); break;
        case 2: memmove(damaged + begin, damaged + begin + span, length - begin - span); break;
        default: memmove(damaged + next_random(length - span), text + begin, span);
        }
        check_damaged(damaged, round % 4 == 2 ? length - span : length);
    }
    free(damaged);
    free(text);
}
END_TEST

START_TEST(truncations) {
    size_t length;
    char *text = fr_load_text(TOKENIZERS "gemma/tokenizer.json", &length);
    for (size_t cut = 0; cut < length; cut += cut < 64 ? 1 : 499) {
        fr_tokenizer *tokenizer;
        ck_assert_int_eq(fr_open_text(text, cut, NULL, &tokenizer), FR_INPUT);
    }
    free(text);
}
END_TEST

FR_SUITE("tokenizer") {
    TCase *cases = tcase_create("tokenizer");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, reference_cases, 0, 2);
    tcase_add_loop_test(cases, byte_level_cases, 0, (int)COUNT_OF(byte_level));
    tcase_add_loop_test(cases, byte_level_decode_cases, 0, (int)COUNT_OF(byte_level));
    tcase_add_test(cases, variants);
    tcase_add_test(cases, decode_cases);
    tcase_add_test(cases, invalid_utf8);
    tcase_add_test(cases, random_bytes_round_trip);
    tcase_add_test(cases, decoder_holds_back);
    tcase_add_test(cases, ids_outside);
    tcase_add_test(cases, lying_files);
    tcase_add_test(cases, models_without_a_type);
    tcase_add_test(cases, config_file);
    tcase_add_test(cases, white_space_taken_once);
    tcase_add_loop_test(cases, begin_that_the_config_adds, 0, (int)COUNT_OF(begins));
    tcase_add_test(cases, one_begin_of_a_chat);
    tcase_add_test(cases, missing_files);
    tcase_add_test(cases, deep_json);
    tcase_add_test(cases, hostile_patterns);
    tcase_add_test(cases, rules_that_grow);
    tcase_add_test(cases, real_pattern);
    tcase_add_test(cases, mutations);
    tcase_add_test(cases, truncations);
    suite_add_tcase(suite, cases);
}
