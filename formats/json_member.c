/* Reads members of JSON objects as texts and arrays (json_member.h). */
#include "formats/json_member.h"

#include "base/error.h"

fr_status fr_member_text(const json_t *object, const char *key, const char *where, fr_text *text) {
    const char *bytes;
    FR_TRY(fr_json_text(object, key, where, &bytes));
    *text = bytes ? fr_member_of(json_object_get(object, key)) : (fr_text){0};
    return FR_OK;
}

fr_status fr_member_required_text(const json_t *object, const char *key, const char *where, fr_text *text) {
    FR_TRY(fr_member_text(object, key, where, text));
    return text->bytes ? FR_OK : fr_fail(FR_INPUT, "%s: \"%s\" is missing", where, key);
}

fr_status fr_member_array(const json_t *object, const char *key, const char *where, json_t **array) {
    *array = json_object_get(object, key);
    if (json_is_null(*array)) *array = NULL;
    if (*array && !json_is_array(*array)) return fr_fail(FR_INPUT, "%s: \"%s\" is not an array", where, key);
    return FR_OK;
}
