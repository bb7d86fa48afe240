/* Tests grammars. The tokens that are allowed at each step are compared with llama.cpp (tests/references/grammars.cpp).
 * For a regular expression, the matching texts are compared with Python's re. For a schema, the fitting texts are
 * compared with Python's jsonschema (tests/references/schemas.py). Some grammars must be refused. A session's text must
 * follow its grammar. It must be the same with any drafts, greedy or sampled.
 *
 * In: nothing, or a file of walks through other grammars. With --whole the suite compares only these walks, and in them
 * only the tokens that end with a whole character. */
#include <check.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun.h"
#include "src/language/grammar/grammar.h"
#include "src/engine/session/constraint.h"
#include "tests/support/brief.h"
#include "tests/support/command.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

static const char *walks_file = "tests/data/grammars/walks.json";
static fr_tokenizer *tokenizer;
static fr_token_tree *tree;
static bool at_ends; /* true: compare only tokens that end with a whole character */

static void open_tree(void) {
    require(fr_tokenizer_open("tests/data/llama/q4_0.gguf", NULL, &tokenizer));
    require(fr_token_tree_open(tokenizer, &tree));
}

static void close_tree(void) {
    fr_token_tree_close(tree);
    fr_tokenizer_close(tokenizer);
}

static json_t *read_json(const char *path) {
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    ck_assert_msg(json != NULL, "%s: %s", path, error.text);
    return json;
}

static bool has(const uint64_t *bits, size_t id) {
    return bits[id / 64] >> (id % 64) & 1;
}

/* Returns true if a token ends in the middle of a character. The token must begin with the first byte of a
 * character. */
static bool ends_inside(int32_t id) {
    size_t length, left = 0;
    const char *bytes = fr_token_bytes(tokenizer, id, &length);
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = (uint8_t)bytes[i];
        left = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : left ? left - 1 : 0;
    }
    return left > 0;
}

static uint64_t hash_bits(const uint64_t *bits, size_t *count) {
    uint64_t hash = 14695981039346656037u;
    *count = 0;
    for (size_t id = 0; id < fr_tokenizer_count(tokenizer); id++) {
        if (!has(bits, id) || (at_ends && ends_inside((int32_t)id))) continue;
        ++*count;
        for (int i = 0; i < 4; i++) hash = (hash ^ (id >> (8 * i) & 0xFF)) * 1099511628211u;
    }
    return hash;
}

static void check_walk(fr_grammar *grammar, const json_t *walk, size_t number) {
    const json_t *steps = json_object_get(walk, "steps"), *given = json_object_get(walk, "ids");
    int32_t ids[256];
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const uint64_t *bits;
        size_t count;
        bool ends;
        require(fr_grammar_allowed(grammar, ids, i, &bits, &ends));
        uint64_t hash = hash_bits(bits, &count);
        ck_assert_msg(count == (size_t)json_integer_value(json_array_get(step, 0)), "walk %zu, step %zu: %zu tokens",
                      number, i, count);
        ck_assert_msg(hash == strtoull(json_string_value(json_array_get(step, 1)), NULL, 16), "walk %zu, step %zu",
                      number, i);
        ck_assert_msg(ends == json_is_true(json_array_get(step, 2)), "walk %zu, step %zu: its end", number, i);
        ids[i] = (int32_t)json_integer_value(json_array_get(given, i));
    }
}

START_TEST(walks) {
    json_t *cases = read_json(walks_file);
    ck_assert_uint_gt(json_array_size(cases), 0);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *one = json_array_get(cases, i), *walk;
        const char *text = json_string_value(json_object_get(one, "grammar"));
        fr_grammar *grammar;
        size_t number;
        require(fr_grammar_open(tree, FR_GRAMMAR_GBNF, text, strlen(text), &grammar));
        json_array_foreach (json_object_get(one, "walks"), number, walk) check_walk(grammar, walk, number);
        fr_grammar_close(grammar);
    }
    json_decref(cases);
}
END_TEST

/* Returns true if the grammar allows all tokens of a text and then allows the text to end. */
static bool matches(fr_grammar *grammar, const char *text, size_t length) {
    const uint64_t *bits;
    int32_t *ids;
    size_t count;
    bool ends = false;
    require(fr_tokenize(tokenizer, text, length, false, false, &ids, &count));
    fr_status status = fr_grammar_allowed(grammar, ids, count, &bits, &ends);
    ck_assert_msg(status == FR_OK || status == FR_INPUT, "%s", fr_last_error());
    fr_free(ids);
    return status == FR_OK && ends;
}

/* Checks a file of cases. Each case has a grammar and texts, in this form: ["GRAMMAR", [["TEXT", true if the grammar
 * allows it], ...]]. */
static void check_texts(const char *path, fr_grammar_kind kind) {
    json_t *cases = read_json(path);
    ck_assert_uint_gt(json_array_size(cases), 0);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const char *expression = json_string_value(json_array_get(json_array_get(cases, i), 0));
        const json_t *texts = json_array_get(json_array_get(cases, i), 1), *pair;
        fr_grammar *grammar;
        size_t number;
        require(fr_grammar_open(tree, kind, expression, strlen(expression), &grammar));
        json_array_foreach (texts, number, pair) {
            const json_t *text = json_array_get(pair, 0);
            bool is = matches(grammar, json_string_value(text), json_string_length(text));
            ck_assert_msg(is == json_is_true(json_array_get(pair, 1)), "/%s/ and \"%s\": %d", expression,
                          json_string_value(text), is);
        }
        fr_grammar_close(grammar);
    }
    json_decref(cases);
}

START_TEST(regular_expressions) {
    check_texts("tests/data/grammars/regexes.json", FR_GRAMMAR_REGEX);
}
END_TEST

/* Tests patterns with lookaround. A text fits a pattern if the pattern matches any part of the text. */
START_TEST(looking_around) {
    check_texts("tests/data/grammars/patterns.json", FR_GRAMMAR_JSON_SCHEMA);
}
END_TEST

/* Tests patterns with properties of Unicode characters. */
START_TEST(properties) {
    check_texts("tests/data/grammars/properties.json", FR_GRAMMAR_JSON_SCHEMA);
}
END_TEST

/* Tests integers whose bounds, constants or steps do not fit in 64 bits. */
START_TEST(wide_integers) {
    check_texts("tests/data/grammars/integers.json", FR_GRAMMAR_JSON_SCHEMA);
}
END_TEST

START_TEST(schemas) {
    check_texts("tests/data/grammars/schemas.json", FR_GRAMMAR_JSON_SCHEMA);
}
END_TEST

/* These expressions have large repetitions, which the library counts instead of copying the repeated part. A text is
 * `begin`, then copies of `unit`, then `end`. It must be accepted if the number of copies is from `least` to `most`,
 * and refused otherwise. */
