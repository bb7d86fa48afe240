/* Reads the keys with which clients may use a server, and compares a client's key with them.
 *
 * In: the command line, a file and the environment (FORERUN_API_KEY). Out: one list of keys, and a comparison of a
 * request's key with it. The time of a comparison depends on the length of the request's key and on the number of keys,
 * but not on the bytes of any key. */
#ifndef FR_TOOLS_SERVE_KEYS_H
#define FR_TOOLS_SERVE_KEYS_H

#include <stdbool.h>

/* Reads the keys. list: keys with commas between them; NULL: there is no list. path: a file with a key on each line;
 * NULL: there is no file. *keys: the keys, with NULL at the end; *keys itself is NULL if no keys were given. If an
 * option was given and has no key, that is an error, because its user wants the server to require a key. Gives the exit
 * status. */
int fr_keys_read(const char *list, const char *path, char ***keys);
void fr_keys_free(char **keys);

/* Returns true if a client's key is in the list. */
bool fr_keys_match(const char *const *keys, const char *given);

#endif
