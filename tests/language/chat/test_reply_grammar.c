/* Tests the grammar of whole replies (fr_grammar_open_reply), with templates and tokenizers of published models. The
 * grammar may allow only two kinds of replies. One kind is calls of the allowed tools, with arguments that fit their
 * schemas. The other kind is content that follows a grammar of its own. Reasoning may come first. A mark must be its
 * token, never ordinary tokens with the same text.
 *
 * The tests walk through the grammar. They choose random tokens that it allows. Now and then they try to end a text
 * that could go on for ever. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/json.h"
#include "formats/json_wide.h"
#include "tests/support/asking.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
enum { MOST = 400, WALKS = 24 };

/* The templates are published ones, or only the part of a published one that shows its call format. If the vocabulary
 * has no token for a mark, the mark is written as text. */
static const struct model {
    const char *template, *folder;
    bool several;
    const char *source;
} models[] = {{"gemma4", "gemma", true, NULL},
              {"glm4.6", "glm4", true, NULL},
              {"qwen3.5", "qwen35", true, NULL},
              {"llama3.1", "llama3", false, NULL},
              {"deepseek-v3.1", "deepseek3", true, NULL},
              {"kimi", "qwen35", true, "{# <|tool_calls_section_begin|> #}"},
              {"minimax", "qwen35", true, "{# <minimax:tool_call> #}"},
              {"seed", "qwen35", true, "{# <seed:tool_call> #}"},
              {"mistral", "qwen35", true, "{# [TOOL_CALLS] #}"},
              {"mistral with arguments marked", "qwen35", true, "{# [TOOL_CALLS][ARGS] #}"},
              {"mistral with ids", "qwen35", true, "{# [TOOL_CALLS][CALL_ID][ARGS] #}"},
              {"lfm2", "qwen35", true, "{# <|tool_list_start|> #}"},
              {"olmo3", "qwen35", true, "{# <function_calls> #}"},
              {"command a", "qwen35", true, "{# <|START_ACTION|> #}"},
              {"command r", "qwen35", true, "{# Action: ```json tool_name #}"},
              {"phi4", "qwen35", true, "{# <|tool|><|/tool|> #}"},
              {"granite", "qwen35", true, "{# <|tool_call|> #}"},
              {"glm4", "glm4", false, "{# [gMASK]<sop><|observation|> #}"},
              {"llama4", "llama3", false, "{# <|python_start|> parameters\" #}"},
              {"nemotron", "qwen35", true, "{# <TOOLCALL> #}"},
              {"hermes", "qwen35", true, "{# <tool_call> arguments #}"},
              {"none", "qwen35", true, "{# no form #}"}};
enum { PUBLISHED = 5 }; /* the first PUBLISHED templates are complete published ones */

static const char tools[] =
    "{\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"look-up\", \"description\": \"d\", "
    "\"parameters\": "
    "{\"type\": \"object\", \"properties\": {\"what\": {\"type\": \"string\"}, \"unit\": {\"enum\": [\"c\", \"<f>\"]}, "
    "\"days\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 9}, \"more\": {\"type\": \"object\", "
    "\"properties\": "
    "{\"on\": {\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/switch\"}, \"maxItems\": 3}}, \"required\": "
    "[\"on\"]}}, "
    "\"required\": [\"what\", \"unit\", \"more\"], \"$defs\": {\"switch\": {\"type\": \"boolean\"}}}}}, "
    "{\"type\": \"function\", \"function\": {\"name\": \"now\", \"description\": \"d\"}}]}";

static fr_tokenizer *tokenizer;
static fr_token_tree *tree;

static void open_model(const struct model *model) {
    char path[128], chat[128];
    fr_options *options = fr_options_new();
    snprintf(path, sizeof path, TOKENIZERS "%s", model->folder);
    snprintf(chat, sizeof chat, "tests/data/chat/templates/%s.jinja", model->template);
    if (model->source) {
        snprintf(chat, sizeof chat, "/tmp/reply-grammar-XXXXXX");
        int file = mkstemp(chat);
        ck_assert_int_eq(write(file, model->source, strlen(model->source)), (ssize_t)strlen(model->source));
        close(file);
    }
    require(fr_options_set_text(options, FR_OPT_CHAT_TEMPLATE, chat));
    require(fr_tokenizer_open(path, options, &tokenizer));
    if (model->source) unlink(chat);
    require(fr_token_tree_open(tokenizer, &tree));
    fr_options_free(options);
}

static void close_model(void) {
    fr_token_tree_close(tree);
    fr_tokenizer_close(tokenizer);
}

