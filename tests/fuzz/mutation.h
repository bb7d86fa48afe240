/* Damages files. The same seed gives the same damage. All mutate_ programs use these functions.
 *
 * In: the bytes of a file. Out: the damaged bytes. A check also tells whether a run with them was refused with a proper
 * error line. */
#ifndef FR_TESTS_FUZZ_MUTATION_H
#define FR_TESTS_FUZZ_MUTATION_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "forerun.h"

typedef struct blob {
    uint8_t *bytes;
    size_t size;
} blob;

static uint64_t mutation_state;

static inline void seed_mutations(uint64_t seed) {
    mutation_state = seed * 0x9e3779b97f4a7c15u + 1;
}

/* Returns a random number below `limit` (xorshift64*). */
static inline size_t draw(size_t limit) {
    mutation_state ^= mutation_state >> 12;
    mutation_state ^= mutation_state << 25;
    mutation_state ^= mutation_state >> 27;
    return limit ? (size_t)((mutation_state * 0x2545f4914f6cdd1du) >> 33) % limit : 0;
}

_Noreturn static inline void die(const char *what, const char *name) {
    fprintf(stderr, "%s: %s %s\n", program_invocation_short_name, what, name);
    exit(1);
}

static inline blob read_blob(const char *path) {
    FILE *file = fopen(path, "rb");
    struct stat info;
    if (!file || fstat(fileno(file), &info) != 0) die("can't read", path);
    blob b = {malloc((size_t)info.st_size + 1), (size_t)info.st_size};
    if (!b.bytes || fread(b.bytes, 1, b.size, file) != b.size) die("can't read", path);
    fclose(file);
    return b;
}

static inline void write_blob(const char *path, const blob *b) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(b->bytes, 1, b->size, file) != b->size || fclose(file) != 0) die("can't write", path);
}

/* Returns a position to damage. Usually it is near the file's beginning, because text and lengths are there. The rest
 * of a weights file is mostly numbers. */
static inline size_t place(const blob *b) {
    size_t head = b->size < 16384 ? b->size : 16384;
    return draw(draw(4) ? head : b->size);
}

static inline void overwrite_number(blob *b) {
    static const char *const numbers[] = {"0",   "-1",   "1e9",   "4294967296", "9223372036854775807",
                                          "0.5", "null", "\"x\"", "[]"};
    size_t at = place(b);
    while (at < b->size && (b->bytes[at] < '0' || b->bytes[at] > '9')) at++;
    const char *number = numbers[draw(sizeof numbers / sizeof *numbers)];
    size_t length = strlen(number);
    if (at + length < b->size) memcpy(b->bytes + at, number, length);
}

/* Overwrites the word at a random position with a number that is unsuitable as a length, an offset or a count. */
static inline void overwrite_word(blob *b) {
    static const uint64_t words[] = {0,
                                     1,
                                     3,
                                     31,
                                     255,
                                     UINT16_MAX,
                                     INT32_MAX,
                                     UINT32_MAX,
                                     (uint64_t)1 << 32,
                                     (uint64_t)1 << 48,
                                     INT64_MAX,
                                     (uint64_t)1 << 63,
                                     UINT64_MAX - 31,
                                     UINT64_MAX};
    size_t at = place(b), length = draw(2) ? 8 : 4;
    uint64_t word = draw(4) ? words[draw(sizeof words / sizeof *words)] : draw(512);
    if (at + length < b->size) memcpy(b->bytes + at, &word, length);
}

static inline void move_chunk(blob *b) {
    size_t length = draw(64), from = place(b), to = place(b);
    if (from + length < b->size && to + length < b->size) memmove(b->bytes + to, b->bytes + from, length);
}

static inline void cut_chunk(blob *b) {
    size_t length = draw(64), at = place(b);
    if (at + length >= b->size) return;
    memmove(b->bytes + at, b->bytes + at + length, b->size - at - length);
    b->size -= length;
}

static inline void spoil_weights(blob *b) {
    static const uint8_t not_a_number[] = {0xc0, 0x7f, 0xc0, 0x7f, 0x80, 0xff};
    size_t at = draw(b->size);
    if (at + sizeof not_a_number < b->size) memcpy(b->bytes + at, not_a_number, sizeof not_a_number);
}

/* Damages the bytes in one to four random ways. */
static inline void mutate(blob *b) {
    for (size_t times = 1 + draw(4); times; times--) {
        size_t at = place(b);
        switch (draw(9)) {
        case 0: b->size = draw(b->size + 1); break;
        case 1:
            if (b->size) b->bytes[at] ^= (uint8_t)(1u << draw(8));
            break;
        case 2:
            if (b->size) b->bytes[at] = (uint8_t)draw(256);
            break;
        case 3: overwrite_number(b); break;
        case 4: move_chunk(b); break;
        case 5: cut_chunk(b); break;
        case 6: spoil_weights(b); break;
        case 7: overwrite_word(b); break;
        default:
            if (b->size) b->bytes[at] = (uint8_t) "\"{}[],:\\0"[draw(9)];
            break;
        }
    }
}

/* Returns true if the text consists of one or two lines and no line is empty. */
static inline bool are_lines(const char *text) {
    const char *end = strchr(text, '\n');
    return *text && end != text && (!end || (end[1] && !strchr(end + 1, '\n')));
}

/* Returns true if a call was refused. In this case also checks that the error consists of one or two lines. */
static inline bool refused(fr_status status) {
    const char *line = fr_last_error();
    if (status == FR_OK) return false;
    if (!are_lines(line)) die("a bad error line:", line);
    return true;
}

#endif
