/* The table of forms: see reply_forms.h. The order counts: the first whose words are all in a template is its form. */
#include "src/chat/reply_forms.h"

#include <string.h>

#include "src/chat/reply_call.h"

static const fr_call_form forms[] = {
    /* gpt-oss: a message to a function, in channels (reply_harmony.h) */
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

    /* DeepSeek V3 and R1, then V3.1 */
    {.words = {"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "```json"},
     .marks = {[FR_MARK_CALLS] = "<｜tool▁calls▁begin｜>",
               [FR_MARK_CALLS_END] = "<｜tool▁calls▁end｜>",
               [FR_MARK_CALL] = "<｜tool▁call▁begin｜>",
               [FR_MARK_NAME] = "<｜tool▁sep｜>",
               [FR_MARK_CALL_END] = "<｜tool▁call▁end｜>"},
     .reader = &fr_read_section_call,
     .before = "<｜tool▁calls▁begin｜>",
     .call = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>$NAME\n```json\n$ARGUMENTS\n```<｜tool▁call▁end｜>",
     .between = "\n",
     .after = "<｜tool▁calls▁end｜>"},
    {.words = {"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"},
     .marks = {[FR_MARK_CALLS] = "<｜tool▁calls▁begin｜>",
               [FR_MARK_CALLS_END] = "<｜tool▁calls▁end｜>",
               [FR_MARK_CALL] = "<｜tool▁call▁begin｜>",
               [FR_MARK_NAME] = "<｜tool▁sep｜>",
               [FR_MARK_CALL_END] = "<｜tool▁call▁end｜>"},
     .reader = &fr_read_section_call,
     .before = "<｜tool▁calls▁begin｜>",
     .call = "<｜tool▁call▁begin｜>$NAME<｜tool▁sep｜>$ARGUMENTS<｜tool▁call▁end｜>",
     .between = "",
     .after = "<｜tool▁calls▁end｜>"},

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
     .marks = {[FR_MARK_CALL] = "<tool_call>",
               [FR_MARK_CALL_END] = "</tool_call>",
               [FR_MARK_NAME] = "<function=",
               [FR_MARK_NAME_END] = "</function>",
               [FR_MARK_KEY] = "<parameter=",
               [FR_MARK_VALUE_END] = "</parameter>"},
     .reader = &fr_read_tagged_call,
     .arguments = FR_ARGUMENTS_TAGGED,
     .call = "<tool_call>\n<function=$NAME>\n$ARGUMENTS</function>\n</tool_call>",
     .argument = "<parameter=$KEY>\n$VALUE\n</parameter>\n",
     .between = "\n"},

    /* Hermes, Qwen 2.5 and 3, Granite 4, and others that were taught it */
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
     .bare = "{",
     .call = "{\"name\": \"$NAME\", \"parameters\": $ARGUMENTS}"},
};

const fr_call_form *fr_call_form_of(const char *source, size_t length) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        bool shown = true;
        for (size_t w = 0; w < sizeof forms[i].words / sizeof *forms[i].words && forms[i].words[w]; w++)
            shown &= memmem(source, length, forms[i].words[w], strlen(forms[i].words[w])) != NULL;
        if (shown) return &forms[i];
    }
    return NULL;
}
