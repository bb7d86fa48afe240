/* Opens a tokenizer and the chat templates of the same checkpoint.
 *
 * In: a folder with a tokenizer.json, or a GGUF file's metadata. Out: an immutable fr_tokenizer. */
#ifndef FR_SRC_LANGUAGE_CHAT_TOKENIZER_OPEN_H
#define FR_SRC_LANGUAGE_CHAT_TOKENIZER_OPEN_H

#include "formats/gguf.h"

/* Open the tokenizer in a GGUF file's metadata, or in a folder. chat_template: the path of a template that replaces the
 * checkpoint's own; "" for none. pre: the name of a pre-tokenizer that replaces the one that a GGUF file names; "" for
 * none. */
fr_status fr_tokenizer_from_gguf(const fr_gguf *gguf, const char *chat_template, const char *pre,
                                 fr_tokenizer **tokenizer);
fr_status fr_tokenizer_from_folder(const char *folder, const char *chat_template, const char *pre,
                                   fr_tokenizer **tokenizer);

#endif
