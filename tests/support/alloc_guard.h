/* Counts the allocations that this process makes: malloc and its kin are replaced in every suite.
 *
 * In: the calls themselves. Out: how many there were; a suite can make one of them fail. Under a sanitizer the
 * sanitizer's own allocator must stay, so nothing is counted and fr_alloc_counted() says so. */
#ifndef FR_TESTS_ALLOC_GUARD_H
#define FR_TESTS_ALLOC_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* True if allocations are counted in this build. */
bool fr_alloc_counted(void);

/* Returns the number of allocations so far, of all threads. */
size_t fr_alloc_count(void);

/* Returns how many of them have not been freed yet. */
size_t fr_alloc_live(void);

/* One allocation fails from now on, in any thread, after `after` more have succeeded; SIZE_MAX: none fails. */
void fr_alloc_fail(size_t after);

/* True if it has failed. */
bool fr_alloc_failed(void);

#endif
