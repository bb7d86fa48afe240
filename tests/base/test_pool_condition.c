/* Tests the pool where threads sleep on condition variables: the cases of test_pool.c, linked with the functions of
 * base/sleep_condition.c in place of the futexes of this system. */
/* suite: threads alone native links=condition */
#include "tests/base/test_pool.c"
