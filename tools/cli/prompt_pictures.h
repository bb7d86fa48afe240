/* Finds the marks for pictures in a prompt, and replaces them by the pictures' tokens.
 *
 * In: a prompt's bytes, in which a picture is marked by "{image}" or by the mark that the model's chat template writes.
 * Out: the bytes, in which each picture has the template's mark and the text that the template writes around the mark.
 * Also the prompt's ids, in which each picture has as many image tokens as it needs. */
#ifndef FR_TOOLS_CLI_PROMPT_PICTURES_H
#define FR_TOOLS_CLI_PROMPT_PICTURES_H

#include "forerun.h"

#define FR_PICTURE_PLACE "{image}"

/* Returns true if the bytes contain a mark for a picture. */
bool fr_has_picture_place(const fr_model *model, const char *bytes, size_t length);

/* Replaces each `place` in the bytes, such as FR_PICTURE_PLACE, by the template's mark. If `wrapped` is true, the text
 * that the template writes around the mark is inserted too. *bytes is freed by fr_free. */
void fr_mark_picture_places(const fr_model *model, const char *place, bool wrapped, char **bytes, size_t *length);

/* Converts a text with pictures to ids. Marks are replaced only in the trusted parts of the text. So a user can't add a
 * picture by typing a mark. */
fr_status fr_tokenize_pictures(const fr_model *model, fr_picture *const *pictures, size_t count,
                               const fr_marked_text *text, int32_t **ids, size_t *id_count);

/* Converts bytes with pictures to ids. All of the bytes are trusted, because they are a raw prompt. begins: the bytes
 * are the beginning of the text (add_special of fr_tokenize). */
fr_status fr_tokenize_raw_pictures(const fr_model *model, fr_picture *const *pictures, size_t count, const char *bytes,
                                   size_t length, bool begins, int32_t **ids, size_t *id_count);

#endif