static const struct {
    fr_grammar_kind kind;
    const char *expression, *begin, *unit, *end;
    unsigned least, most;
} counted[] = {
    {FR_GRAMMAR_REGEX, "a{300}", "", "a", "", 300, 300},
    {FR_GRAMMAR_REGEX, "(ab?){290,2000}c", "", "ab", "c", 290, 2000},
    {FR_GRAMMAR_REGEX, "[^x]{0,700}", "", "\xC3\xA9", "", 0, 700},
    {FR_GRAMMAR_REGEX, "((ab){20,30}){20,30}", "", "ab", "", 400, 900},
    {FR_GRAMMAR_REGEX, "((a|b?)c?){500}", "", "bc", "", 0, 500},
    {FR_GRAMMAR_REGEX, "(a|aa){300,400}", "", "aa", "", 150, 400},
    {FR_GRAMMAR_REGEX, "x(a{3}){0,2147483647}", "x", "aaa", "", 0, 2147483647},
    {FR_GRAMMAR_GBNF, "root ::= i{600,}\ni ::= \"ab\" | \"c\" i", "", "cab", "", 600, 2147483647},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"type\": \"string\", \"minLength\": 400, \"maxLength\": 1300}", "\"", "\\n", "\"", 400,
     1300},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"type\": \"array\", \"minItems\": 401, \"maxItems\": 650, \"items\": {\"enum\": [1]}}",
     "[1", ",1", "]", 400, 649},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"type\": \"array\", \"minItems\": 1e9, \"items\": {\"enum\": [1]}}", "[1", ",1", "]",
     999999999, 2147483647},
    {FR_GRAMMAR_JSON_SCHEMA,
     "{\"type\": \"string\", \"pattern\": \"^[a-z]+$\", \"minLength\": 290, \"maxLength\": 901}", "\"", "a", "\"", 290,
     901},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"pattern\": \"^x(ab?)*c$\", \"minLength\": 302, \"maxLength\": 5000}", "\"x", "a",
     "c\"", 300, 4998},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"format\": \"uri\", \"pattern\": \"^http\", \"maxLength\": 2083}", "\"http://a", "/",
     "\"", 0, 2075},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"pattern\": \"^[^x]{3,65536}$\", \"minLength\": 400}", "\"", "a", "\"", 400, 65536},
    {FR_GRAMMAR_JSON_SCHEMA,
     "{\"type\": \"object\", \"maxProperties\": 300, \"minProperties\": 1, \"properties\": {\"b\": "
     "{\"const\": 1}}, \"additionalProperties\": {\"const\": 1}}",
     "{\"b\":1", ",\"a\":1", "}", 0, 299},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"type\": \"string\", \"maxLength\": 1e12}", "\"", "a", "\"", 0, 2147483647},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"type\": \"string\", \"maxLength\": 9007199254740991}", "\"", "a", "\"", 0, 2147483647},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"minLength\": 2, \"maxLength\": 9223372036854775807, \"type\": \"string\"}", "\"", "a",
     "\"", 2, 2147483647},
};

START_TEST(counts_are_kept) {
    enum { MOST = 2100 };
    static const unsigned tried[] = {0,   1,   149, 150, 289, 290, 299, 300, 301, 399,  400,  401,  500,
                                     501, 599, 600, 649, 650, 700, 701, 900, 901, 1300, 1301, 2000, 2001};
    static char text[8 * MOST];
    fr_grammar *grammar;
    require(fr_grammar_open(tree, counted[_i].kind, counted[_i].expression, strlen(counted[_i].expression), &grammar));
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        char *end = stpcpy(text, counted[_i].begin);
        for (unsigned k = 0; k < tried[i]; k++) end = stpcpy(end, counted[_i].unit);
        end = stpcpy(end, counted[_i].end);
        bool within = tried[i] >= counted[_i].least && tried[i] <= counted[_i].most;
        ck_assert_msg(matches(grammar, text, (size_t)(end - text)) == within, "%s: %u times", counted[_i].expression,
                      tried[i]);
    }
    fr_grammar_close(grammar);
}
END_TEST

/* For each format, examples from its standard (RFC 3339, 3986, 3987, 4122, 4291, 5321, 5890, 6570, 6901, 1123), and
 * texts that the standard does not allow. The texts are written with JSON's escapes. */
