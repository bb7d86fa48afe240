/* Tests texts in which only some bytes are trusted. The tokenizer must find control tokens only in trusted bytes. Bytes
 * that are not trusted must not make a control token, and must not hide or move one.
 *
 * The expected ids for small tokenizers were worked out by hand. For published tokenizers, the expected ids are those
 * that Hugging Face's tokenizers give for each trusted run alone; test_tokenizer.c compares fr_tokenize with them. */
/* suite: hostile */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/language/tokenizer/tokenizer_parts.h"
#include "tests/support/parts.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ----------------------------------------------------------------------------------------------------- marked texts */

/* Puts two marks around a trusted text. read_marks removes them. */
#define T(text) "\1" text "\2"

typedef struct sample {
    char text[4096];
    fr_span spans[256];
    fr_marked_text marked;
} sample;

/* Appends a part to a sample. A trusted part becomes a separate span, even directly after another trusted part. */
static void add_part(sample *s, const char *text, size_t length, bool trusted) {
    fr_marked_text *marked = &s->marked;
    ck_assert_uint_le(marked->length + length, sizeof s->text);
    ck_assert_uint_lt(marked->trusted_count, COUNT_OF(s->spans));
    memcpy(s->text + marked->length, text, length);
    if (trusted) s->spans[marked->trusted_count++] = (fr_span){marked->length, marked->length + length};
    marked->length += length;
}

static void begin_sample(sample *s) {
    s->marked = (fr_marked_text){.text = s->text, .trusted = s->spans};
}

static void read_marks(sample *s, const char *text) {
    begin_sample(s);
    while (*text) {
        bool trusted = *text == '\1';
        size_t length = trusted ? strcspn(++text, "\2") : strcspn(text, "\1");
        add_part(s, text, length, trusted);
        text += length + trusted;
    }
}

static int32_t *ids_of(const fr_tokenizer *tokenizer, const fr_marked_text *text, size_t *count) {
    int32_t *ids;
    fr_status status = fr_tokenize_marked(tokenizer, text, &ids, count);
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
    return ids;
}

static void check_same(const int32_t *ids, size_t count, const int32_t *expected, size_t expected_count,
                       const char *what) {
    ck_assert_msg(count == expected_count && memcmp(ids, expected, count * sizeof *ids) == 0, "%s: other ids", what);
}

/* ---------------------------------------------------------------------------------------------------- cases by hand */

/* A tokenizer with one token for each character. The placeholders take the additions of a case. */
static const char small[] = "{\"added_tokens\":[%s],\"normalizer\":%s,\"decoder\":{\"type\":\"Fuse\"},\"model\":{"
                            "\"type\":\"BPE\",\"vocab\":{\"<\":0,\">\":1,\"a\":2,\"b\":3,\"x\":4,\"y\":5,\"_\":6,"
                            "\" \":7%s},\"merges\":[%s]%s}}";

#define ADDED(id, text, more) "{\"id\":" #id ",\"content\":\"" text "\",\"normalized\":false," more "}"
#define CONTROL(id, text)     ADDED(id, text, "\"special\":true")
#define PLAIN(id, text)       ADDED(id, text, "\"special\":false")
#define BEHIND(id, text)      "{\"id\":" #id ",\"content\":\"" text "\",\"normalized\":true,\"special\":true}"

typedef struct small_tokenizer {
    const char *added, *normalizer, *vocabulary, *merges, *model;
} small_tokenizer;

