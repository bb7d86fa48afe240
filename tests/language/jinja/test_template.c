/* Tests chat templates. They must render the same texts as Jinja, byte for byte. Each byte of a text must be marked as
 * the template's or the message's. Hostile templates and variables must be refused.
 *
 * The expected texts come from Python. tests/data/chat/reference.json has the texts that transformers renders from
 * published templates. template_cases.json is made by tests/references/template_cases.py. */
/* suite: hostile */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text_buffer.h"
#include "src/language/jinja/template.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
#define NOW             1767323045 /* Friday, 2 January 2026, 03:04:05 */

/* The stack size with which every template must be rendered. Sanitizers need a larger stack. */
#if defined(__SANITIZE_ADDRESS__)
#define STACK ((size_t)8 << 20)
#else
#define STACK ((size_t)320 << 10)
#endif

/* ------------------------------------------------------------------------------------------------------- references */

static fr_status render_source(const char *source, size_t length, const json_t *own, const json_t *given,
                               fr_marked_text *text) {
    fr_template *template;
    *text = (fr_marked_text){0};
    fr_status status = fr_template_compile(source, length, "t", &template);
    if (status == FR_OK) status = fr_template_render(template, own, given, NOW, text);
    fr_template_close(template);
    return status;
}

static void check_rendered(const char *title, fr_status status, const fr_marked_text *text, const json_t *expected) {
    if (!expected) {
        ck_assert_msg(status == FR_INPUT, "%s: rendered, and should fail: %s", title, text->text);
        ck_assert_ptr_null(text->text);
        return;
    }
    ck_assert_msg(status == FR_OK, "%s: %s", title, fr_last_error());
    bool same = text->length == json_string_length(expected) &&
                memcmp(text->text, json_string_value(expected), text->length) == 0;
    ck_assert_msg(same, "%s:\n%s\nnot\n%s", title, text->text, json_string_value(expected));
}

/* Renders one item of the reference. Among its variables, the tokens are passed as the model's own variables. All
 * others are passed as the request's variables. */
static void check_reference(const char *source, size_t length, const json_t *item) {
    static const char *const tokens[] = {"bos_token", "eos_token"};
    json_t *own = json_object(), *given = json_copy(json_object_get(item, "context"));
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        json_t *token = json_object_get(given, tokens[i]);
        if (token) json_object_set(own, tokens[i], token);
        json_object_del(given, tokens[i]);
    }
    json_object_set(given, "messages", json_object_get(item, "messages"));
    fr_marked_text text;
    fr_status status = render_source(source, length, own, given, &text);
    const char *title = json_string_value(json_object_get(item, "title"));
    check_rendered(title, status, &text, json_object_get(item, "rendered"));
    fr_marked_text_free(&text);
    json_decref(own);
    json_decref(given);
}

START_TEST(reference_cases) {
    static const struct {
        const char *cases, *key, *template;
        size_t count;
    } files[] = {
        {"tests/data/chat/reference.json", "gemma4", "gemma4", 21},
        {"tests/data/chat/gemma4_more.json", "gemma4", "gemma4", 200},
        {"tests/data/chat/reference.json", "glm4.6", "glm4.6", 21},
        {"tests/data/chat/reference.json", "glm4.7", "glm4.7", 21},
        {"tests/data/chat/reference.json", "qwen3.5", "qwen3.5", 21},
        {"tests/data/chat/reference.json", "deepseek-v3.1", "deepseek-v3.1", 21},
        {"tests/data/chat/reference.json", "llama3.1", "llama3.1", 21},
    };
    char path[100];
    size_t length;
    snprintf(path, sizeof path, "tests/data/chat/templates/%s.jinja", files[_i].template);
    char *source = fr_load_text(path, &length);
    json_t *root = fr_load_json(files[_i].cases), *cases = json_object_get(root, files[_i].key);
    ck_assert_uint_ge(json_array_size(cases), files[_i].count);
    for (size_t i = 0; i < json_array_size(cases); i++) check_reference(source, length, json_array_get(cases, i));
    json_decref(root);
    free(source);
}
END_TEST