static const struct {
    const char *format, *texts[24]; /* a text that begins with '!' does not fit the format */
} formats[] = {
    {"date",
     {"1985-04-12", "2024-02-29", "2000-02-29", "0001-01-01", "9999-12-31", "!2023-02-29", "!1900-02-29", "!2024-02-30",
      "!2026-04-31", "!2026-13-01", "!2026-00-10", "!26-01-01", "!2026-1-01", "!2026-01-01Z", "!0000-01-01"}},
    {"time",
     {"23:20:50.52Z", "16:39:57-08:00", "23:59:60Z", "15:59:60-08:00", "05:29:60+05:30", "00:00:00z",
      "12:00:27.870000000123+00:20", "!24:00:00Z", "!12:60:00Z", "!12:00:61Z", "!22:59:60Z", "!12:00:00", "!12:00Z",
      "!23:59:60+01:00"}},
    {"date-time",
     {"1985-04-12T23:20:50.52Z", "1996-12-19T16:39:57-08:00", "1990-12-31T23:59:60Z", "1990-12-31T15:59:60-08:00",
      "1937-01-01T12:00:27.87+00:20", "2020-02-29t00:00:00z", "!2021-02-29T00:00:00Z", "!2020-01-01",
      "!2020-01-01 00:00:00Z", "!2020-01-01T00:00:00"}},
    {"duration",
     {"P4DT12H30M5S", "P4Y", "PT0S", "P0D", "P1M", "PT1M", "PT36H", "P1DT12H", "P2W", "P1Y2M3D", "PT0.5S", "!P", "!P1",
      "!PT", "!P1D2H", "!P2D1Y", "!P1WT1H", "!4DT", "!P1Y1D"}},
    {"uuid",
     {"2eb8aa08-aa98-11ea-b4aa-73b441d16380", "2EB8AA08-AA98-11EA-B4AA-73B441D16380",
      "!2eb8aa08-aa98-11ea-b4aa-73b441d1638", "!2eb8aa08aa9811eab4aa73b441d16380",
      "!2eb8aa08-aa98-11ea-b4aa-73b441d1638g"}},
    {"ipv4", {"192.168.0.1", "0.0.0.0", "255.255.255.255", "!256.1.1.1", "!1.2.3", "!01.2.3.4", "!1.2.3.4.5"}},
    {"ipv6",
     {"::1", "::", "2001:DB8::8:800:200C:417A", "1:2:3:4:5:6:7:8", "::ffff:192.168.0.1", "fe80::1:2",
      "1::", "1:2:3:4:5:6:1.2.3.4", "::42:ff:1", "!12345::", "!1::2::3", "!1:2:3:4:5:6:7", "!:1", "!fe80::1%eth0",
      "!1:2:3:4:5:6:7:8:9"}},
    {"hostname",
     {"www.example.com", "localhost", "xn--nxasmq6b", "A-1.b", "3com.com", "a.photography", "!-a", "!a-", "!a..b",
      "!a_b", "!.a", "!a.", "!"}},
    {"idn-hostname", {"例え.テスト", "bücher.de", "a.b", "!-a", "!a b"}},
    {"email",
     {"joe.bloggs@example.com", "te~st+x@Example.Photography", "a/b=c@localhost", "\\\"joe bloggs\\\"@example.com",
      "joe@[127.0.0.1]", "joe@[IPv6:::1]", "!.a@b.c", "!a..b@c.d", "!a@b@c", "!joe", "!a b@c.d", "!a@-b"}},
    {"idn-email", {"실례@실례.테스트", "a@b.c", "!2962"}},
    {"uri",
     {"ftp://ftp.is.co.za/rfc/rfc1808.txt",
      "http://www.ietf.org/rfc/rfc2396.txt",
      "ldap://[2001:db8::7]/c=GB?objectClass?one",
      "mailto:John.Doe@example.com",
      "news:comp.infosystems",
      "tel:+1-816-555-1212",
      "telnet://192.0.2.16:80/",
      "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
      "http://localhost:8080/x",
      "https://u:p@Example.org:8443/a%20b;v=1/(c),d?q=a/b?c#part",
      "file:///etc/hosts",
      "http://[v1.fe]/",
      "!http://a b",
      "!/abc",
      "!abc",
      "!//a/b",
      "!http://a/%2",
      "!1a:b",
      "!http://[:::1]/",
      "!http://a:b/",
      "!http://a/{b}",
      "!http://a/#b#c"}},
    {"uri-reference",
     {"/abc", "//example.org/a?b#c", "#frag", "", "abc", "a/b:c", "../x", "http://a", "?q", "!a b", "!\\\\a", "!#a#b"}},
    {"iri", {"http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://a/b", "mailto:ü@x", "!/abc", "!http://a b"}},
    {"iri-reference", {"/âππ", "âππ", "#ƒrägmênt", "!a b", "!\\\\WIN"}},
    {"uri-template",
     {"http://example.com/dictionary/{term:1}/{term}", "{+path,x}/here{?q*,lang}", "a", "", "{a.b}%20", "!{", "!a{b",
      "!{}", "!a b"}},
    {"json-pointer", {"", "/foo/0", "/a~1b", "/m~0n", "/ ", "/k\\\"l", "!a", "!/a~2", "!/~", "!#"}},
    {"relative-json-pointer", {"0", "1/0", "2/highly/nested", "0#", "10", "0-1#", "!/a", "!-1", "!01", "!1/~"}},
    {"of-another-name", {"", "whatever"}},
};

START_TEST(formats_are_as_wide_as_their_standards) {
    char schema[80], text[400];
    fr_grammar *grammar;
    snprintf(schema, sizeof schema, "{\"type\": \"string\", \"format\": \"%s\"}", formats[_i].format);
    require(fr_grammar_open(tree, FR_GRAMMAR_JSON_SCHEMA, schema, strlen(schema), &grammar));
    for (size_t i = 0; formats[_i].texts[i]; i++) {
        bool none = *formats[_i].texts[i] == '!';
        snprintf(text, sizeof text, "\"%s\"", formats[_i].texts[i] + none);
        ck_assert_msg(matches(grammar, text, strlen(text)) != none, "%s: %s", formats[_i].format, text);
    }
    fr_grammar_close(grammar);
}
END_TEST

/* If a schema lists its values and also has a format, the format is only an annotation and must change nothing. */
START_TEST(formats_beside_constants) {
    static const char schema[] = "{\"enum\": [\"a\", \"2024-02-29\", 5], \"format\": \"date\"}";
    fr_grammar *grammar;
    require(fr_grammar_open(tree, FR_GRAMMAR_JSON_SCHEMA, schema, strlen(schema), &grammar));
    ck_assert(matches(grammar, "\"a\"", 3) && matches(grammar, "\"2024-02-29\"", 12) && matches(grammar, "5", 1));
    ck_assert(!matches(grammar, "\"2024-02-28\"", 12));
    fr_grammar_close(grammar);
}
END_TEST

/* A reference may use an anchor, or the $id of an inner schema, which may be absolute or relative to the document's
 * $id. Values in enum and default that only look like anchors or ids must be ignored. Each of these schemas allows only
 * 7. */
START_TEST(references_within_a_document) {
#define SEVEN "\"const\": 7"
#define DECOY \
    "\"default\": {\"$anchor\": \"a\", \"const\": 1}, \"enum\": [7, {\"$id\": \"https://x.org/s/b\", \"const\": 1}], "
    static const char *const documents[] = {
        "{" DECOY "\"$ref\": \"#a\", \"$defs\": {\"default\": {\"$anchor\": \"a\", " SEVEN "}}}",
        "{\"$ref\": \"#a\", \"definitions\": {\"b\": {\"$id\": \"#a\", " SEVEN "}}}",
        "{\"$id\": \"https://x.org/s/a.json\", \"$ref\": \"https://x.org/s/a.json#/$defs/b\", \"$defs\": {\"b\": "
        "{" SEVEN "}}}",
        "{\"$id\": \"https://x.org/s/a.json\", \"$ref\": \"a.json#b\", \"$defs\": {\"c\": {\"$anchor\": \"b\", " SEVEN
        "}}}",
        "{" DECOY "\"$id\": \"https://x.org/s/a\", \"$ref\": \"b\", \"$defs\": {\"c\": {\"$id\": \"/s/b\", " SEVEN
        "}}}",
        "{\"$ref\": \"urn:x:b#/c/0\", \"$defs\": {\"b\": {\"$id\": \"urn:x:b\", \"c\": [{" SEVEN "}]}}}",
        "{\"$ref\": \"b.json\", \"$defs\": {\"b\": {\"$id\": \"b.json#\", " SEVEN "}}}",
    };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        fr_grammar *grammar;
        ck_assert_msg(fr_grammar_open(tree, FR_GRAMMAR_JSON_SCHEMA, documents[i], strlen(documents[i]), &grammar) ==
                          FR_OK,
                      "%s: %s", documents[i], fr_last_error());
        ck_assert_msg(matches(grammar, "7", 1) && !matches(grammar, "1", 1), "%s", documents[i]);
        fr_grammar_close(grammar);
    }
}
END_TEST

/* The items of these lists must be unique and can have only a few values. A list may have them in any order. A schema
 * can list the values in two ways. */
