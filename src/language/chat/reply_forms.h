/* The forms in which models write calls, a row each: how templates show them, what reads them, how they are forced.
 *
 * In: words of a template's source. Out: a row of marks and texts. A form that is like another is a row more; one that
 * is like none is a row and a reader (reply_call.h). */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_FORMS_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_FORMS_H

#include "base/text_buffer.h"
#include "src/language/chat/reply_format.h"

/* Ways to write the arguments of a call. */
typedef enum fr_arguments_form {
    FR_ARGUMENTS_JSON,   /* an object */
    FR_ARGUMENTS_QUOTED, /* an object of bare keys, with marks for quotes */
    FR_ARGUMENTS_TAGGED, /* one by one, values as plain text up to a mark */
    FR_ARGUMENTS_PYTHON, /* one by one, separated by commas, values as Python's literals */
} fr_arguments_form;

typedef struct fr_call_form {
    const char *words[3]; /* a template of this form has all of them, up to NULL */
    const char *marks[FR_MARK_COUNT];
    const struct fr_call_reader *reader;
    const char *bare; /* bytes that a call without its opening mark may begin with; NULL: none */
    bool names;       /* such a call may also begin with the name of a tool */
    bool lists;       /* JSON objects may stand in a list */
    bool own_token; /* a template that shows no form has this one if the vocabulary has its opening mark */

    /* A reply that must call is `before`, calls with `between` them, `after`. In `call`, $NAME stands for the
     * function, $ARGUMENTS for all arguments, $NUMBER for digits, $ID for nine letters and digits; in `argument`, of
     * tagged arguments alone, $KEY and $VALUE. Marks are written as their text. between: NULL if a reply has one
     * call at most. */
    fr_arguments_form arguments;
    const char *before, *call, *argument, *between, *after;
} fr_call_form;

/* The form for models whose templates show none: objects in a JSON object, as llama.cpp's generic handler has them. The
 * prompt asks for it in words (chat_tools.h). */
extern const fr_call_form fr_generic_call_form;

/* Appends a call as a form has it, with words in capitals where a call has its own. */
void fr_call_form_example(const fr_call_form *form, fr_text_buffer *text);

/* Finds the first form that a template shows, or for which a vocabulary (NULL: not known) has a token; NULL: there is
 * none. */
const fr_call_form *fr_call_form_of(const char *source, size_t length, const fr_tokenizer *tokenizer);

#endif
