/* Opens a tokenizer with the chat templates that go with it.
 *
 * In: a folder with a tokenizer.json, or a GGUF file's metadata. Out: an immutable fr_tokenizer. */
#ifndef FR_SRC_LANGUAGE_CHAT_TOKENIZER_OPEN_H
#define FR_SRC_LANGUAGE_CHAT_TOKENIZER_OPEN_H

#include "formats/gguf.h"

/* Open the tokenizer in a GGUF file's metadata, or in a folder. chat_template: the path of a template to be used
 * instead of the checkpoint's own. pre: the name of a pre-tokenizer to be used instead of the one that a GGUF file
 * names. Both: "" for none. */
fr_status fr_tokenizer_from_gguf(const fr_gguf *gguf, const char *chat_template, const char *pre,
                                 fr_tokenizer **tokenizer);
fr_status fr_tokenizer_from_folder(const char *folder, const char *chat_template, const char *pre,
                                   fr_tokenizer **tokenizer);

#endif
