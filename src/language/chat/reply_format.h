/* Finds the marks by which a model separates its reasoning and its tool calls from its content, and the form of its
 * calls.
 *
 * In: the source of the model's chat template, which writes these marks around past turns, and the model's vocabulary.
 * Out: the marks. If a mark is a token of its own, the mark has the token's id, and text that looks like the mark does
 * not count. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_FORMAT_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_FORMAT_H

#include "forerun.h"

typedef enum fr_mark {
    FR_MARK_NONE,
    FR_MARK_THINK,
    FR_MARK_THINK_END,
    FR_MARK_CALLS,
    FR_MARK_CALLS_END,
    FR_MARK_CALL,
    FR_MARK_CALL_END,
    FR_MARK_NAME, /* comes before a call's name, perhaps after other text of the call */
    FR_MARK_NAME_END,
    FR_MARK_KEY,
    FR_MARK_KEY_END,
    FR_MARK_VALUE,
    FR_MARK_VALUE_END,
    FR_MARK_ID,    /* comes before a call's id */
    FR_MARK_QUOTE, /* comes before and after a string */
    FR_MARK_SAY,   /* comes before content; some templates have several pairs of marks around content */
    FR_MARK_SAY_END,
    FR_MARK_SAY_TEXT,
    FR_MARK_SAY_TEXT_END,
    FR_MARK_RESPONSE, /* begins the response of a tool; no call goes on after it */
    /* marks of a message in harmony's form. The first four begin the message's header, its channel, the type of its
     * body, and its body. BODY_END ends the body. */
    FR_MARK_MESSAGE,
    FR_MARK_CHANNEL,
    FR_MARK_TYPE,
    FR_MARK_BODY,
    FR_MARK_BODY_END,
    FR_MARK_RETURN, /* ends the body and the turn */
    FR_MARK_COUNT
} fr_mark;

#define FR_MARK_MAX 32 /* limit on the bytes of a mark */

typedef struct fr_reply_format {
    /* the form of the model's calls (reply_forms.h); NULL: the template shows no known form */
    const struct fr_call_form *form;
    const char *marks[FR_MARK_COUNT]; /* the marks' texts; NULL: the format has no such mark */
    int32_t ids[FR_MARK_COUNT];       /* the marks' tokens; -1: the mark is not a single token */
    const char *channel;              /* the text that must follow the mark that begins reasoning; "" if none must
                                       * follow */
} fr_reply_format;

/* Finds the format of the model's replies. tokenizer: NULL if the pieces of a reply have no ids; then every mark is
 * found in text. */
fr_reply_format fr_reply_format_of(const char *source, size_t length, const fr_tokenizer *tokenizer);

/* If the format has no form of calls, gives it the generic form. The prompt then describes that form in words
 * (chat_tools.h). */
void fr_reply_format_generic(fr_reply_format *format, const fr_tokenizer *tokenizer);

#endif