static bool is_allowed(fr_grammar *grammar, const int32_t *ids, size_t count, int32_t id, bool *ends) {
    const uint64_t *bits;
    require(fr_grammar_allowed(grammar, ids, count, &bits, ends));
    return bits[id / 64] >> (id % 64) & 1;
}

/* If the grammar allows all ids of a text, appends them. Returns the new number of ids. */
static size_t try_text(fr_grammar *grammar, const char *text, int32_t *ids, size_t count) {
    int32_t *more;
    size_t there, i = 0;
    bool ends;
    require(fr_tokenize(tokenizer, text, strlen(text), false, true, &more, &there));
    for (; i < there && count + i < MOST && is_allowed(grammar, ids, count + i, more[i], &ends); i++)
        ids[count + i] = more[i];
    fr_free(more);
    return i == there ? count + there : count;
}

/* Appends a text that ends a string, a value or the reasoning, if the grammar allows such a text here. */
static size_t try_end(fr_grammar *grammar, uint64_t *state, int32_t *ids, size_t count) {
    static const char *const ends[] = {"\"",       "<|\"|>",    "</arg_value>", "\n</parameter>\n", "</parameter>\n",
                                       "</think>", "<channel|>"};
    for (size_t first = fr_chance(state, COUNT_OF(ends)), i = 0; i < COUNT_OF(ends); i++) {
        size_t longer = try_text(grammar, ends[(first + i) % COUNT_OF(ends)], ids, count);
        if (longer > count) return longer;
    }
    return count;
}

static int32_t draw(const uint64_t *bits, uint64_t *state) {
    size_t vocab = fr_tokenizer_count(tokenizer), count = 0;
    for (size_t id = 0; id < vocab; id++) count += bits[id / 64] >> (id % 64) & 1;
    if (count == 0) return -1;
    size_t chosen = fr_chance(state, count), id = 0;
    for (; id < vocab; id++)
        if (bits[id / 64] >> (id % 64) & 1 && chosen-- == 0) break;
    return (int32_t)id;
}

/* Makes a random text that the grammar allows, and writes its ids. Returns their number. */
static size_t walk(fr_grammar *grammar, uint64_t *state, int32_t *ids) {
    size_t count = 0;
    while (count < MOST) {
        const uint64_t *bits;
        bool ends;
        size_t longer = count && fr_chance(state, 3) == 0 ? try_end(grammar, state, ids, count) : count;
        if (longer > count) {
            count = longer;
            continue;
        }
        require(fr_grammar_allowed(grammar, ids, count, &bits, &ends));
        int32_t id = draw(bits, state);
        if (ends && (id < 0 || fr_chance(state, 2) == 0)) return count;
        ck_assert_int_ge(id, 0);
        ids[count++] = id;
    }
    return 0;
}

static json_t *read_reply(const char *options, const int32_t *ids, size_t count) {
    fr_reply_parser *parser;
    char *json;
    size_t length;
    require(fr_reply_parser_new(tokenizer, NULL, NULL, &parser));
    require(fr_reply_parser_begin(parser, NULL, options, true, 1));
    for (size_t i = 0; i < count; i++) require(fr_reply_parser_feed(parser, ids[i]));
    require(fr_reply_parser_finish(parser));
    require(fr_reply_parser_message(parser, &json, &length));
    json_t *message = json_loadb(json, length, JSON_ALLOW_NUL, NULL);
    fr_free(json);
    fr_reply_parser_free(parser);
    return message;
}

static bool is_word(const json_t *value, const char *word) {
    return json_is_string(value) && strcmp(json_string_value(value), word) == 0;
}

/* Returns true if the arguments of a call fit the schema of the tool "look-up". */
static bool is_looked_up(const json_t *a) {
    const json_t *unit = json_object_get(a, "unit"), *days = json_object_get(a, "days"), *value;
    const json_t *on = json_object_get(json_object_get(a, "more"), "on");
    bool good = json_is_string(json_object_get(a, "what")) && (is_word(unit, "c") || is_word(unit, "<f>"));
    good &= !days || (json_is_integer(days) && json_integer_value(days) >= 1 && json_integer_value(days) <= 9);
    good &= json_is_array(on) && json_array_size(on) <= 3;
    size_t i;
    json_array_foreach (on, i, value) good &= json_is_boolean(value);
    return good && json_object_size(a) == 3 + (size_t)(days != NULL);
}