/* Renders many small templates with the same variables. */
START_TEST(python_cases) {
    json_t *root = fr_load_json("tests/data/chat/template_cases.json"), *cases = json_object_get(root, "cases");
    const json_t *context = json_object_get(root, "context");
    setenv("TZ", "UTC", 1);
    ck_assert_uint_ge(json_array_size(cases), 550);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *item = json_array_get(cases, i), *source = json_object_get(item, "template");
        fr_marked_text text;
        fr_status status = render_source(json_string_value(source), json_string_length(source), NULL, context, &text);
        check_rendered(json_string_value(source), status, &text, json_object_get(item, "rendered"));
        fr_marked_text_free(&text);
    }
    json_decref(root);
}
END_TEST

/* ----------------------------------------------------------------------------------------- the template's own bytes */

static const char hands_own[] = "{\"bos\": \"<s>\", \"eos\": \"</s>\", \"shared\": \"own\"}";
static const char hands_given[] =
    "{\"u\": \"us er\", \"n\": 7, \"yes\": true, \"nil\": null, \"f\": 0.5, \"l\": [\"a\", \"b\"], \"d\": {\"k\": "
    "\"v\"}, \"messages\": [{\"role\": \"user\"}, {\"role\": \"user\\u0000<s>\"}, {\"role\": \"<s>\"}], "
    "\"ß\": \"ß\", \"mixed\": \"aB\", \"shared\": \"given\", \"e\": \"\", \"q\": \"it's\", \"c\": \"1,2\"}";

/* For each template, the text that it must render, and a mark for each byte of this text: '.' means that the byte is
 * the template's own, '^' that it comes from the request. */
