/* Records which CPUs this process has pinned threads to, so that other processes of the same user choose different
 * cores.
 *
 * In: CPUs that this process starts or stops using. Out: true if another process uses a CPU. The record is advisory.
 * Each CPU is a byte of a file in the user's runtime folder, and a process locks the bytes of its CPUs. The system
 * releases the locks however the process ends. The folder is /run/user/UID. If it can't be used, the folder is
 * /tmp/forerun-UID. A folder can be used only if it belongs to the user and no other user may write to it. If neither
 * can be used, the CPUs of other processes are unknown. One caller at a time. */
#ifndef FR_BASE_PROCESS_REGISTRY_H
#define FR_BASE_PROCESS_REGISTRY_H

#include <stdbool.h>

/* fr_process_registry_begin keeps other processes from claiming CPUs until fr_process_registry_end is called. In
 * between, a process can read the record and add its own CPUs. fr_process_registry_begin waits at most a tenth of a
 * second for a process that already holds the record. */
void fr_process_registry_begin(void);
void fr_process_registry_end(void);

bool fr_process_registry_has(int cpu);

/* fr_process_registry_take records that this process uses a CPU. If another process already has the CPU, nothing is
 * recorded. fr_process_registry_drop records that this process no longer uses the CPU. */
void fr_process_registry_take(int cpu);
void fr_process_registry_drop(int cpu);

/* Sets the folder of the record instead of the user's, for tests; "" turns the record off. The string must stay
 * valid. */
void fr_process_registry_use(const char *folder);

#endif
