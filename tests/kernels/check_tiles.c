/* Runs check_blocks with AMX's tiles emulated (tests/emulated), so that machines without AMX check its kernels too.
 * Without arguments, as `make check` runs it, it checks the kernels of AMX alone. */
/* suite: links=tiles native no-valgrind */
#define FR_CHECK_FILTER  "_amx"
#define FR_CHECK_SPARSER 3
#include "tests/kernels/check_blocks.c"
