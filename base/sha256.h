/* SHA-256 (FIPS 180-4): digests that nobody can make two equal ones of.
 *
 * In: bytes, in pieces. Out: 32 of them, which stand for all. Where nobody has an interest in equal ones, hash.h is
 * faster. */
#ifndef FR_BASE_SHA256_H
#define FR_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { FR_SHA256_BYTES = 32, FR_SHA256_BLOCK = 64 };

typedef struct fr_sha256 {
    uint32_t state[8];
    uint64_t size; /* bytes so far */
    uint8_t block[FR_SHA256_BLOCK]; /* the last ones, which don't fill it */
} fr_sha256;

fr_sha256 fr_sha256_begin(void);
void fr_sha256_add(fr_sha256 *hash, const void *bytes, size_t size);
void fr_sha256_end(fr_sha256 *hash, uint8_t digest[FR_SHA256_BYTES]);

#endif