static void check_call(const json_t *call, const char *only, const char *whole) {
    const json_t *function = json_object_get(call, "function"), *name = json_object_get(function, "name");
    json_t *arguments = json_loads(json_string_value(json_object_get(function, "arguments")), 0, NULL);
    ck_assert_msg(arguments && (!only || is_word(name, only)), "%s", whole);
    if (is_word(name, "now"))
        ck_assert_msg(json_object_size(arguments) == 0, "%s", whole);
    else
        ck_assert_msg(is_word(name, "look-up") && is_looked_up(arguments), "%s", whole);
    json_decref(arguments);
}

static fr_grammar *open_reply(const fr_reply_rule *rule) {
    fr_grammar *grammar;
    require(fr_grammar_open_reply(tree, rule, &grammar));
    return grammar;
}

/* Makes random replies that the grammar allows. Checks that each consists of calls and has nothing else. */
static void check_calls(const char *only, bool several, uint64_t seed) {
    fr_grammar *grammar = open_reply(
        &(fr_reply_rule){.options_json = tools, .calls = FR_REPLY_CALLS_MUST, .tool = only, .several = several});
    size_t ended = 0, most = 0;
    for (int i = 0; i < WALKS; i++) {
        int32_t ids[MOST];
        size_t count = walk(grammar, &seed, ids);
        if (!count) continue;
        json_t *message = read_reply(tools, ids, count);
        const json_t *calls = json_object_get(message, "tool_calls"), *call,
                     *said = json_object_get(message, "content");
        char *whole = json_dumps(message, 0);
        size_t at;
        ended++;
        ck_assert_msg(json_array_size(calls) >= 1 && !json_string_length(said), "%s", whole);
        if (json_array_size(calls) > most) most = json_array_size(calls);
        json_array_foreach (calls, at, call) check_call(call, only, whole);
        free(whole);
        json_decref(message);
    }
    fr_grammar_close(grammar);
    ck_assert_msg(ended >= WALKS / 2, "%s %d: %zu", only ? only : "any", several, ended);
    ck_assert_msg(several ? most > 1 : most == 1, "%s, %zu calls at most", only ? only : "any", most);
}

START_TEST(calls_of_tools) {
    open_model(&models[_i]);
    check_calls(NULL, models[_i].several, 1);
    check_calls("look-up", false, 2);
    check_calls("now", false, 3);
    close_model();
}
END_TEST

/* With FR_REPLY_CALLS_MAY a reply has either calls, or content that fits a schema. The random replies of this test must
 * include both kinds. */
START_TEST(contents_or_calls) {
    static const char schema[] = "{\"enum\": [{\"a\": 1}, [\"b\"]]}";
    open_model(&models[_i]);
    fr_grammar *grammar = open_reply(&(fr_reply_rule){.options_json = tools,
                                                      .calls = FR_REPLY_CALLS_MAY,
                                                      .kind = FR_GRAMMAR_JSON_SCHEMA,
                                                      .text = schema,
                                                      .length = sizeof schema - 1});
    size_t calls = 0, contents = 0;
    uint64_t seed = 4;
    for (int i = 0; i < 40; i++) {
        int32_t ids[MOST];
        size_t count = walk(grammar, &seed, ids);
        if (!count) continue;
        json_t *message = read_reply(tools, ids, count);
        const json_t *said = json_object_get(message, "content");
        char *whole = json_dumps(message, 0);
        if (json_object_get(message, "tool_calls")) {
            calls++;
            check_call(json_array_get(json_object_get(message, "tool_calls"), 0), NULL, whole);
        } else {
            contents++;
            ck_assert_msg(is_word(said, "{\"a\":1}") || is_word(said, "[\"b\"]"), "%s", whole);
        }
        free(whole);
        json_decref(message);
    }
    ck_assert_msg(calls && contents, "%zu calls, %zu contents", calls, contents);
    fr_grammar_close(grammar);
    close_model();
}
END_TEST

/* If thinking is off, these templates end the reasoning already in the prompt. So the grammar must apply from the
 * reply's first token on, and it must not allow another reasoning. */
