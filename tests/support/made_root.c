/* Implements made_root.h: writes the files of an invented system. */
#include "tests/support/made_root.h"

#include <check.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char fr_made_root[64];

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)status, (void)type, (void)walk;
    return remove(path);
}

void fr_made_root_open(void) {
    snprintf(fr_made_root, sizeof fr_made_root, "/tmp/forerun-root-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(fr_made_root));
}

void fr_made_root_close(void) {
    nftw(fr_made_root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Writes the path fr_made_root/path to `full` and makes the folders of this path. */
static void place(const char *path, char *full, size_t size) {
    int length = snprintf(full, size, "%s/%s", fr_made_root, path);
    ck_assert_int_lt(length, (int)size);
    for (char *slash = full + strlen(fr_made_root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
}

void fr_made_root_put(const char *path, const char *text) {
    char full[512];
    place(path, full, sizeof full);
    FILE *file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

void fr_made_root_link(const char *path, const char *target) {
    char full[512];
    place(path, full, sizeof full);
    ck_assert_int_eq(symlink(target, full), 0);
}

void fr_made_root_take(const char *path, const char *from) {
    char absolute[PATH_MAX];
    ck_assert_ptr_nonnull(realpath(from, absolute));
    fr_made_root_link(path, absolute);
}
