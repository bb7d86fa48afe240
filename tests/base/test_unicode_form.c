/* Tests which byte sequences are complete UTF-8 characters, and which can begin one, against utf8proc. The texts have
 * four bytes. There are too many texts of four bytes to test all. So the third and fourth byte are only values next to
 * a limit of a byte range. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/unicode_form.h"
#include "tests/support/suite.h"

/* Continuation bytes range from 0x80 to 0xBF. `bounds` has the values on both sides of these two limits, and the
 * smallest and the largest byte. */
static const unsigned char bounds[] = {0x00, 0x7F, 0x80, 0xBF, 0xC0, 0xFF};
enum { BOUNDS = sizeof bounds };

/* For each beginning of 1 to 4 bytes, the length of the character that begins so; 0: no character begins so. Entry [n -
 * 1][a][b][c][d] is for a beginning of n bytes. a and b are its first two bytes. c and d are the indexes of its third
 * and fourth byte in `bounds`. */
typedef struct lengths {
    unsigned char of[4][256][256][BOUNDS][BOUNDS];
} lengths;

/* Returns the entry for a beginning of `length` bytes. n: the first two bytes, and then the indexes in `bounds` of the
 * third and fourth byte. */
static unsigned char *of_beginning(lengths *known, size_t length, const size_t *n) {
    size_t second = length > 1 ? n[1] : 0, third = length > 2 ? n[2] : 0, fourth = length > 3 ? n[3] : 0;
    return &known->of[length - 1][n[0]][second][third][fourth];
}

typedef void visit_fn(lengths *known, const size_t *n, const char *text);

static void visit_all(lengths *known, visit_fn *visit) {
    size_t n[4];
    for (n[0] = 0; n[0] < 256; n[0]++)
        for (n[1] = 0; n[1] < 256; n[1]++)
            for (n[2] = 0; n[2] < BOUNDS; n[2]++)
                for (n[3] = 0; n[3] < BOUNDS; n[3]++) {
                    const char text[] = {(char)n[0], (char)n[1], (char)bounds[n[2]], (char)bounds[n[3]]};
                    visit(known, n, text);
                }
}

static void ask(lengths *known, const size_t *n, const char *text) {
    utf8proc_int32_t codepoint;
    utf8proc_ssize_t whole = utf8proc_iterate((const utf8proc_uint8_t *)text, 4, &codepoint);
    for (utf8proc_ssize_t length = 1; length <= whole; length++)
        *of_beginning(known, (size_t)length, n) = (unsigned char)whole;
}

static void compare(lengths *known, const size_t *n, const char *text) {
    for (size_t length = 1; length <= 4; length++) {
        fr_character_bytes expected = {0}, character = fr_first_character(text, length);
        for (size_t there = 1; there <= length && *of_beginning(known, there, n); there++)
            expected = (fr_character_bytes){there, *of_beginning(known, there, n)};
        if (character.there != expected.there || character.whole != expected.whole)
            ck_abort_msg("%zu of %02x %02x %02x %02x: %zu of %zu bytes, not %zu of %zu", length, text[0] & 0xFF,
                         text[1] & 0xFF, text[2] & 0xFF, text[3] & 0xFF, character.there, character.whole,
                         expected.there, expected.whole);
    }
}

START_TEST(beginnings_of_characters) {
    lengths *known = calloc(1, sizeof *known);
    visit_all(known, ask);
    visit_all(known, compare);
    free(known);
    ck_assert_uint_eq(fr_first_character("", 0).there, 0);
}
END_TEST

FR_SUITE("unicode_form") {
    TCase *cases = tcase_create("unicode_form");
    tcase_add_test(cases, beginnings_of_characters);
    suite_add_tcase(suite, cases);
}