START_TEST(no_thought_behind_thoughts) {
    static const char off[] = "{\"enable_thinking\": false, \"thinking\": false, \"add_generation_prompt\": true}";
    static const char *const thoughts[] = {"<think>", "<|channel>"};
    fr_marked_text prompt = {0};
    open_model(&models[_i]);
    require(fr_chat_render(tokenizer, "[{\"role\": \"user\", \"content\": \"hi\"}]", off, &prompt));
    for (int must = 0; must < 2; must++) {
        fr_grammar *grammar = open_reply(&(fr_reply_rule){.prompt = &prompt,
                                                          .options_json = must ? tools : NULL,
                                                          .calls = must ? FR_REPLY_CALLS_MUST : FR_REPLY_CALLS_NONE,
                                                          .kind = FR_GRAMMAR_REGEX,
                                                          .text = "yes",
                                                          .length = 3});
        bool ends, thinks = strstr(models[_i].template, "llama") != NULL;
        for (size_t i = 0; i < COUNT_OF(thoughts); i++) {
            int32_t *ids;
            size_t count;
            require(fr_tokenize(tokenizer, thoughts[i], strlen(thoughts[i]), false, true, &ids, &count));
            ck_assert_msg(count > 1 || !is_allowed(grammar, NULL, 0, ids[0], &ends), "%s", prompt.text);
            thinks |= count == 1;
            fr_free(ids);
        }
        ck_assert(thinks); /* the vocabulary has one of these marks as a token */
        fr_grammar_close(grammar);
    }
    fr_marked_text_free(&prompt);
    close_model();
}
END_TEST

/* Requests for calls that must be refused. */
START_TEST(refused) {
    static const struct {
        const char *options, *tool, *says;
        fr_status status;
    } cases[] = {
        {NULL, NULL, "there is no tool to be called", FR_INPUT},
        {"{\"tools\": []}", NULL, "there is no tool to be called", FR_INPUT},
        {"{\"tools\": [{\"name\": \"f\"}]}", "g", "there is no tool \"g\"", FR_INPUT},
        {"{\"tools\": [{\"name\": \"f g\"}]}", NULL, "tools[0] has no name of letters", FR_INPUT},
        {"{\"tools\": [{\"name\": \"f\", \"strict\": true, \"parameters\": {\"properties\": {\"a\": {\"type\": "
         "\"array\", "
         "\"$dynamicRef\": \"#b\"}}}}]}",
         NULL, "tools[0].function.parameters: schema, at #", FR_UNBUILT},
    };
    open_model(&models[_i]);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fr_grammar *grammar;
        const fr_reply_rule rule = {
            .options_json = cases[i].options, .calls = FR_REPLY_CALLS_MUST, .tool = cases[i].tool};
        ck_assert_int_eq(fr_grammar_open_reply(tree, &rule, &grammar), cases[i].status);
        ck_assert_msg(strstr(fr_last_error(), cases[i].says), "%s", fr_last_error());
        ck_assert_ptr_null(grammar);
    }
    close_model();
}
END_TEST

/* A part of a schema with four choices, each of which is a reference to the part itself. */
#define ITSELF "{'$ref': '#/properties/a'}, "
#define SELF   ITSELF ITSELF ITSELF ITSELF

/* The grammar can't enforce these schemas. For a strict tool such a schema is refused in every call format, and the
 * error line gives the position in the schema. For other tools the schema is accepted and not enforced. Only the errors
 * in `heeded_always` refuse a schema for every tool. */
#define TOOL(parameters) "{'tools': [{'name': 'f', 'strict': true, 'parameters': " parameters "}]}"
#define TAGGED           true

