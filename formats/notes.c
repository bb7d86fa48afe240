/* Collects lines about a model (notes.h). */
#include "formats/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fr_notes_add(fr_notes *notes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char **line = &notes->lines[notes->count];
    if (notes->count < FR_NOTES_MAX && vasprintf(line, format, arguments) >= 0) notes->count++;
    va_end(arguments);
}

static bool has(const fr_notes *notes, const char *line) {
    for (size_t i = 0; i < notes->count; i++)
        if (strcmp(notes->lines[i], line) == 0) return true;
    return false;
}

void fr_notes_copy(fr_notes *notes, const fr_notes *from) {
    for (size_t i = 0; i < from->count; i++)
        if (!has(notes, from->lines[i])) fr_notes_add(notes, "%s", from->lines[i]);
}

void fr_notes_free(fr_notes *notes) {
    for (size_t i = 0; i < notes->count; i++) free(notes->lines[i]);
    *notes = (fr_notes){0};
}

const char *fr_notes_line(const fr_notes *notes, size_t index) {
    return index < notes->count ? notes->lines[index] : NULL;
}
