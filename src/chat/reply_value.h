/* Arguments that a model writes as plain text, as JSON of the type that the tool's schema gives them.
 *
 * In: tools in the OpenAI form, {"type": "function", "function": {"name", "parameters"}} or the inner object alone; a
 * text. Out: the types that a parameter may have; JSON text, appended. */
#ifndef FR_SRC_REPLY_VALUE_H
#define FR_SRC_REPLY_VALUE_H

#include <jansson.h>

#include "base/text_buffer.h"

typedef unsigned fr_value_types; /* 0: nothing is known */
enum {
    FR_VALUE_STRING = 1,
    FR_VALUE_NUMBER = 2,
    FR_VALUE_BOOLEAN = 4,
    FR_VALUE_NULL = 8,
    FR_VALUE_OBJECT = 16,
    FR_VALUE_ARRAY = 32,
};

/* NULL: no such tool. */
const json_t *fr_tool_find(const json_t *tools, const char *name);
fr_value_types fr_tool_parameter_types(const json_t *tool, const char *parameter);

/* The inside of a JSON string, which may be put piece by piece. Bytes that are not UTF-8 stay what they are. */
void fr_value_put_escaped(fr_text_buffer *out, const char *text, size_t length);

/* A value that is the text as JSON where its type allows that, also as Python writes True, False and None; or else a
 * string. */
void fr_value_put(fr_text_buffer *out, const char *text, size_t length, fr_value_types types);

#endif