static const struct {
    bool tagged; /* true: refused only in call formats that write each argument separately */
    const char *options, *says;
} unsaid[] = {
    {false, TOOL("{'properties': {'a': {'enum': ['x\\u0000y']}}}"), "#/properties/a/enum/0: a text with a NUL"},
    {false, TOOL("{'properties': {'a': {'type': 'string', 'pattern': '^a\\u0000b'}}}"),
     "#/properties/a/pattern: a text with a NUL"},
    {false, TOOL("[1]"), "schema, at #: "},
    {false, TOOL("true"), "schema, at #: "},
    {false, TOOL("{'type': ['array', 'null']}"), "#/type: "},
    {false, TOOL("{'properties': [1]}"), "#/properties: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'required': 'a'}"), "#/required: "},
    {false, TOOL("{'properties': {'a': {'type': 'integer', 'minimum': 'x'}}}"), "#/properties/a/minimum"},
    {false, TOOL("{'properties': {'a': {}}, '$dynamicRef': '#a'}"), "#/$dynamicRef"},
    {false, "{'tools': [{'name': 'f\\u0000g'}]}", "tools[0] has no name"},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'required': ['a', 'b']}"), "#/required/1: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'dependentRequired': {'a': ['a']}}"), "#/dependentRequired: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'dependentSchemas': {'a': {}}}"), "#/dependentSchemas: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'dependencies': {'a': ['a']}}"), "#/dependencies: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'minProperties': 1}"), "#/minProperties: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'maxProperties': 1}"), "#/maxProperties: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'propertyNames': {'pattern': '^a'}}"), "#/propertyNames: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'enum': [{'a': 1}]}"), "#/enum: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'const': {'a': 1}}"), "#/const: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'then': {}}"), "#/then: "},
    {TAGGED, TOOL("{'properties': {'a>b': {}}}"), "#/properties/a>b: "},
    {TAGGED, TOOL("{'properties': {'': {}}}"), "#/properties/: "},
    {TAGGED, TOOL("{'properties': {'a': {'type': ['string', 'integer'], 'maxLength': 3}}}"),
     "#/properties/a/maxLength: "},
    {TAGGED, TOOL("{'properties': {'a': {'type': 'string', 'not': {'enum': ['x']}}}}"), "#/properties/a/not: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'anyOf': [{'not': {'required': ['a']}}, {}]}"), "#/anyOf/0/not: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'anyOf': [{'minProperties': 1}]}"), "#/anyOf/0/minProperties: "},
    {TAGGED, TOOL("{'properties': {'a': {}}, 'if': {'required': ['a']}, 'then': {}}"), "#/if: "},
    {TAGGED, TOOL("{'$ref': '#/$defs/x', '$defs': {'x': {'const': {}}}}"), "#/$ref/const: "},
    {TAGGED, TOOL("{'properties': {'a': {}, 'b': {}}, 'oneOf': [{'required': ['a']}, {'required': ['b', 'a']}]}"),
     "#/oneOf: choices that may match"},
    {TAGGED, TOOL("{'anyOf': [{'required': ['b']}]}"), "#/required: a name that is not in properties"},
    {TAGGED, TOOL("{'properties': {'a': {'type': 'string', 'enum': []}}}"), "#/properties/a: "},
    {TAGGED, TOOL("{'properties': {'a': {'type': 'string', 'enum': ['x'], 'const': 'y'}}}"), "#/properties/a: "},
    {TAGGED, TOOL("{'properties': {'a': {'anyOf': [{'enum': ['null']}, {'type': 'null'}]}}}"),
     "#/properties/a/anyOf/0/enum/0: "},
    {TAGGED, TOOL("{'properties': {'a': {'anyOf': [{'type': 'string'}, {'type': 'integer', 'minimum': 2}]}}}"),
     "#/properties/a/anyOf/1/minimum: "},
    {TAGGED, TOOL("{'properties': {'a': {'anyOf': [{'type': 'string'}, {'$ref': '#/properties/a'}]}}}"),
     "#/properties/a/anyOf/1/anyOf/1"},
    {TAGGED, TOOL("{'properties': {'a': {'anyOf': [" SELF SELF SELF "{'$ref': '#/properties/a'}]}}}"),
     "#/properties/a: "},
    {TAGGED, TOOL("{'properties': {'a': {'type': 'string', 'enum': ['a</parameter>', 'a</arg_value>']}}}"),
     "#/properties/a/enum/"},
};

static char *with_quotes(const char *text) {
    char *copy = strdup(text);
    for (char *at = copy; *at; at++)
        if (*at == '\'') *at = '"';
    return copy;
}

/* These errors refuse a tool even if the tool is not strict. */
static const char *const heeded_always[] = {"with a NUL", "parameters are", "too many steps to read"};

START_TEST(refused_by_place) {
    const struct model *model = &models[_i];
    bool tagged = strstr(model->template, "glm") || strstr(model->template, "qwen3.5");
    open_model(model);
    for (size_t i = 0; i < COUNT_OF(unsaid); i++) {
        fr_grammar *grammar;
        if (unsaid[i].tagged && !tagged) continue;
        char *options = with_quotes(unsaid[i].options);
        fr_status status = fr_grammar_open_reply(
            tree, &(fr_reply_rule){.options_json = options, .calls = FR_REPLY_CALLS_MUST}, &grammar);
        ck_assert_msg(status == FR_INPUT || status == FR_UNBUILT, "%s: %s", options, fr_status_name(status));
        ck_assert_msg(strstr(fr_last_error(), unsaid[i].says), "%s: %s", options, fr_last_error());
        char *strict = strstr(options, "\"strict\": true");
        bool heeded = strict != NULL;
        for (size_t k = 0; k < COUNT_OF(heeded_always); k++) heeded &= !strstr(fr_last_error(), heeded_always[k]);
        if (heeded) {
            memset(strict, ' ', sizeof "\"strict\": true, " - 1 - 1);
            strict[sizeof "\"strict\": true" - 1] = ' ';
            fr_grammar_close(open_reply(&(fr_reply_rule){.options_json = options, .calls = FR_REPLY_CALLS_MUST}));
        }
        free(options);
    }
    close_model();
}
END_TEST

