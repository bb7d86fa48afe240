/* Tests grammars of hostile users. Each must be read, or refused with one line, in bounded time and memory. If memory
 * runs out while a grammar is read, the grammar must be refused. The library must not silently leave out a part of it.
 *
 * In: nothing. Each grammar consists of a head, copies of a part, a middle, copies of another part, and a tail. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "forerun.h"
#include "src/language/grammar/grammar.h"
#include "tests/support/alloc_guard.h"
#include "tests/support/brief.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

/* Limits of the time for one grammar and of the suite's memory. On a slow core, 1.3 s and 160 MB were measured. */
enum { SECONDS_MAX = 15, MEBIBYTES_MAX = 512 };

static fr_tokenizer *tokenizer;
static fr_token_tree *tree;

static void open_tree(void) {
    require(fr_tokenizer_open("tests/data/llama/q4_0.gguf", NULL, &tokenizer));
    require(fr_token_tree_open(tokenizer, &tree));
}

static void close_tree(void) {
    fr_token_tree_close(tree);
    fr_tokenizer_close(tokenizer);
}

/* A hostile grammar. It consists of `head`, `count` copies of `part`, `middle`, `others` copies of `other`, and `tail`.
 * If `bare` is false, commas separate the copies. In each copy, '$' is replaced by the copy's number, counted from 0,
 * and '@' by the next number. */
typedef struct hostile {
    fr_grammar_kind kind;
    fr_status status;
    const char *says; /* a part of the error line, or NULL if the grammar is accepted */
    const char *head, *part, *middle, *other, *tail;
    size_t count, others;
    bool bare; /* no commas between copies */
} hostile;

#define SCHEMA                                              FR_GRAMMAR_JSON_SCHEMA
#define LIST(head, part, count, tail)                       head, part, NULL, NULL, tail, count, 0, false
#define LISTS(head, part, count, middle, other, more, tail) head, part, middle, other, tail, count, more, false
#define ROW(head, part, count, tail)                        head, part, NULL, NULL, tail, count, 0, true
#define ROWS(head, part, count, middle, other, more, tail)  head, part, middle, other, tail, count, more, true
#define LONG                                                "takes too many steps to read: not built"
#define LARGE                                               "too large"
#define AT_ONCE                                             "#/oneOf: not built for so many"
#define AUTOMATA                                            "take too large an automaton"

