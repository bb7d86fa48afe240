/* Copies a published folder with another config.json. The other files of the copy are links. A suite uses this, for
 * example, to get a fixture with room for longer texts.
 *
 * In: a folder, members that replace those of its config.json, and texts that replace other files. Out: a folder in
 * /tmp. Any failure ends the test. */
#ifndef FR_TESTS_CHANGED_FOLDER_H
#define FR_TESTS_CHANGED_FOLDER_H

#include <stddef.h>

typedef struct fr_changed_folder {
    char path[64];
} fr_changed_folder;

void fr_changed_folder_make(fr_changed_folder *folder, const char *from, const char *changes);
void fr_changed_folder_write(const fr_changed_folder *folder, const char *name, const char *text);

/* Sets all bytes of one row of a matrix to `byte`; a vector has only row 0. fr_changed_folder_damage sets the values to
 * NaN. The folder's weights must be a model.safetensors in float16, bfloat16 or float32. */
void fr_changed_folder_fill(const fr_changed_folder *folder, const char *tensor, size_t row, unsigned char byte);
void fr_changed_folder_damage(const fr_changed_folder *folder, const char *tensor, size_t row);

/* Replaces a text in the header of the folder's model.safetensors by another one of the same length. */
void fr_changed_folder_edit(const fr_changed_folder *folder, const char *from, const char *to);

void fr_changed_folder_remove(const fr_changed_folder *folder);

#endif
