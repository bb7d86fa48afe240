/* This machine: what it is, and what it can do at most.
 *
 * In: how to measure. Out: facts and tables of a report (table.h). */
#ifndef FR_BENCH_MACHINE_H
#define FR_BENCH_MACHINE_H

#include "bench/table.h"
#include "forerun.h"

/* The facts that every part of the bench writes before its tables: cpu_info, cores, cpus (logical), cpu_quota (null:
 * none), numa_nodes, os, version, compiler, test_time; and isa and n_threads, unless NULL and 0: where rows have their own. */
fr_status fr_bench_machine_facts(fr_bench_report *report, const char *isa, size_t threads);

#endif