static const small_tokenizer
    /* One control token is the beginning of another one. */
    nested = {CONTROL(20, "<a>") "," CONTROL(21, "<a><b>") "," CONTROL(22, "<b>"), "null", "", "", ""},
    /* Some added tokens are not control tokens and overlap with a control token. */
    plain = {CONTROL(20, "<a>") "," PLAIN(21, "x<a") "," PLAIN(22, "xy") "," PLAIN(23, "x<"), "null", "", "", ""},
    word = {ADDED(20, "<a>", "\"special\":true,\"single_word\":true"), "null", "", "", ""},
    left = {ADDED(20, "<a>", "\"special\":true,\"lstrip\":true"), "null", "", "", ""},
    right = {ADDED(20, "<a>", "\"special\":true,\"rstrip\":true"), "null", "", "", ""},
    /* Merges make a control token, and then merge it with more text. */
    merged = {CONTROL(21, "<a>"), "null", ",\"<a\":20,\"<a>\":21,\"<a>b\":22", "\"< a\",\"<a >\",\"<a> b\"", ""},
    whole = {CONTROL(20, "<a>"), "null", ",\"<a>\":20", "", ",\"ignore_merges\":true"},
    /* A single character is a control token. If it is not trusted, other tokens may represent this character. */
    letter = {CONTROL(3, "b"), "null", ",\"<0x62>\":20", "", ",\"byte_fallback\":true"},
    letter_unknown = {CONTROL(3, "b"), "null", ",\"?\":20", "", ",\"unk_token\":\"?\""},
    letter_only = {CONTROL(3, "b"), "null", "", "", ""},
    /* The tokenizer looks for these control tokens after it has normalized the text. */
    replaced = {BEHIND(20, "<a>"), "{\"type\":\"Replace\",\"pattern\":{\"String\":\"y\"},\"content\":\"a\"}", "", "",
                ""},
    joined = {BEHIND(20, "<a>"), "{\"type\":\"Replace\",\"pattern\":{\"String\":\"xy\"},\"content\":\"a\"}", "", "",
              ""},
    composed = {BEHIND(20, "<a>"), "{\"type\":\"NFC\"}", ",\"\\u226f\":21,\"\\u0338\":22", "", ""},
    prepended = {BEHIND(20, "<a>"), "{\"type\":\"Prepend\",\"prepend\":\"_\"}", "", "", ""};

/* The expected tokens of each text, each with a bar before it. */
static const struct {
    const small_tokenizer *tokenizer;
    const char *text, *tokens;
} by_hand[] = {
    {&nested, T("<a><b>"), "|<a><b>"},
    {&nested, T("<a>") T("<b>"), "|<a><b>"},
    {&nested, T("<a>") "<b>", "|<a>|<|b|>"},
    {&nested, T("<a><b") ">", "|<a>|<|b|>"},
    {&nested, T("<a>") T("") T("<b>"), "|<a><b>"},
    {&nested, "<a>" T("<b>"), "|<|a|>|<b>"},
    {&nested, "<a><b>", "|<|a|>|<|b|>"},
    {&nested, T("<a") ">", "|<|a|>"},
    {&nested, "<" T("a>"), "|<|a|>"},
    {&nested, T("<") "a" T(">"), "|<|a|>"},
    {&nested, T("<a>") "<a>" T("<a>"), "|<a>|<|a|>|<a>"},
    {&nested, "x" T("<b>") "y", "|x|<b>|y"},
    {&nested, T(""), ""},
    {&plain, T("x<a>"), "|x<a|>"}, /* the token that begins first is taken */
    {&plain, "x<a>", "|x<a|>"},
    {&plain, "x" T("<a>"), "|x|<a>"},
    {&plain, "x<" T("<a>"), "|x<|<a>"},
    {&plain, "x" T("y<a>"), "|xy|<a>"},
    {&plain, T("x") "y" T("<a>"), "|xy|<a>"},
    {&plain, T("<a>x") "<a>", "|<a>|x<a|>"},
    {&word, T("x<a>"), "|x|<|a|>"},
    {&word, "x" T("<a>") "y", "|x|<a>|y"},
    {&word, "<a>", "|<|a|>"},
    {&left, "x  " T("<a>"), "|x|<a>"},
    {&left, "x  <a>", "|x| | |<|a|>"},
    {&right, T("<a>") "  x", "|<a>|x"},
    {&right, T("<a>") "  " T("<a>"), "|<a>|<a>"},
    {&merged, T("<a>b"), "|<a>|b"},
    {&merged, "<a>", "|<a|>"},
    {&merged, "<a>b", "|<a|>|b"},
    {&merged, T("<a") ">b", "|<a|>|b"},
    {&whole, T("<a>"), "|<a>"},
    {&whole, "<a>", "|<|a|>"},
    {&letter, T("ab"), "|a|b"},
    {&letter, "ab", "|a|<0x62>"},
    {&letter_unknown, "ab", "|a|?"},
    {&letter_only, "aba", "|a|a"},
    {&replaced, T("<y>"), "|<a>"},
    {&replaced, "<y>", "|<|a|>"},
    {&replaced, T("<") "y" T(">"), "|<|a|>"},
    {&replaced, T("<y>") "<y>" T("<a>"), "|<a>|<|a|>|<a>"},
    {&joined, T("<xy>"), "|<a>"},
    {&joined, T("<x") T("y>"), "|<a>"},
    {&joined, T("<x") "y>", "|<|x|y|>"},
    {&composed, T("<a>"), "|<a>"},
    {&composed, T("<a>") "\u0338", "|<a>|\u0338"},
    {&composed, T("<a>\u0338"), "|<|a|\u226f"},
    {&composed, "<a>\u0338", "|<|a|\u226f"},
    {&prepended, T("<a>"), "|<a>"},
    {&prepended, "<a>", "|_|<|a|>"},
    {&prepended, "x" T("y"), "|_|x|y"},
    {&prepended, T("x") "y", "|_|x|y"},
};

