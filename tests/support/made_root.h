/* Writes a folder of invented files: a /proc and /sys for code that reads a system's, or caches of other programs.
 *
 * In: paths and texts. Out: fr_made_root, a folder of the test's own. */
#ifndef FR_TESTS_MADE_ROOT_H
#define FR_TESTS_MADE_ROOT_H

extern char fr_made_root[64];

/* The set-up and the clean-up of a checked fixture. */
void fr_made_root_open(void);
void fr_made_root_close(void);

/* Writes a text to fr_made_root/path and makes its folders. */
void fr_made_root_put(const char *path, const char *text);

/* The first makes a link to `target` there, the second one to the file `from` of this checkout. */
void fr_made_root_link(const char *path, const char *target);
void fr_made_root_take(const char *path, const char *from);

#endif
