/* Finds out which features a chat template supports (caps.h). It renders small conversations with words that occur
 * nowhere else, and looks for these words in the prompt. Two features always count as supported, because the library
 * itself converts between the forms. These are contents as text or as parts, and arguments as text or as objects. All
 * other features depend on the template. */
#include "tools/serve/caps.h"

#include <string.h>

#include "forerun_lab.h"
#include "tools/cli/output.h"

#define USER "{\"role\": \"user\", \"content\": \"hello\"}"
#define CALL(name)                                                                            \
    "{\"id\": \"call00001\", \"type\": \"function\", \"function\": {\"name\": \"" name "\", " \
    "\"arguments\": {\"a\": 1}}}"
#define CALLS(calls)                                                                         \
    "[" USER ", {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [" calls "]}, " \
    "{\"role\": \"tool\", \"tool_call_id\": \"call00001\", \"name\": \"zebra\", "            \
    "\"content\": \"1\"}, " USER "]"
#define AS_IT_IS "{\"rearrange\": false}"
#define TOOLS                                                                                            \
    "{\"rearrange\": false, \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"zebra\", "   \
    "\"description\": \"d\", \"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": " \
    "\"integer\"}}}}}]}"

/* Returns true if the rendered conversation has both words. */
static bool shows(const fr_tokenizer *tokenizer, const char *messages, const char *options, const char *one,
                  const char *other) {
    fr_marked_text text = {0};
    bool rendered = fr_chat_render(tokenizer, messages, options, &text) == FR_OK;
    bool shown = rendered && strstr(text.text, one) && strstr(text.text, other);
    fr_marked_text_free(&text);
    return shown;
}

bool fr_caps_reasons(const fr_tokenizer *tokenizer) {
    fr_marked_text text = {0};
    fr_lab_reply_budget *budget = NULL;
    fr_status status = fr_chat_render(tokenizer, "[" USER "]", NULL, &text);
    if (status == FR_OK) status = fr_lab_reply_budget_open(tokenizer, NULL, &text, 0, 1, &budget);
    /* it is enough that the template has marks of reasoning, even if reasoning can't be forced */
    bool reasons = budget || status == FR_UNBUILT;
    fr_lab_reply_budget_close(budget);
    fr_marked_text_free(&text);
    return reasons;
}

json_t *fr_caps_of(const fr_tokenizer *tokenizer) {
    static const struct {
        const char *name, *messages, *options, *one, *other;
    } probes[] = {
        {"supports_string_content", "[" USER "]", AS_IT_IS, "hello", "hello"},
        {"supports_typed_content", "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"hello\"}]}]",
         AS_IT_IS, "hello", "hello"},
        {"supports_system_role", "[{\"role\": \"system\", \"content\": \"quagga\"}, " USER "]", AS_IT_IS, "quagga",
         "hello"},
        {"supports_tools", "[" USER "]", TOOLS, "zebra", "hello"},
        {"supports_tool_calls", CALLS(CALL("zebra")), AS_IT_IS, "zebra", "hello"},
        {"supports_parallel_tool_calls", CALLS(CALL("zebra") ", " CALL("okapi")), AS_IT_IS, "zebra", "okapi"},
        {"supports_object_arguments", CALLS(CALL("zebra")), AS_IT_IS, "zebra", "hello"},
        {"supports_preserve_reasoning",
         "[" USER ", {\"role\": \"assistant\", \"reasoning_content\": \"quagga\", \"content\": \"okapi\"}, " USER "]",
         AS_IT_IS, "quagga", "okapi"},
    };
    json_t *caps = json_object();
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++)
        fr_json_put(
            caps, probes[i].name,
            json_boolean(shows(tokenizer, probes[i].messages, probes[i].options, probes[i].one, probes[i].other)));
    return caps;
}