START_TEST(small_sets) {
    static const char *const items[] = {
        "{\"enum\": [1, \"a\", null, true, 2, 3, 4, 5]}",
        "{\"anyOf\": [{\"const\": 1}, {\"const\": \"a\"}, {\"oneOf\": [{\"type\": \"null\"}, {\"enum\": [true]}]}, "
        "{\"type\": \"integer\", \"minimum\": 2, \"maximum\": 5}]}",
    };
    static const struct {
        const char *text;
        bool is;
    } lists[] = {{"[]", true},
                 {"[3]", true},
                 {"[5,\"a\",null,1]", true},
                 {"[true,null,\"a\"]", true},
                 {"[2,5,4,3,1]", true},
                 {"[1,1]", false},
                 {"[null,5,null]", false},
                 {"[6]", false},
                 {"[false]", false},
                 {"[\"a\",\"a\"]", false},
                 {"[\"a\",1,\"a\"]", false},
                 {"[1,2", false}};
    for (size_t k = 0; k < 2; k++) {
        char schema[400];
        fr_grammar *grammar;
        snprintf(schema, sizeof schema, "{\"type\": \"array\", \"items\": %s, \"uniqueItems\": true}", items[k]);
        require(fr_grammar_open(tree, FR_GRAMMAR_JSON_SCHEMA, schema, strlen(schema), &grammar));
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
            ck_assert_msg(matches(grammar, lists[i].text, strlen(lists[i].text)) == lists[i].is, "%s: %s", schema,
                          lists[i].text);
        fr_grammar_close(grammar);
    }
}
END_TEST

/* The items of these lists are strings and must be unique. If a pattern (with or without a length) allows only a few
 * strings, the grammar enforces this. If the possible strings can't be listed, the schema is refused. */
