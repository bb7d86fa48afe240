/* Keeps the list of mapped files (mapped_files.h).
 *
 * Entries are added at the front and never freed, so that a reader without the lock can walk the list at any time. The
 * entry of a closed file is used again for another file. An entry is in use while `begin` is not 0. A reader loads the
 * fields and then checks that `begin` is still the same. If it is, the fields belong to one file, which was open at
 * that time. */
#include "formats/mapped_files.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/error.h"

typedef struct entry {
    _Atomic uintptr_t begin, end; /* begin 0: the entry is free */
    _Atomic(const char *) path;
    struct entry *next;
} entry;

static _Atomic(entry *) entries;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Finds the entry with this `begin`. If `begin` is 0, finds a free entry. */
static entry *find(uintptr_t begin) {
    entry *e = atomic_load(&entries);
    while (e && atomic_load(&e->begin) != begin) e = e->next;
    return e;
}

static entry *take_entry(void) {
    entry *e = find(0);
    if (e) return e;
    e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->next = atomic_load(&entries);
    atomic_store(&entries, e);
    return e;
}

fr_status fr_mapped_files_enter(const uint8_t *bytes, size_t size, const char *path) {
    pthread_mutex_lock(&lock);
    entry *e = take_entry();
    if (e) {
        atomic_store(&e->end, (uintptr_t)bytes + size);
        atomic_store(&e->path, path);
        atomic_store(&e->begin, (uintptr_t)bytes);
    }
    pthread_mutex_unlock(&lock);
    return e ? FR_OK : fr_fail_memory("the list of mapped files", sizeof *e);
}

void fr_mapped_files_leave(const uint8_t *bytes) {
    pthread_mutex_lock(&lock);
    entry *e = find((uintptr_t)bytes);
    if (e && bytes) atomic_store(&e->begin, 0);
    pthread_mutex_unlock(&lock);
}

const char *fr_mapped_file(const void *address) {
    uintptr_t at = (uintptr_t)address;
    for (entry *e = atomic_load(&entries); e; e = e->next) {
        uintptr_t begin = atomic_load(&e->begin), end = atomic_load(&e->end);
        const char *path = atomic_load(&e->path);
        if (begin && begin <= at && at < end && atomic_load(&e->begin) == begin) return path;
    }
    return NULL;
}
