/* Renders the chat templates of checkpoints. They are written in Jinja as transformers configures it; features that
 * read files are left out.
 *
 * In: a template's source, which may be any bytes, and variables as JSON values. Out: the text that transformers
 * renders, byte for byte, and which of its bytes the template itself wrote. A template is immutable once compiled and
 * may be shared between threads. Templates and variables are hostile: a render has limits on steps, nesting and memory,
 * and every failure is FR_INPUT with one line "NAME:LINE: REASON". */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_H

#include <jansson.h>

#include "forerun.h"

typedef struct fr_template fr_template;

/* Compiles a template. name: its name in error lines, for example "chat_template.jinja". The source is copied. */
fr_status fr_template_compile(const char *source, size_t length, const char *name, fr_template **template);
void fr_template_close(fr_template *template);

/* Gives the source unchanged; it belongs to the template. */
const char *fr_template_source(const fr_template *template, size_t *length);

/* Renders a template. own: NULL, or an object of variables whose text counts as the template's own (the model's
 * bos_token and eos_token). given: NULL, or an object with messages, tools and other variables of the user. Variables
 * in `given` take precedence over those in `own`. In `given`, only the usual names of roles in messages count as the
 * template's own text. now: seconds since 1970, for strftime_now, which uses the time zone of the process. *out is
 * empty after a failure. */
fr_status fr_template_render(const fr_template *template, const json_t *own, const json_t *given, int64_t now,
                             fr_marked_text *out);

#endif
