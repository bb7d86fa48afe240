/* Makes JSON schemas from any bytes. A fuzzer that changes the bytes of a JSON text seldom gets valid JSON, so it
 * changes these bytes instead.
 *
 * In: any bytes. Out: a schema that depends only on the bytes; the caller frees it. Most of its keywords have values of
 * the right type. */
#ifndef FR_TESTS_FUZZ_MADE_SCHEMA_H
#define FR_TESTS_FUZZ_MADE_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

char *fuzz_made_schema(const uint8_t *bytes, size_t size);

#endif
