/* Reads one tool call as it comes, in a model's own form.
 *
 * In: bytes and marks (reply_format.h), beginning with the first one of the call. Out: the function's name, its
 * arguments as JSON text that grows, and a verdict on each byte and mark. All bytes that came are kept, so that text
 * which turns out to be no call can be given back unchanged. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_CALL_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_CALL_H

#include "base/text_buffer.h"
#include "src/language/chat/json_scan.h"
#include "src/language/chat/reply_format.h"
#include "src/language/chat/reply_value.h"

#define FR_CALL_MAX      ((size_t)1 << 24) /* bytes of a call; a longer text is not taken for a call */
#define FR_CALL_NAME_MAX 256
#define FR_CALL_KEY_MAX  4096

typedef enum fr_call_verdict {
    FR_CALL_ON,
    FR_CALL_DONE,  /* the call is complete with this byte or mark */
    FR_CALL_FAULT, /* this is no call */
    FR_CALL_TEXT,  /* after a mark only: here the mark is just its bytes */
    FR_CALL_WHOLE, /* the call was complete before this byte or mark, which does not belong to it */
    FR_CALL_OVER,  /* no further call follows: the last call's section is complete with this byte or mark */
    FR_CALL_PAST,  /* the same, but the section was complete before this byte or mark */
} fr_call_verdict;

typedef struct fr_reply_call {
    const fr_reply_format *format;
    const json_t *tools; /* an array, or NULL */
    fr_text_buffer raw;  /* all bytes that came */
    fr_text_buffer name; /* the function's name; valid once `named` is set */
    fr_text_buffer id;   /* the call's id; empty unless the model gave one */
    fr_text_buffer arguments;
    bool named;
    const struct fr_call_reader *reader; /* a reader may leave the rest to another one */
    bool alone;                          /* no content came before it */

    /* The members below are for the readers alone. */
    int state;
    int section; /* not 0: another call of the section may follow; it starts with this value */
    bool bare;   /* it began without its mark */
    bool first;  /* no argument has come yet */
    bool comma;  /* a comma came that was not written yet */
    bool given;  /* the arguments are complete, in forms that give them as one value */
    fr_text_buffer key, value;
    fr_value_types types; /* types of the present argument */
    /* fresh: no byte of the value has come; newline: the last byte was a line break, which is held */
    bool fresh, newline;
    bool lines;    /* the value stands on lines of its own */
    size_t reopen; /* offset in raw of the mark that may have ended a value */
    int field;
    bool in_field;
    bool doubled;        /* a second pair of braces surrounds the object */
    bool listed;         /* the object stands in a list */
    bool wrapped;        /* that list, or the object, is the only member of another object */
    bool inner;          /* the members being read are those of the object's member "function" */
    bool fenced;         /* a fence of Markdown stands around the objects */
    bool near;           /* the text is only nearly of the form, so the name must be that of a tool */
    const char *literal; /* text that must come next */
    fr_json_scan scan;   /* a loose scan */
    fr_json_writer writer;
} fr_reply_call;

/* A reader of one form. Its first byte or mark begins a call, or comes after a call whose section continues. A call
 * without its opening mark must name one of the tools, and must be the whole reply or end with its closing mark. */
typedef struct fr_call_reader {
    fr_call_verdict (*byte)(fr_reply_call *call, char byte);
    fr_call_verdict (*mark)(fr_reply_call *call, fr_mark mark);
    fr_call_verdict (*finish)(fr_reply_call *call); /* at a reply's end: FR_CALL_DONE if only marks are missing */
    void (*cut)(fr_reply_call *call); /* gives the begun part of a value; NULL: values are given as they come */
} fr_call_reader;

extern const fr_call_reader fr_read_json_call, fr_read_llama_call, fr_read_section_call, fr_read_tagged_call,
    fr_read_gemma_call, fr_read_harmony_call, fr_read_named_call, fr_read_python_call;

/* --------------------------------------------------------------------------------- functions that the readers share */

/* Sets the call's name; false: the bytes are not a name. A name has no white space, control characters, quotes,
 * brackets or braces. */
bool fr_call_set_name(fr_reply_call *call, const char *name, size_t length);

/* True if the function may be called: without its opening mark a call must name one of the tools. */
bool fr_call_is_offered(const fr_reply_call *call);

/* True if some tool's name begins with these bytes, or equals them. */
bool fr_call_begins_name(const json_t *tools, const char *text, size_t length);

/* Appends a byte to a text that has a limit; false: the limit is exceeded, or memory ran out. */
bool fr_call_take(fr_text_buffer *text, char byte, size_t limit);

/* Empties a text but keeps its memory. */
void fr_call_clear(fr_text_buffer *text);

/* Write the object around arguments that come one by one: `{`, then each key, then `}`. Arguments that the callback
 * has been given can't be taken back, so a repeated key is written again: JSON readers use the last one. */
void fr_call_open_arguments(fr_reply_call *call);
void fr_call_put_key(fr_reply_call *call, const char *key, size_t length);
void fr_call_close_arguments(fr_reply_call *call);

/* Hand the rest of a call to the JSON or the Python reader. byte: the first one after the opening mark, if any. */
fr_call_verdict fr_call_begin_json(fr_reply_call *call, char byte);
fr_call_verdict fr_call_begin_python(fr_reply_call *call, char byte);

/* True if no byte of such an object has come yet: a call of a function without parameters may lack it. */
bool fr_call_has_nothing(const fr_reply_call *call);

/* Reads one byte of a JSON object that is the arguments themselves. */
fr_call_verdict fr_call_object_byte(fr_reply_call *call, char byte);

/* Closes the open containers of such an object if a mark ended the call within it: passes each missing bracket to
 * `byte`. */
fr_call_verdict fr_call_close_object(fr_reply_call *call, fr_call_verdict (*byte)(fr_reply_call *call, char byte));

#endif