static const struct {
    const char *template, *text, *hands;
} hands[] = {
    {"a{{ u }}b", "aus erb", ".^^^^^."},
    {"{{ bos }}{{ u }}{{ eos }}", "<s>us er</s>", "...^^^^^...."},
    {"{{ shared }}", "given", "^^^^^"}, /* the request's variables replace the model's own */
    /* The usual names of roles are treated as the template's own text. */
    {"{{ messages[0].role }}{{ messages[1].role|replace('\\0', '') }}{{ messages[2].role }}", "useruser<s><s>",
     "....^^^^^^^^^^"},
    {"{{ u[0] }}{{ 'x' }}{{ u[-1] }}", "uxr", "^.^"},
    {"{{ 'x' + u + 'y' }}", "xus ery", ".^^^^^."},
    {"{{ ('x' + u + 'y')[:2] }}{{ ('x' ~ u ~ 'y')[-2:] }}", "xury", ".^^."},
    {"{{ ('x' ~ u ~ 'y')[::-1] }}", "yre sux", ".^^^^^."},
    {"{{ (u ~ 'xyz')|upper }}", "US ERXYZ", "^^^^^..."},
    {"{{ (ß ~ 'ß')|upper }}", "SSSS", "^^.."},
    {"{{ (u ~ 'AB')|title }}{{ (u ~ 'AB')|capitalize }}{{ (u ~ 'AB').swapcase() }}", "Us ErabUs erabUS ERab",
     "^^^^^..^^^^^..^^^^^.."},
    {"{{ u.split(' ')|join('-') }}", "us-er", "^^.^^"},
    {"{{ l|join(u) }}", "aus erb", "^^^^^^^"},
    {"{{ ['x', u, 'y']|join(', ') }}", "x, us er, y", "...^^^^^..."},
    {"{{ ', '.join(l) }}", "a, b", "^..^"},
    {"{{ 'abcabc'|replace('b', u) }}", "aus ercaus erc", ".^^^^^..^^^^^."},
    {"{{ u|replace('s', 'S') }}", "uS er", "^.^^^"},
    {"{{ u|replace('', '-')|truncate(4, true, '', 0) }}", "-u-s", ".^.^"},
    {"{{ ('  ' ~ u ~ '  ')|trim }}", "us er", "^^^^^"},
    {"{{ (u ~ 'x').strip('ux') }}", "s er", "^^^^"},
    {"{{ '%s=%d' % (u, n) }}", "us er=7", "^^^^^.^"},
    {"{{ '{}={:03d}|{!r}'.format(u, n, 'x') }}", "us er=007|'x'", "^^^^^...^...."},
    {"{{ u % () }}", "us er", "^^^^^"},
    {"{{ '<%5s>' % 'x' }}{{ '<%3s>'|format(n) }}", "<    x><  7>", "..........^."},
    {"{{ n }}{{ n + 1 }}{{ 1 + 1 }}{{ -n }}{{ n * 2 }}", "782-714", "^^.^^^^"},
    {"{{ f }}{{ f + 1 }}{{ 1.5 }}{{ n / 2 }}", "0.51.51.53.5", "^^^^^^...^^^"},
    {"{{ yes }}{{ nil }}{{ not yes }}{{ n > 3 }}{{ none }}", "TrueNoneFalseTrueNone", "^^^^^^^^............."},
    {"{{ u|length }}{{ l|length }}{{ c|int }}{{ '12'|int }}{{ '12'|float }}", "5201212.0", "........."},
    {"{{ n|string }}{{ n|round }}{{ n|abs }}{{ f|round }}", "7770.0", "^^^^^^"},
    {"{{ l }}{{ [u, 'x'] }}", "['a', 'b']['us er', 'x']", "^^^^^^^^^^.^^^^^^^......"},
    {"{{ d }}{{ {'x': u} }}", "{'k': 'v'}{'x': 'us er'}", "^^^^^^^^^^......^^^^^^^."},
    {"{{ d|tojson }}", "{\"k\": \"v\"}", "^^^^^^^^^^"},
    {"{{ {'x': u, 'y': n}|tojson }}", "{\"x\": \"us er\", \"y\": 7}", "......^^^^^^^.......^."},
    {"{{ l|tojson(indent=1) }}", "[\n \"a\",\n \"b\"\n]", "^^.^^^^^.^^^^^"},
    {"{% for k, v in d.items() %}{{ k }}={{ v }}{% endfor %}", "k=v", "^.^"},
    {"{% for k in d %}{{ k }}{% endfor %}{{ d.keys()|list|first }}", "kk", "^^"},
    {"{% for c in u ~ 'x' %}{{ c }}{% endfor %}", "us erx", "^^^^^."},
    {"{% for x in l %}{{ loop.index }}{{ x }}{{ loop.length }}{% endfor %}", "1a22b2", ".^..^."},
    {"{% set x %}a{{ u }}b{% endset %}{{ x|upper }}", "AUS ERB", ".^^^^^."},
    {"{% macro m(a, b='own') %}<{{ a }}|{{ b }}>{% endmacro %}{{ m(u) }}{{ m('x', b=u) }}", "<us er|own><x|us er>",
     ".^^^^^........^^^^^."},
    {"{% macro m() %}({{ caller(u) }}){% endmacro %}{% call(x) m() %}{{ x }}!{% endcall %}", "(us er!)", ".^^^^^.."},
    {"{% filter upper %}a{{ u }}b{% endfilter %}", "AUS ERB", ".^^^^^."},
    {"{% set ns = namespace(x='') %}{% for i in l %}{% set ns.x = ns.x ~ i ~ ';' %}{% endfor %}{{ ns.x }}", "a;b;",
     "^.^."},
    {"{{ u|default('x') }}{{ zzz|default('x') }}{{ e|default(u, true) }}{{ zzz|default(u) }}", "us erxus erus er",
     "^^^^^.^^^^^^^^^^"},
    {"{{ u if yes else 'x' }}{{ 'x' if yes else u }}{{ nil or u }}{{ u and 'x' }}", "us erxus erx", "^^^^^.^^^^^."},
    {"{{ u ~ '\\n' ~ u|indent(2) }}", "us er\nus er", "^^^^^.^^^^^"},
    {"{{ (u ~ '\\nx')|indent('> ') }}", "us er\n> x", "^^^^^...."},
    {"{{ (u ~ '<')|e }}", "us er&lt;", "^^^^^...."},
    {"{{ u|center(9) }}{{ u.ljust(7, '.') }}{{ 'x'.rjust(3, u[0]) }}", "  us er  us er..uux", "..^^^^^..^^^^^..^^."},
    {"{{ u * 2 }}{{ 'x' * n }}", "us erus erxxxxxxx", "^^^^^^^^^^......."},
    {"{{ c.split(',')|map('int')|sum }}{{ l|map('upper')|join }}{{ l|sort(reverse=true)|first }}", "3ABb", "^^^^"},
    {"{{ l|first }}{{ l|last }}{{ l|list|reverse|first }}{{ l|max }}", "abbb", "^^^^"},
    {"{{ range(n)|list|last }}{{ range(3)|list|last }}", "62", "^."},
    {"{{ strftime_now('%Y') }}{{ strftime_now(u) }}", "2026us er", "....^^^^^"},
    {"{{ d.get('zz', 'own') }}{{ d.get('k', 'own') }}{{ d['k'] }}", "ownvv", "...^^"},
    {"{{ u.partition(' ')[1] }}|{{ (u ~ '|').rpartition('|')[1] }}", " ||", "^.."},
    {"{{ u.removeprefix('us') }}{{ ('us' ~ u).removeprefix('us') }}", " erus er", "^^^^^^^^"},
    {"{{ q }}{{ [q] }}{{ q|tojson }}", "it's[\"it's\"]\"it's\"", "^^^^.^^^^^^.^^^^^^"},
    {"{{ (u ~ '/')|urlencode }}", "us%20er/", "^^^^^^^."},
    {"{{ l|batch(1)|list }}{{ dict(a=u) }}{{ l[:1] }}{{ l + ['x'] }}",
     "[['a'], ['b']]{'a': 'us er'}['a']['a', 'b', 'x']", "^^^^^^^^^^^^^^......^^^^^^^.^^^^^^^^^^^^^^^^...^"},
};

