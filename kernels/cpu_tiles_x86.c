/* Finds AMX's tiles and asks for them: see cpu_tiles.h. */
#include "kernels/cpu_tiles.h"

#include <cpuid.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux lets a process use the tiles only after it has asked. The first two constants are ARCH_GET_XCOMP_SUPP and
 * ARCH_REQ_XCOMP_PERM of arch_prctl. The third is the number of the tiles' data among the register sets. */
enum { GET_SUPPORTED = 0x1021, ASK_PERMISSION = 0x1023, TILE_DATA = 18 };

bool fr_cpu_has_tiles(void) {
    const unsigned tiles = 1u << 24, int8_products = 1u << 25, needed = tiles | int8_products;
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    uint64_t supported = 0;
    __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
    return (edx & needed) == needed && syscall(SYS_arch_prctl, GET_SUPPORTED, &supported) == 0 &&
           (supported >> TILE_DATA & 1);
}

bool fr_cpu_ask_for_tiles(void) {
    return syscall(SYS_arch_prctl, ASK_PERMISSION, TILE_DATA) == 0;
}
