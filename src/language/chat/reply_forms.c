/* Holds the table of forms (reply_forms.h). A template has the first form in the table all of whose words occur in the
 * template. */
#include "src/language/chat/reply_forms.h"

#include <string.h>

#include "src/language/chat/reply_call.h"
#include "src/language/tokenizer/tokenizer.h"

/* Parts that several rows have: DeepSeek's form, which templates show by different words, and tags that two forms
 * have. */
#define DEEPSEEK                                                                                     \
    .marks = {[FR_MARK_CALLS] = "<｜tool▁calls▁begin｜>",                                            \
              [FR_MARK_CALLS_END] = "<｜tool▁calls▁end｜>",                                          \
              [FR_MARK_CALL] = "<｜tool▁call▁begin｜>",                                              \
              [FR_MARK_NAME] = "<｜tool▁sep｜>",                                                     \
              [FR_MARK_CALL_END] = "<｜tool▁call▁end｜>"},                                           \
    .reader = &fr_read_section_call, .bare = "f", .names = true, .before = "<｜tool▁calls▁begin｜>", \
    .after = "<｜tool▁calls▁end｜>"
#define MISTRAL                                                                                         \
    .marks = {[FR_MARK_CALL] = "[TOOL_CALLS]", [FR_MARK_ID] = "[CALL_ID]", [FR_MARK_VALUE] = "[ARGS]"}, \
    .reader = &fr_read_named_call, .bare = "[", .names = true, .lists = true
#define FUNCTION_TAGS                                                                                 \
    [FR_MARK_NAME] = "<function=", [FR_MARK_NAME_END] = "</function>", [FR_MARK_KEY] = "<parameter=", \
    [FR_MARK_VALUE_END] = "</parameter>"
#define LFM2                                                                                                         \
    .marks = {[FR_MARK_CALL] = "<|tool_call_start|>", [FR_MARK_CALL_END] = "<|tool_call_end|>"},                     \
    .reader = &fr_read_python_call, .bare = "[", .lists = true, .own_token = true, .arguments = FR_ARGUMENTS_PYTHON, \
    .before = "<|tool_call_start|>[", .call = "$NAME($ARGUMENTS)", .between = ", ", .after = "]<|tool_call_end|>"
#define GRANITE                                                                                                 \
    .marks = {[FR_MARK_CALL] = "<|tool_call|>", [FR_MARK_CALLS] = "<tool_call>"}, .reader = &fr_read_json_call, \
    .bare = "[", .lists = true, .own_token = true, .before = "<|tool_call|>[",                                  \
    .call = "{\"name\": \"$NAME\", \"arguments\": $ARGUMENTS}", .between = ", ", .after = "]"

