/* Computes SHA-256: see sha256.h. Variables have the names of the standard. */
#include "base/sha256.h"

#include <string.h>

#include "base/sizes.h"

enum { ROUNDS = 64, LENGTH_BYTES = 8 };

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int bits) {
    return x >> bits | x << (32 - bits);
}

static uint32_t big_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void schedule(const uint8_t *block, uint32_t w[ROUNDS]) {
    for (size_t t = 0; t < 16; t++) w[t] = big_endian(block + 4 * t);
    for (size_t t = 16; t < ROUNDS; t++) {
        uint32_t a = w[t - 15], b = w[t - 2];
        uint32_t low = rotate(a, 7) ^ rotate(a, 18) ^ a >> 3, high = rotate(b, 17) ^ rotate(b, 19) ^ b >> 10;
        w[t] = w[t - 16] + low + w[t - 7] + high;
    }
}

static void compress(uint32_t state[8], const uint8_t *block) {
    uint32_t w[ROUNDS], v[8];
    schedule(block, w);
    memcpy(v, state, sizeof v);
    for (size_t t = 0; t < ROUNDS; t++) {
        uint32_t a = v[0], e = v[4], choice = (e & v[5]) ^ (~e & v[6]);
        uint32_t majority = (a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]);
        uint32_t first = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + constants[t] + w[t];
        uint32_t second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += first;
        v[0] = first + second;
    }
    for (size_t i = 0; i < 8; i++) state[i] += v[i];
}

/* Begins with the first 32 bits of the fractions of the square roots of the first 8 primes. */
fr_sha256 fr_sha256_begin(void) {
    return (fr_sha256){
        .state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void fr_sha256_add(fr_sha256 *hash, const void *bytes, size_t size) {
    for (const uint8_t *at = bytes; size > 0;) {
        size_t held = hash->size % FR_SHA256_BLOCK, part = fr_smaller(size, FR_SHA256_BLOCK - held);
        memcpy(hash->block + held, at, part);
        hash->size += part;
        at += part;
        size -= part;
        if (held + part == FR_SHA256_BLOCK) compress(hash->state, hash->block);
    }
}

/* Pads the last block: one bit that is set, zeros, and the number of bits, big-endian. */
void fr_sha256_end(fr_sha256 *hash, uint8_t digest[FR_SHA256_BYTES]) {
    static const uint8_t padding[FR_SHA256_BLOCK] = {0x80};
    uint8_t length[LENGTH_BYTES];
    uint64_t bits = hash->size * 8;
    size_t held = hash->size % FR_SHA256_BLOCK, room = FR_SHA256_BLOCK - LENGTH_BYTES;
    for (size_t i = 0; i < LENGTH_BYTES; i++) length[i] = (uint8_t)(bits >> (56 - 8 * i));
    fr_sha256_add(hash, padding, held < room ? room - held : FR_SHA256_BLOCK + room - held);
    fr_sha256_add(hash, length, sizeof length);
    for (size_t i = 0; i < FR_SHA256_BYTES; i++) digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}
