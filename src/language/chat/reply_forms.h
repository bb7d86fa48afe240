/* Describes the forms in which models write calls, a row each. A row says how templates show the form, which reader
 * reads it, and how a grammar forces it.
 *
 * In: words of a template's source. Out: a row of marks and texts. A new form that resembles another one needs a row;
 * one that resembles none needs a row and a reader (reply_call.h). */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_FORMS_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_FORMS_H

#include "base/text_buffer.h"
#include "src/language/chat/reply_format.h"

/* Says how the arguments of a call are written. */
typedef enum fr_arguments_form {
    FR_ARGUMENTS_JSON,   /* an object */
    FR_ARGUMENTS_QUOTED, /* an object whose keys have no quotes, and whose strings stand between marks */
    FR_ARGUMENTS_TAGGED, /* one by one; each value is plain text up to a mark */
    FR_ARGUMENTS_PYTHON, /* one by one, separated by commas; values are Python's literals */
} fr_arguments_form;

typedef struct fr_call_form {
    const char *words[3]; /* the template of a model with this form contains all of these words; NULL ends the list */
    const char *marks[FR_MARK_COUNT];
    const struct fr_call_reader *reader;
    const char *bare; /* bytes with which a call without its opening mark may begin; NULL: none */
    bool names;       /* a call without its opening mark may also begin with the name of a tool */
    bool lists;       /* JSON objects may be in a list */
    bool own_token;   /* if a template shows no form, this form is used if the vocabulary has its opening mark */

    /* A reply that must call is `before`, then calls with `between` them, then `after`. In `call`, $NAME stands for
     * the function, $ARGUMENTS for all arguments, $NUMBER for digits, and $ID for nine letters and digits. In
     * `argument`, used for tagged arguments only, $KEY and $VALUE stand for one argument. Marks are written as their
     * text. between: NULL if a reply has at most one call. */
    fr_arguments_form arguments;
    const char *before, *call, *argument, *between, *after;
} fr_call_form;

/* The form for models whose templates show no form: objects within a JSON object, as in llama.cpp's generic handler.
 * The prompt asks for it in words (chat_tools.h). */
extern const fr_call_form fr_generic_call_form;

/* Appends an example of a call in this form, with words in capitals as placeholders. */
void fr_call_form_example(const fr_call_form *form, fr_text_buffer *text);

/* Finds the first form that the template shows. If it shows none, finds a form whose opening mark is a token of the
 * vocabulary. tokenizer: NULL if the vocabulary is unknown. Gives NULL if there is no form. */
const fr_call_form *fr_call_form_of(const char *source, size_t length, const fr_tokenizer *tokenizer);

#endif
