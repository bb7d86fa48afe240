/* Recognises unfinished downloads and Git LFS pointers (download.h).
 *
 * Hugging Face's programs name a download NAME.incomplete until it is complete. It is in blobs/ of a cache or in
 * .cache/huggingface/download of a folder. llama.cpp's downloads have the name NAME.downloadInProgress. aria2 keeps
 * NAME.aria2 next to a file that has its full size from the beginning. ollama's downloads end in -partial; browsers and
 * other programs use other endings. */
#include "formats/download.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/map.h"

#define POINTER     "version https://git-lfs.github.com/spec/"
#define POINTER_MAX 1024 /* the limit of Git LFS itself, in bytes */

static const char *const endings[] = {".incomplete", ".downloadInProgress", ".aria2",  ".part",
                                      ".partial",    ".crdownload",         "-partial"};
enum { ENDINGS = sizeof endings / sizeof *endings };

static bool ends_in(const char *text, const char *ending) {
    size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}

static bool is_unfinished(const char *name) {
    for (size_t i = 0; i < ENDINGS; i++)
        if (ends_in(name, endings[i])) return true;
    return false;
}

static fr_status refuse(const char *path, const char *rest) {
    return fr_fail(FR_INPUT, "%s: its download is not finished: there is %s", path, rest);
}

/* Fails if an unfinished download of the path exists. Its name is the path followed by `ending`. */
static fr_status check_ending(const char *path, const char *ending) {
    char *rest;
    if (asprintf(&rest, "%s%s", path, ending) < 0) return fr_fail_memory("a path", strlen(path));
    fr_status status = fr_file_is_reached(rest) ? refuse(path, rest) : FR_OK;
    free(rest);
    return status;
}

/* Fails if the folder `beside`, next to the file, has an unfinished download of Hugging Face's programs. The name of
 * the download does not tell which file it will become, so any download counts. */
static fr_status check_folder(const char *path, const char *beside) {
    const char *slash = strrchr(path, '/');
    char *folder;
    if (asprintf(&folder, "%.*s/%s", slash ? (int)(slash - path) : 1, slash ? path : ".", beside) < 0)
        return fr_fail_memory("a path", strlen(path));
    DIR *names = opendir(folder);
    fr_status status = FR_OK;
    for (struct dirent *one; names && status == FR_OK && (one = readdir(names));)
        if (ends_in(one->d_name, endings[0])) status = refuse(path, one->d_name);
    if (names) closedir(names);
    free(folder);
    return status;
}

fr_status fr_download_check(const char *path) {
    if (is_unfinished(path) && fr_file_is_reached(path))
        return fr_fail(FR_INPUT, "%s is a download that is not finished", path);
    FR_TRY(check_ending(path, ".aria2"));
    if (fr_file_is_reached(path)) return FR_OK;
    for (size_t i = 0; i < ENDINGS; i++) FR_TRY(check_ending(path, endings[i]));
    FR_TRY(check_folder(path, "../../blobs"));
    return check_folder(path, ".cache/huggingface/download");
}

fr_status fr_download_check_pointer(const char *path, int fd, size_t size) {
    char text[POINTER_MAX];
    if (size < sizeof POINTER || size >= sizeof text) return FR_OK;
    ssize_t got = pread(fd, text, size, 0);
    if (got < (ssize_t)sizeof POINTER || memcmp(text, POINTER, sizeof POINTER - 1) != 0) return FR_OK;
    return fr_fail(FR_INPUT, "%s is a Git LFS pointer, not the file: \"git lfs pull\" in its folder gets that", path);
}
