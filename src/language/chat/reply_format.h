/* The marks by which a model tells its reasoning and its tool calls from what it says, and in which form it calls.
 *
 * In: the source of its chat template, which writes these marks around past turns; its vocabulary. Out: the marks, each
 * with its id where it is a token of its own: then that token alone is the mark, and no text that looks like it. */
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
    FR_MARK_NAME, /* comes before a call's name, or between what comes before it and the name */
    FR_MARK_NAME_END,
    FR_MARK_KEY,
    FR_MARK_KEY_END,
    FR_MARK_VALUE,
    FR_MARK_VALUE_END,
    FR_MARK_ID,    /* before a call's id */
    FR_MARK_QUOTE, /* before and after a string */
    FR_MARK_SAY,   /* before and after content, in templates that mark it in one of several ways */
    FR_MARK_SAY_END,
    FR_MARK_SAY_TEXT,
    FR_MARK_SAY_TEXT_END,
    FR_MARK_RESPONSE, /* of a tool: what calls wait for */
    FR_MARK_MESSAGE,  /* a message's header comes, its channel, the type of its body, then its body; and that ends, */
    FR_MARK_CHANNEL,
    FR_MARK_TYPE,
    FR_MARK_BODY,
    FR_MARK_BODY_END,
    FR_MARK_RETURN, /* ends the turn too */
    FR_MARK_COUNT
} fr_mark;

#define FR_MARK_LONGEST 32 /* bytes */

typedef struct fr_reply_format {
    const struct fr_call_form *form;  /* the form of its calls (reply_forms.h); NULL: no known form */
    const char *marks[FR_MARK_COUNT]; /* NULL: it has no such mark */
    int32_t ids[FR_MARK_COUNT];       /* -1: written in several tokens */
    const char *channel;              /* what reasoning begins with behind its mark, "" for nothing */
} fr_reply_format;

/* tokenizer: NULL where pieces have no ids; then every mark is found in text. */
fr_reply_format fr_reply_format_of(const char *source, size_t length, const fr_tokenizer *tokenizer);

/* Gives a format that has no form of calls one that is asked for in words. */
void fr_reply_format_generic(fr_reply_format *format, const fr_tokenizer *tokenizer);

#endif
