/* Hashes one file, or reads the hash that was stored for it (content_file.h). */
#include "tools/serve/content_file.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tools/cli/cache_folder.h"
#include "tools/cli/output.h"

/* DIGEST: bytes of a SHA-256 digest. PIECE: bytes that are read from a file at once. SMALL: a file with fewer bytes
 * than this is hashed each time, and its hash is not stored. LIST: the largest number of bytes of a stored list, which
 * has a path and two short lines. */
enum { DIGEST = 32, PIECE = 1 << 20, SMALL = 1 << 20, LIST = PATH_MAX + 256 };

bool fr_content_fail(const fr_content_run *run, const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(run->error, FR_CONTENT_ERROR, format, values);
    va_end(values);
    return false;
}

/* ------------------------------------------------------------------------------------------------- computing a hash */

static void write_digits(const unsigned char *digest, char hash[FR_CONTENT_SIZE]) {
    for (size_t i = 0; i < DIGEST; i++) snprintf(hash + 2 * i, 3, "%02x", digest[i]);
}

bool fr_content_bytes(const fr_content_run *run, const void *bytes, size_t size, char hash[FR_CONTENT_SIZE]) {
    unsigned char digest[DIGEST];
    int code = gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes, size, digest);
    write_digits(digest, hash);
    return code == 0 || fr_content_fail(run, "SHA-256: %s", gnutls_strerror(code));
}

/* A file's size and time of change. A stored hash is used only if both are the same as when the hash was stored. */
typedef struct stamp {
    intmax_t size, seconds;
    long nanoseconds;
} stamp;

static stamp stamp_of(const struct stat *info) {
    return (stamp){(intmax_t)info->st_size, (intmax_t)info->st_mtim.tv_sec, info->st_mtim.tv_nsec};
}

static ssize_t read_piece(int fd, char *piece) {
    ssize_t got;
    do got = read(fd, piece, PIECE);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Hashes the file up to its end. *size: the number of bytes that were read. */
static bool read_through(const fr_content_run *run, int fd, const char *path, gnutls_hash_hd_t state, intmax_t *size) {
    char *piece = fr_resize(NULL, PIECE, 1);
    ssize_t got = 0;
    bool stopped = false;
    *size = 0;
    while (!(stopped = run->stop && run->stop(run->context)) && (got = read_piece(fd, piece)) > 0) {
        gnutls_hash(state, piece, (size_t)got);
        *size += got;
    }
    if (got < 0) fr_content_fail(run, "%s: %s", path, strerror(errno));
    free(piece);
    return got == 0 && !stopped;
}

static bool hash_open_file(const fr_content_run *run, int fd, const char *path, stamp *at, char *hash) {
    struct stat before, after;
    gnutls_hash_hd_t state;
    unsigned char digest[DIGEST];
    intmax_t size;
    if (fstat(fd, &before) != 0) return fr_content_fail(run, "%s: %s", path, strerror(errno));
    if (!S_ISREG(before.st_mode)) return fr_content_fail(run, "%s: not a file", path);
    int code = gnutls_hash_init(&state, GNUTLS_DIG_SHA256);
    if (code != 0) return fr_content_fail(run, "SHA-256: %s", gnutls_strerror(code));
    bool read = read_through(run, fd, path, state, &size);
    gnutls_hash_deinit(state, digest);
    if (!read) return false;
    write_digits(digest, hash);
    if (fstat(fd, &after) != 0) return fr_content_fail(run, "%s: %s", path, strerror(errno));
    stamp then = stamp_of(&after);
    *at = stamp_of(&before);
    bool same = at->size == then.size && at->seconds == then.seconds && at->nanoseconds == then.nanoseconds;
    return (same && at->size == size) || fr_content_fail(run, "%s: it is being written to", path);
}

static bool hash_file(const fr_content_run *run, const char *path, stamp *at, char *hash) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fr_content_fail(run, "%s: %s", path, strerror(errno));
    bool done = hash_open_file(run, fd, path, at, hash);
    close(fd);
    return done;
}

/* ---------------------------------------------------------------------------------------------------- stored hashes */

/* The place where a file's hash is stored. list: path of the file that stores the hash. name: the name under which
 * `list` lists the hashed file. */
typedef struct sum_file {
    char *list, *name;
} sum_file;

static char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text_of(const char *format, ...) {
    va_list values, again;
    va_start(values, format);
    va_copy(again, values);
    size_t size = (size_t)vsnprintf(NULL, 0, format, values) + 1;
    char *text = fr_resize(NULL, size, 1);
    vsnprintf(text, size, format, again);
    va_end(again);
    va_end(values);
    return text;
}

