/* Tests --trace as users call it. Also tests the verb report, which makes a page from a trace. The verb gets valid
 * traces and arbitrary bytes. */
/* suite: hostile damaged native */
#include <check.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/parts.h"
#include "tests/support/suite.h"

#define START  "-p 'The function returns a' "
#define TRACED DEMO DEMO_DRAFTER START "-n 60 --draft-max 3 --ignore-eos "

/* The folder of the running test, and the paths of a trace and of a page in it. */
static char folder[256], trace[300], page[300];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "%s/forerun-report-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(trace, sizeof trace, "%s/t.ndjson", folder);
    snprintf(page, sizeof page, "%s/r.html", folder);
}

static void remove_folder(void) {
    unlink(trace);
    unlink(page);
    ck_assert_msg(rmdir(folder) == 0, "something is left in %s", folder);
}

static char *read_all(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "no %s", path);
    char *bytes = malloc(1 << 24);
    *length = fread(bytes, 1, (1 << 24) - 1, file);
    bytes[*length] = '\0';
    fclose(file);
    return bytes;
}

static void write_all(const char *path, const char *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

/* Reads the trace file. Each of its lines must be a JSON object. */
static json_t *read_trace(void) {
    size_t length;
    char *bytes = read_all(trace, &length);
    json_t *all = json_array();
    for (char *at = bytes, *end; at < bytes + length; at = end + 1) {
        end = memchr(at, '\n', (size_t)(bytes + length - at));
        ck_assert_ptr_nonnull(end);
        json_error_t error;
        json_t *line = json_loadb(at, (size_t)(end - at), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
        ck_assert_msg(json_is_object(line), "%s: %.*s", error.text, (int)(end - at), at);
        json_array_append_new(all, line);
    }
    free(bytes);
    return all;
}

static bool is(const json_t *line, const char *event) {
    return strcmp(json_string_value(fr_json_get(line, "event")), event) == 0;
}

enum { TEXT_ROOM = 8192 };

static void add(char *text, const char *more) {
    size_t length = strlen(text);
    ck_assert_int_lt(snprintf(text + length, TEXT_ROOM - length, "%s", more), (int)(TEXT_ROOM - length));
}

/* If a trace line has the texts of a reply's tokens, appends them to `text`. */
static void add_reply(char *text, const json_t *line) {
    const json_t *pieces = fr_json_get(line, "pieces");
    if (strcmp(json_string_value(fr_json_get(line, "of")), "reply") != 0) return;
    for (size_t i = 0; i < json_array_size(pieces); i++) add(text, json_string_value(json_array_get(pieces, i)));
}

static json_t *parse_output(const fr_command *c) {
    json_t *object = json_loads(c->out, 0, NULL);
    ck_assert_msg(object != NULL, "%s", c->out);
    return object;
}

static double number(const json_t *object, const char *key) {
    ck_assert_msg(json_is_number(fr_json_get(object, key)), "%s", key);
    return json_number_value(fr_json_get(object, key));
}

/* ----------------------------------------------------------------------------------------------------------- traces */

/* The trace and the output of --output json must describe the same run. */
START_TEST(a_trace_agrees_with_the_json_output) {
    make_folder();
    fr_command c = fr_command_ok("generate " TRACED "--output json --trace %s", trace);
    fr_command plain = fr_command_ok("generate " TRACED "--output json");
    json_t *object = parse_output(&c), *untraced = parse_output(&plain), *all = read_trace(), *ids = json_array();
    const json_t *stats = fr_json_get(object, "stats");
    ck_assert(json_equal(fr_json_get(object, "ids"), fr_json_get(untraced, "ids")));

    char text[TEXT_ROOM] = "";
    double calls = 0, drafted = 0, accepted = 0, seconds[4] = {0};
    static const char *const phases[][2] = {{"draft_seconds", "draft_seconds"},
                                            {"verify_seconds", "verify_seconds"},
                                            {"accept_seconds", "accept_seconds"},
                                            {"seconds", "decode_seconds"}};
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *line = json_array_get(all, i);
        if (is(line, "draft")) drafted += (double)json_array_size(fr_json_get(line, "ids"));
        if (is(line, "text")) add_reply(text, line);
        if (!is(line, "accept")) continue;
        json_array_extend(ids, fr_json_get(line, "ids"));
        calls += number(line, "rows") > 0;
        accepted += number(line, "accepted");
        for (int p = 0; p < 4; p++) seconds[p] += number(line, phases[p][0]);
    }
    ck_assert(json_equal(ids, fr_json_get(object, "ids")));
    ck_assert_str_eq(text, json_string_value(fr_json_get(object, "text")));
    ck_assert_double_eq(calls, number(stats, "target_calls"));
    ck_assert_double_eq(drafted, number(stats, "drafted"));
    ck_assert_double_eq(accepted, number(stats, "accepted"));
    for (int p = 0; p < 4; p++) ck_assert_double_eq_tol(seconds[p], number(stats, phases[p][1]), 1e-6);
    const json_t *last = json_array_get(all, json_array_size(all) - 1);
    ck_assert(json_equal(fr_json_get(last, "stats"), stats));
    ck_assert_str_eq(json_string_value(fr_json_get(last, "stop")), "length");
    json_decref(ids);
    json_decref(all);
    json_decref(object);
    json_decref(untraced);
    fr_command_free(&c);
    fr_command_free(&plain);
    remove_folder();
}
END_TEST

/* The counts for each depth must add up to the totals. The times of the phases must add up to the time after the first
 * token. */
START_TEST(the_statistics_add_up) {
    fr_command c = fr_command_ok("generate " TRACED "--output json");
    json_t *object = parse_output(&c);
    const json_t *stats = fr_json_get(object, "stats"), *depths = fr_json_get(stats, "depths");
    static const char *const keys[] = {"drafted", "accepted", "rejected"};
    for (int k = 0; k < 3; k++) {
        double sum = 0;
        for (size_t d = 0; d < json_array_size(depths); d++) sum += number(json_array_get(depths, d), keys[k]);
        ck_assert_double_eq(sum, number(stats, keys[k]));
    }
    ck_assert_uint_eq(json_array_size(depths), 3);
    ck_assert_double_eq_tol(number(stats, "draft_seconds") + number(stats, "verify_seconds") +
                                number(stats, "accept_seconds") + number(stats, "other_seconds"),
                            number(stats, "decode_seconds"), 1e-6);
    ck_assert_double_eq_tol(number(stats, "tokens_per_second"), 59 / number(stats, "decode_seconds"), 1e-3);
    json_decref(object);
    fr_command_free(&c);
}
END_TEST

/* The trace of a conversation has each turn's prompt, rounds, text and statistics. */
START_TEST(a_conversation_is_traced_turn_by_turn) {
    make_folder();
    char line[512];
    snprintf(line, sizeof line, TALK DEMO_DRAFTER "-n 20 --ignore-eos --trace %s", trace);
    fr_command c = fr_command_run(line, "One?\nTwo?\n");
    ck_assert_msg(c.status == 0, "%s", c.err);
    json_t *all = read_trace();
    char text[TEXT_ROOM] = "";
    double turns = 0, given = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *at = json_array_get(all, i);
        if (is(at, "accept")) given += (double)json_array_size(fr_json_get(at, "ids"));
        if (is(at, "stats")) {
            turns++;
            add(text, "\n");
            ck_assert_double_eq(number(fr_json_get(at, "stats"), "generated_tokens"), 20);
        }
        if (is(at, "text")) add_reply(text, at);
    }
    ck_assert_double_eq(turns, 2);
    ck_assert_double_eq(given, 40);
    ck_assert_str_eq(text, c.out);
    json_decref(all);
    fr_command_free(&c);
    remove_folder();
}
END_TEST