static json_t *parse(const char *text) {
    json_error_t error;
    json_t *json = json_loads(text, JSON_ALLOW_NUL, &error);
    ck_assert_msg(json != NULL, "%s: %s", text, error.text);
    return json;
}

START_TEST(whose_hand) {
    json_t *own = parse(hands_own), *given = parse(hands_given);
    fr_marked_text text;
    setenv("TZ", "UTC", 1);
    fr_status status = render_source(hands[_i].template, strlen(hands[_i].template), own, given, &text);
    ck_assert_msg(status == FR_OK, "%s: %s", hands[_i].template, fr_last_error());
    char marks[200];
    ck_assert_uint_lt(text.length, sizeof marks);
    memset(marks, '^', text.length);
    marks[text.length] = 0;
    for (size_t i = 0; i < text.trusted_count; i++) {
        fr_span span = text.trusted[i];
        ck_assert(span.begin < span.end && span.end <= text.length);
        ck_assert(i == 0 || span.begin > text.trusted[i - 1].end);
        memset(marks + span.begin, '.', span.end - span.begin);
    }
    ck_assert_str_eq(text.text, hands[_i].text);
    ck_assert_msg(strcmp(marks, hands[_i].hands) == 0, "%s:\n%s\n%s\nnot\n%s", hands[_i].template, text.text, marks,
                  hands[_i].hands);
    fr_marked_text_free(&text);
    json_decref(own);
    json_decref(given);
}
END_TEST

/* ------------------------------------------------------------------------------------- hostile templates and limits */