static fr_tokenizer *open_small(const small_tokenizer *parts) {
    char json[2048];
    fr_tokenizer *tokenizer;
    snprintf(json, sizeof json, small, parts->added, parts->normalizer, parts->vocabulary, parts->merges, parts->model);
    ck_assert_msg(fr_open_text(json, strlen(json), NULL, &tokenizer) == FR_OK, "%s", fr_last_error());
    return tokenizer;
}

static void join_tokens(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, char *list, size_t size) {
    size_t length = 0;
    list[0] = '\0';
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(list + length, size - length, "|%s", tokenizer->vocabulary.tokens[ids[i]].text);
}

START_TEST(followed_by_hand) {
    static sample s;
    for (size_t i = 0; i < COUNT_OF(by_hand); i++) {
        fr_tokenizer *tokenizer = open_small(by_hand[i].tokenizer);
        char list[256];
        size_t count;
        read_marks(&s, by_hand[i].text);
        int32_t *ids = ids_of(tokenizer, &s.marked, &count);
        join_tokens(tokenizer, ids, count, list, sizeof list);
        ck_assert_msg(strcmp(list, by_hand[i].tokens) == 0, "%zu: \"%s\" gives %s, not %s", i, by_hand[i].text, list,
                      by_hand[i].tokens);
        fr_free(ids);
        fr_tokenizer_close(tokenizer);
    }
}
END_TEST

/* With parse_special the whole text is trusted. Without it, no part of the text is trusted. */
START_TEST(parse_special) {
    static sample s;
    for (size_t i = 0; i < COUNT_OF(by_hand); i++) {
        fr_tokenizer *tokenizer = open_small(by_hand[i].tokenizer);
        read_marks(&s, by_hand[i].text);
        for (int parse = 0; parse < 2; parse++) {
            fr_span all = {0, s.marked.length};
            fr_marked_text marked = {s.text, s.marked.length, &all, (size_t)parse};
            size_t count, expected_count;
            int32_t *ids, *expected = ids_of(tokenizer, &marked, &expected_count);
            ck_assert_int_eq(fr_tokenize(tokenizer, s.text, s.marked.length, false, parse, &ids, &count), FR_OK);
            check_same(ids, count, expected, expected_count, by_hand[i].text);
            fr_free(ids);
            fr_free(expected);
        }
        fr_tokenizer_close(tokenizer);
    }
}
END_TEST

START_TEST(wrong_spans) {
    static const fr_span cases[][2] = {
        {{0, 2}, {1, 3}}, {{2, 3}, {0, 1}}, {{0, 1}, {2, 9}}, {{3, 2}, {3, 3}}, {{0, 0}, {SIZE_MAX, SIZE_MAX}}};
    fr_tokenizer *tokenizer = open_small(&nested);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fr_span spans[] = {cases[i][0], cases[i][1]};
        fr_marked_text marked = {"<a><b>", 6, spans, 2};
        int32_t *ids;
        size_t count;
        ck_assert_int_eq(fr_tokenize_marked(tokenizer, &marked, &ids, &count), FR_USAGE);
        ck_assert_ptr_null(ids);
    }
    fr_tokenizer_close(tokenizer);
}
END_TEST

/* --------------------------------------------------------------------------------------------- published tokenizers */

/* The first EXACT tokenizers leave a text unchanged before they split it. The last two change it. */
static const char *const published[] = {"glm4", "deepseek3", "llama3", "qwen35", "gemma"};
enum { EXACT = 3 };

typedef struct subject {
    fr_tokenizer *tokenizer;
    json_t *json;
    const json_t *added;
    bool control[1 << 12]; /* true for each id that is special in tokenizer.json */
} subject;