/* Gives the file in the cache folder that stores the hash of the file at `path`. The cache folder stores hashes for
 * files of all folders, so the name of the storing file is a hash of `path`. */
static sum_file sum_file_in_cache(const fr_content_run *run, const char *path) {
    char *folder = fr_cache_folder(), *whole = realpath(path, NULL), hash[FR_CONTENT_SIZE];
    sum_file cache = {0};
    if (folder && whole && fr_content_bytes(run, whole, strlen(whole), hash))
        cache = (sum_file){text_of("%s/%s.sha256", folder, hash), text_of("%s", whole)};
    free(folder);
    free(whole);
    return cache;
}

/* Makes the folder that contains a file, and the parent of that folder. */
static void make_folders(const char *path) {
    char *folder = text_of("%.*s", (int)(strrchr(path, '/') - path), path), *last = strrchr(folder, '/');
    *last = 0;
    mkdir(folder, 0700);
    *last = '/';
    mkdir(folder, 0700);
    free(folder);
}

static void free_sum_file(sum_file *p) {
    free(p->list);
    free(p->name);
}

#define OURS "# forerun: "

static char *first_line(const stamp *at) {
    return text_of(OURS "%jd bytes, written at %jd.%09ld\n", at->size, at->seconds, at->nanoseconds);
}

/* Reads a stored list as a NUL-terminated text. NULL: there is no list. At most as many bytes are read as forerun
 * writes into a list. */
static char *read_list(const char *path) {
    FILE *file = fopen(path, "re");
    if (!file) return NULL;
    char *text = fr_resize(NULL, LIST + 1, 1);
    text[fread(text, 1, LIST, file)] = 0;
    fclose(file);
    return text;
}

/* Returns true if the text is a complete list that forerun wrote for a file with this size and time of change. `hash`
 * then gets the hash that the list has. */
static bool believe(const char *text, const char *name, const stamp *at, char hash[FR_CONTENT_SIZE]) {
    char *first = first_line(at);
    size_t length = strlen(first), digits = FR_CONTENT_SIZE - 1;
    const char *line = text + length, *rest = line + digits;
    bool same = strncmp(text, first, length) == 0 && strspn(line, "0123456789abcdef") == digits;
    same = same && strncmp(rest, "  ", 2) == 0 && strncmp(rest + 2, name, strlen(name)) == 0;
    same = same && strcmp(rest + 2 + strlen(name), "\n") == 0;
    if (same) snprintf(hash, FR_CONTENT_SIZE, "%.*s", (int)digits, line);
    free(first);
    return same;
}

static bool is_kept(const sum_file *p, const stamp *at, char hash[FR_CONTENT_SIZE]) {
    char *text = p->list ? read_list(p->list) : NULL;
    bool kept = text && believe(text, p->name, at, hash);
    free(text);
    return kept;
}

/* Returns true if another program wrote the list. Such a list is not overwritten. */
static bool is_theirs(const char *path) {
    char *text = read_list(path);
    bool theirs = text && strncmp(text, OURS, strlen(OURS)) != 0;
    free(text);
    return theirs;
}

/* Writes the list under a temporary name and then renames it, so that no other process reads an incomplete list. */
static bool keep(const sum_file *p, const stamp *at, const char *hash) {
    if (strpbrk(p->name, "\\\n") || is_theirs(p->list)) return false;
    char temporary[PATH_MAX];
    int fd = fr_lab_temporary_open(p->list, temporary, sizeof temporary, 0644);
    char *first = first_line(at);
    bool kept = fd >= 0 && dprintf(fd, "%s%s  %s\n", first, hash, p->name) > 0 &&
                fr_lab_temporary_keep(fd, temporary, p->list) == 0;
    free(first);
    if (fd >= 0 && !kept) unlink(temporary);
    if (fd >= 0) close(fd);
    return kept;
}

bool fr_content_file(const fr_content_run *run, const char *path, char hash[FR_CONTENT_SIZE]) {
    struct stat info;
    if (stat(path, &info) != 0) return fr_content_fail(run, "%s: %s", path, strerror(errno));
    stamp at = stamp_of(&info);
    if (at.size < SMALL) return hash_file(run, path, &at, hash);
    const char *slash = strrchr(path, '/');
    sum_file beside = {text_of("%s.sha256", path), text_of("%s", slash ? slash + 1 : path)};
    sum_file cache = sum_file_in_cache(run, path);
    bool done = is_kept(&beside, &at, hash) || is_kept(&cache, &at, hash);
    if (!done) {
        done = hash_file(run, path, &at, hash);
        if (done && !keep(&beside, &at, hash) && cache.list) {
            make_folders(cache.list);
            keep(&cache, &at, hash);
        }
    }
    free_sum_file(&beside);
    free_sum_file(&cache);
    return done;
}
