/* The keys of those who may ask a server.
 *
 * In: what the command line, a file and the environment (FORERUN_API_KEY) say. Out: one list, and whether a request has
 * one of it. A comparison takes a time that depends on what was sent and on how many keys there are, not on what they
 * are. */
#ifndef FR_TOOLS_SERVE_KEYS_H
#define FR_TOOLS_SERVE_KEYS_H

#include <stdbool.h>

/* `list`: keys with commas between, NULL: none. `path`: a file of keys, a line each, NULL: none. The list ends with
 * NULL; it is NULL where nothing asks for keys. An option that has no key in it is an error: whoever gives it means to
 * keep others out. Gives the exit status. */
int fr_keys_read(const char *list, const char *path, char ***keys);
void fr_keys_free(char **keys);

/* Whether it is one of them. */
bool fr_keys_match(const char *const *keys, const char *given);

#endif