/* Schemas of a single argument. For each, `is` lists the values that the grammar allows, as they are read from the
 * call. */
static const struct {
    const char *schema, *is[4]; /* if `is` is empty, any text is allowed */
} values[] = {
    {"{'$ref': '#/$defs/unit', 'title': 't'}", {"\"c\"", "\"f\""}},
    {"{'allOf': [{'$ref': '#/$defs/unit'}], 'default': 'c'}", {"\"c\"", "\"f\""}},
    {"{'type': 'string', 'enum': ['a', 'b', 3], 'const': 'b'}", {"\"b\""}},
    {"{'type': ['string', 'null'], 'enum': ['a', null, 4]}", {"\"a\"", "null"}},
    {"{'anyOf': [{'$ref': '#/$defs/unit'}, {'type': 'null'}]}", {"\"c\"", "\"f\"", "null"}},
    {"{'anyOf': [{'const': 'x'}, {'type': 'integer', 'minimum': 3, 'maximum': 4}]}", {"\"x\"", "3", "4"}},
    {"{'enum': ['a b', [1], {'k': 'v'}]}", {"\"a b\"", "[1]", "{\"k\": \"v\"}"}},
    {"{'type': 'boolean'}", {"true", "false"}},
    {"{'enum': [123456789012345678901234567890, [-18446744073709551616], 'x']}",
     {"123456789012345678901234567890", "[-18446744073709551616]", "\"x\""}},
    {"{'type': 'integer', 'minimum': 18446744073709551615, 'maximum': 18446744073709551616}",
     {"18446744073709551615", "18446744073709551616"}},
    {"{'type': 'string'}", {NULL}},
    {"{'type': 'string', 'pattern': '^[xy]$'}", {"\"x\"", "\"y\""}},
    {"{'type': 'string', 'pattern': '^(a|</a)', 'maxLength': 1}", {"\"a\""}},
    {"{'type': ['string', 'null'], 'pattern': '^b{2,3}$', 'minLength': 3}", {"\"bbb\"", "null"}},
    {"{'type': 'string', 'format': 'date', 'pattern': '2024-02-29'}", {"\"2024-02-29\""}},
    {"{'type': 'string', 'enum': ['a', 'b'], 'format': 'date'}", {"\"a\"", "\"b\""}},
    {"{'oneOf': [{'const': 'p'}, {'type': 'boolean'}]}", {"\"p\"", "true", "false"}},
    {"{'anyOf': [{'type': 'string'}, {'type': 'null'}]}", {NULL}},
};

static bool is_one_of(const json_t *value, const char *const *list) {
    char *text;
    size_t length;
    require(fr_json_dump(value, JSON_ENCODE_ANY, "a value", &text, &length));
    bool found = !*list && (json_is_string(value) || json_is_null(value));
    for (size_t i = 0; i < 4 && list[i]; i++) found |= strcmp(text, list[i]) == 0;
    free(text);
    return found;
}

/* Makes a random reply with a call. Returns the call's arguments, or NULL if the reply did not end. Sets *said to the
 * text of the arguments. */
static json_t *walk_to_arguments(fr_grammar *grammar, const char *options, uint64_t *seed, char **said) {
    int32_t ids[MOST];
    size_t count = walk(grammar, seed, ids);
    if (!count) return NULL;
    json_t *message = read_reply(options, ids, count);
    const json_t *call = json_array_get(json_object_get(message, "tool_calls"), 0);
    const char *text = json_string_value(json_object_get(json_object_get(call, "function"), "arguments"));
    json_error_t error;
    json_t *arguments = fr_json_load_wide(text ? text : "", text ? strlen(text) : 0, 0, &error);
    *said = strdup(text ? text : "no call");
    json_decref(message);
    return arguments ? arguments : json_null();
}

static size_t check_values(fr_grammar *grammar, const char *options, size_t which, uint64_t seed) {
    size_t ended = 0;
    for (int i = 0; i < WALKS; i++) {
        char *said;
        json_t *arguments = walk_to_arguments(grammar, options, &seed, &said);
        if (!arguments) continue;
        bool good = is_one_of(json_object_get(arguments, "a"), values[which].is);
        ck_assert_msg(good, "%s: %s", values[which].schema, said);
        ended++;
        free(said);
        json_decref(arguments);
    }
    return ended;
}