START_TEST(sets_of_strings) {
    static const char *const items[] = {"\"pattern\": \"^(rot|gr(ü|ue)n|blau|)$\"",
                                        "\"pattern\": \"^(rot|grün|gruen|blau|lila)?$\", \"maxLength\": 5",
                                        "\"pattern\": \"^[a-z]*$\"", "\"maxLength\": 2", "\"minLength\": 1"};
    static const char *const lists[] = {"[]",
                                        "[\"blau\",\"\",\"rot\"]",
                                        "[\"grün\",\"gruen\"]",
                                        "!([\"rot\",\"rot\"]",
                                        "![\"rot\",\"rot\"]",
                                        "![\"\",\"\"]",
                                        "![\"gelb\"]"};
    for (size_t k = 0; k < sizeof items / sizeof *items; k++) {
        char schema[400];
        fr_grammar *grammar;
        snprintf(schema, sizeof schema,
                 "{\"items\": {\"type\": \"string\", %s}, \"uniqueItems\": true, \"type\": \"array\"}", items[k]);
        fr_status status = fr_grammar_open(tree, FR_GRAMMAR_JSON_SCHEMA, schema, strlen(schema), &grammar);
        ck_assert_msg(status == (k < 2 ? FR_OK : FR_UNBUILT), "%s: %s", schema, fr_last_error());
        for (size_t i = 0; status == FR_OK && i < sizeof lists / sizeof *lists; i++) {
            bool none = *lists[i] == '!';
            ck_assert_msg(matches(grammar, lists[i] + none, strlen(lists[i] + none)) != none, "%s: %s", schema,
                          lists[i]);
        }
        if (status == FR_OK) fr_grammar_close(grammar);
    }
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- refusals */

static const struct refusal {
    fr_grammar_kind kind;
    const char *text;
    fr_status status;
    const char *says;
} refusals[] = {
    {FR_GRAMMAR_GBNF, "", FR_INPUT, "no rule called root"},
    {FR_GRAMMAR_GBNF, "a ::= \"x\"", FR_INPUT, "no rule called root"},
    {FR_GRAMMAR_GBNF, "root ::= \"x\"\n  y z ::= \"a\"", FR_INPUT, "line 2, column 5: ::= is missing"},
    {FR_GRAMMAR_GBNF, "root ::= \"x", FR_INPUT, "closing quote"},
    {FR_GRAMMAR_GBNF, "root ::= [a-", FR_INPUT, "closing bracket"},
    {FR_GRAMMAR_GBNF, "root ::= [z-a]", FR_INPUT, "ends before it begins"},
    {FR_GRAMMAR_GBNF, "root ::= (\"a\"", FR_INPUT, "not closed"},
    {FR_GRAMMAR_GBNF, "root ::= \"a\"{3,2}", FR_INPUT, "fewer times"},
    {FR_GRAMMAR_GBNF, "root ::= \"a\"{99999999999}", FR_INPUT, "more than 2147483647 repetitions"},
    {FR_GRAMMAR_GBNF, "root ::= other", FR_INPUT, "line 1, column 10: a rule that is not defined"},
    {FR_GRAMMAR_GBNF, "root ::= root \"a\" | \"b\"", FR_INPUT, "begins with itself"},
    {FR_GRAMMAR_GBNF, "root ::= e a | \"q\"\na ::= e root\ne ::= \"\" | \"x\"", FR_INPUT, "begins with itself"},
    {FR_GRAMMAR_GBNF, "root ::= \"a\" root", FR_INPUT, "no text at all"},
    {FR_GRAMMAR_GBNF, "root ::= []", FR_INPUT, "no text at all"},
    {FR_GRAMMAR_GBNF, "root ::= \"\\q\"", FR_INPUT, "unknown escape"},
    {FR_GRAMMAR_GBNF, "root ::= \"\xff\"", FR_INPUT, "not UTF-8"},
    {FR_GRAMMAR_GBNF, "root ::= \"\\U00110000\"", FR_INPUT, "no character"},
    {FR_GRAMMAR_GBNF, "root ::= <think>", FR_UNBUILT, "tokens as terminals"},
    {FR_GRAMMAR_REGEX, "a(b", FR_INPUT, "not closed"},
    {FR_GRAMMAR_REGEX, "a)b", FR_INPUT, "too many"},
    {FR_GRAMMAR_REGEX, "*a", FR_INPUT, "nothing to repeat"},
    {FR_GRAMMAR_REGEX, "[b-a]", FR_INPUT, "before it begins"},
    {FR_GRAMMAR_REGEX, "(?=a)b", FR_INPUT, "no text at all"},
    {FR_GRAMMAR_REGEX, "(?=a\\b)a", FR_UNBUILT, "a look-behind inside"},
    {FR_GRAMMAR_REGEX, "(?>a)b", FR_UNBUILT, "at byte 2: groups of this kind are not built"},
    {FR_GRAMMAR_REGEX, "(?<a", FR_INPUT, "name is not closed"},
    {FR_GRAMMAR_REGEX, "(a)\\1", FR_UNBUILT, "escape"},
    {FR_GRAMMAR_REGEX, "a^b", FR_INPUT, "no text at all"},
    {FR_GRAMMAR_REGEX, "\\ud83d", FR_UNBUILT, "halves"},
    {FR_GRAMMAR_JSON_SCHEMA, "{", FR_INPUT, "not JSON"},
    {FR_GRAMMAR_JSON_SCHEMA, "[]", FR_INPUT, "at #: a schema is"},
    {FR_GRAMMAR_JSON_SCHEMA, "false", FR_INPUT, "at #: this schema allows no value"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"type\": \"text\"}", FR_INPUT, "at #/type: this is not a type"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"properties\": {\"a/b\": {\"$dynamicRef\": \"#x\"}}}", FR_UNBUILT,
     "#/properties/a~1b/$dynamicRef: not built"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"items\": {\"uniqueItems\": true}}", FR_UNBUILT, "#/items/uniqueItems"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"anyOf\": [{}, {\"multipleOf\": 1e-9}]}", FR_UNBUILT, "#/anyOf/1/multipleOf"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"oneOf\": [{\"multipleOf\": 3}, {\"multipleOf\": 5}]}", FR_UNBUILT,
     "/not: the negation"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"items\": {\"not\": {\"multipleOf\": 3}}}", FR_UNBUILT, "#/items/not: the negation"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"if\": {\"multipleOf\": 3}, \"then\": {\"minimum\": 3}}", FR_UNBUILT,
     "#/if: the negation"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"not\": {}}", FR_INPUT, "this schema allows no value"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"multipleOf\": 0}", FR_INPUT, "#/multipleOf: not a number above 0"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"type\": \"object\", \"not\": {\"const\": {}}}", FR_UNBUILT, "excluding given"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"patternProperties\": {\"a\": {}, \"b\": {}, \"c\": {}, \"d\": {}, \"e\": {}}}",
     FR_UNBUILT, "#/patternProperties: more than 4"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"patternProperties\": {\"(\": {}}}", FR_INPUT, "#/patternProperties/(: regular"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"propertyNames\": {\"anyOf\": []}}", FR_UNBUILT,
     "#/propertyNames: names can only have"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"propertyNames\": {\"$dynamicRef\": \"#x\"}}", FR_UNBUILT,
     "#/propertyNames/$dynamicRef: not built"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"propertyNames\": 5}", FR_INPUT, "#/propertyNames: a schema is"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"$ref\": \"#/allOf/x\", \"allOf\": [{}]}", FR_INPUT, "this refers to nothing"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"minProperties\": 3}", FR_UNBUILT, "#/minProperties: not built where"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"required\": [\"a\", \"b\"], \"maxProperties\": 1}", FR_INPUT,
     "this schema allows no value"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"contains\": {\"const\": 1}, \"allOf\": [{\"minContains\": 0}]}", FR_UNBUILT,
     "a combination of schemas"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"contains\": {}, \"uniqueItems\": true}", FR_UNBUILT, "#/contains: not built beside"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"prefixItems\": [{}, {}], \"uniqueItems\": true}", FR_UNBUILT,
     "#/uniqueItems: not built"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"items\": {\"enum\": [1, 2]}, \"uniqueItems\": true, \"minItems\": 3}", FR_INPUT,
     "this schema allows no value"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"allOf\": [{\"additionalProperties\": false}, {\"patternProperties\": {\"a\": {}}}]}",
     FR_UNBUILT, "#/allOf/1: a combination of schemas"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"unevaluatedProperties\": false, \"not\": {\"required\": [\"a\"]}}", FR_UNBUILT,
     "#/unevaluatedProperties: not built beside not, if or oneOf"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"$ref\": \"#/$defs/x\"}", FR_INPUT, "#/$ref: this refers to nothing"},
    {FR_GRAMMAR_JSON_SCHEMA,
     "{\"properties\": {\"p\": {\"$ref\": \"#/$defs/n\", \"unevaluatedProperties\": false}}, \"$defs\": {\"n\": "
     "{\"not\": {\"required\": [\"a\"]}}}}",
     FR_UNBUILT, "#/properties/p/unevaluatedProperties: not built beside"},
    {FR_GRAMMAR_JSON_SCHEMA,
     "{\"items\": {\"unevaluatedItems\": false, \"anyOf\": [{\"$ref\": \"#/n\"}]}, \"n\": {\"$ref\": \"#/m\"}, \"m\": "
     "{\"if\": {}, \"else\": true}}",
     FR_UNBUILT, "#/items/unevaluatedItems: not built beside"},
    {FR_GRAMMAR_JSON_SCHEMA,
     "{\"allOf\": [{\"properties\": {\"a\": {}}, \"additionalProperties\": false}, {\"required\": [\"b\"]}]}", FR_INPUT,
     "this schema allows no value"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"$ref\": \"#/allOf/00\", \"allOf\": [{}]}", FR_INPUT, "#/$ref: this refers to nothing"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"$ref\": \"#/a%00b\", \"a\": {}}", FR_INPUT, "#/$ref: this refers to nothing"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"not\": {\"$ref\": \"#/nowhere\", \"type\": \"null\"}}", FR_INPUT,
     "#/not/$ref: this refers to nothing"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"required\": \"a\"}", FR_INPUT, "#/required: not a list of names"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"not\": {\"properties\": {\"a\": {\"required\": [5], \"type\": \"null\"}}}}", FR_INPUT,
     "#/not/properties/a/required: not a list of names"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"enum\": [1], \"dependentRequired\": {\"a\": 5}}", FR_INPUT,
     "#/dependentRequired: not an object of lists"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"enum\": [1, 2], \"minItems\": \"x\"}", FR_INPUT, "#/minItems: not a count"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"enum\": [[]], \"minItems\": null}", FR_INPUT, "#/minItems: not a count"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"const\": \"a\", \"maxLength\": 1.5}", FR_INPUT, "#/maxLength: not a count"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"allOf\": [{\"minItems\": -1}], \"minItems\": 2}", FR_INPUT,
     "#/allOf/0/minItems: not a count"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"items\": {\"enum\": [1]}, \"uniqueItems\": 1}", FR_INPUT, "#/uniqueItems: not a bool"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"enum\": [1], \"anyOf\": [{\"minimum\": \"1\"}]}", FR_INPUT,
     "#/anyOf/0/minimum: not a number"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"format\": 5}", FR_INPUT, "#/format: not a string"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"prefixItems\": {}}", FR_INPUT, "#/prefixItems: not a list"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"$ref\": \"other.json\"}", FR_UNBUILT, "#/$ref: references to other"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"$id\": \"https://x.org/a\", \"$ref\": \"https://x.org/b#\"}", FR_UNBUILT,
     "#/$ref: references to other"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"$ref\": \"#b\", \"$defs\": {\"b\": {}}}", FR_INPUT, "#/$ref: this refers to nothing"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"$ref\": \"#\"}", FR_INPUT, "no text at all"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"pattern\": \"\\\\p{Klingon}\"}", FR_UNBUILT, "\\p{Klingon} is not built"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"pattern\": \"\\\\p{Script=Klingon}\"}", FR_UNBUILT,
     "\\p{Script=Klingon} is not built"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"pattern\": \"[\\\\p{gc=Greek}]\"}", FR_UNBUILT, "\\p{gc=Greek} is not built"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"multipleOf\": 18446744073709551616}", FR_UNBUILT, "#/multipleOf: steps of more than"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"minimum\": 1e40}", FR_UNBUILT, "#/minimum: numbers of 40 digits"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"type\": 18446744073709551616}", FR_INPUT, "#/type: this is not a type"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"maxLength\": -18446744073709551616}", FR_INPUT, "#/maxLength: not a count"},
    {FR_GRAMMAR_REGEX, "\\p{L", FR_INPUT, "name is not closed"},
    {FR_GRAMMAR_REGEX, "\\P", FR_INPUT, "a property without a name"},
    {FR_GRAMMAR_REGEX, "[a-\\p{L}]", FR_INPUT, "ends in a class"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"pattern\": \"(?>a)\"}", FR_UNBUILT, "#/pattern: regular expression, at byte"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"pattern\": \"(?!a)(?=a)\"}", FR_INPUT, "no text at all"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"pattern\": \"a(a|b){16}$\", \"maxLength\": 40}", FR_UNBUILT,
     "#/pattern: the constraints that hold together take too large"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"minimum\": 5, \"maximum\": 4}", FR_INPUT, "allows no value"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"minLength\": -1}", FR_INPUT, "#/minLength: not a count"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"allOf\": [{\"format\": \"date\"}, {\"format\": \"time\"}]}", FR_UNBUILT,
     "#/allOf/1/format: two of these"},
};

START_TEST(refused) {
    const struct refusal *r = &refusals[_i];
    fr_grammar *grammar;
    ck_assert_int_eq(fr_grammar_open(tree, r->kind, r->text, strlen(r->text), &grammar), r->status);
    ck_assert_msg(strstr(fr_last_error(), r->says) != NULL, "%s: %s", r->text, fr_last_error());
    ck_assert_ptr_null(grammar);
}
END_TEST

/* Parentheses that are nested too deeply must give an error. With a very ambiguous grammar, the call that follows a
 * text must end, with or without an error. */
START_TEST(bounded) {
    char deep[4096] = "root ::= ";
    fr_grammar *grammar;
    memset(deep + 9, '(', 3000);
    ck_assert_int_eq(fr_grammar_open(tree, FR_GRAMMAR_GBNF, deep, strlen(deep), &grammar), FR_INPUT);
    static const char twofold[] = "root ::= \"a\" root root | \"a\" root | \"a\"";
    require(fr_grammar_open(tree, FR_GRAMMAR_GBNF, twofold, strlen(twofold), &grammar));
    char as[3000];
    memset(as, 'a', sizeof as);
    matches(grammar, as, sizeof as); /* this call must end within the suite's time limit */
    fr_grammar_close(grammar);
}
END_TEST

static const struct {
    fr_grammar_kind kind;
    const char *text;
} sliced[] = {
    {FR_GRAMMAR_JSON_SCHEMA, "{\"type\": \"string\", \"maxLength\": 40}"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"type\": \"string\", \"maxLength\": 9, \"not\": {\"enum\": [\"the\", \"there\"]}}"},
    {FR_GRAMMAR_JSON_SCHEMA,
     "{\"type\": \"string\", \"pattern\": \"^[a-z0-9-]+$\", \"minLength\": 5, \"maxLength\": 50}"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"type\": \"object\"}"},
    {FR_GRAMMAR_REGEX, "([A-Z][a-z]+ ?)+(is|[a-z]{2,9})*"},
    {FR_GRAMMAR_REGEX, "(.{3}|[a-zA-Z_-]{2,30}!|([^x]{5}){2,})+"},
    {FR_GRAMMAR_GBNF, "root ::= w (\" \" w)*\nw ::= [a-z] [a-z]* | \"<\" [^>]* \">\""},
};

/* A repetition uses one mask for many of its counts. At every count, near the bounds and far from them, the mask must
 * allow exactly the tokens whose bytes the grammar accepts one after the other. */
START_TEST(masks_of_counts_are_what_steps_allow) {
    static const char *const expressions[] = {"[a-z ]{700,1400}", "(([a-z]| a){600}!|[a-z ]{1,3000}[?])",
                                              "([a-z]{1,900} ?){2}"};
    static const unsigned places[] = {0, 1, 300, 430, 590, 599, 600, 690, 699, 700, 1000, 1130, 1390, 1399};
    fr_tokenizer *words;
    fr_token_tree *all;
    fr_grammar *grammar;
    require(fr_tokenizer_open("tools/demo/target", NULL, &words));
    require(fr_token_tree_open(words, &all));
    require(fr_grammar_open(all, FR_GRAMMAR_REGEX, expressions[_i], strlen(expressions[_i]), &grammar));
    int32_t *letter;
    size_t count, at = 0;
    uint32_t state;
    require(fr_tokenize(words, "a", 1, false, false, &letter, &count));
    ck_assert_uint_eq(count, 1);
    require(fr_grammar_begin(grammar, &state));
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const uint64_t *bits;
        for (; at < places[i]; at++) require(fr_grammar_step(grammar, state, *letter, &state));
        require(fr_grammar_mask(grammar, state, &bits));
        for (size_t id = 0; id < fr_tokenizer_count(words); id++) {
            uint32_t next;
            require(fr_grammar_step(grammar, state, (int32_t)id, &next));
            ck_assert_msg(has(bits, id) == (next != FR_STATE_DEAD), "%s, behind %zu, id %zu", expressions[_i], at, id);
        }
    }
    fr_free(letter);
    fr_grammar_close(grammar);
    fr_token_tree_close(all);
    fr_tokenizer_close(words);
}
END_TEST

