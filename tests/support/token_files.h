/* Opens tokenizers for tests, from tests/data or from JSON text, and checks them against a list of cases.
 *
 * All functions end the test on any failure. */
#ifndef FR_TESTS_TOKEN_FILES_H
#define FR_TESTS_TOKEN_FILES_H

#include <jansson.h>

#include "forerun.h"

#define TOKENIZERS "tests/data/tokenizers/"

/* A file of tests/data: JSON, or any text, NUL-terminated and malloc'd. */
json_t *fr_load_json(const char *path);
char *fr_load_text(const char *path, size_t *length);

/* What a case of tests/data/chat should give behind fr_chat_render, which brings messages into the form that the
 * template takes: its own "rendered", or that of adapted.json. NULL: a failure. */
const json_t *fr_chat_case_text(const json_t *adapted, const char *style, const json_t *item);

/* What fr_tokenizer_open says to a folder with this tokenizer.json, and, unless NULL, this tokenizer_config.json. */
fr_status fr_open_text(const char *text, size_t length, const char *config, fr_tokenizer **tokenizer);

/* The same for a JSON value, which must be accepted. */
fr_tokenizer *fr_open_value(const json_t *value);

/* A temporary folder, empty, and gone again. It has room for one name in it. */
typedef struct fr_test_folder {
    char path[64], file[128];
} fr_test_folder;

void fr_folder_make(fr_test_folder *folder);
void fr_folder_remove(fr_test_folder *folder);
FILE *fr_folder_create(fr_test_folder *folder, const char *name);

/* Cases {"text", "ids", ...}: ids, and what of "ids_with_special", "decoded", "decoded_skip_special" there is. */
void fr_check_encoding(const fr_tokenizer *tokenizer, const json_t *cases, const char *name);

/* The bytes of ids by fr_detokenize; those of a decoder are found to be the same, and never cut inside a character. */
char *fr_print_ids(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, size_t *length);

/* A JSON array of ids; count gets its length. For the caller to free. */
int32_t *fr_ids_of(const json_t *array, size_t *count);

/* Whether the bytes are valid UTF-8, by decoding them as JSON. */
bool fr_is_utf8(const char *bytes, size_t length);

/* What Python's decoder with replacement prints: one U+FFFD for each longest beginning of a character that goes wrong
 * (Unicode, 3.9, U+FFFD substitution of maximal subparts). out has room for three times as many bytes and a NUL; gives
 * its length. */
size_t fr_print_replaced(const char *bytes, size_t length, char *out);

#endif