START_TEST(values_of_arguments) {
    open_model(&models[_i]);
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        char options[600];
        snprintf(options, sizeof options,
                 "{'tools': [{'name': 'f', 'parameters': {'properties': {'a': %s}, 'required': ['a'], '$defs': "
                 "{'unit': {'type': 'string', 'enum': ['c', 'f']}}}}]}",
                 values[i].schema);
        char *quoted = with_quotes(options);
        fr_grammar *grammar = open_reply(&(fr_reply_rule){.options_json = quoted, .calls = FR_REPLY_CALLS_MUST});
        ck_assert_uint_ge(check_values(grammar, quoted, i, 9 + i), WALKS / 4);
        fr_grammar_close(grammar);
        free(quoted);
    }
    close_model();
}
END_TEST

/* Schemas of all parameters of a tool. For each, `is` lists the arguments that the grammar allows in any call
 * format. */
static const struct {
    const char *parameters, *is[6];
} roots[] = {
    {"{'$ref': '#/$defs/N', '$defs': {'N': {'type': 'object', 'properties': {'v': {'enum': [1, 2]}}, 'required': "
     "['v'], 'additionalProperties': false}}}",
     {"{\"v\":1}", "{\"v\":2}"}},
    {"{'anyOf': [{'type': 'object', 'properties': {'k': {'const': 'a'}, 'x': {'const': 1}}, 'required': ['k', 'x'], "
     "'additionalProperties': false}, {'type': 'object', 'properties': {'k': {'const': 'b'}, 'y': {'type': "
     "'boolean'}}, 'required': ['k'], 'additionalProperties': false}]}",
     {"{\"k\":\"a\",\"x\":1}", "{\"k\":\"b\"}", "{\"k\":\"b\",\"y\":true}", "{\"k\":\"b\",\"y\":false}"}},
    {"{'type': 'object', 'properties': {'x': {'const': 1}, 'y': {'const': 2}}, 'additionalProperties': false, 'anyOf': "
     "[{'required': ['x']}, {'required': ['y']}]}",
     {"{\"x\":1}", "{\"y\":2}", "{\"x\":1,\"y\":2}"}},
    {"{'allOf': [{'type': 'object', 'properties': {'x': {'const': 1}}, 'required': ['x']}, {'properties': {'y': "
     "{'const': 'z'}}, 'required': ['y']}]}",
     {"{\"x\":1,\"y\":\"z\"}"}},
    {"{'type': ['object', 'null'], 'properties': {'x': {'const': true}}, 'required': ['x']}", {"{\"x\":true}"}},
    /* The grammar enforces the following schemas exactly, but only for strict tools. */
    {"{'type': 'object', 'properties': {'x': {'const': 1}, 'y': {'const': 2}}, 'additionalProperties': false, 'oneOf': "
     "[{'required': ['x']}, {'required': ['y']}]}",
     {"{\"x\":1}", "{\"y\":2}"}},
    {"{'type': 'object', 'properties': {'x': {'const': 1}}, 'additionalProperties': false, 'anyOf': [{'properties': "
     "{'y': {'const': 2}}, 'required': ['y']}, {'properties': {'z': {'const': 3}}, 'required': ['x']}]}",
     {"{\"x\":1}"}},
    {"{'oneOf': [{'type': 'object', 'properties': {'k': {'const': 'a'}, 'n': {'enum': [1, 2]}}, 'required': ['k', "
     "'n'], 'additionalProperties': false}, {'type': 'object', 'properties': {'k': {'const': 'b'}}, 'required': ['k'], "
     "'additionalProperties': false}, {'type': 'null'}]}",
     {"{\"k\":\"a\",\"n\":1}", "{\"k\":\"a\",\"n\":2}", "{\"k\":\"b\"}"}},
};
enum { LOOSE_ROOTS = 3 };