static void check_fails(const char *line, int status, const char *says) {
    fr_command c = fr_command_run(line, NULL);
    ck_assert_msg(c.status == status, "%s: exit %d: %s", line, c.status, c.err);
    ck_assert_msg(strstr(c.err, says) != NULL, "%s: %s", line, c.err);
    ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
    fr_command_free(&c);
}

/* A trace must be written completely or not at all. It can't be written to standard output, because the result is
 * written there. */
START_TEST(a_trace_that_can_not_be_written_is_an_error) {
    make_folder();
    char line[512];
    check_fails("generate " MODEL "--ids 2 -n 3 --output ids --trace -", 2, "standard output holds the result");
    check_fails("generate " MODEL "--ids 2 -n 3 --output ids --trace no/such/folder/t", 1, "no/such/folder/t");
    check_fails("generate " MODEL "--ids 2 -n 3 --output ids --trace /dev/full", 1, "/dev/full");
    snprintf(line, sizeof line, "generate " MODEL "--ids 2,512 -n 3 --output ids --trace %s", trace);
    check_fails(line, 1, "512");
    ck_assert_int_ne(access(trace, F_OK), 0);
    remove_folder();
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ pages */

/* Checks that every tag that opens is closed, and that tags are closed in the right order. */
static void check_balanced(const char *html) {
    static const char *const alone[] = {"meta", "br", "!DOCTYPE"};
    char open[64][16];
    size_t depth = 0;
    for (const char *at = html; (at = strchr(at, '<')); at++) {
        bool closing = at[1] == '/';
        char name[16];
        size_t length = strcspn(at + 1 + closing, " >/\n");
        ck_assert_uint_lt(length, sizeof name);
        snprintf(name, sizeof name, "%.*s", (int)length, at + 1 + closing);
        ck_assert_msg(isalpha((unsigned char)*name) || *name == '!', "a bare <: %.40s", at);
        const char *end = strchr(at, '>');
        ck_assert_ptr_nonnull(end);
        bool empty = end[-1] == '/';
        for (size_t i = 0; i < 3; i++) empty |= strcmp(name, alone[i]) == 0;
        if (closing)
            ck_assert_msg(depth > 0 && strcmp(open[--depth], name) == 0, "</%s> at %.60s", name, at);
        else if (!empty)
            memcpy(open[depth++], name, sizeof name);
        ck_assert_uint_lt(depth, 64);
    }
    ck_assert_uint_eq(depth, 0);
}

/* Checks that the page has no script and loads nothing from other places. */
static void check_alone(const char *html) {
    static const char *const banned[] = {"http:", "https:",  "src=", "href=",       "@import", "url(",    "<script",
                                         "<link", "<iframe", "<img", "javascript:", " onload", " onerror"};
    for (size_t i = 0; i < sizeof banned / sizeof *banned; i++)
        ck_assert_msg(strcasestr(html, banned[i]) == NULL, "%s: %.80s", banned[i], strcasestr(html, banned[i]));
}

/* Replaces the page by the text that a reader sees: tags are removed, and entities are replaced by their
 * characters. */
static char *visible_text(char *html) {
    static const struct {
        const char *entity;
        char c;
    } entities[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&#39;", '\''}};
    char *at = strstr(html, "<div class=\"text\">"), *to = html;
    ck_assert_ptr_nonnull(at);
    char *end = strstr(at, "</div>");
    while (at < end) {
        if (*at == '<') {
            at = strchr(at, '>') + 1;
            continue;
        }
        size_t i = 0;
        while (i < 5 && strncmp(at, entities[i].entity, strlen(entities[i].entity)) != 0) i++;
        *to++ = i < 5 ? entities[i].c : *at;
        at += i < 5 ? strlen(entities[i].entity) : 1;
    }
    *to = '\0';
    return html;
}

static char *make_page(const char *options) {
    size_t length;
    fr_command c = fr_command_ok("report %s -o %s %s", trace, page, options);
    ck_assert_str_eq(c.out, "");
    fr_command_free(&c);
    char *html = read_all(page, &length);
    ck_assert_uint_eq(length, strlen(html));
    ck_assert_uint_eq(strncmp(html, "<!DOCTYPE html>", 15), 0);
    check_balanced(html);
    return html;
}

/* The page of a real run must have its plots, figures and text. */
START_TEST(a_page_shows_the_run) {
    make_folder();
    fr_command c = fr_command_ok("generate " TRACED "--output json --trace %s", trace);
    json_t *object = parse_output(&c);
    const json_t *stats = fr_json_get(object, "stats");
    char *html = make_page(""), figure[128], text[8192];
    check_alone(html);
    static const char *const plots[] = {"Where the time went",    "Acceptance by depth",      "Acceptance over time",
                                        "Tokens per target call", "What a target call costs", "Acceptance by margin",
                                        "Speed over time"};
    for (size_t i = 0; i < sizeof plots / sizeof *plots; i++) {
        snprintf(figure, sizeof figure, "role=\"img\" aria-label=\"%s\"", plots[i]);
        ck_assert_msg(strstr(html, figure) != NULL, "%s", figure);
    }
    snprintf(figure, sizeof figure, "<b>%.2f</b><span>tokens a target call<br>n = %.0f calls",
             number(stats, "tokens_per_target_call"), number(stats, "target_calls"));
    ck_assert_msg(strstr(html, figure) != NULL, "%s", figure);
    snprintf(figure, sizeof figure, "<b>%.1f%%</b><span>of the drafts accepted<br>n = %.0f drafts",
             100 * number(stats, "acceptance"), number(stats, "drafted"));
    ck_assert_msg(strstr(html, figure) != NULL, "%s", figure);
    size_t drafts = 0;
    for (const char *at = html; (at = strstr(at, "<span class=\"d\" title=")); at++) drafts++;
    ck_assert_double_eq((double)drafts, number(stats, "accepted"));
    snprintf(text, sizeof text, "<bos>The function returns a%s", json_string_value(fr_json_get(object, "text")));
    ck_assert_str_eq(visible_text(html), text);
    free(html);
    json_decref(object);
    fr_command_free(&c);
    remove_folder();
}
END_TEST

#define BEGIN   "{\"event\":\"begin\",\"trace\":1,\"model\":\"m\",\"method\":\"mtp\"}\n"
#define SECONDS "\"draft_seconds\":0.1,\"verify_seconds\":0.2,\"accept_seconds\":0.01,\"seconds\":0.4"
#define ACCEPT(accepted, ids, margins)                                                                                \
    "{\"event\":\"accept\",\"rows\":3,\"accepted\":" accepted ",\"ids\":" ids ",\"margins\":" margins "," SECONDS "}" \
    "\n"
#define DRAFT            "{\"event\":\"draft\",\"ids\":[7,8]}\n"
#define ROUND            DRAFT ACCEPT("1", "[7,9]", "[1.5,0.25]")
#define STATS(stats)     "{\"event\":\"stats\",\"stats\":" stats "}\n"
#define TEXT(of, pieces) "{\"event\":\"text\",\"of\":\"" of "\",\"pieces\":" pieces "}\n"

/* Text in a trace that looks like HTML must be shown on the page as text. */
START_TEST(hostile_texts_are_text) {
    static const char hostile[] =
        "{\"event\":\"begin\",\"trace\":1,\"model\":\"a/</title><script>x()</script>\","
        "\"method\":\"<img src=x onerror=y>\",\"isa\":\"\\\" onload='z' http://h\"}\n" ROUND TEXT(
            "reply", "[\"</div></span><script>alert(1)</script>\",\"\\u0000\\u0007\\u007f\\\"'&lt;\"]");
    make_folder();
    write_all(trace, hostile, strlen(hostile));
    char *html = make_page("");
    ck_assert_ptr_null(strstr(html, "<script"));
    ck_assert_ptr_null(strstr(html, "<img"));
    ck_assert_ptr_nonnull(strstr(html, "&quot; onload=&#39;z&#39;"));
    ck_assert_str_eq(visible_text(html), "</div></span><script>alert(1)</script>&#x2400;&#x2407;&#x2421;\"'&lt;");
    free(html);
    remove_folder();
}
END_TEST

typedef struct given {
    const char *bytes, *says;
} given;

static const given refused[] = {
    {"", "no trace begins in it"},
    {"\n", "line 1: "},
    {"\x89PNG\r\n\x1a\n", "line 1: "},
    {"[1]\n", "line 1: no JSON object"},
    {ROUND, "line 1: no trace"},
    {"{\"event\":\"begin\",\"trace\":2}\n", "line 1: begin: "},
    {"{\"event\":\"begin\"}\n", "line 1: begin: \"trace\""},
    {BEGIN BEGIN, "line 2: a second trace begins"},
    {BEGIN "{\"event\":3}\n", "line 2: no \"event\""},
    {BEGIN "{\"a\":1,\"a\":2}\n", "line 2: duplicate"},
    {BEGIN "{\"event\":\"text\",\"of\":\"prompt\",\"pieces\":[\"\xff\"]}\n", "line 2: "},
    {BEGIN "{\"event\":\"x\nx\"}\n", "line 2: "},
    {BEGIN ROUND "{\"event\":\"accept\",\"rows\":1\n" ROUND, "line 4: "},
    {BEGIN DRAFT DRAFT, "line 3: draft: the draft before it"},
    {BEGIN "{\"event\":\"draft\",\"ids\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}\n", "line 2: draft: \"ids\""},
    {BEGIN "{\"event\":\"draft\",\"ids\":[1,\"2\"]}\n", "line 2: draft: \"ids\""},
    {BEGIN ACCEPT("1", "[7,9]", "[1,1]"), "line 2: accept: 2 ids with 1 accepted of 0 drafts"},
    {BEGIN ACCEPT("0", "[7,9]", "[1,1]"), "line 2: accept: 2 ids with 0 accepted of 0 drafts"},
    {BEGIN DRAFT ACCEPT("3", "[7,8,9]", "[1,1,1]"), "line 3: accept: "},
    {BEGIN DRAFT ACCEPT("-1", "[7]", "[1]"), "line 3: accept: \"accepted\""},
    {BEGIN DRAFT ACCEPT("1.5", "[7]", "[1]"), "line 3: accept: \"accepted\""},
    {BEGIN DRAFT ACCEPT("1", "7", "[1]"), "line 3: accept: \"ids\""},
    {BEGIN DRAFT ACCEPT("1", "[7,9]", "[1,2,3]"), "line 3: accept: \"margins\""},
    {BEGIN "{\"event\":\"accept\",\"rows\":1,\"accepted\":0,\"ids\":[1],\"margins\":[1]}\n",
     "line 2: accept: \"draft_seconds\""},
    {BEGIN "{\"event\":\"prompt\",\"ids\":[1],\"seconds\":-1}\n", "line 2: prompt: \"seconds\""},
    {BEGIN "{\"event\":\"prompt\",\"ids\":[1],\"seconds\":1e300}\n", "line 2: prompt: \"seconds\""},
    {BEGIN "{\"event\":\"prompt\",\"ids\":[1],\"seconds\":1e999}\n", "line 2: "},
    {BEGIN TEXT("reply", "[\"x\"]"), "line 2: text: a reply before"},
    {BEGIN TEXT("nobody", "[\"x\"]"), "line 2: text: \"of\""},
    {BEGIN TEXT("prompt", "[1]"), "line 2: text: \"pieces\""},
    {BEGIN STATS("[]"), "line 2: stats: "},
};

/* Each of these traces must give one error line, which has the number of the wrong line of the trace. There must be no
 * page. */
START_TEST(bad_traces_are_refused) {
    char line[700];
    const given *g = &refused[_i];
    make_folder();
    write_all(trace, g->bytes, strlen(g->bytes));
    snprintf(line, sizeof line, "report %s -o %s", trace, page);
    check_fails(line, 1, g->says);
    ck_assert_int_ne(access(page, F_OK), 0);
    remove_folder();
}
END_TEST

START_TEST(a_nul_between_lines_is_refused) {
    static const char bytes[] = BEGIN "\0\n" ROUND;
    char line[700];
    make_folder();
    write_all(trace, bytes, sizeof bytes - 1);
    snprintf(line, sizeof line, "report %s -o %s", trace, page);
    check_fails(line, 1, "line 2: ");
    remove_folder();
}
END_TEST

static const given drawn[] = {
    {BEGIN, ">m</h1>"},
    {BEGIN ROUND, "<b>50.0%</b><span>of the drafts accepted<br>n = 2 drafts"},
    {BEGIN ROUND "{\"event\":\"acc", "cut off"},
    {BEGIN ROUND "\xff", "cut off"},
    {BEGIN ROUND "{\"event\":\"future\",\"x\":[1]}\n", "n = 2 drafts"},
    {"{\"event\":\"begin\",\"trace\":1,\"model\":7,\"threads\":\"<\",\"new\":{}}\n" ROUND, "&lt; threads"},
    {BEGIN DRAFT ACCEPT("2", "[7,8]", "[null,1e308]"), "<b>100.0%</b>"},
    {BEGIN DRAFT ACCEPT("0", "[]", "[]"), "<b>0.0%</b>"},
    {BEGIN ROUND STATS("{\"memory\":{\"peak\":\"many\",\"scratch\":2500000}}"), "<td>2.50</td>"},
    {BEGIN ROUND STATS("{\"memory\":3}"), "n = 2 drafts"},
    {BEGIN ROUND TEXT("reply", "[\"only one\"]") TEXT("reply", "[]"), "only one"},
};

/* These traces are unusual but must be accepted. Some have fields that later versions might add. One is the trace of an
 * interrupted run. */
START_TEST(odd_traces_are_drawn) {
    make_folder();
    write_all(trace, drawn[_i].bytes, strlen(drawn[_i].bytes));
    char *html = make_page("--quiet");
    ck_assert_msg(strstr(html, drawn[_i].says) != NULL, "%s is not in %s", drawn[_i].says, html);
    ck_assert_ptr_null(strstr(html, "nan"));
    ck_assert_ptr_null(strstr(html, "inf"));
    free(html);
    remove_folder();
}
END_TEST

START_TEST(a_line_that_is_not_complete_is_remarked_on) {
    fr_command c = fr_command_feed(BEGIN ROUND "{", "report - -o /dev/null");
    ck_assert_ptr_nonnull(strstr(c.err, "the last line is not complete"));
    fr_command_free(&c);
}
END_TEST

/* The trace has one line of several megabytes. It has more tokens than a page shows. */
START_TEST(a_huge_trace_gives_a_page_of_some_size) {
    enum { LONG = 3 << 20, ROUNDS = 30000 };
    make_folder();
    FILE *file = fopen(trace, "wb");
    ck_assert_ptr_nonnull(file);
    fputs(BEGIN "{\"event\":\"text\",\"of\":\"prompt\",\"pieces\":[\"", file);
    for (size_t i = 0; i < LONG; i++) putc('x', file);
    fputs("\"]}\n", file);
    for (size_t i = 0; i < ROUNDS; i++) fputs(ROUND TEXT("reply", "[\"<a\",\"b>\"]"), file);
    fclose(file);
    char *html = make_page("");
    ck_assert_ptr_nonnull(strstr(html, "The first 20000 of 60001 tokens."));
    ck_assert_uint_lt(strlen(html), LONG + (2 << 20));
    free(html);
    remove_folder();
}
END_TEST

/* Changes, removes and duplicates bytes of a real trace. Each result must give a complete page or one error line. */
START_TEST(damaged_traces_are_refused_or_drawn) {
    make_folder();
    fr_command made = fr_command_ok("generate " DEMO DEMO_DRAFTER START "-n 12 --ignore-eos --trace %s", trace), c;
    size_t length;
    char *bytes = read_all(trace, &length), line[700];
    snprintf(line, sizeof line, "report %s -o %s --quiet", trace, page);
    uint64_t state = 20261121;
    for (int i = 0; i < (int)fr_test_times(60, 150); i++) {
        char *damaged = malloc(2 * length);
        memcpy(damaged, bytes, length);
        size_t size = length;
        for (int hits = 0; hits < 1 + i % 3; hits++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            size_t at = (size_t)(state >> 33) % size, run = (size_t)(state >> 20) % 40 + 1;
            if (run > size - at) continue;
            if (i % 4 == 0) memset(damaged + at, (int)(state >> 56), 1);
            if (i % 4 == 1) memmove(damaged + at, damaged + at + run, (size -= run) - at);
            if (i % 4 == 2) memmove(damaged + at, damaged + (size_t)(state >> 40) % (size - run), run);
            if (i % 4 == 3) damaged[at] = "\"{}[],:0-e9\n"[run % 12];
        }
        write_all(trace, damaged, size);
        c = fr_command_run(line, NULL);
        ck_assert_msg(c.status == 0 || c.status == 1, "damage %d: exit %d: %s", i, c.status, c.err);
        if (c.status == 1)
            ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
        else
            free(make_page("--quiet"));
        fr_command_free(&c);
        free(damaged);
    }
    free(bytes);
    fr_command_free(&made);
    remove_folder();
}
END_TEST

START_TEST(wrong_usage_of_report) {
    check_fails("report", 2, "report needs a trace");
    check_fails("report x", 2, "report needs -o FILE");
    check_fails("report x -o y -m z", 2, "report takes no -m");
    check_fails("report no/such/trace -o /dev/null", 1, "no/such/trace");
    check_fails("report tests -o /dev/null", 1, "tests");
}
END_TEST

FR_SUITE("report") {
    TCase *cases = tcase_create("report");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, a_trace_agrees_with_the_json_output);
    tcase_add_test(cases, the_statistics_add_up);
    tcase_add_test(cases, a_conversation_is_traced_turn_by_turn);
    tcase_add_test(cases, a_trace_that_can_not_be_written_is_an_error);
    tcase_add_test(cases, a_page_shows_the_run);
    TCase *damaged = tcase_create("damaged");
    tcase_set_timeout(damaged, 120);
    tcase_add_test(damaged, hostile_texts_are_text);
    tcase_add_loop_test(damaged, bad_traces_are_refused, 0, sizeof refused / sizeof *refused);
    tcase_add_test(damaged, a_nul_between_lines_is_refused);
    tcase_add_loop_test(damaged, odd_traces_are_drawn, 0, sizeof drawn / sizeof *drawn);
    tcase_add_test(damaged, a_line_that_is_not_complete_is_remarked_on);
    tcase_add_test(damaged, a_huge_trace_gives_a_page_of_some_size);
    tcase_add_test(damaged, damaged_traces_are_refused_or_drawn);
    tcase_add_test(damaged, wrong_usage_of_report);
    suite_add_tcase(suite, cases);
    suite_add_tcase(suite, damaged);
}
