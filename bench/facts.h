/* Facts about a measurement's machine: the processor, the system, this build.
 *
 * In: the machine, as this process may use it. Out: facts of a report (table.h). */
#ifndef FR_BENCH_FACTS_H
#define FR_BENCH_FACTS_H

#include "bench/table.h"
#include "forerun.h"

/* The facts that every part of the bench writes before its tables: cpu_info, cores, cpus (logical), cpu_quota (null:
 * none), numa_nodes, os, version, compiler, test_time; and isa and n_threads, unless NULL and 0: where rows have their
 * own.
 *
 * cpu_info is like "AMD EPYC, family 26 model 2, virtual": in a virtual machine the maker's name says little, family
 * and model say which core it is. AArch64 has no name but numbers, "implementer 0x41 part 0xd4f". */
fr_status fr_bench_machine_facts(fr_bench_report *report, const char *isa, size_t threads);

#endif
