/* Finds the places that a prompt has for pictures, and puts the pictures there.
 *
 * In: a prompt's bytes, in which a picture's place is "{image}" or the mark that the model's chat template writes. Out:
 * the bytes with what the template writes around such a mark; ids with as many image tokens as each picture needs. */
#ifndef FR_TOOLS_CLI_PROMPT_PICTURES_H
#define FR_TOOLS_CLI_PROMPT_PICTURES_H

#include "forerun.h"

/* Returns true if the bytes have a place for a picture of this model. */
bool fr_has_picture_place(const fr_model *model, const char *bytes, size_t length);

/* Replaces each "{image}" in the bytes, which fr_free frees: by the mark alone, or, if `wrapped`, also by what the
 * model's template writes around it. */
void fr_mark_picture_places(const fr_model *model, bool wrapped, char **bytes, size_t *length);

/* Converts a text with pictures to ids. Only trusted marks count. */
fr_status fr_tokenize_pictures(const fr_model *model, fr_picture *const *pictures, size_t count,
                               const fr_marked_text *text, int32_t **ids, size_t *id_count);

/* Does the same for bytes that are all trusted, such as a raw prompt. begins: as add_special of fr_tokenize. */
fr_status fr_tokenize_raw_pictures(const fr_model *model, fr_picture *const *pictures, size_t count, const char *bytes,
                                   size_t length, bool begins, int32_t **ids, size_t *id_count);

#endif
