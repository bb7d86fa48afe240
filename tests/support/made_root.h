/* Writes a folder of invented files. It replaces files of the real system, such as /proc and /sys, or the caches of
 * other programs.
 *
 * In: paths and texts. Out: fr_made_root, a folder that belongs to the test. */
#ifndef FR_TESTS_MADE_ROOT_H
#define FR_TESTS_MADE_ROOT_H

extern char fr_made_root[64];

/* The set-up function and the clean-up function of a fixture in Check. */
void fr_made_root_open(void);
void fr_made_root_close(void);

/* Writes a text to fr_made_root/path and makes the folders of this path. */
void fr_made_root_put(const char *path, const char *text);

/* fr_made_root_link makes a link at fr_made_root/path to `target`. fr_made_root_take makes a link at this path to the
 * file `from` of this checkout. */
void fr_made_root_link(const char *path, const char *target);
void fr_made_root_take(const char *path, const char *from);

#endif
