/* Finds the types that a tool's parameters may have by its JSON schema.
 *
 * In: tools in the OpenAI form, {"type": "function", "function": {"name", "parameters"}} or the inner object alone.
 * Out: the types that the keywords type, const, enum and nullable allow, also through $ref (a JSON pointer into the
 * parameters), allOf, anyOf and oneOf. A schema that refers to itself is read only once. The depth and the number of
 * schemas are limited. A reference to another document is ignored. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_SCHEMA_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_SCHEMA_H

#include <jansson.h>

typedef unsigned fr_value_types; /* 0: nothing is known */
enum {
    FR_VALUE_STRING = 1,
    FR_VALUE_NUMBER = 2,
    FR_VALUE_BOOLEAN = 4,
    FR_VALUE_NULL = 8,
    FR_VALUE_OBJECT = 16,
    FR_VALUE_ARRAY = 32,
};

/* Gives the name of a tool's function; NULL: it has none. */
const char *fr_tool_name_of(const json_t *tool);

/* Finds the tool with this name; NULL: there is none. */
const json_t *fr_tool_find(const json_t *tools, const char *name);
fr_value_types fr_tool_parameter_types(const json_t *tool, const char *parameter);

#endif
