/* Corrects the checksums of a damaged PNG. Wrong checksums would hide most damage, because readers would stop at them.
 *
 * In: the bytes of a PNG, damaged or not. Out: the same bytes with a correct checksum in each complete chunk. */
#ifndef FR_TESTS_FUZZ_PNG_H
#define FR_TESTS_FUZZ_PNG_H

#include "tests/fuzz/mutation.h"

static inline uint32_t big_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static inline uint32_t checksum(const uint8_t *bytes, size_t count) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

static inline void seal(blob *b) {
    for (size_t at = 8; at + 12 <= b->size;) {
        size_t length = big_endian(b->bytes + at);
        if (length > b->size - at - 12) return;
        uint32_t crc = checksum(b->bytes + at + 4, length + 4);
        for (size_t i = 0; i < 4; i++) b->bytes[at + 8 + length + i] = (uint8_t)(crc >> (24 - 8 * i));
        at += length + 12;
    }
}

#endif
