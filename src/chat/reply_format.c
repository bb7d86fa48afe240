/* Marks by what a template's source has in it: see reply_format.h. */
#include "src/chat/reply_format.h"

#include <string.h>

#include "src/text/tokenizer.h"

/* The first whose every word is in the source is the model's; marks of calls. */
static const struct {
    fr_call_form form;
    const char *words[2]; /* the second may be NULL */
    const char *marks[FR_MARK_COUNT];
} forms[] = {
    {FR_CALLS_HARMONY,
     {"<|channel|>", "<|message|>"},
     {[FR_MARK_MESSAGE] = "<|start|>",
      [FR_MARK_CHANNEL] = "<|channel|>",
      [FR_MARK_TYPE] = "<|constrain|>",
      [FR_MARK_BODY] = "<|message|>",
      [FR_MARK_BODY_END] = "<|end|>",
      [FR_MARK_CALL_END] = "<|call|>",
      [FR_MARK_RETURN] = "<|return|>"}},
    {FR_CALLS_GEMMA,
     {"<|tool_call>", "call:"},
     {[FR_MARK_CALL] = "<|tool_call>",
      [FR_MARK_CALL_END] = "<tool_call|>",
      [FR_MARK_QUOTE] = "<|\"|>",
      [FR_MARK_RESPONSE] = "<|tool_response>"}},
    {FR_CALLS_DEEPSEEK,
     {"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"},
     {[FR_MARK_CALLS] = "<｜tool▁calls▁begin｜>",
      [FR_MARK_CALLS_END] = "<｜tool▁calls▁end｜>",
      [FR_MARK_CALL] = "<｜tool▁call▁begin｜>",
      [FR_MARK_NAME] = "<｜tool▁sep｜>",
      [FR_MARK_CALL_END] = "<｜tool▁call▁end｜>"}},
    {FR_CALLS_GLM,
     {"<tool_call>", "<arg_key>"},
     {[FR_MARK_CALL] = "<tool_call>",
      [FR_MARK_CALL_END] = "</tool_call>",
      [FR_MARK_KEY] = "<arg_key>",
      [FR_MARK_KEY_END] = "</arg_key>",
      [FR_MARK_VALUE] = "<arg_value>",
      [FR_MARK_VALUE_END] = "</arg_value>"}},
    {FR_CALLS_XML,
     {"<tool_call>", "<function="},
     {[FR_MARK_CALL] = "<tool_call>",
      [FR_MARK_CALL_END] = "</tool_call>",
      [FR_MARK_NAME] = "<function=",
      [FR_MARK_NAME_END] = "</function>",
      [FR_MARK_KEY] = "<parameter=",
      [FR_MARK_VALUE_END] = "</parameter>"}},
    {FR_CALLS_JSON,
     {"<tool_call>", "arguments"},
     {[FR_MARK_CALL] = "<tool_call>", [FR_MARK_CALL_END] = "</tool_call>"}},
    {FR_CALLS_LLAMA, {"<|start_header_id|>", "parameters\""}, {[FR_MARK_CALL] = "<|python_tag|>"}},
};

/* The same for reasoning: one of the two is enough, as some templates only take it out of past turns. */
static const struct {
    const char *begin, *end, *channel;
} thoughts[] = {
    {"<|channel>", "<channel|>", "thought"},
    {"<think>", "</think>", ""},
    {"<thought>", "</thought>", ""},
    {"[THINK]", "[/THINK]", ""},
    {"<|START_THINKING|>", "<|END_THINKING|>", ""},
    {"<seed:think>", "</seed:think>", ""},
};

static bool has(const char *source, size_t length, const char *word) {
    return !word || memmem(source, length, word, strlen(word)) != NULL;
}

fr_reply_format fr_reply_format_of(const char *source, size_t length, const fr_tokenizer *tokenizer) {
    fr_reply_format format = {.channel = ""};
    for (size_t i = 0; i < sizeof forms / sizeof *forms && format.calls == FR_CALLS_NONE; i++) {
        if (!has(source, length, forms[i].words[0]) || !has(source, length, forms[i].words[1])) continue;
        format.calls = forms[i].form;
        memcpy(format.marks, forms[i].marks, sizeof format.marks);
    }
    for (size_t i = 0; i < sizeof thoughts / sizeof *thoughts && !format.marks[FR_MARK_THINK]; i++) {
        if (!has(source, length, thoughts[i].begin) && !has(source, length, thoughts[i].end)) continue;
        format.marks[FR_MARK_THINK] = thoughts[i].begin;
        format.marks[FR_MARK_THINK_END] = thoughts[i].end;
        format.channel = thoughts[i].channel;
    }
    for (size_t i = 0; i < FR_MARK_COUNT; i++) {
        bool token = tokenizer && format.marks[i];
        format.ids[i] = token ? fr_tokenizer_id(tokenizer, format.marks[i]) : -1;
    }
    return format;
}
