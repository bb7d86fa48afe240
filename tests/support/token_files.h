/* Opens tokenizers for tests, from tests/data or from JSON text, and checks them against a list of cases.
 *
 * All functions end the test on any failure. */
#ifndef FR_TESTS_TOKEN_FILES_H
#define FR_TESTS_TOKEN_FILES_H

#include <jansson.h>

#include "forerun.h"

#define TOKENIZERS "tests/data/tokenizers/"

/* Return a file of tests/data: as JSON, or as a text, NUL-terminated and malloc'd. */
json_t *fr_load_json(const char *path);
char *fr_load_text(const char *path, size_t *length);

/* Returns the expected result of fr_chat_render for a case of tests/data/chat, which adapts messages to the template:
 * its own "rendered", or that in adapted.json. NULL: a failure. */
const json_t *fr_chat_case_text(const json_t *adapted, const char *style, const json_t *item);

/* Calls fr_tokenizer_open on a folder with this tokenizer.json and, unless NULL, this tokenizer_config.json. */
fr_status fr_open_text(const char *text, size_t length, const char *config, fr_tokenizer **tokenizer);

/* Does the same with a JSON value, which must be accepted. */
fr_tokenizer *fr_open_value(const json_t *value);

/* A temporary empty folder, which is removed again. It has room for the name of one file in it. */
typedef struct fr_test_folder {
    char path[64], file[128];
} fr_test_folder;

void fr_folder_make(fr_test_folder *folder);
void fr_folder_remove(fr_test_folder *folder);
FILE *fr_folder_create(fr_test_folder *folder, const char *name);

/* Checks cases {"text", "ids", ...}: the ids, and "ids_with_special", "decoded", "decoded_skip_special" if there are
 * any. */
void fr_check_encoding(const fr_tokenizer *tokenizer, const json_t *cases, const char *name);

/* Returns the bytes of ids from fr_detokenize; checks that a decoder gives the same and never cuts a character. */
char *fr_print_ids(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, size_t *length);

/* Returns a JSON array of ids; *count: its length. The caller frees it. */
int32_t *fr_ids_of(const json_t *array, size_t *count);

/* True if the bytes are valid UTF-8, checked by decoding them as JSON. */
bool fr_is_utf8(const char *bytes, size_t length);

/* Writes the bytes as Python's decoder with replacement does: one U+FFFD for each longest start of an invalid
 * character (Unicode, 3.9, U+FFFD substitution of maximal subparts). out has room for three times as many bytes and a
 * NUL. Returns its length. */
size_t fr_print_replaced(const char *bytes, size_t length, char *out);

#endif
