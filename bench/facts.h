/* Collects facts about the machine of a measurement: its processor, its system, and this build.
 *
 * In: the machine as this process may use it. Out: facts of a report (table.h). */
#ifndef FR_BENCH_FACTS_H
#define FR_BENCH_FACTS_H

#include "bench/table.h"
#include "forerun.h"

/* Adds the facts that every part of the bench writes before its tables: cpu_info, cores, cpus (logical ones), cpu_quota
 * (null if there is none), numa_nodes, os, version, compiler, test_time. It also adds isa, and n_threads from
 * `threads`. If each line of the tables has its own isa and number of threads, pass NULL and 0, which omits these two
 * facts.
 *
 * cpu_info is like "AMD EPYC, family 26 model 2, virtual". In a virtual machine the processor's name says little, but
 * family and model tell which core it is. AArch64 has numbers instead of a name, "implementer 0x41 part 0xd4f". */
fr_status fr_bench_machine_facts(fr_bench_report *report, const char *isa, size_t threads);

#endif
