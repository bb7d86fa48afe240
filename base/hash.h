/* Hashes, and how large a table by hash is.
 *
 * In: bytes. Out: a number that differs where they do, by chance; whoever wants two equal ones finds them. So what is
 * found by hash is compared, and how far a table is searched has a bound. */
#ifndef FR_BASE_HASH_H
#define FR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Hashes more bytes into a hash (0 begins one). Pieces give the same as the whole where they are multiples of 8. */
uint64_t fr_hash(uint64_t hash, const void *bytes, size_t size);

/* The smallest power of two that is at least twice count: the size of a hash table for count items. */
size_t fr_hash_table_size(size_t count);

#endif
