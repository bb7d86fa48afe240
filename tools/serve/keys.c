/* Reads a server's keys, and compares a client's key with them (keys.h). */
#include "tools/serve/keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

#define ENVIRONMENT "FORERUN_API_KEY"
#define BLANKS      " \t\r\n"

/* Adds a key. Blanks at its ends are removed. If there are only blanks, nothing is added. Returns false if the key has
 * characters that a client can't send. */
static bool add(char ***keys, size_t *count, const char *bytes, size_t length) {
    while (length && strchr(BLANKS, bytes[length - 1])) length--;
    while (length && strchr(BLANKS, *bytes)) bytes++, length--;
    if (!length) return true;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] <= ' ' || bytes[i] > '~') return false;
    }
    char *key = fr_resize(NULL, length + 1, 1);
    memcpy(key, bytes, length);
    key[length] = '\0';
    *keys = fr_resize(*keys, *count + 2, sizeof(**keys));
    (*keys)[(*count)++] = key;
    (*keys)[*count] = NULL;
    return true;
}

/* Adds the keys of an option's list. A list without any key is an error. */
static int add_list(char ***keys, size_t *count, const char *option, const char *list) {
    size_t before = *count;
    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ",");
        if (!add(keys, count, at, length)) return fr_bad_input("%s: a key is made of printable ASCII", option);
        at += length + (at[length] != '\0');
    }
    return *count > before ? 0 : fr_bad_input("%s has no key", option);
}

/* Reads one key from each line. Keys have no blanks, so # begins a comment only at the start of a line or after a
 * blank. */
static int add_lines(char ***keys, size_t *count, FILE *file, const char *path) {
    size_t before = *count, capacity = 0, number = 0;
    char *line = NULL;
    int status = 0;
    for (ssize_t length; status == 0 && (length = getline(&line, &capacity, file)) >= 0;) {
        number++;
        for (ssize_t i = 0; i < length; i++) {
            if (line[i] == '#' && (i == 0 || strchr(BLANKS, line[i - 1]))) length = i;
        }
        if (add(keys, count, line, (size_t)length)) continue;
        status = fr_bad_input("%s: line %zu: a key is made of printable ASCII", path, number);
    }
    if (status == 0 && ferror(file)) status = fr_bad_input("%s: %s", path, strerror(errno));
    if (status == 0 && *count == before) status = fr_bad_input("%s has no key", path);
    free(line);
    return status;
}

static int add_file(char ***keys, size_t *count, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) return fr_bad_input("%s: %s", path, strerror(errno));
    int status = add_lines(keys, count, file, path);
    fclose(file);
    return status;
}

int fr_keys_read(const char *list, const char *path, char ***keys) {
    const char *environment = getenv(ENVIRONMENT);
    size_t count = 0;
    *keys = NULL;
    int status = list ? add_list(keys, &count, "--api-key", list) : 0;
    if (status == 0 && path) status = add_file(keys, &count, path);
    if (status == 0 && environment && *environment) status = add_list(keys, &count, ENVIRONMENT, environment);
    if (status != 0) {
        fr_keys_free(*keys);
        *keys = NULL;
    }
    return status;
}

void fr_keys_free(char **keys) {
    for (char **key = keys; key && *key; key++) free(*key);
    free(keys);
}

/* Compares two keys. 0: the keys are equal. The number of steps depends only on the length of the given key, so the
 * time reveals nothing about the server's key. */
static unsigned differ(const char *key, const char *given, size_t length) {
    size_t own = strlen(key);
    unsigned different = own != length;
    for (size_t i = 0; i < length; i++) different |= (unsigned char)(key[i % own] ^ given[i]);
    return different;
}

bool fr_keys_match(const char *const *keys, const char *given) {
    size_t length = strlen(given);
    unsigned same = 0;
    while (length && strchr(BLANKS, given[length - 1])) length--;
    for (; *keys; keys++) same |= differ(*keys, given, length) == 0;
    return same;
}
