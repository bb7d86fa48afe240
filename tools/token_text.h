/* What one id adds to a text. */
#ifndef FR_TOOLS_TOKEN_TEXT_H
#define FR_TOOLS_TOKEN_TEXT_H

#include "forerun.h"

/* Its bytes behind others: at a text's beginning some tokenizers leave out a blank. Control tokens too are as they are
 * written. *bytes: fr_free it; FR_INPUT: the id is no token's. */
fr_status fr_token_text(const fr_tokenizer *tokenizer, int32_t id, char **bytes, size_t *length);

#endif
