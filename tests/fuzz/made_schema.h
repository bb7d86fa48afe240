/* JSON schemas made of any bytes: what a fuzzer that changes bytes seldom comes to, as most of its texts are no JSON.
 *
 * In: bytes. Out: a schema of them, whose keywords have values that they may have, but for some; from malloc. */
#ifndef FR_TESTS_FUZZ_MADE_SCHEMA_H
#define FR_TESTS_FUZZ_MADE_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

char *fuzz_made_schema(const uint8_t *bytes, size_t size);

#endif
