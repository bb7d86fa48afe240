/* Searches lists of words, and compares words (words.h). */
#include "tools/cli/words.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

const char *fr_next_word(const char **list, char separator, size_t *length) {
    const char *word = *list;
    if (!word) return NULL;
    const char *end = strchr(word, separator);
    *length = end ? (size_t)(end - word) : strlen(word);
    *list = end ? end + 1 : NULL;
    return word;
}

typedef int compare_bytes(const char *a, const char *b, size_t length);

static bool has_word(const char *list, const char *wanted, size_t wanted_length, compare_bytes *compare) {
    size_t length;
    for (const char *word; (word = fr_next_word(&list, ' ', &length));) {
        if (length == wanted_length && compare(word, wanted, length) == 0) return true;
    }
    return false;
}

bool fr_has_word(const char *list, const char *wanted, size_t wanted_length) {
    return has_word(list, wanted, wanted_length, strncmp);
}

bool fr_has_word_in_any_case(const char *list, const char *wanted, size_t wanted_length) {
    return has_word(list, wanted, wanted_length, strncasecmp);
}

/* Computes the optimal string alignment distance. It is the least number of insertions, deletions, replacements, and
 * swaps of neighbours that turn one word into the other. Only three rows of the table are kept at a time. */
size_t fr_word_distance(const char *a, const char *b) {
    enum { LONGEST = 64 };
    size_t rows[3][LONGEST + 1], n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST) return SIZE_MAX;
    for (size_t j = 0; j <= m; j++) rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = fr_least(fr_least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = fr_least(row[j], second[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

bool fr_word_near(const char *word, size_t distance) {
    return distance <= strlen(word + strspn(word, "-")) / 3;
}

size_t fr_line_part(const char *line, size_t length, size_t most) {
    size_t part = length, depth = 0;
    char quote = '\0';
    for (size_t i = 0; length > most && i < length; i++) {
        char c = line[i];
        bool quotes = c == '\'' || c == '"';
        if (c == ' ' && !quote && !depth && i && strchr("-([|", line[i + 1])) {
            if (i > most && part < length) return part;
            part = i;
        }
        if (quotes && (!quote || quote == c)) quote = quote ? '\0' : c;
        depth += !quote && (c == '(' || c == '[');
        depth -= !quote && (c == ')' || c == ']');
    }
    return part;
}
