/* Tests SHA-256. The digests must equal those of the standard's examples and of Python's hashlib. Texts are passed in
 * portions of any size. Their lengths include every length near the end of a block. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "tests/support/suite.h"

static const char *hexadecimal(const uint8_t *digest) {
    static char text[2 * FR_SHA256_BYTES + 1];
    for (size_t i = 0; i < FR_SHA256_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

static const char *digest_of(const void *bytes, size_t size, size_t piece) {
    uint8_t digest[FR_SHA256_BYTES];
    fr_sha256 hash = fr_sha256_begin();
    for (size_t at = 0; at < size; at += piece)
        fr_sha256_add(&hash, (const uint8_t *)bytes + at, size - at < piece ? size - at : piece);
    fr_sha256_end(&hash, digest);
    return hexadecimal(digest);
}

START_TEST(digests_are_the_standards) {
    static const struct {
        const char *text, *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t piece = 1; piece < 70; piece += 23)
            ck_assert_str_eq(digest_of(cases[i].text, strlen(cases[i].text), piece), cases[i].digest);
    char *many = malloc(1000000);
    memset(many, 'a', 1000000);
    ck_assert_str_eq(digest_of(many, 1000000, 1000),
                     "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(many);
}
END_TEST

/* For each n from 0 to 199, hashes the first n of the bytes 0, 1, 2, and so on. The 200 digests, written in
 * hexadecimal, are then hashed as one text. Python's hashlib gave the expected value. */
START_TEST(every_length_is_padded_right) {
    uint8_t bytes[200], digest[FR_SHA256_BYTES];
    fr_sha256 all = fr_sha256_begin();
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
    for (size_t length = 0; length < sizeof bytes; length++) fr_sha256_add(&all, digest_of(bytes, length, 64), 64);
    fr_sha256_end(&all, digest);
    ck_assert_str_eq(hexadecimal(digest), "7a38a844c9e159de39f0862ee2e28569a8250831150a3fbf0a59c001129b2fb2");
}
END_TEST

FR_SUITE("sha256") {
    TCase *cases = tcase_create("sha256");
    tcase_add_test(cases, digests_are_the_standards);
    tcase_add_test(cases, every_length_is_padded_right);
    suite_add_tcase(suite, cases);
}
