/* Recognizes a picture that was dragged into the terminal (chat_dropped.h). */
#include "tools/cli/chat_dropped.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/output.h"

/* Gives the value of a hexadecimal digit; -1 for any other character. */
static int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    int letter = tolower((unsigned char)c);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* Reads the line in the way in which a shell reads one word. A line may also be a file:// URL. Returns false if the
 * line is more than one word. */
static bool read_path(const char *line, size_t length, char *path) {
    static const char url[] = "file://";
    bool is_url = length > strlen(url) && memcmp(line, url, strlen(url)) == 0;
    char quote = '\0';
    size_t count = 0;
    for (size_t i = is_url ? strlen(url) : 0; i < length; i++) {
        char c = line[i];
        if (is_url && c == '%' && i + 2 < length && digit_of(line[i + 1]) >= 0 && digit_of(line[i + 2]) >= 0) {
            path[count++] = (char)(digit_of(line[i + 1]) * 16 + digit_of(line[i + 2]));
            i += 2;
        } else if (!is_url && quote == '\0' && (c == '\'' || c == '"')) {
            quote = c;
        } else if (!is_url && quote && c == quote) {
            quote = '\0';
        } else if (!is_url && c == '\\' && quote != '\'' && i + 1 < length) {
            path[count++] = line[++i];
        } else if (c == '\0' || (isspace((unsigned char)c) && !quote)) {
            return false;
        } else {
            path[count++] = c;
        }
    }
    path[count] = '\0';
    return quote == '\0' && path[0] == '/' && strlen(path) == count;
}

/* Returns true if the file begins with the bytes of PNG, JPEG, WebP or GIF. */
static bool begins_as_picture(const char *path) {
    static const struct {
        const char *bytes;
        size_t count;
    } begins[] = {{"\x89PNG", 4}, {"\xff\xd8\xff", 3}, {"RIFF", 4}, {"GIF8", 4}};
    struct stat status;
    char bytes[4] = {0};
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    FILE *file = fopen(path, "rb");
    size_t got = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file) fclose(file);
    for (size_t i = 0; got == sizeof bytes && i < sizeof begins / sizeof *begins; i++)
        if (memcmp(bytes, begins[i].bytes, begins[i].count) == 0) return true;
    return false;
}

char *fr_chat_dropped(const char *line, size_t length) {
    while (length && isspace((unsigned char)line[length - 1])) length--;
    while (length && isspace((unsigned char)*line)) {
        line++;
        length--;
    }
    char *path = fr_resize(NULL, length + 1, 1);
    if (length && read_path(line, length, path) && begins_as_picture(path)) return path;
    free(path);
    return NULL;
}
