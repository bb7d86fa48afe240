/* Reads the names of GGUF files (gguf_name.h). */
#include "formats/gguf_name.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ENDING        ".gguf"
#define ENDING_LENGTH (sizeof ENDING - 1)
#define SUFFIX        "-%05u-of-%05u.gguf"
#define SUFFIX_LENGTH 20

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

fr_shard_name fr_shard_name_of(const char *name) {
    const fr_shard_name alone = {.number = 1, .count = 1};
    fr_shard_name shard = alone;
    char again[2 * SUFFIX_LENGTH];
    size_t length = strlen(name);
    if (length <= SUFFIX_LENGTH) return alone;
    shard.stem = length - SUFFIX_LENGTH;
    if (sscanf(name + shard.stem, "-%5u-of-%5u.gguf", &shard.number, &shard.count) != 2) return alone;
    snprintf(again, sizeof again, SUFFIX, shard.number, shard.count);
    return strcmp(again, name + shard.stem) == 0 ? shard : alone;
}

void fr_shard_name_turn(char *name, fr_shard_name shard, unsigned number) {
    char digits[16];
    if (shard.count > 1) memcpy(name + shard.stem + 1, digits, (size_t)snprintf(digits, sizeof digits, "%05u", number));
}

bool fr_gguf_name(const char *name) {
    size_t length = strlen(name);
    return length > ENDING_LENGTH && strcmp(name + length - ENDING_LENGTH, ENDING) == 0;
}

bool fr_gguf_name_beside(const char *name) {
    static const char *const marks[] = {"mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strstr(last_part(name), marks[i])) return true;
    return false;
}

bool fr_gguf_name_of_model(const char *name) {
    return fr_gguf_name(name) && !fr_gguf_name_beside(name) && fr_shard_name_of(name).number == 1;
}

bool fr_gguf_name_has(const char *name, const char *type, size_t length) {
    for (const char *at = name; length && strlen(at) > length; at++)
        if (strncasecmp(at, type, length) == 0 && (at[length] == '.' || at[length] == '-')) return true;
    return false;
}
