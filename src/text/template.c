/* Compiling and rendering templates: see template.h. */
#include "src/text/template.h"

#include <stdlib.h>

void fr_marked_text_free(fr_marked_text *text) {
    if (!text) return;
    free(text->text);
    free(text->trusted);
    *text = (fr_marked_text){0};
}
