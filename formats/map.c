/* Gives files as bytes in memory: mapped, read in ranges, or read whole.
 *
 * In: paths. Out: read-only bytes. They end at the size that fstat gave when the file was opened. */
#include "formats/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "formats/download.h"
#include "formats/mapped_files.h"

/* Opens a regular file. O_NONBLOCK changes nothing for a regular file. If the path is a FIFO without a writer, the flag
 * keeps open() from waiting. */
static fr_status open_regular(const char *path, int *fd, struct stat *info) {
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (*fd < 0) return fr_fail(FR_INPUT, "%s: %m", path);
    bool known = fstat(*fd, info) == 0, regular = known && S_ISREG(info->st_mode);
    fr_status status = regular ? fr_download_check_pointer(path, *fd, (size_t)info->st_size) : FR_OK;
    if (regular && status == FR_OK) return FR_OK;
    if (!known)
        status = fr_fail(FR_INPUT, "%s: %m", path);
    else if (!regular)
        status = fr_fail(FR_INPUT, "%s is not a regular file", path);
    close(*fd);
    *fd = -1;
    return status;
}

/* Reads all of [begin, end). If the file ends earlier, it has become shorter since it was opened, which is an
 * error. */
static fr_status read_range(int fd, const char *path, uint8_t *bytes, size_t begin, size_t end) {
    while (begin < end) {
        ssize_t got = pread(fd, bytes + begin, end - begin, (off_t)begin);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fr_fail(FR_INPUT, "%s: reading at byte %zu: %m", path, begin);
        if (got == 0) return fr_fail(FR_INPUT, "%s ends at byte %zu while byte %zu is read", path, begin, end - 1);
        begin += (size_t)got;
    }
    return FR_OK;
}

/* Maps pages for the whole file. With use_mmap they are pages of the file itself, otherwise anonymous pages of the same
 * size. */
static fr_status take_pages(const char *path, int fd, size_t size, bool use_mmap, uint8_t **bytes) {
    *bytes = NULL;
    if (size == 0) return FR_OK;
    void *pages = use_mmap ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0)
                           : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return errno == ENOMEM ? fr_fail_memory(path, size) : fr_fail(FR_INPUT, "%s can't be mapped: %m", path);
    if (!use_mmap) madvise(pages, size, MADV_HUGEPAGE); /* only advice, which a system without huge pages refuses */
    *bytes = pages;
    return FR_OK;
}

/* Adds the file to the list in which fr_mapped_file finds a path by an address. If the file cannot be added, it is
 * unmapped again. */
static fr_status enter(uint8_t *bytes, size_t size, const char *path) {
    fr_status status = fr_mapped_files_enter(bytes, size, path);
    if (status != FR_OK) munmap(bytes, size);
    return status;
}

