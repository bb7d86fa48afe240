/* Finds the marks for pictures in a prompt, and replaces them by the pictures' tokens (prompt_pictures.h). */
#include "tools/cli/prompt_pictures.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

bool fr_has_picture_place(const fr_model *model, const char *bytes, size_t length) {
    const char *mark = fr_model_image_mark(model);
    return bytes && mark &&
           (memmem(bytes, length, FR_PICTURE_PLACE, strlen(FR_PICTURE_PLACE)) ||
            memmem(bytes, length, mark, strlen(mark)));
}

/* Gives the text that the model's template writes for a picture that is between two texts. It consists of the mark and
 * the text around the mark. */
static char *write_picture(const fr_model *model) {
    static const char said[] = "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"A\"}, "
                               "{\"type\": \"image\"}, {\"type\": \"text\", \"text\": \"B\"}]}]";
    const char *mark = fr_model_image_mark(model);
    fr_marked_text text = {0};
    char *written = strdup(mark);
    if (fr_chat_render(fr_model_tokenizer(model), said, "{\"pictures\": true}", &text) == FR_OK) {
        const char *found = strstr(text.text, mark);
        const char *begin = found ? memrchr(text.text, 'A', (size_t)(found - text.text)) : NULL;
        const char *end = found ? strchr(found + strlen(mark), 'B') : NULL;
        if (begin && end) {
            free(written);
            written = strndup(begin + 1, (size_t)(end - begin - 1));
        }
    }
    fr_marked_text_free(&text);
    return written ? written : fr_resize(NULL, 1, 1);
}

void fr_mark_picture_places(const fr_model *model, const char *place, bool wrapped, char **bytes, size_t *length) {
    const char *mark = fr_model_image_mark(model);
    if (!*bytes || !mark || !memmem(*bytes, *length, place, strlen(place))) return;
    char *written = wrapped ? write_picture(model) : NULL, *marked = NULL;
    const char *put = written ? written : mark, *at = *bytes, *end = *bytes + *length;
    size_t count = 0, size = strlen(put);
    while (at < end) {
        const char *found = memmem(at, (size_t)(end - at), place, strlen(place));
        size_t plain = (size_t)((found ? found : end) - at);
        marked = fr_resize(marked, count + plain + size + 1, 1);
        memcpy(marked + count, at, plain);
        count += plain;
        if (found) memcpy(marked + count, put, size);
        count += found ? size : 0;
        at = found ? found + strlen(place) : end;
    }
    marked[count] = '\0';
    free(written);
    fr_free(*bytes);
    *bytes = marked;
    *length = count;
}

/* Copies the text, because the pictures' tokens are put into it, and the caller may need it without them. */
static fr_marked_text copy_text(const fr_marked_text *text) {
    fr_marked_text copy = {.length = text->length, .trusted_count = text->trusted_count};
    copy.text = fr_resize(NULL, text->length + 1, 1);
    copy.trusted = fr_resize(NULL, text->trusted_count + 1, sizeof *copy.trusted);
    memcpy(copy.text, text->text, text->length);
    copy.text[text->length] = '\0';
    if (text->trusted_count) memcpy(copy.trusted, text->trusted, text->trusted_count * sizeof *copy.trusted);
    return copy;
}

fr_status fr_tokenize_pictures(const fr_model *model, fr_picture *const *pictures, size_t count,
                               const fr_marked_text *text, int32_t **ids, size_t *id_count) {
    if (!count) return fr_tokenize_marked(fr_model_tokenizer(model), text, ids, id_count);
    fr_marked_text copy = copy_text(text);
    fr_status status = fr_pictures_spell(model, (const fr_picture *const *)pictures, count, &copy);
    if (status == FR_OK) status = fr_tokenize_marked(fr_model_tokenizer(model), &copy, ids, id_count);
    fr_marked_text_free(&copy);
    return status;
}

fr_status fr_tokenize_raw_pictures(const fr_model *model, fr_picture *const *pictures, size_t count, const char *bytes,
                                   size_t length, bool begins, int32_t **ids, size_t *id_count) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(model);
    if (!count) return fr_tokenize(tokenizer, bytes, length, begins, true, ids, id_count);
    fr_span all = {0, length};
    const fr_marked_text text = {
        .text = (char *)(uintptr_t)bytes, .length = length, .trusted = &all, .trusted_count = 1};
    fr_marked_text copy = copy_text(&text);
    fr_status status = fr_pictures_spell(model, (const fr_picture *const *)pictures, count, &copy);
    if (status == FR_OK) status = fr_tokenize(tokenizer, copy.text, copy.length, begins, true, ids, id_count);
    fr_marked_text_free(&copy);
    return status;
}
