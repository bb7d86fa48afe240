/* Frees the plain data of a tokenizer (tokenizer_source.h). */
#include "formats/tokenizer_source.h"

#include <stdlib.h>

void fr_tokenizer_source_close(fr_tokenizer_source *source) {
    json_decref(source->root);
    json_decref(source->beside);
    json_decref(source->named);
    fr_notes_free(&source->notes);
    free(source->texts);
    free(source->charsmap);
    free(source->path);
    free(source->vocabulary);
    free(source->merges);
    free(source->scores);
    free(source->added);
    *source = (fr_tokenizer_source){0};
}
