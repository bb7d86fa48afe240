/* Tests pictures. Every kind of PNG, JPEG, WebP and GIF must give the pixels that Pillow reads. Resizing must give the
 * pixels of Pillow's filters. A damaged file must give an error.
 *
 * tests/data/images/make_cases.py made the cases with Pillow. */
/* suite: hostile */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/exif.h"
#include "formats/json.h"
#include "src/engine/vision/image_resize.h"
#include "tests/support/suite.h"

#define IMAGES "tests/data/images/"

static json_t *cases;

static void read_cases(void) {
    ck_assert_int_eq(fr_json_read(IMAGES "cases.json", 1 << 24, &cases), FR_OK);
}

static void free_cases(void) {
    json_decref(cases);
}

static size_t number(const json_t *object, const char *key, size_t index) {
    const json_t *value = json_object_get(object, key);
    if (json_is_array(value)) value = json_array_get(value, index);
    return (size_t)json_integer_value(value);
}

static const char *text(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static void check_bytes(const char *hex, const uint8_t *bytes, size_t count, const char *what) {
    ck_assert_msg(strlen(hex) == 2 * count, "%s: %zu bytes", what, count);
    for (size_t i = 0; i < count; i++) {
        char expected[3];
        snprintf(expected, sizeof expected, "%02x", bytes[i]);
        ck_assert_msg(memcmp(hex + 2 * i, expected, 2) == 0, "%s: byte %zu is %s, Pillow has %.2s", what, i, expected,
                      hex + 2 * i);
    }
}

START_TEST(files_are_read_as_pillow_reads_them) {
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(cases, "files"), i, entry) {
        char path[256];
        fr_image image;
        snprintf(path, sizeof path, IMAGES "%s", text(entry, "file"));
        ck_assert_msg(fr_image_open(&image, path) == FR_OK, "%s", fr_last_error());
        ck_assert_uint_eq(image.width, number(entry, "width", 0));
        ck_assert_uint_eq(image.height, number(entry, "height", 0));
        check_bytes(text(entry, "rgb"), image.rgb, image.width * image.height * 3, path);
        fr_image_close(&image);
    }
    ck_assert_uint_ge(i, 106);
}
END_TEST

/* Makes a picture of noise. make_cases.py makes and resizes the same picture. */
static fr_image noise(size_t width, size_t height) {
    fr_image image = {.rgb = malloc(width * height * 3), .width = width, .height = height};
    uint32_t state = 12345;
    ck_assert_ptr_nonnull(image.rgb);
    for (size_t i = 0; i < width * height * 3; i++) {
        state = (state * 1103515245u + 12345u) % ((uint32_t)1 << 31);
        uint32_t value = state >> 16 & 0x1ff;
        image.rgb[i] = (uint8_t)(value < 256 ? value : 255 * (value & 1));
    }
    return image;
}

static uint64_t fnv(const uint8_t *bytes, size_t count) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

