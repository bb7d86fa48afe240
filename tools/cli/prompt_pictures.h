/* Finds the marks for pictures in a prompt, and replaces them by the pictures' tokens.
 *
 * In: a prompt's bytes, in which a picture is marked by "{image}" or by the mark that the model's chat template
 * writes. Out: the bytes with the template's own mark and the text that it writes around it; ids with as many image
 * tokens as each picture needs. */
#ifndef FR_TOOLS_CLI_PROMPT_PICTURES_H
#define FR_TOOLS_CLI_PROMPT_PICTURES_H

#include "forerun.h"

#define FR_PICTURE_PLACE "{image}"

/* Returns true if the bytes contain a mark for a picture. */
bool fr_has_picture_place(const fr_model *model, const char *bytes, size_t length);

/* Replaces each `place` in the bytes, such as FR_PICTURE_PLACE, by the template's mark or, if `wrapped`, by the mark
 * with the text that the template writes around it. *bytes is freed by fr_free. */
void fr_mark_picture_places(const fr_model *model, const char *place, bool wrapped, char **bytes, size_t *length);

/* Converts a text with pictures to ids. Only marks in the trusted parts of the text are replaced, so that the text of
 * a user can't contain one. */
fr_status fr_tokenize_pictures(const fr_model *model, fr_picture *const *pictures, size_t count,
                               const fr_marked_text *text, int32_t **ids, size_t *id_count);

/* Does the same for bytes that are all trusted, such as a raw prompt. begins: the bytes are the beginning of the text
 * (add_special of fr_tokenize). */
fr_status fr_tokenize_raw_pictures(const fr_model *model, fr_picture *const *pictures, size_t count, const char *bytes,
                                   size_t length, bool begins, int32_t **ids, size_t *id_count);

#endif
