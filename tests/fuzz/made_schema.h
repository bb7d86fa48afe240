/* Makes JSON schemas of any bytes, because a fuzzer that changes the bytes of a text seldom arrives at one that is
 * valid JSON.
 *
 * In: bytes. Out: a schema made of them, in memory from malloc; most of its keywords have values of the right type. */
#ifndef FR_TESTS_FUZZ_MADE_SCHEMA_H
#define FR_TESTS_FUZZ_MADE_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

char *fuzz_made_schema(const uint8_t *bytes, size_t size);

#endif