/* A mask is computed from tokens that were sorted in advance. It must allow the same tokens as when each token is tried
 * by itself. */
START_TEST(masks_are_what_steps_allow) {
    fr_tokenizer *words;
    fr_token_tree *all;
    fr_grammar *grammar;
    uint32_t state, seed = 1;
    require(fr_tokenizer_open("tools/demo/target", NULL, &words));
    require(fr_token_tree_open(words, &all));
    require(fr_grammar_open(all, sliced[_i].kind, sliced[_i].text, strlen(sliced[_i].text), &grammar));
    require(fr_grammar_begin(grammar, &state));
    for (int i = 0; i < 40; i++) {
        const uint64_t *bits;
        int32_t chosen = -1;
        size_t count = fr_tokenizer_count(words), allowed = 0;
        require(fr_grammar_mask(grammar, state, &bits));
        for (size_t id = 0; id < count; id++) {
            uint32_t next;
            require(fr_grammar_step(grammar, state, (int32_t)id, &next));
            ck_assert_msg(has(bits, id) == (next != FR_STATE_DEAD), "step %d, id %zu", i, id);
            if (next == FR_STATE_DEAD) continue;
            seed = seed * 1664525u + 1013904223u;
            if (seed % ++allowed == 0) chosen = (int32_t)id;
        }
        if (chosen < 0) break;
        require(fr_grammar_step(grammar, state, chosen, &state));
    }
    fr_grammar_close(grammar);
    fr_token_tree_close(all);
    fr_tokenizer_close(words);
}
END_TEST

