/* Asks the processor and the system for AMX's tiles: see cpu_tiles.h. */
#include "kernels/cpu_tiles.h"

#include <cpuid.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux lets a process use the tiles only after it has asked: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA). */
enum { ASK_PERMISSION = 0x1023, TILE_DATA = 18 };

bool fr_cpu_has_tiles(void) {
    const unsigned tiles = 1u << 24, int8_products = 1u << 25, needed = tiles | int8_products;
    const uint32_t saved = 3u << 17; /* bits of XCR0: configuration and data of tiles */
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    uint32_t low, high;
    __get_cpuid_count(1, 0, &eax, &ebx, &ecx, &edx);
    if (!(ecx & bit_OSXSAVE)) return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & saved) != saved) return false;
    __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
    return (edx & needed) == needed && syscall(SYS_arch_prctl, ASK_PERMISSION, TILE_DATA) == 0;
}