START_TEST(resized_bytes_are_those_of_pillow) {
    size_t i;
    json_t *entry;
    json_array_foreach (json_object_get(cases, "resizes"), i, entry) {
        char what[64];
        fr_image image = noise(number(entry, "from", 0), number(entry, "from", 1)), resized;
        size_t width = number(entry, "to", 0), height = number(entry, "to", 1), count = width * height * 3;
        size_t few = count < 24 ? count : 24;
        fr_resample filter = (fr_resample)number(entry, "resample", 0);
        snprintf(what, sizeof what, "filter %d, %zu x %zu to %zu x %zu", (int)filter, image.width, image.height, width,
                 height);
        ck_assert_int_eq(fr_image_resize(&image, filter, width, height, &resized), FR_OK);
        ck_assert_uint_eq(resized.width, width);
        ck_assert_uint_eq(resized.height, height);
        check_bytes(text(entry, "head"), resized.rgb, few, what);
        check_bytes(text(entry, "tail"), resized.rgb + count - few, few, what);
        ck_assert_msg(fnv(resized.rgb, count) == strtoull(text(entry, "fnv"), NULL, 16), "%s: other bytes", what);
        fr_image_close(&image);
        fr_image_close(&resized);
    }
    ck_assert_uint_eq(i, 3 * 16);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- damage */

typedef struct blob {
    uint8_t bytes[4096];
    size_t size;
} blob;

static blob read_blob(const char *name) {
    char path[256];
    blob b;
    snprintf(path, sizeof path, IMAGES "%s", name);
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    b.size = fread(b.bytes, 1, sizeof b.bytes, file);
    ck_assert_uint_lt(b.size, sizeof b.bytes);
    fclose(file);
    return b;
}

/* Returns the error line for a file with these bytes, without the path at the beginning of the line. */
static const char *refusal(const uint8_t *bytes, size_t size) {
    char path[] = "/tmp/test_image_XXXXXX";
    int fd = mkstemp(path);
    fr_image image;
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    close(fd);
    fr_status status = fr_image_open(&image, path);
    unlink(path);
    if (status == FR_OK) {
        fr_image_close(&image);
        return "none";
    }
    ck_assert_int_eq(status, FR_INPUT);
    ck_assert_ptr_null(image.rgb);
    ck_assert_msg(strncmp(fr_last_error(), path, strlen(path)) == 0, "%s names no file", fr_last_error());
    return fr_last_error() + strlen(path);
}

/* EXIF data that are cut off or have a changed byte must give one of the eight orientations without an error. The data
 * are in an allocation of exactly their size. */
START_TEST(damaged_exif_is_no_orientation_or_another) {
    blob b = read_blob("png-turned-6.png");
    uint8_t *exif = b.bytes;
    while (memcmp(exif, "eXIf", 4) != 0) exif++;
    size_t size = exif[-1], seen = 0;
    exif += 4;
    ck_assert_int_eq(fr_exif_orientation(exif, size), 6);
    for (size_t length = 0; length <= size; length++)
        for (size_t at = 0; at < size; at++)
            for (int value = 0; value < 256; value += 51) {
                uint8_t *copy = malloc(length ? length : 1);
                memcpy(copy, exif, length);
                if (at < length) copy[at] = (uint8_t)value;
                int orientation = fr_exif_orientation(copy, length);
                ck_assert(orientation >= 1 && orientation <= 8);
                seen += orientation == 6;
                free(copy);
            }
    ck_assert_uint_gt(seen, 0);
}
END_TEST

START_TEST(what_ends_too_early_is_refused) {
    static const char *const names[] = {"png-2-8.png",     "png-3-8-i.png",
                                        "jpeg-420.jpg",    "jpeg-progressive.jpg",
                                        "webp-lossy.webp", "webp-lossless-alpha.webp",
                                        "gif-16.gif"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        blob b = read_blob(names[i]);
        size_t whole = b.size - (strstr(names[i], ".gif") ? 1 : 0); /* the last byte of a GIF only marks its end */
        for (size_t size = 0; size < whole; size++)
            ck_assert_msg(strcmp(refusal(b.bytes, size), "none") != 0, "%s opened when cut at %zu", names[i], size);
    }
}
END_TEST

START_TEST(other_formats_are_refused) {
    static const char bmp[] = "BM....", nothing[] = "";
    ck_assert_str_eq(refusal((const uint8_t *)bmp, 6), ": neither a PNG, JPEG, WebP nor GIF file");
    ck_assert_str_eq(refusal((const uint8_t *)nothing, 0), ": neither a PNG, JPEG, WebP nor GIF file");
}
END_TEST

static void put_big_endian(uint8_t *to, uint32_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

/* Corrects the checksum of the PNG chunk at `at`, so that the decoder accepts changed data. */
static void seal(blob *b, size_t at, size_t length) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = at + 4; i < at + 8 + length; i++) {
        crc ^= b->bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    put_big_endian(b->bytes + at + 8 + length, ~crc, 4);
}

START_TEST(a_small_file_that_claims_a_large_picture_is_refused) {
    enum { IHDR = 8 };
    blob b = read_blob("png-2-8.png");
    put_big_endian(b.bytes + IHDR + 8, 60000, 4);
    put_big_endian(b.bytes + IHDR + 12, 60000, 4);
    seal(&b, IHDR, 13);
    ck_assert_str_eq(refusal(b.bytes, b.size), ": a picture of 60000 x 60000, expected sides of 1 to 65536 and at most "
                                               "134217728 pixels");
    put_big_endian(b.bytes + IHDR + 8, 1 << 30, 4);
    seal(&b, IHDR, 13);
    ck_assert_msg(strstr(refusal(b.bytes, b.size), "damaged PNG"), "%s", fr_last_error());
    b = read_blob("jpeg-420.jpg");
    uint8_t *frame = b.bytes;
    while (frame[0] != 0xff || frame[1] != 0xc0) frame++;
    put_big_endian(frame + 5, 65000, 2);
    put_big_endian(frame + 7, 65000, 2);
    ck_assert_str_eq(refusal(b.bytes, b.size), ": a picture of 65000 x 65000, expected sides of 1 to 65536 and at most "
                                               "134217728 pixels");
    b = read_blob("webp-moving-small.webp");
    memcpy(b.bytes + 24, (const uint8_t[]){0xff, 0xff, 0xff, 0xff, 0xff, 0}, 6); /* the canvas's width and height */
    ck_assert_msg(strstr(refusal(b.bytes, b.size), "damaged WebP"), "%s", fr_last_error());
    memcpy(b.bytes + 24, (const uint8_t[]){0x5f, 0xea, 0, 0x5f, 0xea, 0}, 6);
    ck_assert_str_eq(refusal(b.bytes, b.size), ": a picture of 60000 x 60000, expected sides of 1 to 65536 and at most "
                                               "134217728 pixels");
    b = read_blob("gif-16.gif");
    memcpy(b.bytes + 6, (const uint8_t[]){0x60, 0xea, 0x60, 0xea}, 4); /* the screen's width and height */
    ck_assert_str_eq(refusal(b.bytes, b.size), ": a picture of 60000 x 60000, expected sides of 1 to 65536 and at most "
                                               "134217728 pixels");
}
END_TEST

/* The test overwrites numbers in files: the sizes of chunks in WebP files, and the position, size and bits of a picture
 * in GIF files. */
START_TEST(wrong_lengths_are_refused_or_read) {
    static const struct {
        const char *name;
        size_t at, bytes;
    } lengths[] = {{"webp-lossy.webp", 4, 4},
                   {"webp-lossy.webp", 16, 4},
                   {"webp-turned-6.webp", 16, 4},
                   {"webp-lossless.webp", 16, 4},
                   {"webp-moving-small.webp", 34, 4},
                   {"webp-moving-small.webp", 48, 4},
                   {"webp-moving-small.webp", 52, 3},
                   {"webp-moving-small.webp", 58, 3},
                   {"webp-moving-small.webp", 72, 4},
                   {"gif-16.gif", 62, 2},
                   {"gif-16.gif", 64, 2},
                   {"gif-16.gif", 66, 2},
                   {"gif-16.gif", 70, 1},
                   {"gif-16.gif", 71, 1},
                   {"gif-16.gif", 72, 1}};
    static const uint32_t values[] = {0, 1, 2, 7, 9, 255, 256, 4095, 65535, 0x7fffffff, 0xfffffff0, 0xffffffff};
    size_t refused = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            blob b = read_blob(lengths[i].name);
            for (size_t byte = 0; byte < lengths[i].bytes; byte++)
                b.bytes[lengths[i].at + byte] = (uint8_t)(values[v] >> 8 * byte);
            refused += strcmp(refusal(b.bytes, b.size), "none") != 0;
        }
    ck_assert_uint_gt(refused, 80);
}
END_TEST

START_TEST(a_wrong_checksum_is_refused) {
    blob b = read_blob("png-2-8.png");
    b.bytes[b.size - 20] ^= 1;
    ck_assert_msg(strstr(refusal(b.bytes, b.size), "damaged PNG"), "%s", fr_last_error());
}
END_TEST

FR_SUITE("image") {
    TCase *pillow = tcase_create("as Pillow"), *damage = tcase_create("damage");
    tcase_add_checked_fixture(pillow, read_cases, free_cases);
    tcase_add_test(pillow, files_are_read_as_pillow_reads_them);
    tcase_add_test(pillow, resized_bytes_are_those_of_pillow);
    tcase_add_test(damage, what_ends_too_early_is_refused);
    tcase_add_test(damage, damaged_exif_is_no_orientation_or_another);
    tcase_add_test(damage, other_formats_are_refused);
    tcase_add_test(damage, a_small_file_that_claims_a_large_picture_is_refused);
    tcase_add_test(damage, wrong_lengths_are_refused_or_read);
    tcase_add_test(damage, a_wrong_checksum_is_refused);
    suite_add_tcase(suite, pillow);
    suite_add_tcase(suite, damage);
}
