/* Computes hashes: see hash.h. */
#include "base/hash.h"

#include <string.h>

uint64_t fr_hash(uint64_t hash, const void *bytes, size_t size) {
    const uint8_t *at = bytes;
    while (size > 0) {
        uint64_t word = 0;
        size_t part = size < sizeof word ? size : sizeof word;
        memcpy(&word, at, part);
        hash = (hash ^ word) * 0x9fb21c651e98df25u + part;
        hash ^= hash >> 32;
        at += part;
        size -= part;
    }
    return hash;
}

size_t fr_hash_table_size(size_t count) {
    size_t size = 16;
    while (size < 2 * count) size *= 2;
    return size;
}
