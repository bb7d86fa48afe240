/* What the readers of a tokenizer.json share: its members, and which of them reads which stage.
 *
 * In: JSON values. Out: texts that point into them, arrays, ids in range. */
#ifndef FR_FORMATS_TOKENIZER_JSON_PARTS_H
#define FR_FORMATS_TOKENIZER_JSON_PARTS_H

#include "formats/json.h"
#include "formats/tokenizer_source.h"

static inline fr_text fr_member_of(const json_t *string) {
    return (fr_text){json_string_value(string), json_string_length(string)};
}

/* A member string; missing or null leaves bytes NULL, or is a failure. */
fr_status fr_member_text(const json_t *object, const char *key, const char *where, fr_text *text);
fr_status fr_member_required_text(const json_t *object, const char *key, const char *where, fr_text *text);

/* A member array; missing or null gives NULL. */
fr_status fr_member_array(const json_t *object, const char *key, const char *where, json_t **array);

/* Reads the members "normalizer", "pre_tokenizer" and "decoder" of a source's root (tokenizer_json_rules.c); its model
 * is known. */
fr_status fr_tokenizer_json_rules(fr_tokenizer_source *source);

/* Reads "post_processor" (tokenizer_json_processor.c). */
fr_status fr_tokenizer_json_processor(fr_tokenizer_source *source);

#endif