START_TEST(roots_of_parameters) {
    open_model(&models[_i]);
    for (size_t i = 0; i < 2 * COUNT_OF(roots) - LOOSE_ROOTS; i++) {
        char options[900];
        size_t ended = 0;
        uint64_t seed = 31 + i;
        bool tool_strict = i >= COUNT_OF(roots) - LOOSE_ROOTS;
        const size_t which = tool_strict ? i - (COUNT_OF(roots) - LOOSE_ROOTS) : i;
        snprintf(options, sizeof options, "{'tools': [{'name': 'f', 'strict': %s, 'parameters': %s}]}",
                 tool_strict ? "true" : "false", roots[which].parameters);
        char *quoted = with_quotes(options);
        fr_grammar *grammar = open_reply(&(fr_reply_rule){.options_json = quoted, .calls = FR_REPLY_CALLS_MUST});
        for (int walked = 0; walked < WALKS; walked++) {
            char *said;
            json_t *arguments = walk_to_arguments(grammar, quoted, &seed, &said);
            if (!arguments) continue;
            char *text = json_dumps(arguments, JSON_COMPACT | JSON_SORT_KEYS);
            bool good = false;
            for (size_t k = 0; k < COUNT_OF(roots[which].is) && roots[which].is[k]; k++)
                good |= text && strcmp(text, roots[which].is[k]) == 0;
            ck_assert_msg(good, "%s: %s", options, said);
            ended++;
            free(text);
            free(said);
            json_decref(arguments);
        }
        ck_assert_uint_ge(ended, WALKS / 4);
        fr_grammar_close(grammar);
        free(quoted);
    }
    close_model();
}
END_TEST

/* A request may have 128 tools, for example those of several MCP servers. Their schemas may have the bounds, formats
 * and patterns that schema libraries write. Such a grammar must open. */
START_TEST(many_tools) {
    static const char properties[] =
        "'email': {'type': 'string', 'format': 'email', 'pattern': '^(?!\\\\.)[a-zA-Z.]+@([a-z]+\\\\.)+[a-z]{2,}$'}, "
        "'url': {'type': 'string', 'format': 'uri', 'minLength': 1, 'maxLength': 2083}, "
        "'when': {'type': 'string', 'format': 'date-time'}, 'more': {'$ref': '#/definitions/nowhere'}, "
        "'tags': {'type': 'array', 'items': {'type': 'string', 'maxLength': 100}, 'maxItems': 100000}, "
        "'other': {'type': 'object', 'additionalProperties': {'type': 'string'}}, "
        "'bad': {'type': 'string', 'pattern': '(?>x)', 'required': true}";
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    fputs("{'tools': [", out);
    for (int i = 0; i < 128; i++)
        fprintf(out, "%s{'name': 't%d', 'parameters': {'type': 'object', 'properties': {%s}}}", i ? ", " : "", i,
                properties);
    fputs("]}", out);
    fclose(out);
    char *quoted = with_quotes(text);
    open_model(&models[_i]);
    fr_grammar_close(open_reply(&(fr_reply_rule){.options_json = quoted, .calls = FR_REPLY_CALLS_MUST}));
    close_model();
    free(quoted);
    free(text);
}
END_TEST

/* To read these tools, the library would have to compare tens of thousands of required names with as many properties.
 * It must refuse them quickly. */
START_TEST(hostile_tools) {
    open_model(&models[2]);
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    fputs("{\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":", out);
    fputs("{\"type\":\"object\",\"required\":[", out);
    for (int i = 0; i < 40000; i++) fprintf(out, "%s\"p%d\"", i ? "," : "", i % 16000);
    fputs("],\"properties\":{", out);
    for (int i = 0; i < 16000; i++) fprintf(out, "%s\"p%d\":{\"type\":\"string\"}", i ? "," : "", i);
    fputs("}}}}]}", out);
    fclose(out);
    fr_grammar *grammar;
    const fr_reply_rule rule = {.options_json = text, .calls = FR_REPLY_CALLS_MUST};
    ck_assert_int_eq(fr_grammar_open_reply(tree, &rule, &grammar), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), "too large") != NULL, "%s", fr_last_error());
    free(text);
    close_model();
}
END_TEST

FR_SUITE("reply_grammar") {
    TCase *tcase = tcase_create("all");
    tcase_set_timeout(tcase, 240);
    tcase_add_loop_test(tcase, calls_of_tools, 0, COUNT_OF(models));
    tcase_add_loop_test(tcase, contents_or_calls, 0, PUBLISHED);
    tcase_add_loop_test(tcase, no_thought_behind_thoughts, 0, PUBLISHED);
    tcase_add_loop_test(tcase, refused, 0, PUBLISHED);
    tcase_add_loop_test(tcase, refused_by_place, 0, PUBLISHED);
    tcase_add_loop_test(tcase, values_of_arguments, 0, PUBLISHED);
    tcase_add_loop_test(tcase, roots_of_parameters, 0, COUNT_OF(models));
    tcase_add_loop_test(tcase, many_tools, 0, COUNT_OF(models));
    tcase_add_test(tcase, hostile_tools);
    suite_add_tcase(suite, tcase);
}
