/* Which CPUs other processes of this user have pinned threads to, so that each takes cores that the others leave.
 *
 * In: CPUs that this process takes and drops. Out: whether another one has a CPU. The record is advisory: a lock on the
 * CPU's byte of a file in the user's runtime folder (/run/user/UID, else /tmp/forerun-UID, which must be the user's own
 * and nobody else's to write), which the system takes back whatever becomes of the process. Without such a folder
 * nothing is known of others. One caller at a time. */
#ifndef FR_BASE_CORE_RECORD_H
#define FR_BASE_CORE_RECORD_H

#include <stdbool.h>

/* Other processes' claims wait meanwhile, a tenth of a second at most: who looks first takes first. */
void fr_core_record_begin(void);
void fr_core_record_end(void);

bool fr_core_record_has(int cpu);

/* Nothing is noted where another process has it already. */
void fr_core_record_take(int cpu);
void fr_core_record_drop(int cpu);

/* The folder that is used instead, which must outlive it; "" for none: tests. */
void fr_core_record_use(const char *folder);

#endif