static const hostile CASES[] = {
    /* Exactly one of many choices must hold (oneOf). */
    {SCHEMA, FR_UNBUILT, AT_ONCE, LIST("{\"oneOf\":[", "{}", 3000, "]}")},
    {SCHEMA, FR_UNBUILT, AT_ONCE, LIST("{\"oneOf\":[", "{}", 300000, "]}")},
    {SCHEMA, FR_UNBUILT, AT_ONCE, LIST("{\"oneOf\":[", "{\"required\":[\"p$\"]}", 500, "]}")},
    {SCHEMA, FR_UNBUILT, LONG, LIST("{\"oneOf\":[", "{\"const\":$}", 40000, "]}")},
    {SCHEMA, FR_OK, NULL, LIST("{\"oneOf\":[", "{\"const\":$}", 1000, "]}")},
    /* The schema in "not" or "if" contains a reference to itself. */
    {SCHEMA, FR_UNBUILT, "#/not: the schema up to here",
     LIST("{\"not\":{\"allOf\":[", "{\"$ref\":\"#/not\"}", 10, "]}}")},
    {SCHEMA, FR_UNBUILT, "#/not: the schema up to here",
     LIST("{\"not\":{\"anyOf\":[", "{\"$ref\":\"#/not\"}", 10, "]}}")},
    {SCHEMA, FR_UNBUILT, "#/not: the schema up to here",
     LIST("{\"not\":{\"properties\":{", "\"p$\":{\"$ref\":\"#/not\"}", 10, "}}}")},
    {SCHEMA, FR_UNBUILT, "#/if: the schema up to here",
     LIST("{\"then\":{\"minimum\":1},\"if\":{\"allOf\":[", "{\"$ref\":\"#/if\"}", 10, "]}}")},
    /* References lead to the possible values, which are constants. */
    {SCHEMA, FR_UNBUILT, LONG,
     LIST("{\"items\":{\"type\":\"null\",\"anyOf\":[{\"$ref\":\"#/a0\"}]},\"uniqueItems\":true,\"a14\":{},",
          "\"a$\":{\"allOf\":[{\"$ref\":\"#/a@\"},{\"$ref\":\"#/a@\"},{\"$ref\":\"#/a@\"},{\"$ref\":\"#/a@\"}]}", 14,
          "}")},
    /* Lists of values are very long. */
    {SCHEMA, FR_UNBUILT, "more than 4000 values", LIST("{\"enum\":[", "$", 140000, "]}")},
    {SCHEMA, FR_UNBUILT, LONG, LISTS("{\"allOf\":[{\"enum\":[", "1$", 50000, "]}],\"enum\":[", "2$", 50000, "]}")},
    {SCHEMA, FR_UNBUILT, LONG, LIST("{\"pattern\":\".{40},.*,.*a.{9}b\",\"enum\":[", "\"n$\"", 50000, "]}")},
    {SCHEMA, FR_UNBUILT, LONG, LIST("{\"uniqueItems\":true,\"items\":{\"enum\":[", "$", 100000, "]}}")},
    {SCHEMA, FR_UNBUILT, LONG,
     LIST("{\"uniqueItems\":true,\"items\":false,\"prefixItems\":[", "{\"const\":$}", 20000, "]}")},
    {SCHEMA, FR_UNBUILT, AUTOMATA, LIST("{\"type\":\"string\",\"not\":{\"enum\":[", "\"n$\"", 80000, "]}}")},
    {SCHEMA, FR_INPUT, "more types", LIST("{\"type\":[", "\"string\"", 90000, "]}")},
    /* Many schemas must hold at once. They are next to each other, or one inside the other. */
    {SCHEMA, FR_OK, NULL, LIST("{\"allOf\":[", "{}", 300000, "]}")},
    {SCHEMA, FR_UNBUILT, LONG, LIST("{\"allOf\":[", "{\"properties\":{\"p$\":{}}}", 30000, "]}")},
    {SCHEMA, FR_UNBUILT, LONG, LIST("{\"allOf\":[", "{\"not\":{\"const\":$}}", 20000, "]}")},
    {SCHEMA, FR_UNBUILT, LONG,
     LIST("{\"allOf\":[", "{\"if\":{\"required\":[\"a$\"]},\"then\":{\"required\":[\"b\"]}}", 12000, "]}")},
    {SCHEMA, FR_UNBUILT, "#/allOf/8/anyOf",
     LIST("{\"allOf\":[", "{\"anyOf\":[{\"minimum\":$},{\"maximum\":$}]}", 9000, "]}")},
    {SCHEMA, FR_INPUT, LARGE, LIST("{\"anyOf\":[", "{\"type\":\"string\"}", 50000, "]}")},
    {SCHEMA, FR_UNBUILT, "these names take too large an automaton",
     LISTS("{\"properties\":{", "\"p$\":{}", 60000, "},\"patternProperties\":{", "\"p$(a|b)*c\":{}", 4, "}}")},
    {SCHEMA, FR_UNBUILT, "not built for so many",
     LISTS("{\"properties\":{", "\"p$\":true", 9000, "},\"required\":[", "\"q$\"", 80000, "]}")},
    {SCHEMA, FR_UNBUILT, "not built for so many", LIST("{\"required\":[", "\"q$\"", 100000, "]}")},
    /* Chains of references are very long, or schemas are nested very deeply. */
    {SCHEMA, FR_INPUT, "64 deep", LIST("{\"$ref\":\"#/a/0\",\"a\":[", "{\"$ref\":\"#/a/@\"}", 40000, "]}")},
    {SCHEMA, FR_INPUT, LARGE,
     LISTS("{\"anyOf\":[", "{\"$ref\":\"#/a/$\"}", 20000, "],\"a\":[", "{\"type\":\"string\"}", 20000, "]}")},
    {SCHEMA, FR_INPUT, "64 deep", ROWS("", "{\"items\":", 100, "{}", "}", 100, "")},
    {SCHEMA, FR_OK, NULL, ROWS("", "{\"items\":", 60, "{}", "}", 60, "")},
    {SCHEMA, FR_INPUT, "not JSON", ROWS("{\"const\":", "[", 500000, "", "]", 500000, "}")},
    {SCHEMA, FR_INPUT, "refers to nothing", ROW("{\"allOf\":[{\"$ref\":\"#", "/allOf/0", 100000, "\"}]}")},
    {SCHEMA, FR_UNBUILT, LONG, LIST("{\"allOf\":[", "{\"$ref\":\"#\"}", 50000, "]}")},
    {SCHEMA, FR_INPUT, "64 deep", LIST("{\"allOf\":[", "{\"$ref\":\"#\"}", 5, "]}")},
    {SCHEMA, FR_OK, NULL, ROWS("", "{\"minItems\":99999,\"maxItems\":1e15,\"items\":", 60, "true", "}", 60, "")},
    {SCHEMA, FR_INPUT, LARGE, ROWS("", "{\"minContains\":64,\"contains\":", 6, "{}", "}", 6, "")},
    /* Patterns of strings and of member names need large automata. */
    {SCHEMA, FR_OK, NULL, LIST("{\"maxLength\":9999,\"pattern\":\"^(.{0,100}){0,100}$", "", 0, "\"}")},
    {SCHEMA, FR_UNBUILT, AUTOMATA, LIST("{\"maxLength\":9999,\"pattern\":\"^(.{100}a|.{99}b){100,}$", "", 0, "\"}")},
    {SCHEMA, FR_UNBUILT, AUTOMATA, LIST("{\"pattern\":\"^((?=a.{9}b)a|(?!.{12}c)[ab])*$", "", 0, "\"}")},
    {SCHEMA, FR_INPUT, "no text at all", ROWS("{\"pattern\":\"", "(?=", 90, "a", ")", 90, "b(?=c)(?=d)(?=e)\"}")},
    {SCHEMA, FR_UNBUILT, AUTOMATA, ROW("{\"pattern\":\"", "(?=.*a$b)", 40, "\"}")},
    {SCHEMA, FR_UNBUILT, AUTOMATA, ROWS("{\"maxLength\":2,\"pattern\":\"", ".", 52, ",", ".", 49, "|....af\"}")},
    {SCHEMA, FR_UNBUILT, LONG, LIST("{\"anyOf\":[", "{\"maxLength\":3,\"pattern\":\"a.{8}b$\"}", 15000, "]}")},
    {SCHEMA, FR_INPUT, LARGE,
     LIST("{\"properties\":{", "\"a$\":{\"patternProperties\":{\"a.*b\":{},\"c.*d\":{},\"e.*f\":{},\"g.*h\":{}}}", 300,
          "}}")},
    /* Regular expressions and grammars in GBNF (llama.cpp's notation) have repetitions of repetitions, many choices, or
     * many rules. */
    {FR_GRAMMAR_REGEX, FR_OK, NULL, ROWS("", "(", 90, "a", "{2147483647})", 90, "")},
    {FR_GRAMMAR_REGEX, FR_OK, NULL, ROWS("", "(", 90, "|", "{99999})", 90, "")},
    {FR_GRAMMAR_REGEX, FR_OK, NULL, ROWS("", "(", 90, "()", "{99999})", 90, "b")},
    {FR_GRAMMAR_REGEX, FR_INPUT, LARGE, ROW("", "aaaaaaaaaaaaaaaaaaaa|", 49000, "b")},
    {FR_GRAMMAR_REGEX, FR_OK, NULL, ROW(".{2147483647}", "", 0, "")},
    {FR_GRAMMAR_REGEX, FR_OK, NULL, ROW("", "(a?){3000}", 3, "")},
    {FR_GRAMMAR_REGEX, FR_INPUT, "too ambiguous", ROW("", "(a?b*|){0,2147483647}", 20000, "")},
    {FR_GRAMMAR_GBNF, FR_OK, NULL, ROW("root ::= a", "{99999}", 300, "\na ::= \"\"\n")},
    /* The product of the counts is 256 to the eighth power, which does not fit in a size_t. */
    {FR_GRAMMAR_GBNF, FR_INPUT, LARGE,
     ROW("root ::= r35 \"x\"\nr0 ::= \"\"\n", "r@ ::= (r$ r$){256}{256}{256}{256}{256}{256}{256}{256}\n", 35, "")},
    {FR_GRAMMAR_GBNF, FR_INPUT, "nested more than", ROW("root ::= \"a\"", "{99}", 200000, "\n")},
    {FR_GRAMMAR_GBNF, FR_INPUT, "too ambiguous",
     ROW("root ::= r0 \"x\"\n", "r$ ::= r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@ r@\n", 300,
         "r300 ::= \"\"\n")},
    {FR_GRAMMAR_GBNF, FR_INPUT, "too ambiguous", ROW("root ::= \"b\"", " | \"ab\"", 100000, "\n")},
    {FR_GRAMMAR_GBNF, FR_INPUT, "400 rules that begin",
     ROW("root ::= r0\n", "r$ ::= r@ \"a\"{0,300}\n", 8000, "r8000 ::= \"b\"\n")},
};

