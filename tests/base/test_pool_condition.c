/* Tests the pool with threads that sleep on condition variables. The cases are those of test_pool.c. They are linked
 * with the functions of base/sleep_condition.c instead of this system's futexes. */
/* suite: threads alone native links=condition */
#include "tests/base/test_pool.c"
