/* Runs check_blocks with AMX's tiles emulated (tests/emulated). So machines without AMX check the AMX kernels too.
 * `make check` runs this program without arguments; then it checks only the AMX kernels. */
/* suite: links=tiles native no-valgrind */
#define FR_CHECK_FILTER  "_amx"
#define FR_CHECK_SPARSER 3
#include "tests/kernels/check_blocks.c"