static const struct {
    const char *template, *line;
} refused[] = {
    /* The error line must give the place of the failure. */
    {"a\n{{ x.y }}", "t:2: 'x' is undefined"},
    {"{% macro m(a) %}\n{{ a.b }}\n{% endmacro %}\n\n{{ m() }}", "t:2: parameter 'a' was not provided"},
    {"\n\n{{ raise_exception('no\\nway\\x1b') }}", "t:3: no?way?"},
    {"{{ none.x.y }}", "t:1: 'NoneType' object has no attribute 'x'"},
    {"{{ [].append(1) }}", "t:1: 'append' of 'list' would change it"},
    {"{{ 1 + 'a' }}", "t:1: unsupported operand types for +: 'int' and 'str'"},
    {"{% if 1 %}\nx", "t:1: a block without its \"endif\""},
    {"{{ a b }}", "t:1: expected \"}}\", not \"b\""},
    {"\n{% nope %}", "t:2: expected a statement, not \"nope\""},
    {"{% include 'x' %}", "t:1: include, import, from, extends and block are not for chat templates"},
    {"{{ x | nope }}", "t:1: no filter named 'nope'"},
    {"{{ x is nope }}", "t:1: no test named 'nope'"},
    {"{{ 'a' | replace('a') }}", "t:1: replace: argument 'new' is missing"},
    {"{{ 'a' | upper(1) }}", "t:1: upper: more than 0 arguments"},
    {"{{ 'a' | tojson(y=1) }}", "t:1: tojson: no argument 'y'"},
    {"{{ 'a' | default('b', default_value='c') }}", "t:1: default: argument 'default_value' twice"},
    {"{{ '\\ud800' }}", "t:1: an unknown escape in a string"},
    {"{{ {}['a' }}", "t:1: unexpected '}'"},
    /* Integers must fit in 64 bits. */
    {"{{ 9223372036854775807 + 1 }}", "t:1: an integer of more than 64 bits"},
    {"{{ -9223372036854775807 - 2 }}", "t:1: an integer of more than 64 bits"},
    {"{{ 4611686018427387904 * 2 }}", "t:1: an integer of more than 64 bits"},
    {"{{ 10 ** 19 }}", "t:1: an integer of more than 64 bits"},
    {"{{ -(-9223372036854775807 - 1) }}", "t:1: an integer of more than 64 bits"},
    {"{{ (-9223372036854775807 - 1) // -1 }}", "t:1: an integer of more than 64 bits"},
    {"{{ 9223372036854775808 }}", "t:1: a number that is too large"},
    {"{{ '9223372036854775808' | int }}", "t:1: int: more than 64 bits"},
    {"{{ 2 ** 0.5 }}", "t:1: a power that is not a whole number"},
    /* Templates that take too long must be refused. */
    {"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "more than 10000000 steps"},
    {"{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "nested deeper than"},
    {"{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}",
     "more than 10000000 steps"},
    {"{% for x in range(9) recursive %}{{ loop(range(9)) }}{% endfor %}", "nested deeper than"},
    {"{{ 'x' * 1000000000000 }}", "more than 64 MiB of text"},
    {"{{ 'x' | center(1000000000000) }}", "more than 64 MiB of text"},
    {"{{ '%1000000000000d' % 1 }}", "t:1: "},
    {"{{ '%*d' % (1000000000, 1) }}", "more than 64 MiB of text"},
    {"{{ '{:>999999999}'.format('x') }}", "more than 64 MiB of text"},
    {"{{ '%.999f' % 1 }}", "a precision of more than 300"},
    {"{% set ns = namespace(x='x') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
     "more than 64 MiB of text"},
    {"{% set ns = namespace(x='x') %}{% for i in range(60) %}{% set ns.x = ns.x|replace('x', 'xx') %}{% endfor %}",
     "more than 10000000 steps"},
    {"{% set ns = namespace(x='xxxxxxxx') %}{% for i in range(60) %}{% set ns.x = ns.x|join(ns.x) %}{% endfor %}",
     "more than"},
    {"{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}", "more than"},
    {"{{ [1] * 1000000000000 }}", "more than"},
    {"{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}",
     "nested deeper than"},
    {"{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x == [ns.x] }}",
     "nested deeper than"},
    {"{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x|tojson }}",
     "nested deeper than"},
    {"{% set ns = namespace(x=()) %}{% for i in range(9999) %}{% set ns.x = (ns.x,) %}{% endfor %}{{ {ns.x: 1} }}",
     "nested deeper than"},
    {"{% set ns = namespace(x='ab') %}{% for i in range(9999) %}{% set ns.x = ns.x|map('upper') %}{% endfor %}{{ "
     "ns.x|list }}",
     "nested deeper than"},
    {"{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", "nested deeper than"},
    {"{{ range(100001) }}", "range: more than 100000 numbers"},
    {"{{ range(99999)|map('string')|join('x' * 1000) }}", "more than 64 MiB of text"},
    {"{% set t = 'a' * 4000000 %}{% for i in range(99999) %}{{ t.rfind('ab') }}{% endfor %}",
     "more than 10000000 steps"},
    {"{% set t = 'a' * 4000000 %}{% for i in range(99999) %}{{ t.count('b') }}{{ t|upper|length }}{% endfor %}",
     "more than"},
    {"{% for i in range(99999) %}{% set x = 'x' * 9999 %}{% endfor %}", "more than 256 MiB of memory"},
    {"{{ '\xc3\xa9' * 4000000 }}{% for i in range(99999) %}{{ ('\xc3\xa9' * 4000000)[i] }}{% endfor %}", "more than"},
};

START_TEST(one_line) {
    json_t *given = json_object();
    fr_marked_text text;
    fr_status status = render_source(refused[_i].template, strlen(refused[_i].template), NULL, given, &text);
    ck_assert_msg(status == FR_INPUT, "%s: %s", refused[_i].template, fr_status_name(status));
    ck_assert_ptr_null(text.text);
    ck_assert_uint_eq(text.trusted_count, 0);
    ck_assert_msg(strstr(fr_last_error(), refused[_i].line) != NULL, "%s: \"%s\"", refused[_i].template,
                  fr_last_error());
    ck_assert_ptr_null(strchr(fr_last_error(), '\n'));
    json_decref(given);
}
END_TEST

/* Templates with nesting. Each consists of `begin`, N times `before`, `middle`, N times `behind`, and `end`. */
static const struct {
    const char *begin, *before, *middle, *behind, *end;
} nests[] = {
    {"{{ ", "(", "1", ")", " }}"},
    {"{{ ", "[", "1", "]", " }}"},
    {"{{ ", "{1:", "1", "}", " }}"},
    {"{{ ", "-", "1", "", " }}"},
    {"{{ ", "not ", "1", "", " }}"},
    {"{{ ", "", "1", "+1", " }}"},
    {"{{ ", "", "1", "|string", " }}"},
    {"{{ ", "", "'a'", "[0]", " }}"},
    {"{{ ", "'a'[", "0", "]|length", " }}"},
    {"{{ ", "1 if 0 else ", "1", "", " }}"},
    {"{{ ", "", "1", " if 1 else 1", " }}"},
    {"{{ ", "dict(a=", "1", ")", " }}"},
    {"{{ ", "", "1", " and 1", " }}"},
    {"{{ ", "(", "1", " is defined)", " }}"},
    {"", "{% if 1 %}", "x", "{% endif %}", ""},
    {"", "{% for i in 'x' %}", "x", "{% endfor %}", ""},
    {"", "{% filter upper %}", "x", "{% endfilter %}", ""},
    {"", "{% set x %}", "x", "{% endset %}", ""},
    {"", "{% with %}", "x", "{% endwith %}", ""},
    {"", "{% macro m() %}", "x", "{% endmacro %}{{ m() }}", ""},
    {"{% macro m() %}{{ caller() }}{% endmacro %}", "{% call m() %}", "x", "{% endcall %}", ""},
    {"", "{% generation %}", "x", "{% endgeneration %}", ""},
};

static char *nested(size_t which, size_t times) {
    const char *parts[] = {nests[which].begin, nests[which].before, nests[which].middle, nests[which].behind,
                           nests[which].end};
    fr_text_buffer text = {0};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        for (size_t round = 0; round < (i % 2 ? times : 1); round++) fr_text_append_string(&text, parts[i]);
    char *bytes;
    size_t length;
    ck_assert_int_eq(fr_text_take(&text, "a test", &bytes, &length), FR_OK);
    return bytes;
}

/* Renders a template at several depths of nesting. This runs in a thread with a stack of STACK bytes, which must be
 * enough. */
static void *render_nested(void *which) {
    static const size_t depths[] = {1, 20, 90, 190, 199, 200, 250, 5000};
    for (size_t i = 0; i < COUNT_OF(depths); i++) {
        char *source = nested(*(size_t *)which, depths[i]);
        fr_marked_text text;
        fr_status status = render_source(source, strlen(source), NULL, NULL, &text);
        bool few = depths[i] <= 20, many = depths[i] >= 250;
        ck_assert_msg(few ? status == FR_OK : !many || status == FR_INPUT, "%zu of %s: %s", depths[i], source,
                      fr_last_error());
        if (many) ck_assert_ptr_nonnull(strstr(fr_last_error(), " deeper than "));
        fr_marked_text_free(&text);
        free(source);
    }
    return NULL;
}

/* Renders templates that nest or recurse while they run, from deep inside expressions and blocks. Each must be refused
 * before the stack overflows. */
static void *render_recursion(void *which) {
    static const char *const sources[] = {
        "{% macro m(x) %}{% if 1 %}{% for i in 'x' %}{{ [[[[m(x)]]]] }}{% endfor %}{% endif %}{% endmacro %}{{ m(1) }}",
        "{% macro m(x) %}{{ '%s' % ((('x'|replace('x', m(x)|upper|trim))|default('y'))) }}{% endmacro %}{{ m(1) }}",
        "{% macro m() %}{% set x %}{% filter upper %}{% call m() %}x{% endcall %}{{ caller() }}{% endfilter %}"
        "{% endset %}{% endmacro %}{% call m() %}x{% endcall %}",
        "{% for x in 'ab' recursive %}{% if x %}{{ loop('ab' ~ loop('cd')) }}{% endif %}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(9999) %}{% set ns.x = ns.x|map('list')|map('list') %}"
        "{% endfor %}{{ ns.x|map('upper')|select('defined')|list }}",
        "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = {'a': [ns.x]} %}{% endfor %}"
        "{{ ns.x|tojson(indent=1) }}",
    };
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        fr_marked_text text;
        ck_assert_int_eq(render_source(sources[i], strlen(sources[i]), NULL, NULL, &text), FR_INPUT);
        ck_assert_msg(strstr(fr_last_error(), " deeper than "), "%s: %s", sources[i], fr_last_error());
    }
    return which;
}

static void run_with_stack(void *body(void *), void *argument) {
    pthread_attr_t attributes;
    pthread_t thread;
    ck_assert_int_eq(pthread_attr_init(&attributes), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attributes, STACK), 0);
    ck_assert_int_eq(pthread_create(&thread, &attributes, body, argument), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

START_TEST(nesting) {
    size_t which = (size_t)_i;
    run_with_stack(render_nested, &which);
}
END_TEST

START_TEST(recursion) {
    run_with_stack(render_recursion, NULL);
}
END_TEST

/* A template may contain any bytes. A NUL in it is ordinary text. */
START_TEST(any_bytes) {
    static const char source[] = "a\0b{{ 'c\0d' }}\xff{{ '\xfe\xc3'|length }}{{ ['\xff\0'] }}{{ '\xff'|upper|tojson }}";
    static const char expected[] = "a\0bc\0d\xff"
                                   "2['\\udcff\\x00']\"\xff\"";
    fr_marked_text text;
    ck_assert_int_eq(render_source(source, sizeof source - 1, NULL, NULL, &text), FR_OK);
    ck_assert_uint_eq(text.length, sizeof expected - 1);
    ck_assert_mem_eq(text.text, expected, sizeof expected);
    fr_marked_text_free(&text);
    json_t *given = json_object();
    json_object_set_new(given, "x", json_stringn_nocheck("\xff\0\x80", 3));
    ck_assert_int_eq(render_source("{{ x }}{{ x|length }}{{ x[::-1] }}", 34, NULL, given, &text), FR_OK);
    ck_assert_uint_eq(text.length, 7);
    ck_assert_mem_eq(text.text,
                     "\xff\0\x80"
                     "3\x80\0\xff",
                     7);
    fr_marked_text_free(&text);
    json_decref(given);
}
END_TEST

START_TEST(kept_source) {
    fr_template *template;
    size_t length;
    ck_assert_int_eq(fr_template_compile("a\r\n\0", 4, "t", &template), FR_OK);
    ck_assert_mem_eq(fr_template_source(template, &length), "a\r\n\0", 4);
    ck_assert_uint_eq(length, 4);
    fr_template_close(template);
    fr_template_close(NULL);
    ck_assert_int_eq(fr_template_compile("{{", 2, "t", &template), FR_INPUT);
    ck_assert_ptr_null(template);
    fr_marked_text_free(NULL);
    char *large = calloc(1, ((size_t)1 << 20) + 1);
    ck_assert_int_eq(fr_template_compile(large, ((size_t)1 << 20) + 1, "t", &template), FR_INPUT);
    free(large);
}
END_TEST

/* These templates are nearly as large as a template may be. Each consists of copies of `before`, then `format` filled
 * in with 0, 1, 2 and so on, then copies of `after`. The templates have many names, blocks in which names are looked up
 * again and again, or very many arguments. Each must end within the suite's time limit. */
START_TEST(large_sources) {
    static const struct {
        const char *before, *format, *after, *line; /* line: a part of the error line; NULL means no error */
        int blocks;                                 /* number of copies of `before` and of `after` */
    } sources[] = {
        {"{{ ", "name%d ~ ", "'' }}", NULL, 1},
        {"", "{%% set name%d = 1 %%}", "", NULL, 1},
        {"{{ dict(", "name%d=1, ", ") }}", "more than 256 MiB of memory", 1},
        {"{% if 0 %}", "{%% elif %d %%}", "{% endif %}", "more than 256 MiB of memory", 1},
        {"{% macro m() %}", "{{ name%d }}", "{% endmacro %}", "blocks nested too often to be searched", 150},
        {"{{ [", "%d, ", "]|length }}", NULL, 1},
    };
    fr_text_buffer text = {0};
    char part[60];
    for (int i = 0; i < sources[_i].blocks; i++) fr_text_append_string(&text, sources[_i].before);
    for (int i = 0; text.length < 1000000; i++) {
        snprintf(part, sizeof part, sources[_i].format, i);
        fr_text_append_string(&text, part);
    }
    for (int i = 0; i < sources[_i].blocks; i++) fr_text_append_string(&text, sources[_i].after);
    fr_marked_text rendered;
    fr_status status = render_source(text.bytes, text.length, NULL, NULL, &rendered);
    ck_assert_msg(status == (sources[_i].line ? FR_INPUT : FR_OK), "%s: %s", sources[_i].format, fr_last_error());
    if (sources[_i].line) ck_assert_ptr_nonnull(strstr(fr_last_error(), sources[_i].line));
    fr_marked_text_free(&rendered);
    fr_text_free(&text);
}
END_TEST

/* Renders a template many times. Several threads do this at the same time with the same template. */
static void *render_often(void *template) {
    json_t *given = json_pack("{s: [s, s]}", "messages", "a", "b");
    for (int i = 0; i < 200; i++) {
        fr_marked_text text;
        ck_assert_int_eq(fr_template_render(template, NULL, given, NOW, &text), FR_OK);
        ck_assert_str_eq(text.text, "<A|1><B|2>");
        fr_marked_text_free(&text);
    }
    json_decref(given);
    return NULL;
}

START_TEST(threads) {
    static const char source[] = "{% macro m(x) %}<{{ x|upper }}|{{ varargs[0] }}>{% endmacro %}"
                                 "{% for x in messages %}{{ m(x, loop.index) }}{% endfor %}";
    fr_template *template;
    pthread_t others[4];
    ck_assert_int_eq(fr_template_compile(source, strlen(source), "t", &template), FR_OK);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        ck_assert_int_eq(pthread_create(&others[i], NULL, render_often, template), 0);
    for (size_t i = 0; i < COUNT_OF(others); i++) ck_assert_int_eq(pthread_join(others[i], NULL), 0);
    fr_template_close(template);
}
END_TEST

FR_SUITE("template") {
    TCase *cases = tcase_create("template");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, reference_cases, 0, 7);
    tcase_add_test(cases, python_cases);
    tcase_add_loop_test(cases, whose_hand, 0, COUNT_OF(hands));
    tcase_add_loop_test(cases, one_line, 0, COUNT_OF(refused));
    tcase_add_loop_test(cases, nesting, 0, COUNT_OF(nests));
    tcase_add_test(cases, recursion);
    tcase_add_test(cases, any_bytes);
    tcase_add_test(cases, kept_source);
    tcase_add_loop_test(cases, large_sources, 0, 6);
    tcase_add_test(cases, threads);
    suite_add_tcase(suite, cases);
}
