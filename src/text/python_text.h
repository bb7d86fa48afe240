/* JSON values as Python's str() and repr() write them, and the string methods that chat templates call.
 *
 * In: jansson values as json.loads would give them to Python; NULL is Jinja's undefined, which prints nothing. Out:
 * text, appended. A template that prints a list or a null prints just this, and models were trained on it. Letters with
 * a case mapping of more than one letter (ß, İ) are mapped one to one. */
#ifndef FR_SRC_PYTHON_TEXT_H
#define FR_SRC_PYTHON_TEXT_H

#include <jansson.h>

#include "formats/tokenizer_source.h"
#include "src/text/text_buffer.h"

void fr_python_str(const json_t *value, fr_text_buffer *out);

/* str(value).upper(), str(value).strip() */
void fr_python_upper(const json_t *value, fr_text_buffer *out);
void fr_python_stripped(const json_t *value, fr_text_buffer *out);

/* The text without white space at both ends. */
fr_text fr_python_strip(fr_text text);

/* The order of a.lower() and b.lower(): below, at or above 0. Both are valid UTF-8. */
int fr_python_compare_lower(const char *a, const char *b);

#endif
