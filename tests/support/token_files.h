/* Opens tokenizers for tests, from tests/data or from JSON text, and checks them with a list of cases.
 *
 * Any failure ends the test. */
#ifndef FR_TESTS_TOKEN_FILES_H
#define FR_TESTS_TOKEN_FILES_H

#include <jansson.h>

#include "forerun.h"

#define TOKENIZERS "tests/data/tokenizers/"

/* These functions return a file of tests/data. fr_load_json returns it as JSON. fr_load_text returns it as a
 * NUL-terminated text, which the caller frees. */
json_t *fr_load_json(const char *path);
char *fr_load_text(const char *path, size_t *length);

/* Returns the text that fr_chat_render must give for a case of tests/data/chat, or NULL if fr_chat_render must fail.
 * fr_chat_render adapts messages to the template. If this changes the text, adapted.json has the changed text.
 * Otherwise the text is the case's "rendered". */
const json_t *fr_chat_case_text(const json_t *adapted, const char *style, const json_t *item);

/* Opens a tokenizer from a folder with this tokenizer.json. If `config` is not NULL, it is the folder's
 * tokenizer_config.json. */
fr_status fr_open_text(const char *text, size_t length, const char *config, fr_tokenizer **tokenizer);

/* Opens a tokenizer from a JSON value. The value must be accepted. */
fr_tokenizer *fr_open_value(const json_t *value);

/* A temporary folder. It is empty at first and is removed at the end. `file` has room for the path of one file in
 * it. */
typedef struct fr_test_folder {
    char path[64], file[128];
} fr_test_folder;

void fr_folder_make(fr_test_folder *folder);
void fr_folder_remove(fr_test_folder *folder);
FILE *fr_folder_create(fr_test_folder *folder, const char *name);

/* Checks cases of the form {"text", "ids", ...}. Checks the ids, and also "ids_with_special", "decoded" and
 * "decoded_skip_special" if the case has them. */
void fr_check_encoding(const fr_tokenizer *tokenizer, const json_t *cases, const char *name);

/* Returns the bytes that fr_detokenize gives for the ids. Also checks that a decoder gives the same bytes and never
 * divides a character. */
char *fr_print_ids(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, size_t *length);

/* Returns the ids of a JSON array and sets *count to their number. The caller frees the ids. */
int32_t *fr_ids_of(const json_t *array, size_t *count);

/* Returns true if the bytes are valid UTF-8. To check this, decodes them as JSON. */
bool fr_is_utf8(const char *bytes, size_t length);

/* Writes the bytes as Python's decoder with replacement does. It writes one U+FFFD for each longest beginning of an
 * invalid character (Unicode, 3.9, U+FFFD substitution of maximal subparts). `out` must have room for three times as
 * many bytes and a NUL. Returns the length of the output. */
size_t fr_print_replaced(const char *bytes, size_t length, char *out);

#endif
