/* libFuzzer's target for chat templates. The input is a template, or the variables of templates.
 *
 * In: any bytes. If they begin with '{' and '"', they are a JSON object of messages, tools and more. Each template of
 * tests/data/chat/templates renders it. Otherwise the bytes are a template, which is rendered with one rich set of
 * variables. Out: a crash if a sanitizer finds an error, or if a trusted span of the result is outside of the text. */
#include <jansson.h>

#include "formats/json.h"
#include "src/language/jinja/template.h"
#include "tests/fuzz/harness.h"

static const char context[] =
    "{\"t\": \"two words\", \"e\": \"\", \"u\": \"\\u00c4\\u00f6\\u00df \\u65e5 \\ud83d\\ude00\", \"z\": \"a\\u0000b\","
    " \"n\": 7, \"f\": 2.5, \"yes\": true, \"nil\": null, \"l\": [3, 1, 2], \"s\": [\"b\", \"A\", \"c\"],"
    " \"d\": {\"b\": 1, \"A\": {\"x\": [1, \"two\", null]}}, \"tree\": [{\"v\": 1, \"k\": [{\"v\": 2, \"k\": []}]}],"
    " \"messages\": [{\"role\": \"system\", \"content\": \"S\"}, {\"role\": \"user\", \"content\": \"U\"},"
    " {\"role\": \"assistant\", \"content\": \"<think>x</think>A\", \"tool_calls\": [{\"function\": {\"name\": \"f\","
    " \"arguments\": {\"a\": [1, {\"b\": \"c\"}]}}}]}, {\"role\": \"tool\", \"content\": [{\"type\": \"text\","
    " \"text\": \"T\"}]}], \"tools\": [{\"function\": {\"name\": \"f\", \"description\": \"D\", \"parameters\":"
    " {\"properties\": {\"a\": {\"type\": \"string\"}}, \"required\": [\"a\"]}}}], \"w\": 12345678901234567890,"
    " \"v\": -123456789012345678901234567890}";

static const char *const folder = "tests/data/chat/templates/";
static const char *const names[] = {"gemma4", "glm4.6", "glm4.7", "qwen3.5", "deepseek-v3.1", "llama3.1"};
enum { NAMES = sizeof names / sizeof *names };

/* Checks that the spans are in ascending order, don't overlap, and are inside the text. */
static void check(const fr_marked_text *text) {
    size_t behind = 0;
    if (text->text[text->length] != '\0') abort();
    for (size_t i = 0; i < text->trusted_count; i++) {
        fr_span span = text->trusted[i];
        if (span.begin >= span.end || span.end > text->length || (i > 0 && span.begin <= behind)) abort();
        behind = span.end;
    }
}

static void render(const fr_template *template, const json_t *given) {
    static json_t *own;
    fr_marked_text text;
    if (!own) own = json_pack("{s: s, s: s}", "bos_token", "<s>", "eos_token", "</s>");
    if (refused(fr_template_render(template, own, given, 1767323045, &text))) return;
    fuzz_inputs_read++;
    check(&text);
    fr_marked_text_free(&text);
}

static void run_template(const uint8_t *bytes, size_t size) {
    static json_t *given;
    fr_template *template;
    if (!given && fr_json_parse_texts(context, strlen(context), "context", &given) != FR_OK)
        die("can't read", "the context");
    if (refused(fr_template_compile((const char *)bytes, size, "t", &template))) return;
    render(template, given);
    fr_template_close(template);
}

static void open_templates(fr_template *templates[NAMES]) {
    for (size_t i = 0; i < NAMES; i++) {
        char path[100];
        snprintf(path, sizeof path, "%s%s.jinja", folder, names[i]);
        blob source = read_blob(path);
        if (fr_template_compile((const char *)source.bytes, source.size, names[i], &templates[i]) != FR_OK)
            die(fr_last_error(), "");
        free(source.bytes);
    }
}

static void run_variables(const uint8_t *bytes, size_t size) {
    static fr_template *templates[NAMES];
    json_t *given;
    if (refused(fr_json_parse_texts((const char *)bytes, size, "given", &given))) return;
    if (!templates[0]) open_templates(templates);
    for (size_t i = 0; given && i < NAMES; i++) render(templates[i], given);
    json_decref(given);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (size > 1 && bytes[0] == '{' && bytes[1] == '"')
        run_variables(bytes, size);
    else
        run_template(bytes, size);
    return 0;
}
