/* What a person calls this processor, from /proc/cpuinfo.
 *
 * In: nothing. Out: "AMD EPYC, family 26 model 2, virtual": the maker's name says little in a virtual machine, family and
 * model say which core it is. AArch64 has no name there: "implementer 0x41 part 0xd4f", the core's numbers. */
#ifndef FR_BENCH_CPU_NAME_H
#define FR_BENCH_CPU_NAME_H

#include <stddef.h>

/* "unknown" where the file can't be read. */
void fr_bench_cpu_name(char *name, size_t size);

#endif
