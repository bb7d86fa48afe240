/* Makes and frees the state that an answer keeps for a choice (answer_parts.h). */
#include <stdlib.h>

#include "tools/serve/answer_parts.h"

fr_telling *fr_telling_of(fr_generation_request *request, fr_choice *choice) {
    if (choice->telling) return choice->telling;
    fr_telling *t = choice->telling = fr_resize(NULL, 1, sizeof *t);
    *t = (fr_telling){.request = request, .choice = choice};
    return t;
}

void fr_answer_forget(fr_choice *choice) {
    fr_telling *t = choice->telling;
    if (!t) return;
    json_decref(t->whole);
    json_decref(t->call);
    json_decref(t->item.call);
    json_decref(t->items);
    fr_stream_free(&t->item.text);
    fr_stream_free(&t->text);
    free(t);
    choice->telling = NULL;
}
