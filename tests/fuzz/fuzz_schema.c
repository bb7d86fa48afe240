/* libFuzzer's target for JSON schemas. The target makes a well-formed schema from the input's bytes.
 *
 * In: any bytes. Out: a crash if a sanitizer finds an error, or if the grammar refuses a token that its mask allows. */
#include <stdlib.h>

#include "base/hash.h"
#include "tests/fuzz/grammar_walk.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/made_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char *text = fuzz_made_schema(bytes, size);
    uint32_t seed = (uint32_t)fr_hash(0, bytes, size);
    if (text) fuzz_inputs_read += fuzz_walk_grammar(FR_GRAMMAR_JSON_SCHEMA, text, strlen(text), seed);
    free(text);
    return 0;
}
