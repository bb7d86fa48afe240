/* Collects notes about an opened model, for example that a head is slower than it could be.
 *
 * In: printf formats. Out: lines, in the order in which they were written. If memory runs out, a note is dropped. */
#ifndef FR_FORMATS_NOTES_H
#define FR_FORMATS_NOTES_H

#include "forerun.h"

#define FR_NOTES_MAX 16

typedef struct fr_notes {
    char *lines[FR_NOTES_MAX];
    size_t count;
} fr_notes;

void fr_notes_add(fr_notes *notes, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fr_notes_copy(fr_notes *notes, const fr_notes *from); /* copies only lines that `notes` lacks */
void fr_notes_free(fr_notes *notes);

/* Gives a line; NULL past the last one. */
const char *fr_notes_line(const fr_notes *notes, size_t index);

#endif
