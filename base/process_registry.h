/* Records which CPUs this process has pinned threads to, so that other processes of the same user choose different
 * cores.
 *
 * In: CPUs that this process takes and drops. Out: true if another process has a CPU. The record is advisory: a lock
 * on the CPU's byte of a file in the user's runtime folder (/run/user/UID, else /tmp/forerun-UID, which must belong to
 * the user and be writable by no other user). The system releases the locks however the process ends. Without such a
 * folder the CPUs of other processes are unknown. One caller at a time. */
#ifndef FR_BASE_PROCESS_REGISTRY_H
#define FR_BASE_PROCESS_REGISTRY_H

#include <stdbool.h>

/* Keep other processes from claiming CPUs between the two calls, so that each process reads the record and takes its
 * CPUs before the next one reads it. Waits for another process a tenth of a second at most. */
void fr_process_registry_begin(void);
void fr_process_registry_end(void);

bool fr_process_registry_has(int cpu);

/* Record that this process has a CPU, or has it no longer. Nothing is recorded if another process has the CPU
 * already. */
void fr_process_registry_take(int cpu);
void fr_process_registry_drop(int cpu);

/* Sets the record's folder in place of the user's, for tests; "" turns the record off. The string must stay valid. */
void fr_process_registry_use(const char *folder);

#endif
