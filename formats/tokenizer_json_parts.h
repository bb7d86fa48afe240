/* Declares the functions that read the stages of a tokenizer.json. Each stage has a file of its own.
 *
 * In: the JSON of a source's root. Out: the same source with the stage added. */
#ifndef FR_FORMATS_TOKENIZER_JSON_PARTS_H
#define FR_FORMATS_TOKENIZER_JSON_PARTS_H

#include "formats/json.h"
#include "formats/tokenizer_source.h"

/* Reads the members "normalizer", "pre_tokenizer" and "decoder" of a source's root (tokenizer_json_rules.c). The model
 * must have been read already. */
fr_status fr_tokenizer_json_rules(fr_tokenizer_source *source);

/* Makes the tree of a tokenizer.json from vocab.json and merges.txt (tokenizer_vocab.c). The caller owns *root, also
 * after a failure. */
fr_status fr_tokenizer_json_of_vocabulary(const char *folder, json_t **root);

/* Reads "post_processor" (tokenizer_json_processor.c). */
fr_status fr_tokenizer_json_processor(fr_tokenizer_source *source);

#endif
