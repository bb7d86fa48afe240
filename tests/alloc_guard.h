/* Counts the allocations that this process makes: malloc, calloc and realloc are replaced in every suite.
 *
 * In: the calls themselves. Out: how many there were. Under a sanitizer the sanitizer's own allocator must stay, so
 * nothing is counted and fr_alloc_counted() says so. */
#ifndef FR_TESTS_ALLOC_GUARD_H
#define FR_TESTS_ALLOC_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Whether allocations are counted in this build. */
bool fr_alloc_counted(void);

/* Allocations so far, of all threads. */
size_t fr_alloc_count(void);

#endif