/* Empty grammars, which allow only the empty text. */
START_TEST(empty) {
    static const struct {
        fr_grammar_kind kind;
        const char *text;
    } cases[] = {{FR_GRAMMAR_GBNF, "root ::= "}, {FR_GRAMMAR_REGEX, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_grammar *grammar;
        require(fr_grammar_open(tree, cases[i].kind, cases[i].text, strlen(cases[i].text), &grammar));
        ck_assert(matches(grammar, "", 0));
        ck_assert(!matches(grammar, "a", 1));
        fr_grammar_close(grammar);
    }
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- sessions */

enum { MOST = 64 };

static const char rule[] = "root ::= \"{\\\"name\\\": \\\"\" [a-zA-Z ]{3,12} \"\\\", \\\"age\\\": \" [1-9] [0-9]? \", "
                           "\\\"tags\\\": [\" tag (\", \" tag){0,2} \"]}\"\n"
                           "tag ::= \"\\\"\" [a-z]{2,6} \"\\\"\"";

/* Generates text that follows the grammar. In each step, this draft method makes at most `drafts` drafts. Returns the
 * number of ids. Adds the number of steps to *calls. */
static size_t say(const fr_model *model, const char *method, int64_t drafts, double temperature, int32_t *ids,
                  double *calls) {
    static const int32_t prompt[] = {1, 40, 30, 20};
    fr_options *options = fr_options_new();
    fr_token_tree *own;
    fr_grammar *grammar;
    fr_session *session;
    size_t made = 0, count, accepted;
    require(fr_options_set(options, FR_OPT_CONTEXT, 256));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, drafts));
    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, method));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, temperature));
    require(fr_options_set(options, FR_OPT_SEED, 7));
    require(fr_token_tree_open(fr_model_tokenizer(model), &own));
    require(fr_grammar_open(own, FR_GRAMMAR_GBNF, rule, strlen(rule), &grammar));
    require(fr_session_open(model, NULL, options, &session));
    require(fr_session_prompt(session, prompt, 4));
    require(fr_session_set_grammar(session, grammar));
    do {
        require(fr_session_step(session, ids + made, MOST - made, &count, &accepted));
        made += count;
        ++*calls;
    } while (count && made < MOST);
    fr_session_close(session);
    fr_grammar_close(grammar);
    fr_token_tree_close(own);
    fr_options_free(options);
    return made;
}

START_TEST(in_sessions) {
    fr_model *model;
    fr_grammar *grammar;
    require(fr_model_open("tests/data/llama/q4_0.gguf", NULL, &model));
    require(fr_grammar_open(tree, FR_GRAMMAR_GBNF, rule, strlen(rule), &grammar));
    for (double temperature = 0; temperature <= 1; temperature++) {
        int32_t plain[MOST], drafted[MOST];
        double calls = 0, fewer = 0;
        char *text;
        size_t length, count = say(model, "none", 0, temperature, plain, &calls);
        size_t end = count < MOST ? count - 1 : count; /* leaves out the id that ends the text */
        require(fr_detokenize(tokenizer, plain, end, &text, &length));
        ck_assert_msg(count == MOST || matches(grammar, text, length), "%s", text);
        ck_assert_msg(strncmp(text, "{\"name\": \"", 10) == 0, "%s", text);
        fr_free(text);
        ck_assert_uint_eq(say(model, "ngram", 8, temperature, drafted, &fewer), count);
        ck_assert_mem_eq(drafted, plain, count * sizeof *plain);
        ck_assert_msg(fewer < calls, "%.0f calls, %.0f with drafts", calls, fewer);
    }
    fr_grammar_close(grammar);
    fr_model_close(model);
}
END_TEST

/* Generates until the grammar becomes too costly to follow, which gives an error. Copies the error line to `line`.
 * Returns the number of ids that were generated before the error. */
static size_t say_until_refused(const fr_model *model, const char *method, int64_t drafts, int32_t *ids, char *line) {
    static const char ambiguous[] = "root ::= \"☃☃☃~@\" a a a a a a a a\na ::= b b b b | \"x\"\nb ::= c c c c | \"y\"\n"
                                    "c ::= [a-z ] c? | \"\"";
    fr_options *options = fr_options_new();
    fr_token_tree *own;
    fr_grammar *grammar;
    fr_session *session;
    size_t made = 0, count = 0, accepted;
    require(fr_options_set(options, FR_OPT_CONTEXT, 256));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, drafts));
    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, method));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 1));
    require(fr_options_set(options, FR_OPT_SEED, 7));
    require(fr_token_tree_open(fr_model_tokenizer(model), &own));
    require(fr_grammar_open(own, FR_GRAMMAR_GBNF, ambiguous, strlen(ambiguous), &grammar));
    require(fr_session_open(model, NULL, options, &session));
    require(fr_session_prompt(session, (int32_t[]){1, 40, 30, 20}, 4));
    require(fr_session_set_grammar(session, grammar));
    fr_status status = FR_OK;
    for (; status == FR_OK && made < MOST; made += count)
        status = fr_session_step(session, ids + made, MOST - made, &count, &accepted);
    ck_assert_int_eq(status, FR_INPUT);
    snprintf(line, 256, "%s", fr_last_error());
    fr_session_close(session);
    fr_grammar_close(grammar);
    fr_token_tree_close(own);
    fr_options_free(options);
    return made;
}

/* When the grammar becomes too costly to follow, generation must fail. The ids before the failure and the error line
 * must be the same with any drafts. */
START_TEST(refused_in_sessions) {
    fr_model *model;
    int32_t plain[MOST], drafted[MOST];
    char line[256], other[256];
    require(fr_model_open("tests/data/llama/q4_0.gguf", NULL, &model));
    size_t count = say_until_refused(model, "none", 0, plain, line);
    ck_assert_msg(strstr(line, "too many ways") != NULL, "%s", line);
    ck_assert_uint_eq(say_until_refused(model, "ngram", 8, drafted, other), count);
    ck_assert_mem_eq(drafted, plain, count * sizeof *plain);
    ck_assert_str_eq(other, line);
    fr_model_close(model);
}
END_TEST

static const struct {
    const char *grammar, *text;
    bool few, ends;
} rows[] = {
    {"root ::= [^x]*", "", false, true},          {"root ::= [^x]+ [0-9]", "", false, false},
    {"root ::= [0-3]+ | \"z\"", "", true, false}, {"root ::= [0-3]+ | \"z\"", "21", true, true},
    {"root ::= \"a\"", "a", true, true},
};