static void open_subject(subject *s, const char *name) {
    char path[96];
    size_t i;
    json_t *entry;
    snprintf(path, sizeof path, TOKENIZERS "%s", name);
    ck_assert_int_eq(fr_tokenizer_open(path, NULL, &s->tokenizer), FR_OK);
    snprintf(path, sizeof path, TOKENIZERS "%s/tokenizer.json", name);
    s->json = fr_load_json(path);
    s->added = json_object_get(s->json, "added_tokens");
    memset(s->control, 0, sizeof s->control);
    json_array_foreach (s->added, i, entry)
        if (json_is_true(json_object_get(entry, "special")))
            s->control[json_integer_value(json_object_get(entry, "id"))] = true;
}

static void close_subject(subject *s) {
    fr_tokenizer_close(s->tokenizer);
    json_decref(s->json);
}

static size_t keep_control(const subject *s, int32_t *ids, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (s->control[ids[i]]) ids[kept++] = ids[i];
    return kept;
}

static uint64_t random_state = 0x9E3779B97F4A7C15u;

static size_t next_random(size_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % limit;
}

/* Returns at random an added token, a part of one, or another text. */
static const char *random_part(const subject *s, size_t *length) {
    static const char *const texts[] = {" ",      "\n",     "\n\n",   "a",       "Hello",
                                        "<",      "|",      ">",      "<|",      "|>",
                                        "\u0338", "\u2581", "\uff5c", "e\u0301", "\xF0\x9F\x98\x80",
                                        "\xFF",   "",       " think", "/no",     "</"};
    if (next_random(3) == 0) {
        const char *text = texts[next_random(COUNT_OF(texts))];
        *length = strlen(text);
        return text;
    }
    const json_t *entry = json_array_get(s->added, next_random(json_array_size(s->added)));
    const json_t *content = json_object_get(entry, "content");
    size_t size = json_string_length(content), begin = 0;
    if (next_random(3) == 0) {
        begin = next_random(size);
        size = next_random(size - begin + 1);
    }
    *length = size;
    return json_string_value(content) + begin;
}

static void make_random(const subject *s, sample *text, sample *harmless) {
    begin_sample(text);
    begin_sample(harmless);
    for (size_t parts = next_random(12) + 1; parts > 0; parts--) {
        size_t length;
        bool trusted = next_random(2);
        const char *part = random_part(s, &length);
        add_part(text, part, length, trusted);
        if (trusted || length == 0)
            add_part(harmless, part, length, trusted);
        else
            add_part(harmless, "z", 1, false);
    }
}

/* Tokenizes each run of trusted bytes alone. Writes the control tokens to `control`. Returns their number. */
static size_t run_by_run(const subject *s, const fr_marked_text *text, int32_t *control) {
    size_t found = 0;
    for (size_t i = 0, count; i < text->trusted_count;) {
        size_t begin = text->trusted[i].begin, end = begin;
        int32_t *ids;
        for (; i < text->trusted_count && text->trusted[i].begin == end; i++) end = text->trusted[i].end;
        ck_assert_int_eq(fr_tokenize(s->tokenizer, text->text + begin, end - begin, false, true, &ids, &count), FR_OK);
        count = keep_control(s, ids, count);
        memcpy(control + found, ids, count * sizeof *ids);
        found += count;
        fr_free(ids);
    }
    return found;
}

START_TEST(trusted_alone) {
    static subject s;
    static sample text, harmless;
    static int32_t expected[sizeof text.text];
    size_t with_control = 0;
    open_subject(&s, published[_i]);
    size_t rounds = fr_test_times(2000, 8000);
    for (size_t round = 0; round < rounds; round++) {
        make_random(&s, &text, &harmless);
        size_t count, harmless_count, expected_count = run_by_run(&s, &text.marked, expected);
        int32_t *ids = ids_of(s.tokenizer, &text.marked, &count);
        count = keep_control(&s, ids, count);
        check_same(ids, count, expected, expected_count, text.text);
        with_control += count > 0;
        int32_t *others = ids_of(s.tokenizer, &harmless.marked, &harmless_count);
        check_same(others, keep_control(&s, others, harmless_count), expected, expected_count, harmless.text);
        fr_free(ids);
        fr_free(others);
    }
    ck_assert_uint_gt(with_control, rounds / 2);
    close_subject(&s);
}
END_TEST

/* Whichever bytes are trusted, no byte may be lost or added. */
START_TEST(all_bytes_are_there) {
    static subject s;
    static sample text, harmless;
    open_subject(&s, published[_i]);
    for (size_t round = 0; round < fr_test_times(500, 2000); round++) {
        make_random(&s, &text, &harmless);
        size_t count, length;
        int32_t *ids = ids_of(s.tokenizer, &text.marked, &count);
        char *printed = fr_print_ids(s.tokenizer, ids, count, &length);
        ck_assert_uint_eq(length, text.marked.length);
        ck_assert_mem_eq(printed, text.text, length);
        fr_free(printed);
        fr_free(ids);
    }
    close_subject(&s);
}
END_TEST

