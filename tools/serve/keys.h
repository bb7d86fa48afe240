/* Reads and compares the keys with which clients may use a server.
 *
 * In: the command line, a file and the environment (FORERUN_API_KEY). Out: one list of keys, and a comparison of a
 * request's key with it. The time of a comparison depends on the length of the request's key and on the number of
 * keys, but not on the bytes of any key. */
#ifndef FR_TOOLS_SERVE_KEYS_H
#define FR_TOOLS_SERVE_KEYS_H

#include <stdbool.h>

/* Reads the keys. list: keys with commas between them; NULL: none. path: a file with a key on each line; NULL: none.
 * *keys ends with NULL; it is NULL itself if no keys were given. An option without any key is an error, because its
 * user wants the server to require one. Gives the exit status. */
int fr_keys_read(const char *list, const char *path, char ***keys);
void fr_keys_free(char **keys);

/* Returns true if a client's key is in the list. */
bool fr_keys_match(const char *const *keys, const char *given);

#endif
