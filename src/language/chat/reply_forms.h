/* Describes the forms in which models write calls. Each form is a row of a table. A row says how templates show the
 * form, which reader reads it, and how a grammar forces it.
 *
 * In: a template's source. Out: the row of the form that the template shows, with the form's marks and texts. A new
 * form needs a row. If it resembles none of the others, it also needs a reader (reply_call.h). */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_FORMS_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_FORMS_H

#include "base/text_buffer.h"
#include "src/language/chat/reply_format.h"

/* Says how the arguments of a call are written. */
typedef enum fr_arguments_form {
    FR_ARGUMENTS_JSON,   /* an object */
    FR_ARGUMENTS_QUOTED, /* an object whose keys have no quotes, and whose strings are enclosed by marks */
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
    /* if a template shows no form, this form is used when its opening mark is in the vocabulary */
    bool own_token;

    /* The texts of a reply that must call a tool: `before`, then calls with `between` them, then `after`. In `call`,
     * $NAME is replaced by the function's name, $ARGUMENTS by all arguments, $NUMBER by digits, and $ID by nine letters
     * and digits. `argument` is used only for tagged arguments; in it, $KEY and $VALUE are replaced by those of one
     * argument. Marks are written as their text. between: NULL if a reply has at most one call. */
    fr_arguments_form arguments;
    const char *before, *call, *argument, *between, *after;
} fr_call_form;

/* The form for models whose templates show no form: the calls are objects within a JSON object, as in llama.cpp's
 * generic handler. The prompt describes the form in words (chat_tools.h). */
extern const fr_call_form fr_generic_call_form;

/* Appends an example of a call in this form. Words in upper case in the example are placeholders. */
void fr_call_form_example(const fr_call_form *form, fr_text_buffer *text);

/* Finds the first form that the template shows. If it shows none, finds a form whose opening mark is a token of the
 * vocabulary. Gives NULL if there is no such form. tokenizer: NULL if the vocabulary is unknown. */
const fr_call_form *fr_call_form_of(const char *source, size_t length, const fr_tokenizer *tokenizer);

#endif
