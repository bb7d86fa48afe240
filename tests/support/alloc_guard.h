/* Counts the allocations of this process. In every suite, the functions of alloc_guard.c replace malloc and its
 * relatives.
 *
 * In: the calls themselves. Out: the number of allocations. A suite can also make one allocation fail. A sanitizer
 * needs its own allocator, so in builds with one nothing is counted, and fr_alloc_counted() returns false. */
#ifndef FR_TESTS_ALLOC_GUARD_H
#define FR_TESTS_ALLOC_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Returns true if allocations are counted in this build. */
bool fr_alloc_counted(void);

/* Returns the number of allocations of all threads so far. */
size_t fr_alloc_count(void);

/* Returns the number of allocations that have not been freed so far. */
size_t fr_alloc_live(void);

/* Makes one allocation of any thread fail, after `after` more allocations have succeeded. With SIZE_MAX no allocation
 * fails. */
void fr_alloc_fail(size_t after);

/* Returns true if the allocation that fr_alloc_fail chose has failed. */
bool fr_alloc_failed(void);

#endif
