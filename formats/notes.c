/* Lines that grow: see notes.h. */
#include "formats/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void fr_notes_add(fr_notes *notes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char **line = &notes->lines[notes->count];
    if (notes->count < FR_MAX_NOTES && vasprintf(line, format, arguments) >= 0) notes->count++;
    va_end(arguments);
}

void fr_notes_copy(fr_notes *notes, const fr_notes *from) {
    for (size_t i = 0; i < from->count; i++) fr_notes_add(notes, "%s", from->lines[i]);
}

void fr_notes_free(fr_notes *notes) {
    for (size_t i = 0; i < notes->count; i++) free(notes->lines[i]);
    *notes = (fr_notes){0};
}

const char *fr_notes_line(const fr_notes *notes, size_t index) {
    return index < notes->count ? notes->lines[index] : NULL;
}