/* If a whole text is trusted, it must have the ids of the reference cases. This must also hold if the text is divided
 * into several spans. */
START_TEST(trusted_whole) {
    char path[96];
    static subject s;
    open_subject(&s, published[_i]);
    snprintf(path, sizeof path, TOKENIZERS "%s/tokenizer_cases.json", published[_i]);
    json_t *root = fr_load_json(path), *item;
    size_t i;
    json_array_foreach (json_object_get(root, "encode"), i, item) {
        const json_t *text = json_object_get(item, "text");
        size_t length = json_string_length(text), middle = next_random(length + 1), count, expected_count;
        fr_span spans[] = {{0, middle}, {middle, length}};
        fr_marked_text marked = {(char *)(uintptr_t)json_string_value(text), length, spans, 2};
        int32_t *ids = ids_of(s.tokenizer, &marked, &count);
        int32_t *expected = fr_ids_of(json_object_get(item, "ids"), &expected_count);
        check_same(ids, count, expected, expected_count, json_string_value(text));
        fr_free(ids);
        free(expected);
    }
    ck_assert_uint_gt(i, 300);
    json_decref(root);
    close_subject(&s);
}
END_TEST

/* In a GGUF file the vocabulary also contains the control tokens (such as GLM's "/nothink"). Pieces of text are looked
 * up in this vocabulary. A piece of text that is not trusted must still not become a control token. */
START_TEST(gguf_vocabulary) {
    static const struct {
        const char *file, *folder, *text;
    } cases[] = {
        {"tests/data/gguf/gemma-tokenizer.gguf", "gemma", "<bos><|turn>user\n<eos><turn|>"},
        {"tests/data/glm-ocr/model-q4_0.gguf", "glm4", "Say it/nothink <sop>[MASK] /nothink\n/nothink"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fr_tokenizer *tokenizer;
        int32_t *ids;
        size_t count, length = strlen(cases[i].text), found = 0;
        ck_assert_int_eq(fr_tokenizer_open(cases[i].file, NULL, &tokenizer), FR_OK);
        static subject s;
        open_subject(&s, cases[i].folder);
        for (int parse = 0; parse < 2; parse++) {
            ck_assert_int_eq(fr_tokenize(tokenizer, cases[i].text, length, false, parse, &ids, &count), FR_OK);
            for (size_t at = found = 0; at < count; at++) {
                int32_t id = fr_tokenizer_id(s.tokenizer, tokenizer->vocabulary.tokens[ids[at]].text);
                found += id >= 0 && s.control[id];
            }
            ck_assert_msg(parse ? found >= 4 : found == 0, "%s: %zu control tokens", cases[i].file, found);
            fr_free(ids);
        }
        close_subject(&s);
        fr_tokenizer_close(tokenizer);
    }
}
END_TEST

/* If every byte of a text is a separate span, the time must still grow only in proportion to the length of the text. */
START_TEST(many_spans) {
    size_t length = 1 << 21, count;
    char *text = malloc(length);
    fr_span *spans = malloc(length * sizeof *spans);
    for (size_t i = 0; i < length; i++) {
        text[i] = "<|turn>"[i % 7];
        spans[i] = (fr_span){i, i + (i % 14 < 7)};
    }
    static subject s;
    open_subject(&s, "gemma");
    fr_marked_text marked = {text, length, spans, length};
    int32_t *ids = ids_of(s.tokenizer, &marked, &count);
    ck_assert_uint_eq(keep_control(&s, ids, count), (length + 7) / 14);
    fr_free(ids);
    free(text);
    free(spans);
    close_subject(&s);
}
END_TEST

FR_SUITE("marked_text") {
    TCase *cases = tcase_create("marked_text");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, followed_by_hand);
    tcase_add_test(cases, parse_special);
    tcase_add_test(cases, wrong_spans);
    tcase_add_loop_test(cases, trusted_alone, 0, COUNT_OF(published));
    tcase_add_loop_test(cases, all_bytes_are_there, 0, EXACT);
    tcase_add_loop_test(cases, trusted_whole, 0, COUNT_OF(published));
    tcase_add_test(cases, gguf_vocabulary);
    tcase_add_test(cases, many_spans);
    suite_add_tcase(suite, cases);
}
