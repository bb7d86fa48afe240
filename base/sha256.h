/* Computes SHA-256 digests (FIPS 180-4): no way is known to find two inputs with the same digest.
 *
 * In: bytes, in pieces. Out: a digest of 32 bytes for all pieces together. Where no attacker gains from equal digests,
 * hash.h is faster. */
#ifndef FR_BASE_SHA256_H
#define FR_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { FR_SHA256_BYTES = 32, FR_SHA256_BLOCK = 64 };

typedef struct fr_sha256 {
    uint32_t state[8];
    uint64_t size;                  /* bytes added so far */
    uint8_t block[FR_SHA256_BLOCK]; /* the bytes at the end of the input so far, which do not fill a block yet */
} fr_sha256;

fr_sha256 fr_sha256_begin(void);
void fr_sha256_add(fr_sha256 *hash, const void *bytes, size_t size);
void fr_sha256_end(fr_sha256 *hash, uint8_t digest[FR_SHA256_BYTES]);

#endif
