/* Reads members of JSON objects as texts and arrays.
 *
 * In: an object, a member's name, and the file that an error line names. Out: a text or an array that belongs to the
 * object. */
#ifndef FR_FORMATS_JSON_MEMBER_H
#define FR_FORMATS_JSON_MEMBER_H

#include "base/text.h"
#include "formats/json.h"

static inline fr_text fr_member_of(const json_t *string) {
    return (fr_text){json_string_value(string), json_string_length(string)};
}

/* Each reads a string member. If it is missing or null, fr_member_text gives bytes NULL and fr_member_required_text
 * fails. */
fr_status fr_member_text(const json_t *object, const char *key, const char *where, fr_text *text);
fr_status fr_member_required_text(const json_t *object, const char *key, const char *where, fr_text *text);

/* Reads a member that is an array. The result is NULL if the member is missing or null. */
fr_status fr_member_array(const json_t *object, const char *key, const char *where, json_t **array);

#endif
