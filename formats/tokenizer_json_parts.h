/* Declares what the readers of a tokenizer.json share: getters of members, and the readers of its stages.
 *
 * In: JSON values. Out: texts that point into them, arrays, ids in range. */
#ifndef FR_FORMATS_TOKENIZER_JSON_PARTS_H
#define FR_FORMATS_TOKENIZER_JSON_PARTS_H

#include "formats/json.h"
#include "formats/tokenizer_source.h"

static inline fr_text fr_member_of(const json_t *string) {
    return (fr_text){json_string_value(string), json_string_length(string)};
}

/* Read a member string. If it is missing or null, the first one gives bytes NULL and the second one fails. */
fr_status fr_member_text(const json_t *object, const char *key, const char *where, fr_text *text);
fr_status fr_member_required_text(const json_t *object, const char *key, const char *where, fr_text *text);

/* Reads a member array; NULL if it is missing or null. */
fr_status fr_member_array(const json_t *object, const char *key, const char *where, json_t **array);

/* Reads the members "normalizer", "pre_tokenizer" and "decoder" of a source's root (tokenizer_json_rules.c). The model
 * must have been read before. */
fr_status fr_tokenizer_json_rules(fr_tokenizer_source *source);

/* Reads "post_processor" (tokenizer_json_processor.c). */
fr_status fr_tokenizer_json_processor(fr_tokenizer_source *source);

#endif
