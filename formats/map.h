/* Gives a file's bytes in memory, read-only.
 *
 * In: a path. Out: bytes [0, size), either mapped and used directly, or read into anonymous memory (--no-mmap). Only
 * regular files are accepted. If a mapped file gets shorter, the system sends SIGBUS, and fr_mapped_file says which
 * file it is. If a file is written to, or gets shorter within its last page, there is no signal. Then only fr_map_check
 * notices the change. */
#ifndef FR_FORMATS_MAP_H
#define FR_FORMATS_MAP_H

#include "forerun.h"

typedef struct fr_map {
    const uint8_t *bytes; /* NULL if size is 0 */
    size_t size;
    int fd;                 /* descriptor from which the file is read; -1: the file is mapped */
    bool lent;              /* the bytes belong to a caller, and are never freed or released here */
    uint64_t device, inode; /* identify the file */
    int64_t written;        /* time of the last write, in nanoseconds */
    char *path;             /* for error lines */
} fr_map;

/* Opens a file. With use_mmap false the pages are only reserved here. Later the threads that will use the pages fill
 * them, range by range. The first thread that touches a page decides its NUMA node, so each page is then on the node of
 * its user. */
fr_status fr_map_open(fr_map *map, const char *path, bool use_mmap);

/* Makes a map of a caller's bytes, as if they were the bytes of a file. The bytes must outlive the map. Error lines
 * call the file `name`. */
fr_status fr_map_lend(fr_map *map, const void *bytes, size_t size, const char *name);

/* Makes bytes [begin, end) present. It reads them from the file, or makes the system read mapped pages now. Different
 * threads may fill different ranges at the same time, even if the ranges share a page. */
fr_status fr_map_fill(const fr_map *map, size_t begin, size_t end);

/* Gives the pages that lie entirely in [begin, end) back to the system. Mapped pages are read from the file again at
 * the next access. Pages of a file that was read into memory are zeros until the next fr_map_fill. */
void fr_map_release(const fr_map *map, size_t begin, size_t end);

/* Tells the system that reads in [begin, end) will be scattered. For a mapped file the system then reads only the
 * needed pages, and not their neighbours. */
void fr_map_scatter(const fr_map *map, size_t begin, size_t end);

/* Makes the system begin to read mapped bytes, and returns at once. A thread that uses the bytes before the system has
 * read them waits for them. */
void fr_map_ahead(const uint8_t *bytes, size_t count);

/* Fails with FR_INPUT if the file of a map was written to or shortened since it was opened. If a new file has replaced
 * the old one under the same name, this call does not fail, because the old, mapped file still exists. Costs one system
 * call and no memory. */
fr_status fr_map_check(const fr_map *map);

void fr_map_close(fr_map *map);

/* Reads a whole text file of at most `limit` bytes, such as config.json. *text is NUL-terminated and malloc'd. */
fr_status fr_read_text(const char *path, size_t limit, char **text, size_t *size);

#endif
