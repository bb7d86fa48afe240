/* Finds the marks of a reply by searching the template's source for known words (reply_format.h). */
#include "src/language/chat/reply_format.h"

#include <string.h>

#include "src/language/chat/reply_forms.h"
#include "src/language/tokenizer/tokenizer.h"

/* Marks of reasoning. A template needs to contain only one mark of a pair, because some templates only remove the
 * thoughts of past turns. */
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
    return memmem(source, length, word, strlen(word)) != NULL;
}

void fr_reply_format_generic(fr_reply_format *format, const fr_tokenizer *tokenizer) {
    format->form = &fr_generic_call_form;
    for (size_t i = 0; i < FR_MARK_COUNT; i++) {
        const char *mark = format->form->marks[i];
        if (!mark) continue;
        format->marks[i] = mark;
        format->ids[i] = tokenizer ? fr_tokenizer_id(tokenizer, mark) : -1;
    }
}

fr_reply_format fr_reply_format_of(const char *source, size_t length, const fr_tokenizer *tokenizer) {
    fr_reply_format format = {.form = fr_call_form_of(source, length, tokenizer), .channel = ""};
    if (format.form) memcpy(format.marks, format.form->marks, sizeof format.marks);
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
