/* A token between others (token_text.h). */
#include "token_text.h"

#include <string.h>

/* Twice the token is the token once more behind itself, whatever its first is without. */
fr_status fr_token_text(const fr_tokenizer *tokenizer, int32_t id, char **bytes, size_t *length) {
    const int32_t twice[2] = {id, id};
    char *first = NULL;
    size_t skipped = 0;
    *bytes = NULL;
    fr_status status = fr_detokenize(tokenizer, twice, 1, &first, &skipped);
    if (status == FR_OK) status = fr_detokenize(tokenizer, twice, 2, bytes, length);
    if (status == FR_OK) {
        *length -= skipped;
        memmove(*bytes, *bytes + skipped, *length);
    }
    fr_free(first);
    return status;
}