/* A mask is applied to a whole row of logits, or to the logits of some candidates. Only ids that the mask allows may
 * remain. If the text may end, the end-of-sequence id is also allowed. */
START_TEST(rows_are_what_masks_leave) {
    fr_model *model;
    fr_token_tree *own;
    fr_grammar *grammar;
    fr_constraint c = {0};
    static float row[1 << 17], whole[1 << 17], some[1 << 17];
    static int32_t ids[1 << 17];
    int32_t *past_ids;
    const uint64_t *bits;
    bool ends;
    require(fr_model_open("tests/data/llama/q4_0.gguf", NULL, &model));
    require(fr_token_tree_open(fr_model_tokenizer(model), &own));
    size_t vocab = fr_tokenizer_count(fr_model_tokenizer(model)), count, seen = 0;
    require(fr_grammar_open(own, FR_GRAMMAR_GBNF, rows[_i].grammar, strlen(rows[_i].grammar), &grammar));
    require(
        fr_tokenize(fr_model_tokenizer(model), rows[_i].text, strlen(rows[_i].text), false, false, &past_ids, &count));
    require(fr_constraint_set(&c, grammar, model, vocab, count));
    for (size_t i = 0; i < vocab; i++) row[i] = (float)(i * 7919 % 1000) - 500;
    const fr_past past = {.ids = past_ids, .length = count};
    fr_constraint_begin_at(&c, 0);
    fr_scores all = {.logits = row, .count = vocab}, candidates = all;
    require(fr_constraint_mask(&c, &past, &all, whole, NULL));
    require(fr_constraint_mask(&c, &past, &candidates, some, ids));
    require(fr_grammar_allowed(grammar, past_ids, count, &bits, &ends));
    ck_assert(ends == rows[_i].ends && all.logits == whole && all.count == vocab && !all.ids);
    ck_assert((candidates.ids != NULL) == rows[_i].few);
    for (size_t id = 0; id < vocab; id++) {
        bool allowed = fr_model_is_eos(model, (int32_t)id) ? ends : has(bits, id);
        ck_assert_msg(whole[id] == (allowed ? row[id] : -INFINITY), "id %zu of %zu", id, vocab);
        if (!rows[_i].few) ck_assert(candidates.logits[id] == whole[id]);
        if (!rows[_i].few || !allowed) continue;
        ck_assert(seen < candidates.count && ids[seen] == (int32_t)id && some[seen] == row[id]);
        seen++;
    }
    if (rows[_i].few) ck_assert_uint_eq(seen, candidates.count);
    fr_constraint_close(&c);
    fr_free(past_ids);
    fr_grammar_close(grammar);
    fr_token_tree_close(own);
    fr_model_close(model);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------ the command */

#define LLAMA "generate --quiet -m tests/data/llama/q4_0.gguf -p x -n 40 "

/* A user gives the grammar as an option, or gives the name of a file with the grammar. */
START_TEST(by_command) {
    char path[] = "/tmp/forerun-grammar-XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_eq(write(file, "{\"enum\": [[3,true]]}", 20), 20);
    close(file);
    fr_command regex = fr_command_ok(LLAMA "--temp 1 --regex '[0-7]{3}x'");
    ck_assert_uint_eq(strspn(regex.out, "01234567"), 3);
    ck_assert_str_eq(regex.out + 3, "x\n");
    fr_command gbnf = fr_command_ok(LLAMA "--grammar 'root ::= \"a\"{4} | \"aaa\"'");
    ck_assert_msg(strcmp(gbnf.out, "aaaa\n") == 0 || strcmp(gbnf.out, "aaa\n") == 0, "%s", gbnf.out);
    /* the text of this grammar is complete, so generation ends */
    fr_command whole = fr_command_ok(LLAMA "--ignore-eos --grammar 'root ::= \"aaa\"'");
    ck_assert_str_eq(whole.out, "aaa\n");
    fr_command_free(&whole);
    fr_command schema = fr_command_ok(LLAMA "--json-schema-file %s", path);
    ck_assert_str_eq(schema.out, "[3,true]\n");
    fr_command_free(&regex);
    fr_command_free(&gbnf);
    fr_command_free(&schema);
    unlink(path);
}
END_TEST

static const struct {
    const char *options, *says;
    int status;
} wrong[] = {
    {"--grammar 'root ::= x' --regex x", "exclude each other", 2},
    {"--grammar 'root ::= x'", "grammar, line 1, column 10: a rule that is not defined", 1},
    {"-j '{\"not\": {\"multipleOf\": 3}}'", "schema, at #/not: the negation of this schema is not built", 2},
    {"--grammar-file /nowhere", "/nowhere: No such file", 1},
};

START_TEST(wrong_command) {
    char line[512];
    snprintf(line, sizeof line, "%s%s", LLAMA, wrong[_i].options);
    fr_command c = fr_command_run(line, NULL);
    ck_assert_int_eq(c.status, wrong[_i].status);
    ck_assert_msg(strstr(c.err, wrong[_i].says) != NULL, "%s", c.err);
    fr_command_free(&c);
}
END_TEST

static void add_cases(Suite *suite) {
    TCase *c = tcase_create("grammar");
    tcase_add_unchecked_fixture(c, open_tree, close_tree);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, walks);
    if (!at_ends) {
        tcase_add_test(c, regular_expressions);
        tcase_add_test(c, looking_around);
        tcase_add_test(c, properties);
        tcase_add_test(c, wide_integers);
        tcase_add_test(c, schemas);
        tcase_add_loop_test(c, formats_are_as_wide_as_their_standards, 0, sizeof formats / sizeof *formats);
        tcase_add_test(c, formats_beside_constants);
        tcase_add_test(c, references_within_a_document);
        tcase_add_test(c, small_sets);
        tcase_add_test(c, sets_of_strings);
        tcase_add_loop_test(c, counts_are_kept, 0, sizeof counted / sizeof *counted);
        tcase_add_loop_test(c, masks_of_counts_are_what_steps_allow, 0, 3);
        tcase_add_loop_test(c, refused, 0, sizeof refusals / sizeof *refusals);
        tcase_add_test(c, bounded);
        tcase_add_test(c, empty);
        tcase_add_loop_test(c, masks_are_what_steps_allow, 0, sizeof sliced / sizeof *sliced);
        tcase_add_test(c, in_sessions);
        tcase_add_test(c, refused_in_sessions);
        tcase_add_loop_test(c, rows_are_what_masks_leave, 0, sizeof rows / sizeof *rows);
        tcase_add_test(c, by_command);
        tcase_add_loop_test(c, wrong_command, 0, sizeof wrong / sizeof *wrong);
    }
    suite_add_tcase(suite, c);
}

int main(int argc, char **argv) {
    if (argc > 1) walks_file = argv[1];
    at_ends = argc > 1;
    return fr_suite_run("grammar", add_cases);
}
