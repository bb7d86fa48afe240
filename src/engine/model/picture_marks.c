/* Replaces the marks of pictures in a prompt's text by the tokens that stand for the pictures. Templates or users wrote
 * these marks.
 *
 * In: a text, pictures. Out: the text with image tokens, and with the tokens around them that the model was trained
 * with. This is done before the text is tokenized, because a line break next to a picture may become one token with a
 * line break of the text. */
#include "src/engine/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/vision/picture.h"

static const char *image_token(const fr_model *model) {
    bool sees = model->vision && model->tokenizer && model->image_token >= 0;
    return sees ? fr_token_text(model->tokenizer, model->image_token, NULL) : NULL;
}

const char *fr_model_picture_mark(const fr_model *model) {
    const char *token = image_token(model), *mark = model->vision ? fr_vision_mark(model->vision) : NULL;
    return token && mark ? mark : token;
}

/* Appends a trusted span of the text, and replaces the marks in it by the pictures' texts. *picture: number of the next
 * picture. */
static void spell_span(const fr_model *model, const fr_picture *const *pictures, size_t count, const char *mark,
                       const fr_marked_text *text, fr_span span, size_t *picture, fr_text_buffer *spelled) {
    const char *at = text->text + span.begin, *end = text->text + span.end;
    while (*picture < count) {
        const char *found = memmem(at, (size_t)(end - at), mark, strlen(mark));
        if (!found) break;
        const fr_image *image = &pictures[(*picture)++]->image;
        fr_text_append(spelled, at, (size_t)(found - at));
        fr_vision_spell(model->vision, image->width, image->height, image_token(model), spelled);
        at = found + strlen(mark);
    }
    fr_text_append(spelled, at, (size_t)(end - at));
}

fr_status fr_model_spell_pictures(const fr_model *model, const fr_picture *const *pictures, size_t count,
                                  fr_marked_text *text) {
    const char *mark = fr_model_picture_mark(model);
    fr_text_buffer spelled = {0};
    size_t picture = 0, at = 0, length;
    char *bytes;
    if (!mark) return FR_OK;
    for (size_t i = 0; i < text->trusted_count; i++) {
        fr_span *span = &text->trusted[i];
        fr_text_append(&spelled, text->text + at, span->begin - at);
        size_t begin = spelled.length;
        spell_span(model, pictures, count, mark, text, *span, &picture, &spelled);
        at = span->end;
        *span = (fr_span){begin, spelled.length};
    }
    fr_text_append(&spelled, text->text + at, text->length - at);
    FR_TRY(fr_text_take(&spelled, "a prompt with pictures", &bytes, &length));
    free(text->text);
    text->text = bytes;
    text->length = length;
    return FR_OK;
}