static const fr_call_form forms[] = {
    /* gpt-oss: a call is a message to a function, in a channel (reply_harmony.h) */
    {.words = {"<|channel|>", "<|message|>"},
     .marks = {[FR_MARK_MESSAGE] = "<|start|>",
               [FR_MARK_CHANNEL] = "<|channel|>",
               [FR_MARK_TYPE] = "<|constrain|>",
               [FR_MARK_BODY] = "<|message|>",
               [FR_MARK_BODY_END] = "<|end|>",
               [FR_MARK_CALL_END] = "<|call|>",
               [FR_MARK_RETURN] = "<|return|>"},
     .reader = &fr_read_harmony_call,
     .call = "<|channel|>commentary to=functions.$NAME <|constrain|>json<|message|>$ARGUMENTS"},

    /* Gemma 4 */
    {.words = {"<|tool_call>", "call:"},
     .marks = {[FR_MARK_CALL] = "<|tool_call>",
               [FR_MARK_CALL_END] = "<tool_call|>",
               [FR_MARK_QUOTE] = "<|\"|>",
               [FR_MARK_RESPONSE] = "<|tool_response>"},
     .reader = &fr_read_gemma_call,
     .bare = "c",
     .arguments = FR_ARGUMENTS_QUOTED,
     .call = "<|tool_call>call:$NAME$ARGUMENTS<tool_call|>",
     .between = ""},

    /* DeepSeek V3 and R1 have this form; V3.1 has the next one */
    {.words = {"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "```json"},
     DEEPSEEK,
     .call = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>$NAME\n```json\n$ARGUMENTS\n```<｜tool▁call▁end｜>",
     .between = "\n"},
    {.words = {"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"},
     DEEPSEEK,
     .call = "<｜tool▁call▁begin｜>$NAME<｜tool▁sep｜>$ARGUMENTS<｜tool▁call▁end｜>",
     .between = ""},

    /* Kimi K2: an id contains the function's name and the number of the call in the conversation */
    {.words = {"<|tool_calls_section_begin|>"},
     .marks = {[FR_MARK_CALLS] = "<|tool_calls_section_begin|>",
               [FR_MARK_CALLS_END] = "<|tool_calls_section_end|>",
               [FR_MARK_CALL] = "<|tool_call_begin|>",
               [FR_MARK_VALUE] = "<|tool_call_argument_begin|>",
               [FR_MARK_CALL_END] = "<|tool_call_end|>"},
     .reader = &fr_read_section_call,
     .bare = "f",
     .names = true,
     .own_token = true,
     .before = "<|tool_calls_section_begin|>",
     .call = "<|tool_call_begin|>functions.$NAME:$NUMBER<|tool_call_argument_begin|>$ARGUMENTS<|tool_call_end|>",
     .between = "",
     .after = "<|tool_calls_section_end|>"},

    /* GLM 4.5 and later */
    {.words = {"<tool_call>", "<arg_key>"},
     .marks = {[FR_MARK_CALL] = "<tool_call>",
               [FR_MARK_CALL_END] = "</tool_call>",
               [FR_MARK_KEY] = "<arg_key>",
               [FR_MARK_KEY_END] = "</arg_key>",
               [FR_MARK_VALUE] = "<arg_value>",
               [FR_MARK_VALUE_END] = "</arg_value>"},
     .reader = &fr_read_tagged_call,
     .names = true,
     .arguments = FR_ARGUMENTS_TAGGED,
     .call = "<tool_call>$NAME\n$ARGUMENTS</tool_call>",
     .argument = "<arg_key>$KEY</arg_key>\n<arg_value>$VALUE</arg_value>\n",
     .between = "\n"},

    /* Qwen 3.5, Qwen3 Coder */
    {.words = {"<tool_call>", "<function="},
     .marks = {[FR_MARK_CALL] = "<tool_call>", [FR_MARK_CALL_END] = "</tool_call>", FUNCTION_TAGS},
     .reader = &fr_read_tagged_call,
     .arguments = FR_ARGUMENTS_TAGGED,
     .call = "<tool_call>\n<function=$NAME>\n$ARGUMENTS</function>\n</tool_call>",
     .argument = "<parameter=$KEY>\n$VALUE\n</parameter>\n",
     .between = "\n"},

    /* Seed-OSS */
    {.words = {"<seed:tool_call>"},
     .marks = {[FR_MARK_CALL] = "<seed:tool_call>", [FR_MARK_CALL_END] = "</seed:tool_call>", FUNCTION_TAGS},
     .reader = &fr_read_tagged_call,
     .own_token = true,
     .arguments = FR_ARGUMENTS_TAGGED,
     .call = "<seed:tool_call>\n<function=$NAME>\n$ARGUMENTS</function>\n</seed:tool_call>",
     .argument = "<parameter=$KEY>$VALUE</parameter>\n",
     .between = "\n"},

    /* MiniMax M2 */
    {.words = {"<minimax:tool_call>"},
     .marks = {[FR_MARK_CALL] = "<minimax:tool_call>",
               [FR_MARK_CALL_END] = "</minimax:tool_call>",
               [FR_MARK_NAME] = "<invoke name=",
               [FR_MARK_NAME_END] = "</invoke>",
               [FR_MARK_KEY] = "<parameter name=",
               [FR_MARK_VALUE_END] = "</parameter>"},
     .reader = &fr_read_tagged_call,
     .own_token = true,
     .arguments = FR_ARGUMENTS_TAGGED,
     .before = "<minimax:tool_call>\n",
     .call = "<invoke name=\"$NAME\">\n$ARGUMENTS</invoke>\n",
     .argument = "<parameter name=\"$KEY\">$VALUE</parameter>\n",
     .between = "",
     .after = "</minimax:tool_call>"},

    /* Command R7B, Command A */
    {.words = {"<|START_ACTION|>"},
     .marks = {[FR_MARK_CALL] = "<|START_ACTION|>",
               [FR_MARK_CALL_END] = "<|END_ACTION|>",
               [FR_MARK_SAY] = "<|START_RESPONSE|>",
               [FR_MARK_SAY_END] = "<|END_RESPONSE|>",
               [FR_MARK_SAY_TEXT] = "<|START_TEXT|>",
               [FR_MARK_SAY_TEXT_END] = "<|END_TEXT|>"},
     .reader = &fr_read_json_call,
     .bare = "[",
     .lists = true,
     .own_token = true,
     .before = "<|START_ACTION|>[\n",
     .call = "    {\"tool_call_id\": \"$NUMBER\", \"tool_name\": \"$NAME\", \"parameters\": $ARGUMENTS}",
     .between = ",\n",
     .after = "\n]<|END_ACTION|>"},

    /* Command R */
    {.words = {"Action:", "```json", "tool_name"},
     .marks = {[FR_MARK_CALL] = "Action:", [FR_MARK_CALL_END] = "```"},
     .reader = &fr_read_json_call,
     .lists = true,
     .before = "Action: ```json\n[\n",
     .call = "    {\n        \"tool_name\": \"$NAME\",\n        \"parameters\": $ARGUMENTS\n    }",
     .between = ",\n",
     .after = "\n]\n```"},

    /* Phi-4-mini: two tokens enclose a call, as in its template, or the word "functools" comes before it */
    {.words = {"<|tool|>", "<|/tool|>"},
     .marks = {[FR_MARK_CALL] = "<|tool_call|>", [FR_MARK_CALL_END] = "<|/tool_call|>", [FR_MARK_CALLS] = "functools"},
     .reader = &fr_read_json_call,
     .bare = "[",
     .lists = true,
     .before = "<|tool_call|>[",
     .call = "{\"name\": \"$NAME\", \"arguments\": $ARGUMENTS}",
     .between = ", ",
     .after = "]<|/tool_call|>"},

    /* Mistral: three generations of forms, which have one mark in common */
    {.words = {"[TOOL_CALLS]", "[CALL_ID]"},
     MISTRAL,
     .call = "[TOOL_CALLS]$NAME[CALL_ID]$ID[ARGS]$ARGUMENTS",
     .between = ""},
    {.words = {"[TOOL_CALLS]", "[ARGS]"}, MISTRAL, .call = "[TOOL_CALLS]$NAME[ARGS]$ARGUMENTS", .between = ""},
    {.words = {"[TOOL_CALLS]"},
     MISTRAL,
     .own_token = true,
     .before = "[TOOL_CALLS] [",
     .call = "{\"name\": \"$NAME\", \"arguments\": $ARGUMENTS}",
     .between = ", ",
     .after = "]"},

    /* LFM2 */
    {.words = {"<|tool_list_start|>"}, LFM2},
    {.words = {"<|tool_call_start|>"}, LFM2},

    /* OLMo 3 */
    {.words = {"<function_calls>"},
     .marks = {[FR_MARK_CALL] = "<function_calls>", [FR_MARK_CALL_END] = "</function_calls>"},
     .reader = &fr_read_python_call,
     .names = true,
     .own_token = true,
     .arguments = FR_ARGUMENTS_PYTHON,
     .before = "<function_calls>",
     .call = "$NAME($ARGUMENTS)",
     .between = "\n",
     .after = "</function_calls>"},

    /* Hermes, Qwen 2.5 and 3, Granite 4, and other models that were trained on this form */
    {.words = {"<tool_call>", "arguments"},
     .marks = {[FR_MARK_CALL] = "<tool_call>", [FR_MARK_CALL_END] = "</tool_call>"},
     .reader = &fr_read_json_call,
     .bare = "{",
     .call = "<tool_call>\n{\"name\": \"$NAME\", \"arguments\": $ARGUMENTS}\n</tool_call>",
     .between = "\n"},

    /* Llama 3 */
    {.words = {"<|start_header_id|>", "parameters\""},
     .marks = {[FR_MARK_CALL] = "<|python_tag|>"},
     .reader = &fr_read_llama_call,
     .bare = "{[",
     .call = "{\"name\": \"$NAME\", \"parameters\": $ARGUMENTS}"},

    /* Llama 4 */
    {.words = {"<|python_start|>", "parameters\""},
     .marks = {[FR_MARK_CALL] = "<|python_start|>", [FR_MARK_CALL_END] = "<|python_end|>"},
     .reader = &fr_read_llama_call,
     .bare = "{[",
     .call = "{\"name\": \"$NAME\", \"parameters\": $ARGUMENTS}"},

    /* Nemotron */
    {.words = {"<TOOLCALL>"},
     .marks = {[FR_MARK_CALL] = "<TOOLCALL>", [FR_MARK_CALL_END] = "</TOOLCALL>"},
     .reader = &fr_read_json_call,
     .bare = "[",
     .lists = true,
     .before = "<TOOLCALL>[",
     .call = "{\"name\": \"$NAME\", \"arguments\": $ARGUMENTS}",
     .between = ", ",
     .after = "]</TOOLCALL>"},

    /* Granite 3 */
    {.words = {"<|tool_call|>"}, GRANITE},
    {.words = {"<|start_of_role|>available_tools"}, GRANITE},

    /* GLM-4 before 4.5: no mark at all */
    {.words = {"[gMASK]<sop>", "<|observation|>"},
     .marks = {[FR_MARK_CALLS_END] = "<|observation|>", [FR_MARK_RESPONSE] = "<|assistant|>"},
     .reader = &fr_read_named_call,
     .names = true,
     .call = "$NAME\n$ARGUMENTS"},
};

const fr_call_form fr_generic_call_form = {
    .marks = {[FR_MARK_CALL] = "<tool_call>", [FR_MARK_CALL_END] = "</tool_call>"},
    .reader = &fr_read_json_call,
    .bare = "{",
    .lists = true,
    .before = "{\"tool_calls\": [",
    .call = "{\"name\": \"$NAME\", \"arguments\": $ARGUMENTS}",
    .between = ", ",
    .after = "]}",
};

static void append_example(const fr_call_form *form, const char *from, fr_text_buffer *text) {
    static const char *const arguments[] = {[FR_ARGUMENTS_JSON] = "{\"PARAMETER\": VALUE}",
                                            [FR_ARGUMENTS_QUOTED] = "{PARAMETER:VALUE}",
                                            [FR_ARGUMENTS_TAGGED] = "",
                                            [FR_ARGUMENTS_PYTHON] = "PARAMETER=VALUE"};
    const char *const words[][2] = {{"$NAME", "NAME"},     {"$ARGUMENTS", arguments[form->arguments]},
                                    {"$NUMBER", "0"},      {"$ID", "abcdefghi"},
                                    {"$KEY", "PARAMETER"}, {"$VALUE", "VALUE"}};
    for (; *from; from++) {
        size_t word = 0;
        while (word < sizeof words / sizeof *words && strncmp(from, words[word][0], strlen(words[word][0])) != 0)
            word++;
        if (word == sizeof words / sizeof *words) {
            fr_text_append(text, from, 1);
            continue;
        }
        if (word == 1 && form->argument) append_example(form, form->argument, text);
        fr_text_append_string(text, words[word][1]);
        from += strlen(words[word][0]) - 1;
    }
}

void fr_call_form_example(const fr_call_form *form, fr_text_buffer *text) {
    if (form->before) append_example(form, form->before, text);
    append_example(form, form->call, text);
    if (form->after) append_example(form, form->after, text);
}

static bool has(const char *source, size_t length, const char *word) {
    return memmem(source, length, word, strlen(word)) != NULL;
}

const fr_call_form *fr_call_form_of(const char *source, size_t length, const fr_tokenizer *tokenizer) {
    const size_t count = sizeof forms / sizeof *forms;
    for (size_t i = 0; i < count; i++) {
        bool shown = true;
        for (size_t w = 0; w < sizeof forms[i].words / sizeof *forms[i].words && forms[i].words[w]; w++)
            shown &= has(source, length, forms[i].words[w]);
        if (shown) return &forms[i];
    }
    if (!tokenizer || !has(source, length, "tools")) return NULL;
    for (size_t i = 0; i < count; i++)
        if (forms[i].own_token && fr_tokenizer_id(tokenizer, forms[i].marks[FR_MARK_CALL]) >= 0) return &forms[i];
    return NULL;
}