/* -------------------------------------------------------------------------------------------------- making grammars */

static void write_part(FILE *out, const char *part, size_t number) {
    for (; *part; part++) {
        if (*part == '$' && part[1] != 'r')
            fprintf(out, "%zu", number);
        else if (*part == '@')
            fprintf(out, "%zu", number + 1);
        else
            fputc(*part, out);
    }
}

static void write_parts(FILE *out, const char *part, size_t count, bool bare) {
    for (size_t i = 0; part && i < count; i++) {
        if (i && !bare) fputc(',', out);
        write_part(out, part, i);
    }
}

static char *make(const hostile *h, size_t *length) {
    char *text;
    FILE *out = open_memstream(&text, length);
    ck_assert_ptr_nonnull(out);
    fputs(h->head, out);
    write_parts(out, h->part, h->count, h->bare);
    if (h->middle) fputs(h->middle, out);
    write_parts(out, h->other, h->others, h->bare);
    if (h->tail) fputs(h->tail, out);
    fclose(out);
    ck_assert_uint_le(*length, 1 << 20);
    return text;
}

static double seconds(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

START_TEST(bounded) {
    const hostile *h = &CASES[_i];
    size_t length;
    char *text = make(h, &length);
    fr_grammar *grammar;
    struct rusage used;
    double began = seconds();
    fr_status status = fr_grammar_open(tree, h->kind, text, length, &grammar);
    double took = seconds() - began;
    const char *line = status == FR_OK ? "" : fr_last_error();
    ck_assert_msg(status == h->status, "%d: %.80s: %s", status, text, line);
    ck_assert_msg(!h->says || strstr(line, h->says), "%.80s: %s", text, line);
    ck_assert_msg(!strchr(line, '\n') && strlen(line) < 400, "%s", line);
    ck_assert_msg(took < SECONDS_MAX * (fr_test_brief() ? 40 : 1), "%.80s: %.1f s", text, took);
    getrusage(RUSAGE_SELF, &used);
    if (fr_alloc_counted())
        ck_assert_msg(used.ru_maxrss < 1024L * MEBIBYTES_MAX, "%.80s: %ld kB", text, used.ru_maxrss);
    fr_grammar_close(grammar);
    free(text);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ masks */

/* Grammars that are slow to follow, in most cases because their masks would be too large. The slowest measured step
 * took 0.07 s. */
static const struct {
    fr_grammar_kind kind;
    const char *text;
} FOLLOWED[] = {
    {FR_GRAMMAR_REGEX, "(a?){1000}"},
    {FR_GRAMMAR_REGEX, ".*(a|b).{500}c"},
    {FR_GRAMMAR_REGEX, ".*[a-m].{100}c"},
    {FR_GRAMMAR_REGEX, "(.*a){300}"},
    {FR_GRAMMAR_REGEX, "([a-z]*|[a-m ]*.){40}"},
    {FR_GRAMMAR_REGEX, "(.{0,30}[aeiou ]){0,30}"},
    {FR_GRAMMAR_REGEX, "(.*[ae]){1,200}.*x"},
    {FR_GRAMMAR_REGEX, "(a?){2147483647}"},
    {FR_GRAMMAR_REGEX, ".*(.{0,2147483647}[a-m]){0,2147483647}"},
    {FR_GRAMMAR_REGEX, "((([a-z ]{1,2147483647}){1,2147483647}){2,2147483647}){3,2147483647}"},
    {FR_GRAMMAR_REGEX, ".*[a-z]{2147483647}|.*[a-z ]{3000,2147483647}x"},
    {FR_GRAMMAR_GBNF, "root ::= (a [a-z ]{0,2000000000}){300,2000000000}\na ::= [a-z]{2,2000000000} | [^x] a | \"\""},
    {FR_GRAMMAR_GBNF, "root ::= [^x] root root | [^x] root | [^x]"},
    {FR_GRAMMAR_GBNF, "root ::= [a-z ] root [a-z ] | [a-z ]"},
    {FR_GRAMMAR_GBNF, "root ::= a b\na ::= [^x] a | b | \"y\"\nb ::= [^x] b a | [^y] a b | \"z\""},
    {FR_GRAMMAR_GBNF, "root ::= a a a a a a a a\na ::= b b b b | \"x\"\nb ::= c c c c | \"y\"\nc ::= [a-z ] c? | \"\""},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"anyOf\":[{\"pattern\":\"(a|b).{12}$\"},{\"pattern\":\"[ -m].{200}\"}]}"},
    {FR_GRAMMAR_JSON_SCHEMA, "{\"patternProperties\":{\"a.*b\":{},\"c.*d\":{},\"e.*f\":{},\"g.*h\":{}}}"},
};

static fr_grammar *open_followed(const fr_token_tree *all, size_t number) {
    fr_grammar *grammar;
    const char *text = FOLLOWED[number].text;
    require(fr_grammar_open(all, FOLLOWED[number].kind, text, strlen(text), &grammar));
    return grammar;
}

/* Chooses one of the ids that may follow the ids of a text; `seed` decides which. Returns 0 if no id may follow.
 * Returns -1 if the grammar is too ambiguous at this place. The call must end within a bounded time. */
static int32_t next_of(fr_grammar *grammar, size_t vocab, const int32_t *ids, size_t count, uint32_t seed) {
    const uint64_t *bits;
    bool ends;
    double began = seconds();
    fr_status status = fr_grammar_allowed(grammar, ids, count, &bits, &ends);
    double took = seconds() - began;
    ck_assert_msg(took < 0.5 * (fr_test_brief() ? 40 : 1), "%.3f s", took);
    ck_assert_msg(status == FR_OK || strstr(fr_last_error(), "too ambiguous"), "%s", fr_last_error());
    if (status != FR_OK) return -1;
    for (size_t i = 0; i < vocab; i++) {
        size_t id = (seed + i) % vocab;
        if (bits[id / 64] >> (id % 64) & 1) return (int32_t)id;
    }
    return 0;
}

/* The time to make a mask is bounded. If a mask would take more time, it is refused. The refusal must not depend on the
 * masks that were made before. So a newly opened grammar must give the same answer at each step. */
START_TEST(followed) {
    enum { STEPS = 40 };
    fr_tokenizer *words;
    fr_token_tree *all;
    int32_t ids[STEPS + 1];
    require(fr_tokenizer_open("tools/demo/target", NULL, &words));
    require(fr_token_tree_open(words, &all));
    size_t vocab = fr_tokenizer_count(words), steps = 0;
    fr_grammar *warm = open_followed(all, (size_t)_i);
    for (; steps < STEPS; steps++) {
        uint32_t seed = (uint32_t)steps * 7919u + 17;
        fr_grammar *cold = open_followed(all, (size_t)_i);
        ids[steps] = next_of(warm, vocab, ids, steps, seed);
        ck_assert_int_eq(next_of(cold, vocab, ids, steps, seed), ids[steps]);
        fr_grammar_close(cold);
        if (ids[steps] <= 0) break;
    }
    if (steps < STEPS) /* a repeated call must give the same refusal */
        ck_assert_int_eq(next_of(warm, vocab, ids, steps, 0), ids[steps]);
    fr_grammar_close(warm);
    fr_token_tree_close(all);
    fr_tokenizer_close(words);
}
END_TEST

/* This text leads through more states than the grammar may keep at the same time. */
START_TEST(long_text) {
    static char text[200000];
    static const char expression[] = "([a-f]{10} ){10000}([a-f]{10} ){9000}";
    const uint64_t *bits;
    fr_grammar *grammar;
    int32_t *ids;
    size_t count;
    bool ends;
    for (size_t i = 0; i < sizeof text; i++) text[i] = i % 11 == 10 ? ' ' : (char)('a' + i * i % 6);
    require(fr_tokenize(tokenizer, text, sizeof text, false, false, &ids, &count));
    require(fr_grammar_open(tree, FR_GRAMMAR_REGEX, expression, strlen(expression), &grammar));
    require(fr_grammar_allowed(grammar, ids, count, &bits, &ends));
    ck_assert(!ends);
    fr_grammar_close(grammar);
    fr_free(ids);
}
END_TEST

/* --------------------------------------------------------------------------------------------------- refused memory */

static const char *const KEPT[] = {
    "{\"allOf\":[{\"type\":\"string\",\"pattern\":\"a\"},{\"pattern\":\"^b\"},{\"maxLength\":3},{\"pattern\":\"c$\"}]}",
    "{\"oneOf\":[{\"type\":\"string\",\"maxLength\":2},{\"pattern\":\"^a\",\"type\":\"string\"}]}",
    "{\"not\":{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":3},{\"enum\":[1,null]},{\"type\":[\"object\",\"array\"]}]}"
    "}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1},\"b\":{}},\"required\":[\"a\",\"c\"],\"not\":{"
    "\"properties\":"
    "{\"b\":{\"type\":\"string\"}}},\"additionalProperties\":true}",
    "{\"if\":{\"required\":[\"a\"]},\"then\":{\"required\":[\"b\"]},\"else\":{\"properties\":{\"c\":{\"not\":{"
    "\"const\":1}}}},"
    "\"type\":\"object\"}",
    "{\"dependentRequired\":{\"a\":[\"b\"]},\"dependentSchemas\":{\"b\":{\"maxProperties\":2}},\"type\":\"object\","
    "\"properties\":{\"a\":{\"type\":\"null\"},\"b\":{\"type\":\"null\"}}}",
    "{\"patternProperties\":{\"^x\":{\"type\":\"null\"},\"y$\":{\"enum\":[null,1]}},\"properties\":{\"xy\":{}},"
    "\"propertyNames\":{\"maxLength\":3},\"additionalProperties\":{\"type\":\"boolean\"}}",
    "{\"propertyNames\":{\"enum\":[\"a\",\"b\"],\"maxLength\":1},\"maxProperties\":1}",
    "{\"uniqueItems\":true,\"items\":{\"type\":\"boolean\",\"anyOf\":[{\"const\":true},{\"const\":false}]}}",
    "{\"contains\":{\"minimum\":2},\"minContains\":2,\"items\":{\"type\":\"integer\",\"not\":{\"enum\":[3,4]}}}",
    "{\"allOf\":[{\"enum\":[1,2,3]},{\"enum\":[2,3,4]},{\"minimum\":2},{\"maximum\":9,\"type\":[\"integer\","
    "\"null\"]}]"
    ",\"type\":\"integer\",\"minimum\":0}",
    "{\"allOf\":[{\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]},{\"anyOf\":[{\"required\":[\"c\"]},{}]},"
    "{\"$ref\":\"#/$defs/x\"}],\"$defs\":{\"x\":{\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\"}},\"type\":\"object\"}},"
    "\"properties\":{\"a\":{\"type\":\"object\"}},\"unevaluatedProperties\":{\"type\":\"null\"}}",
};

static uint64_t hash(uint64_t hash, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

/* Reads a schema. Sets *made to a hash of the resulting rules. */
static fr_status read_schema(const char *text, uint64_t *made) {
    fr_grammar_rules rules = {0};
    fr_status status = fr_grammar_read(FR_GRAMMAR_JSON_SCHEMA, (fr_text){text, strlen(text)}, &rules);
    *made = hash(rules.root, rules.bodies, rules.rule_count * sizeof *rules.bodies);
    *made = hash(*made, rules.ranges, rules.range_count * sizeof *rules.ranges);
    for (size_t i = 0; i < rules.expression_count; i++) {
        const fr_expression_node *e = &rules.expressions[i];
        const uint32_t words[] = {e->kind, e->first, e->second, e->most};
        *made = hash(*made, words, sizeof words);
    }
    fr_grammar_rules_free(&rules);
    return status;
}

START_TEST(lost_memory) {
    const char *text = KEPT[_i];
    uint64_t expected, made;
    if (!fr_alloc_counted()) {
        fr_test_skipped("allocations are not counted in this build");
        return;
    }
    /* the first call also allocates memory that later calls use again */
    fr_status status = read_schema(text, &expected);
    size_t live = fr_alloc_live(), before = fr_alloc_count();
    ck_assert_msg(status == FR_OK, "%s: %s", text, fr_last_error());
    require(read_schema(text, &made));
    size_t count = fr_alloc_count() - before;
    ck_assert_uint_eq(made, expected);
    for (size_t nth = 0; nth < count; nth++) {
        fr_alloc_fail(nth);
        status = read_schema(text, &made);
        fr_alloc_fail(SIZE_MAX);
        ck_assert_msg(status == FR_MEMORY || (status == FR_OK && made == expected), "%s, allocation %zu of %zu: %d, %s",
                      text, nth, count, status, status == FR_OK ? "another grammar" : fr_last_error());
        ck_assert_msg(fr_alloc_live() == live, "%s, allocation %zu: %zd are kept", text, nth,
                      (ssize_t)(fr_alloc_live() - live));
    }
}
END_TEST

FR_SUITE("grammar_bounds") {
    TCase *c = tcase_create("grammar_bounds");
    tcase_add_unchecked_fixture(c, open_tree, close_tree);
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, bounded, 0, sizeof CASES / sizeof *CASES);
    tcase_add_loop_test(c, followed, 0, sizeof FOLLOWED / sizeof *FOLLOWED);
    tcase_add_test(c, long_text);
    tcase_add_loop_test(c, lost_memory, 0, sizeof KEPT / sizeof *KEPT);
    suite_add_tcase(suite, c);
}