static int64_t written_at(const struct stat *info) {
    return (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

fr_status fr_map_open(fr_map *map, const char *path, bool use_mmap) {
    *map = (fr_map){.fd = -1};
    char *copy = strdup(path);
    if (!copy) return fr_fail_memory("a path", strlen(path) + 1);
    int fd = -1;
    struct stat info = {0};
    uint8_t *bytes = NULL;
    fr_status status = open_regular(path, &fd, &info);
    size_t size = (size_t)info.st_size;
    if (status == FR_OK) status = take_pages(path, fd, size, use_mmap, &bytes);
    if (bytes && use_mmap) status = enter(bytes, size, copy);
    if (fd >= 0 && (use_mmap || status != FR_OK)) {
        close(fd);
        fd = -1;
    }
    if (status == FR_OK)
        *map = (fr_map){.bytes = bytes,
                        .size = size,
                        .fd = fd,
                        .path = copy,
                        .device = info.st_dev,
                        .inode = info.st_ino,
                        .written = written_at(&info)};
    else
        free(copy);
    return status;
}

fr_status fr_map_lend(fr_map *map, const void *bytes, size_t size, const char *name) {
    *map = (fr_map){.fd = -1, .lent = true, .bytes = bytes, .size = size, .path = strdup(name)};
    return map->path ? FR_OK : fr_fail_memory("a name", strlen(name) + 1);
}

/* Older headers lack the name of this advice, which Linux knows since 5.14. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* Makes the system read the pages now. Linux before 5.14 does not know MADV_POPULATE_READ. One byte of each page is
 * then read, which has the same effect but is slower. */
static fr_status fault_in(const fr_map *map, size_t begin, size_t end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), first = begin - begin % page;
    int result;
    do {
        result = madvise((void *)(uintptr_t)(map->bytes + first), end - first, MADV_POPULATE_READ);
    } while (result != 0 && errno == EINTR);
    if (result == 0) return FR_OK;
    if (errno == EFAULT) return fr_fail(FR_INPUT, "%s can't be read, or shrank while it was mapped", map->path);
    for (size_t at = begin; at < end; at += page - at % page) (void)*(const volatile uint8_t *)(map->bytes + at);
    return FR_OK;
}

fr_status fr_map_fill(const fr_map *map, size_t begin, size_t end) {
    if (begin > end || end > map->size)
        return fr_fail(FR_INPUT, "%s: bytes %zu to %zu are not in a file of %zu", map->path, begin, end, map->size);
    if (begin == end || map->lent) return FR_OK;
    if (map->fd < 0) return fault_in(map, begin, end);
    return read_range(map->fd, map->path, (uint8_t *)(uintptr_t)map->bytes, begin, end);
}

void fr_map_release(const fr_map *map, size_t begin, size_t end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (map->lent) return;
    begin += -begin % page;
    end -= end % page;
    if (begin < end) madvise((void *)(uintptr_t)(map->bytes + begin), end - begin, MADV_DONTNEED);
}

void fr_map_scatter(const fr_map *map, size_t begin, size_t end) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), first = begin - begin % page;
    if (map->lent) return;
    if (begin < end && map->fd < 0) madvise((void *)(uintptr_t)(map->bytes + first), end - first, MADV_RANDOM);
}

void fr_map_ahead(const uint8_t *bytes, size_t count) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)bytes / page * page;
    if (count) madvise((void *)begin, (uintptr_t)bytes + count - begin, MADV_WILLNEED);
}

fr_status fr_map_check(const fr_map *map) {
    struct stat now;
    if (map->fd >= 0 || map->lent || !map->bytes || stat(map->path, &now) != 0) return FR_OK;
    if (now.st_dev != map->device || now.st_ino != map->inode) return FR_OK;
    if ((uint64_t)now.st_size < map->size)
        return fr_fail(FR_LOST, "%s: it got shorter while it was open, or can't be read any more", map->path);
    if ((uint64_t)now.st_size == map->size && written_at(&now) == map->written) return FR_OK;
    return fr_fail(FR_LOST, "%s: it was written to while it was open", map->path);
}

void fr_map_close(fr_map *map) {
    if (map->fd < 0) fr_mapped_files_leave(map->bytes);
    if (map->bytes && !map->lent) munmap((void *)(uintptr_t)map->bytes, map->size);
    if (map->path && map->fd >= 0) close(map->fd);
    free(map->path);
    *map = (fr_map){.fd = -1};
}

fr_status fr_read_text(const char *path, size_t limit, char **text, size_t *size) {
    *text = NULL;
    *size = 0;
    int fd;
    struct stat info;
    FR_TRY(open_regular(path, &fd, &info));
    size_t length = (size_t)info.st_size;
    char *bytes = NULL;
    fr_status status = FR_OK;
    if (length > limit)
        status = fr_fail(FR_INPUT, "%s: %zu bytes, and at most %zu are read", path, length, limit);
    else if (!(bytes = malloc(length + 1)))
        status = fr_fail_memory(path, length + 1);
    else
        status = read_range(fd, path, (uint8_t *)bytes, 0, length);
    close(fd);
    if (status != FR_OK) {
        free(bytes);
        return status;
    }
    bytes[length] = 0;
    *text = bytes;
    *size = length;
    return FR_OK;
}
