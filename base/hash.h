/* Computes hashes of bytes, and sizes of hash tables.
 *
 * In: bytes. Out: a number that almost always differs if the bytes do. An attacker can find different bytes with equal
 * hashes, so callers compare the items that they find by a hash, and limit how far they search a table. */
#ifndef FR_BASE_HASH_H
#define FR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Adds bytes to a hash; a hash begins as 0. A text may be hashed in pieces with the same result as in one call, if
 * every piece except the last has a multiple of 8 bytes. */
uint64_t fr_hash(uint64_t hash, const void *bytes, size_t size);

/* Gives the size of a hash table for `count` items: the smallest power of two that is at least twice count. */
size_t fr_hash_table_size(size_t count);

#endif
