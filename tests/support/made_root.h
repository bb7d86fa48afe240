/* Writes a folder of invented files in place of a system's: /proc and /sys, or the caches of other programs.
 *
 * In: paths and texts. Out: fr_made_root, a folder that belongs to the test. */
#ifndef FR_TESTS_MADE_ROOT_H
#define FR_TESTS_MADE_ROOT_H

extern char fr_made_root[64];

/* The set-up and the clean-up functions of a checked fixture. */
void fr_made_root_open(void);
void fr_made_root_close(void);

/* Writes a text to fr_made_root/path and makes the folders of this path. */
void fr_made_root_put(const char *path, const char *text);

/* fr_made_root_link makes a link to `target` at fr_made_root/path. fr_made_root_take makes a link there to the file
 * `from` of this checkout. */
void fr_made_root_link(const char *path, const char *target);
void fr_made_root_take(const char *path, const char *from);

#endif
