/* A file's bytes in memory, read-only.
 *
 * In: a path. Out: bytes [0, size), mapped and used as they lie in the file, or read into anonymous memory (--no-mmap).
 * Only regular files are taken. A file that shrinks while it is mapped is outside the contract: the system sends
 * SIGBUS, and fr_mapped_file says which file it is about. One that is written to, or cut within its last page, is seen
 * by fr_map_check alone. */
#ifndef FR_FORMATS_MAP_H
#define FR_FORMATS_MAP_H

#include "forerun.h"

typedef struct fr_map {
    const uint8_t *bytes; /* NULL when size is 0 */
    size_t size;
    int fd;               /* -1 when mapped: the pages are the file's own */
    bool lent;            /* the bytes are a caller's, who keeps them: nothing of them is given back */
    uint64_t device, inode; /* which file that is */
    int64_t written;        /* when it was written to last, in nanoseconds */
    char *path;           /* for error lines */
} fr_map;

/* With use_mmap false the pages are reserved here but filled later, range by range, so that the thread that will read a
 * range is the first to touch it. */
fr_status fr_map_open(fr_map *map, const char *path, bool use_mmap);

/* A caller's bytes, which must outlive the map, as if they were a file's; name: instead of a path. */
fr_status fr_map_lend(fr_map *map, const void *bytes, size_t size, const char *name);

/* Makes bytes [begin, end) present: reads them from the file, or has the system fault mapped pages in. Ranges of
 * different calls may share a page; calls on different ranges may run in different threads. */
fr_status fr_map_fill(const fr_map *map, size_t begin, size_t end);

/* Gives the whole pages of [begin, end) back to the system. Mapped ones come back from the file when they are read
 * again; of a file that was read into memory they are zeros until fr_map_fill. */
void fr_map_release(const fr_map *map, size_t begin, size_t end);

/* Of [begin, end) single pieces will be read, here and there: what is read of a mapped file is that alone, and nothing
 * around it. */
void fr_map_scatter(const fr_map *map, size_t begin, size_t end);

/* Has the system begin to read mapped bytes, and returns: whoever reads one that is not there yet waits for it. */
void fr_map_ahead(const uint8_t *bytes, size_t count);

/* FR_INPUT where the file of a map was written to or cut since it was opened. Another file of its name is none of it:
 * what was mapped is still there. A system call; no memory. */
fr_status fr_map_check(const fr_map *map);

void fr_map_close(fr_map *map);

/* Reads the whole of a small text file (config.json). Limit in bytes; *text is NUL-terminated and malloc'd. */
fr_status fr_read_text(const char *path, size_t limit, char **text, size_t *size);

/* True if the name exists, even as a broken link or a thing that may not be read: reading it then reports the fault, so
 * that a broken part of a model is not mistaken for a missing one. */
bool fr_file_exists(const char *path);

/* True if the name leads to an existing file or folder, through links too. */
bool fr_file_is_reached(const char *path);

#endif
