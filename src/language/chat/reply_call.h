/* Reads one tool call as it comes, in a model's own form.
 *
 * In: bytes and marks (reply_format.h), beginning with the first byte or mark of the call. Out: the function's name,
 * its arguments as JSON text that grows, and a verdict on each byte and mark. All bytes are kept. So if the text turns
 * out to be no call, it can be given back unchanged. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_CALL_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_CALL_H

#include "base/text_buffer.h"
#include "src/language/chat/json_scan.h"
#include "src/language/chat/reply_format.h"
#include "src/language/chat/reply_value.h"

#define FR_CALL_MAX      ((size_t)1 << 24) /* limit on the bytes of a call; a longer text counts as no call */
#define FR_CALL_NAME_MAX 256               /* limit on the bytes of a function's name */
#define FR_CALL_KEY_MAX  4096              /* limit on the bytes of a key */

typedef enum fr_call_verdict {
    FR_CALL_ON,    /* the call continues */
    FR_CALL_DONE,  /* the call is complete with this byte or mark */
    FR_CALL_FAULT, /* there is no call */
    FR_CALL_TEXT,  /* for a mark only: the mark is plain text here */
    FR_CALL_WHOLE, /* the call was complete before this byte or mark, which does not belong to it */
    FR_CALL_OVER,  /* no further call follows in this section, which ends with this byte or mark */
    FR_CALL_PAST,  /* no further call follows; the section ended before this byte or mark, which does not belong to
                    * it */
} fr_call_verdict;

typedef struct fr_reply_call {
    const fr_reply_format *format;
    const json_t *tools; /* an array, or NULL */
    fr_text_buffer raw;  /* all bytes of the call so far */
    fr_text_buffer name; /* the function's name; valid once `named` is set */
    fr_text_buffer id;   /* the call's id; empty if the model gave none */
    fr_text_buffer arguments;
    bool named;
    /* the reader of the call's form; it may leave the rest of a call to another reader */
    const struct fr_call_reader *reader;
    bool alone; /* the reply has no content before the call */

    /* Only the readers use the members below. */
    int state;
    int section; /* the kind of section that is still open, in which another call may follow; 0: none */
    bool bare;   /* the call began without its opening mark */
    bool first;  /* no argument was read yet */
    bool comma;  /* a comma was read but is not written yet */
    bool given;  /* the arguments are complete; used by forms that write all arguments as one value */
    fr_text_buffer key, value;
    fr_value_types types; /* types that the present argument may have */
    /* fresh: no byte of the value was read yet. newline: the last byte of the value was a line break, which is held
     * back. */
    bool fresh, newline;
    bool lines;    /* the value is on lines of its own */
    size_t reopen; /* offset in `raw` of the mark that seemed to end the value */
    int field;     /* kind of the object's member that is being read (reply_call_json.c) */
    bool in_field; /* the value of that member is being read */
    bool doubled;  /* the object is inside a second pair of braces */
    bool listed;   /* the object is in a list */
    bool wrapped;  /* the list or the object is the only member of another object */
    /* the present members belong to an inner object, which is the value of the member "function" */
    bool inner;
    bool fenced; /* a fence of Markdown encloses the objects */
    /* the text has not exactly the model's form, so it is a call only if its name is that of a tool */
    bool near;
    const char *literal; /* the rest of a fixed text that must follow */
    fr_json_scan scan;   /* a loose scan */
    fr_json_writer writer;
} fr_reply_call;

/* Functions that read the calls of one form. The first byte or mark that a reader gets begins a call, or continues a
 * section after a call. A call without its opening mark must name one of the tools. It must also be the whole reply, or
 * end with its closing mark. */
typedef struct fr_call_reader {
    fr_call_verdict (*byte)(fr_reply_call *call, char byte);
    fr_call_verdict (*mark)(fr_reply_call *call, fr_mark mark);
    /* ends a call at the reply's end; gives FR_CALL_DONE if only marks are missing */
    fr_call_verdict (*finish)(fr_reply_call *call);
    /* ends a call where the reply was cut off, and gives the value that was begun; NULL: values are given while they
     * are read */
    void (*cut)(fr_reply_call *call);
} fr_call_reader;

extern const fr_call_reader fr_read_json_call, fr_read_llama_call, fr_read_section_call, fr_read_tagged_call,
    fr_read_gemma_call, fr_read_harmony_call, fr_read_named_call, fr_read_python_call;

/* --------------------------------------------------------------------------------- functions that the readers share */

/* Sets the call's name. Returns false if the bytes are not a name. A name has no white space, control characters,
 * quotes, brackets or braces. */
bool fr_call_set_name(fr_reply_call *call, const char *name, size_t length);

/* Returns true if the function may be called. A call without its opening mark, or not exactly in its form (`near`),
 * must name one of the tools. Any other call may have any name. */
bool fr_call_is_offered(const fr_reply_call *call);

/* Returns true if some tool's name begins with these bytes, or equals them. */
bool fr_call_begins_name(const json_t *tools, const char *text, size_t length);

/* Appends a byte to a text that has a limit. Returns false if the limit is exceeded or memory ran out. */
bool fr_call_take(fr_text_buffer *text, char byte, size_t limit);

/* Empties a text but keeps its memory. */
void fr_call_clear(fr_text_buffer *text);

/* Write the object that holds arguments which are read one by one: `{`, then each key, then `}`. If a key is repeated,
 * it is written again, because arguments that were passed to the callback can't be taken back. JSON readers use the
 * last of equal keys. */
void fr_call_open_arguments(fr_reply_call *call);
void fr_call_put_key(fr_reply_call *call, const char *key, size_t length);
void fr_call_close_arguments(fr_reply_call *call);

/* Leave the rest of a call to the JSON or the Python reader. byte: the first byte after the opening mark, or the call's
 * first byte if it has no mark. */
fr_call_verdict fr_call_begin_json(fr_reply_call *call, char byte);
fr_call_verdict fr_call_begin_python(fr_reply_call *call, char byte);

/* Returns true if no byte of the arguments' object was read yet. A call of a function without parameters may lack the
 * object. */
bool fr_call_has_nothing(const fr_reply_call *call);

/* Reads one byte of the arguments, which are a JSON object. */
fr_call_verdict fr_call_object_byte(fr_reply_call *call, char byte);

/* Closes the containers that are still open in the arguments' object when a mark ends the call. It passes each missing
 * bracket to `byte`. */
fr_call_verdict fr_call_close_object(fr_reply_call *call, fr_call_verdict (*byte)(fr_reply_call *call, char byte));

#endif
