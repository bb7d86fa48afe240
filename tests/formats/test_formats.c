/* Tests weight files and JSON: every valid form, every error with its line, and damaged files. A damaged file may be
 * read or give an error, but it must never crash the reader.
 *
 * The tests write the files to a temporary folder. The data follow a pattern. So the bytes at a tensor's pointer show
 * whether the pointer is right. */
/* suite: quick hostile */
#include <check.h>
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/checkpoint.h"
#include "formats/json_wide.h"
#include "formats/safetensors.h"
#include "tests/support/suite.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* ------------------------------------------------------------------------------------------------ a folder of files */

static char folder[64], path_text[512];

static const char *in_folder(const char *name) {
    snprintf(path_text, sizeof path_text, "%s/%s", folder, name);
    return path_text;
}

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/test_formats_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
    DIR *entries = opendir(folder);
    ck_assert_ptr_nonnull(entries);
    for (struct dirent *entry; (entry = readdir(entries));)
        if (entry->d_name[0] != '.') remove(in_folder(entry->d_name));
    closedir(entries);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void put(const char *name, const void *bytes, size_t size) {
    FILE *file = fopen(in_folder(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static void put_text(const char *name, const char *text) {
    put(name, text, strlen(text));
}

static uint8_t pattern(uint64_t at) {
    return (uint8_t)(at * 7 + 3);
}

/* Returns the bytes of a safetensors file, in an allocation of exactly the file's size. The caller frees them. */
static uint8_t *weights(const char *header, size_t data, size_t *size) {
    size_t length = strlen(header);
    *size = 8 + length + data;
    uint8_t *bytes = malloc(*size);
    ck_assert_ptr_nonnull(bytes);
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)((uint64_t)length >> 8 * i);
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data; i++) bytes[8 + length + i] = pattern(i);
    return bytes;
}

static void put_weights(const char *name, const char *header, size_t data) {
    size_t size;
    uint8_t *bytes = weights(header, data, &size);
    put(name, bytes, size);
    free(bytes);
}

/* Opens the folder twice: with memory mapping, and by reading into memory. Both must fail with a line that contains
 * `words`. */
static void expect_failure(const char *words) {
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        fr_checkpoint checkpoint;
        fr_status status = fr_checkpoint_open(&checkpoint, folder, use_mmap);
        ck_assert_msg(status == FR_INPUT, "status %d where \"%s\" was expected", status, words);
        ck_assert_msg(strstr(fr_last_error(), words), "\"%s\" is not in \"%s\"", words, fr_last_error());
        ck_assert_msg(strstr(fr_last_error(), folder), "no path in \"%s\"", fr_last_error());
        ck_assert(!checkpoint.path && !checkpoint.config && !checkpoint.files); /* nothing stays open */
        fr_checkpoint_close(&checkpoint);
    }
}

/* Checks that the tensor exists and has the bytes of the pattern from `offset` on. If the tensor is not in memory yet,
 * reads it first. */
static const fr_tensor *expect_tensor(const fr_checkpoint *checkpoint, const char *name, fr_dtype type, uint64_t offset,
                                      uint64_t bytes) {
    const fr_tensor *tensor;
    fr_status status = fr_checkpoint_tensor(checkpoint, name, &tensor);
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
    ck_assert_str_eq(tensor->name, name);
    ck_assert_int_eq(tensor->type, type);
    ck_assert_uint_eq(tensor->bytes, bytes);
    const fr_map *map = &checkpoint->files[tensor->file];
    size_t at = (size_t)((const uint8_t *)tensor->data - map->bytes);
    ck_assert_int_eq(fr_map_fill(map, at, at + bytes), FR_OK);
    for (uint64_t i = 0; i < bytes; i++) ck_assert_uint_eq(map->bytes[at + i], pattern(offset + i));
    return tensor;
}

/* ----------------------------------------------------------------------------------------------------------- errors */

START_TEST(error_line) {
    ck_assert_str_eq(fr_last_error(), "");
    ck_assert_int_eq(fr_fail(FR_NUMERIC, "tensor %s: %d", "a\n\x1b[31m\x7f\xC2\x9B\xC3\xA9", 7), FR_NUMERIC);
    ck_assert_str_eq(fr_last_error(), "tensor a??[31m???\xC3\xA9: 7");
    ck_assert_int_eq(fr_fail(FR_INPUT, "again: %s", fr_last_error()), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "again: tensor a??[31m???\xC3\xA9: 7");
    ck_assert_int_eq(fr_fail_memory("rows", 12), FR_MEMORY);
    ck_assert_str_eq(fr_last_error(), "out of memory: 12 bytes for rows");
    ck_assert_str_eq(fr_status_name(FR_OK), "ok");
    ck_assert_str_eq(fr_status_name(FR_UNBUILT), "unbuilt");
    ck_assert_str_eq(fr_status_name((fr_status)99), "unknown");
    fr_free(NULL);
}
END_TEST

/* A line that is too long must be cut between two characters. This is tested with characters of 1, 2, 3 and 4 bytes. */
START_TEST(error_line_cut) {
    static const char *const characters[] = {"e", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    for (size_t kind = 0; kind < COUNT_OF(characters); kind++) {
        size_t width = strlen(characters[kind]);
        for (size_t lead = 0; lead < 8; lead++) {
            char text[1024] = "xxxxxxxx";
            text[lead] = 0;
            for (size_t at = lead; at + width < 700; at += width) memcpy(text + at, characters[kind], width + 1);
            fr_fail(FR_INPUT, "%s", text);
            ck_assert_uint_eq(strlen(fr_last_error()), lead + (511 - lead) / width * width);
            ck_assert_int_eq(strncmp(fr_last_error(), text, strlen(fr_last_error())), 0);
        }
    }
}
END_TEST

static void *fail_elsewhere(void *unused) {
    fr_fail(FR_USAGE, "elsewhere");
    return unused;
}

START_TEST(error_is_per_thread) {
    pthread_t thread;
    fr_fail(FR_INPUT, "here");
    ck_assert_int_eq(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_str_eq(fr_last_error(), "here");
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------- maps */

START_TEST(map_reads_and_fills) {
    enum { SIZE = 20000 };
    uint8_t bytes[SIZE];
    for (size_t i = 0; i < SIZE; i++) bytes[i] = pattern(i);
    put("file", bytes, SIZE);
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        fr_map map;
        ck_assert_int_eq(fr_map_open(&map, in_folder("file"), use_mmap), FR_OK);
        ck_assert_uint_eq(map.size, SIZE);
        ck_assert_int_eq(fr_map_fill(&map, 5000, 9001), FR_OK);
        ck_assert_mem_eq(map.bytes + 5000, bytes + 5000, 4001);
        /* this byte is outside of the requested range, so it was not read into memory */
        ck_assert_uint_eq(map.bytes[9001], use_mmap ? bytes[9001] : 0);
        ck_assert_int_eq(fr_map_fill(&map, 0, SIZE), FR_OK);
        ck_assert_mem_eq(map.bytes, bytes, SIZE);
        ck_assert_int_eq(fr_map_fill(&map, SIZE, SIZE), FR_OK);
        ck_assert_int_eq(fr_map_fill(&map, 0, SIZE + 1), FR_INPUT);
        ck_assert_int_eq(fr_map_fill(&map, 2, 1), FR_INPUT);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "/file: "));
        fr_map_close(&map);
        fr_map_close(&map);
    }
}
END_TEST

/* If a mapped file shrinks while it is used, the process gets SIGBUS, and the signal's handler knows only an address.
 * So the address of any byte of a mapped file must lead to the file. A file that was read into memory gives no SIGBUS
 * when it shrinks. Its addresses must lead to no file. */
START_TEST(mapped_files_are_told_by_address) {
    fr_map maps[3], copy;
    static const char *const names[] = {"file", "other", "third"};
    for (size_t i = 0; i < 3; i++) {
        put(names[i], "0123456789", 10);
        ck_assert_int_eq(fr_map_open(&maps[i], in_folder(names[i]), true), FR_OK);
    }
    ck_assert_int_eq(fr_map_open(&copy, in_folder("file"), false), FR_OK);
    ck_assert_ptr_null(fr_mapped_file(copy.bytes));
    ck_assert_ptr_null(fr_mapped_file(NULL));
    ck_assert_ptr_null(fr_mapped_file(names));
    fr_map_close(&copy);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(fr_mapped_file(maps[i].bytes), in_folder(names[i]));
        ck_assert_str_eq(fr_mapped_file(maps[i].bytes + 9), in_folder(names[i]));
        ck_assert_ptr_null(fr_mapped_file(maps[i].bytes + 10));
    }
    const uint8_t *gone = maps[1].bytes;
    fr_map_close(&maps[1]);
    ck_assert_ptr_null(fr_mapped_file(gone));
    ck_assert_str_eq(fr_mapped_file(maps[2].bytes), in_folder("third"));
    fr_map_close(&maps[0]);
    fr_map_close(&maps[2]);
}
END_TEST

START_TEST(map_short_read) {
    fr_map map;
    put_text("file", "0123456789");
    ck_assert_int_eq(fr_map_open(&map, in_folder("file"), false), FR_OK);
    ck_assert_int_eq(truncate(in_folder("file"), 4), 0);
    ck_assert_int_eq(fr_map_fill(&map, 0, 4), FR_OK);
    ck_assert_int_eq(fr_map_fill(&map, 2, 10), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "/file ends at byte 4"));
    fr_map_close(&map);
}
END_TEST

/* Only regular files can be mapped. If nobody writes to a FIFO, opening it must not block. */
START_TEST(map_takes_regular_files_only) {
    fr_map map;
    put("empty", "", 0);
    ck_assert_int_eq(mkfifo(in_folder("fifo"), 0600), 0);
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        ck_assert_int_eq(fr_map_open(&map, in_folder("empty"), use_mmap), FR_OK);
        ck_assert(map.size == 0 && !map.bytes);
        ck_assert_int_eq(fr_map_fill(&map, 0, 0), FR_OK);
        fr_map_close(&map);
        ck_assert_int_eq(fr_map_open(&map, in_folder("fifo"), use_mmap), FR_INPUT);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "/fifo is not a regular file"));
        fr_map_close(&map);
        ck_assert_int_eq(fr_map_open(&map, folder, use_mmap), FR_INPUT);
        ck_assert_int_eq(fr_map_open(&map, in_folder("none"), use_mmap), FR_INPUT);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "/none: No such file"));
    }
}
END_TEST

START_TEST(text_is_read_whole) {
    char *text;
    size_t size;
    put("text", "a\0b", 3);
    ck_assert_int_eq(fr_read_text(in_folder("text"), 3, &text, &size), FR_OK);
    ck_assert_uint_eq(size, 3);
    ck_assert_mem_eq(text, "a\0b", 4);
    free(text);
    ck_assert_int_eq(fr_read_text(in_folder("text"), 2, &text, &size), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "3 bytes, and at most 2"));
    ck_assert_ptr_null(text);
    put("text", "", 0);
    ck_assert_int_eq(fr_read_text(in_folder("text"), 2, &text, &size), FR_OK);
    ck_assert(size == 0 && text[0] == 0);
    free(text);
    ck_assert(fr_file_exists(in_folder("text")) && !fr_file_exists(in_folder("none")));
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------- JSON */

/* Parses a copy of the text in an allocation of exactly its size, so that a sanitizer finds any read past the end. */
static fr_status parse(const char *text, size_t size, json_t **root) {
    char *copy = malloc(size ? size : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, size);
    fr_status status = fr_json_parse(copy, size, "text", root);
    free(copy);
    ck_assert((status == FR_OK) == (*root != NULL));
    return status;
}

static json_t *object(const char *text) {
    json_t *root;
    fr_status status = parse(text, strlen(text), &root);
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
    return root;
}

static const struct {
    const char *text, *words;
} bad_json[] = {
    {"", "not valid JSON"},
    {" ", "not valid JSON"},
    {"{", "not valid JSON"},
    {"{}x", "line 1, column 3"},
    {"]", "not valid JSON"},
    {"\"\\", "not valid JSON"},
    {"\"\\\"", "not valid JSON"},
    {"{\"a\":1,\"a\":2}", "duplicate object key a"},
    {"{\"a\":1,\"b\\\"c\":{\"a\":2},\"b\\\"c\":3}", "duplicate object key b\\\"c"},
    {"[\"\xff\"]", "unable to decode byte 0xff"},
    {"[\"\xed\xa0\x80\"]", "unable to decode byte 0xed"},
    {"[\"\\u0000\"]", "not valid JSON"},
    {"[NaN]", "not valid JSON"},
    {"[1e999]", "not valid JSON"},
    {"[9223372036854775808]", "too big"},
};

START_TEST(json_errors) {
    json_t *root;
    const char *text = bad_json[_i].text;
    ck_assert_int_eq(parse(text, strlen(text), &root), FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), bad_json[_i].words), "%s", fr_last_error());
    ck_assert_int_eq(strncmp(fr_last_error(), "text: ", 6), 0);
}
END_TEST

START_TEST(json_depth) {
    json_t *root;
    char text[200000];
    for (size_t depth = 64; depth <= 65; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        ck_assert_int_eq(parse(text, 2 * depth, &root), depth > 64 ? FR_INPUT : FR_OK);
        json_decref(root);
    }
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "deeper than 64"));
    memset(text, '[', sizeof text);
    ck_assert_int_eq(parse(text, sizeof text, &root), FR_INPUT);
    memset(text, '{', sizeof text);
    text[0] = text[sizeof text - 1] = '"'; /* brackets inside a string do not nest */
    ck_assert_int_eq(parse(text, sizeof text, &root), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "not valid JSON"));
    const char *quoted = "[\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\\\"]";
    ck_assert_int_eq(parse(quoted, strlen(quoted), &root), FR_OK);
    json_decref(root);
}
END_TEST

START_TEST(json_too_many_values) {
    size_t count = ((size_t)1 << 23) + 2, size = 2 * count + 1;
    char *text = malloc(size);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < count; i++) memcpy(text + 2 * i, i ? ",1" : "[1", 2);
    text[size - 1] = ']';
    json_t *root;
    ck_assert_int_eq(fr_json_parse(text, size, "text", &root), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "more than 8388608 values"));
    free(text);
}
END_TEST

/* Lists all numbers inside a value, in order. An integer that does not fit in 64 bits is listed as its digits and a
 * semicolon. */
static void list_numbers(const json_t *value, char *list, size_t size) {
    size_t length = strlen(list), digits;
    const char *wide = fr_json_wide_digits(value, &digits), *key;
    json_t *item;
    if (wide) snprintf(list + length, size - length, "%.*s;", (int)digits, wide);
    if (json_is_integer(value)) snprintf(list + length, size - length, "%lld,", (long long)json_integer_value(value));
    if (json_is_real(value)) snprintf(list + length, size - length, "%g,", json_real_value(value));
    for (size_t i = 0; i < json_array_size(value); i++) list_numbers(json_array_get(value, i), list, size);
    json_object_foreach ((json_t *)(uintptr_t)value, key, item) list_numbers(item, list, size);
}

START_TEST(json_wide_integers) {
    static const char *const texts[][2] = {
        {"[9223372036854775807,9223372036854775808,-9223372036854775808,-9223372036854775809]",
         "9223372036854775807,9223372036854775808;-9223372036854775808,-9223372036854775809;"},
        {"{\"z\":[1,{\"b\":2.5,\"a\":12345678901234567890}],\"a\":-3,\"12345678901234567890\":0,\"c\":"
         "123456789012345678901}",
         "1,2.5,12345678901234567890;-3,0,123456789012345678901;"},
        {"[\"12345678901234567890 \\\"12345678901234567890\",1e3,12345678901234567890.5,12345678901234567890e1,"
         "12345678901234567890 ]",
         "1000,1.23457e+19,1.23457e+20,12345678901234567890;"},
        {" [ 100000000000000000000000000000000000000000000000000000000000 , -0 , 0 , true , null ] ",
         "100000000000000000000000000000000000000000000000000000000000;0,0,"},
        {"{\"a\":12345678901234567890,\"b\":2,\"a\":1,\"c\":[9223372036854775806,98765432109876543210]}",
         "1,2,9223372036854775806,98765432109876543210;"},
        {"{\"a\":{\"b\":12345678901234567890},\"a\":{\"b\":1,\"b\":-98765432109876543210}}", "-98765432109876543210;"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char list[256] = "";
        json_t *root;
        fr_status status = fr_json_parse_texts(texts[i][0], strlen(texts[i][0]), "text", &root);
        ck_assert_msg(status == FR_OK, "%s", fr_last_error());
        list_numbers(root, list, sizeof list);
        ck_assert_str_eq(list, texts[i][1]);
        json_decref(root);
    }
}
END_TEST

/* Before the reader parses a text, it replaces integers that do not fit in 64 bits. Its errors must still give the
 * position in the original text. A string that contains many digits must not be treated as a number. */
START_TEST(json_wide_errors) {
    static const char *const texts[][2] = {
        {"[12345678901234567890,]", "line 1, column 23"},
        {"[012345678901234567890]", "not valid JSON"},
        {"[-12345678901234567890-]", "not valid JSON"},
        {"[12345678901234567890 1]", "line 1, column 23"},
        {"[12345678901234567890x]", "line 1, column 22"},
        {"[1e999,12345678901234567890]", "real number overflow"},
        {"12345678901234567890", "not valid JSON"},
        {"[\"\xff\", 12345678901234567890]", "unable to decode byte 0xff"},
    };
    json_t *root;
    size_t length;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ck_assert_int_eq(fr_json_parse_texts(texts[i][0], strlen(texts[i][0]), "text", &root), FR_INPUT);
        ck_assert_msg(strstr(fr_last_error(), texts[i][1]), "%s: %s", texts[i][0], fr_last_error());
        ck_assert_ptr_null(root);
    }
    json_t *text = json_string("12345678901234567890"), *bytes = json_stringn_nocheck("\xff 12", 4);
    ck_assert(fr_json_is_text(text) && fr_json_is_text(bytes) && !fr_json_is_text(json_null()));
    ck_assert(!fr_json_wide_digits(text, &length) && !fr_json_wide_digits(bytes, &length));
    json_decref(text);
    json_decref(bytes);
}
END_TEST

/* Published tokenizer_config.json files have a number of 31 digits. The other members of such a file must still be
 * readable. */
START_TEST(json_file_with_a_huge_integer) {
    json_t *root;
    int64_t value;
    put_text("c.json", "{\"model_max_length\":1000000000000000019884624838656,\"n\":262144}");
    ck_assert_int_eq(fr_json_read(in_folder("c.json"), 1000, &root), FR_OK);
    ck_assert_int_eq(fr_json_int(root, "n", 0, 1 << 20, 0, "c.json", &value), FR_OK);
    ck_assert_int_eq(value, 262144);
    ck_assert_int_eq(fr_json_int(root, "model_max_length", 0, INT64_MAX, 0, "c.json", &value), FR_INPUT);
    json_decref(root);
    ck_assert_int_eq(fr_json_read(in_folder("c.json"), 10, &root), FR_INPUT);
    ck_assert_ptr_null(root);
    put_text("c.json", "{\"a\":[Infinity,NaN,\"\\\"NaN\"],\"n\":}");
    ck_assert_int_eq(fr_json_read(in_folder("c.json"), 1000, &root), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "/c.json: not valid JSON: line 1, column 33"));
    put_text("c.json", "{\"n\":}");
    ck_assert_int_eq(fr_json_read(in_folder("c.json"), 1000, &root), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "/c.json: not valid JSON: line 1, column 6"));
    ck_assert_ptr_null(root);
}
END_TEST

/* If the library does not read a key, the key's value may be NaN or infinite. If it reads the key, it must give an
 * error that names the value. */
START_TEST(json_file_with_numbers_that_are_not_finite) {
    json_t *root, *object;
    int64_t whole;
    double real;
    bool flag;
    const char *text;
    put_text("c.json", "{\"a\":Infinity,\"b\":-Infinity,\"c\":NaN,\"limit\":[0.0,Infinity],\"n\":2,"
                       "\"max\":1000000000000000019884624838656,\"s\":\"NaN\"}");
    ck_assert_int_eq(fr_json_read(in_folder("c.json"), 1000, &root), FR_OK);
    ck_assert_int_eq(fr_json_int(root, "n", 0, 9, 0, "c.json", &whole), FR_OK);
    ck_assert_int_eq(whole, 2);
    ck_assert_int_eq(fr_json_text(root, "s", "c.json", &text), FR_OK);
    ck_assert_str_eq(text, "NaN");
    ck_assert_int_eq(fr_json_real(root, "a", -1e300, 1e300, 1, "c.json", &real), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "c.json: \"a\" is Infinity, not a finite number");
    ck_assert_int_eq(fr_json_int(root, "b", 0, 9, 0, "c.json", &whole), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "c.json: \"b\" is -Infinity, not a whole number");
    ck_assert_int_eq(fr_json_bool(root, "c", true, "c.json", &flag), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "c.json: \"c\" is NaN, neither true nor false");
    ck_assert_int_eq(fr_json_text(root, "c", "c.json", &text), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "c.json: \"c\" is NaN, not a string");
    ck_assert_int_eq(fr_json_object(root, "c", "c.json", &object), FR_INPUT);
    json_decref(root);
}
END_TEST

START_TEST(json_int) {
    json_t *root = object("{\"a\":5,\"whole\":6.0,\"half\":0.5,\"big\":1e19,\"edge\":9223372036854775807,"
                          "\"text\":\"5\",\"null\":null,\"low\":-9223372036854775808.0,"
                          "\"past\":9223372036854775808.0}");
    static const struct {
        const char *key;
        fr_status status;
        int64_t value;
    } rows[] = {{"a", FR_OK, 5},           {"whole", FR_OK, 6},        {"half", FR_INPUT, 0}, {"big", FR_INPUT, 0},
                {"text", FR_INPUT, 0},     {"edge", FR_OK, INT64_MAX}, {"null", FR_OK, 42},   {"missing", FR_OK, 42},
                {"low", FR_OK, INT64_MIN}, {"past", FR_INPUT, 0}};
    int64_t value;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fr_status status = fr_json_int(root, rows[i].key, INT64_MIN, INT64_MAX, 42, "f", &value);
        ck_assert_msg(status == rows[i].status, "%s: %d", rows[i].key, status);
        if (status == FR_OK) ck_assert_int_eq(value, rows[i].value);
    }
    ck_assert_int_eq(fr_json_int(root, "a", 5, 5, 0, "f", &value), FR_OK);
    ck_assert_int_eq(fr_json_int(root, "a", 6, 9, 0, "f", &value), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "f: \"a\" is 5, not in 6 to 9");
    ck_assert_int_eq(fr_json_int(root, "a", 0, 4, 0, "f", &value), FR_INPUT);
    ck_assert_int_eq(fr_json_int(root, "missing", 0, 4, FR_JSON_REQUIRED, "f", &value), FR_INPUT);
    ck_assert_str_eq(fr_last_error(), "f: \"missing\" is missing");
    ck_assert_int_eq(fr_json_int(root, "null", 0, 4, FR_JSON_REQUIRED, "f", &value), FR_INPUT);
    ck_assert_int_eq(fr_json_int(NULL, "a", 0, 4, 3, "f", &value), FR_OK);
    ck_assert_int_eq(value, 3);
    json_decref(root);
}
END_TEST

START_TEST(json_real_bool_text_object) {
    json_t *root = object("{\"r\":1.5,\"i\":2,\"t\":true,\"s\":\"x\",\"n\":null,\"o\":{}}"), *member;
    double real;
    bool flag;
    const char *text;
    ck_assert(fr_json_real(root, "r", 0, 2, NAN, "f", &real) == FR_OK && real == 1.5);
    ck_assert(fr_json_real(root, "i", 0, 2, NAN, "f", &real) == FR_OK && real == 2);
    ck_assert(fr_json_real(root, "n", 0, 2, 0.25, "f", &real) == FR_OK && real == 0.25);
    ck_assert_int_eq(fr_json_real(root, "n", 0, 2, NAN, "f", &real), FR_INPUT);
    ck_assert_int_eq(fr_json_real(root, "s", 0, 2, 0, "f", &real), FR_INPUT);
    ck_assert_int_eq(fr_json_real(root, "r", 2, 3, 0, "f", &real), FR_INPUT);
    ck_assert_int_eq(fr_json_real(root, "r", 0, 1, 0, "f", &real), FR_INPUT);
    ck_assert(fr_json_bool(root, "t", false, "f", &flag) == FR_OK && flag);
    ck_assert(fr_json_bool(root, "n", true, "f", &flag) == FR_OK && flag);
    ck_assert_int_eq(fr_json_bool(root, "i", true, "f", &flag), FR_INPUT);
    ck_assert_int_eq(fr_json_text(root, "s", "f", &text), FR_OK);
    ck_assert_str_eq(text, "x");
    ck_assert(fr_json_text(root, "n", "f", &text) == FR_OK && !text);
    ck_assert_int_eq(fr_json_text(root, "i", "f", &text), FR_INPUT);
    ck_assert(fr_json_object(root, "o", "f", &member) == FR_OK && member);
    ck_assert(fr_json_object(root, "none", "f", &member) == FR_OK && !member);
    ck_assert(fr_json_object(root, "s", "f", &member) == FR_INPUT && !member);
    ck_assert_str_eq(fr_last_error(), "f: \"s\" is not an object");
    json_decref(root);
}
END_TEST

START_TEST(json_ids) {
    json_t *root = object("{\"one\":3,\"many\":[1,3,1.0,2],\"neg\":[-1],\"high\":10,\"text\":[\"1\"],\"nest\":[[1]]}");
    int32_t ids[3];
    size_t count = 0;
    ck_assert_int_eq(fr_json_ids(root, "one", 9, "f", NULL, ids, 3, &count), FR_OK);
    ck_assert_int_eq(fr_json_ids(root, "none", 9, "f", NULL, ids, 3, &count), FR_OK);
    ck_assert_int_eq(fr_json_ids(root, "many", 9, "f", NULL, ids, 3, &count), FR_OK);
    ck_assert(count == 3 && ids[0] == 3 && ids[1] == 1 && ids[2] == 2);
    count = 0;
    static const char *const bad[] = {"text", "nest"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        ck_assert_int_eq(fr_json_ids(root, bad[i], 9, "f", NULL, ids, 3, &count), FR_INPUT);
        ck_assert_uint_eq(count, 0);
    }
    fr_notes notes = {.count = 0};
    static const char *const others[] = {"neg", "high", "one"};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        ck_assert_int_eq(fr_json_ids(root, others[i], 9, "f", &notes, ids, 3, &count), FR_OK);
    ck_assert(count == 1 && ids[0] == 3 && notes.count == 2);
    ck_assert_str_eq(fr_notes_line(&notes, 1), "f: \"high\" holds 10, which no token has: it is left out");
    fr_notes_free(&notes);
    count = 0;
    ck_assert_int_eq(fr_json_ids(root, "many", 9, "f", NULL, ids, 2, &count), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "more than 2 ids"));
    json_decref(root);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- tensors */

START_TEST(many_tensors) {
    enum { COUNT = 100000 };
    fr_tensors tensors = {0};
    char name[64];
    ck_assert_ptr_null(fr_tensors_find(&tensors, "a"));
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "model.layers.%d.weight", i);
        fr_tensor tensor = {.name = name, .type = FR_BF16, .bytes = (uint64_t)i};
        if (fr_tensors_add(&tensors, &tensor, "f") != FR_OK) ck_abort_msg("%s", fr_last_error());
    }
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "model.layers.%d.weight", i);
        const fr_tensor *tensor = fr_tensors_find(&tensors, name);
        if (!tensor || tensor->bytes != (uint64_t)i || strcmp(tensor->type_name, "BF16") != 0) ck_abort_msg("%s", name);
        if (fr_tensors_add(&tensors, &(fr_tensor){.name = name}, "f") != FR_INPUT) ck_abort_msg("%s twice", name);
        snprintf(name, sizeof name, "model.layers.%d.bias", i);
        if (fr_tensors_find(&tensors, name)) ck_abort_msg("%s was never added", name);
    }
    ck_assert_str_eq(fr_last_error(), "f: tensor model.layers.99999.weight was there before");
    ck_assert_uint_eq(tensors.count, COUNT);
    fr_tensors_free(&tensors);
    ck_assert_ptr_null(fr_tensors_find(&tensors, "a"));
}
END_TEST

/* ------------------------------------------------------------------------------------------------ valid checkpoints */

/* A valid header. Its tensors have every type and odd offsets, and are listed in another order than their data. It also
 * has scalars, empty tensors at both ends and in the middle, a type that the library does not read, a type that only
 * GGUF has, and spaces after the JSON. */
static const char good_header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                  "\"f32\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[3,11]},"
                                  "\"u8\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                                  "\"none.first\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[0,0]},"
                                  "\"f16\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[11,13]},"
                                  "\"bf16\":{\"dtype\":\"BF16\",\"shape\":[1,1,1,1,1,1,1,1],\"data_offsets\":[13,15]},"
                                  "\"none.middle\":{\"dtype\":\"F32\",\"shape\":[5,0,7],\"data_offsets\":[15,15]},"
                                  "\"vision\":{\"dtype\":\"F8_E5M2\",\"shape\":[2],\"data_offsets\":[15,17]},"
                                  "\"blocks\":{\"dtype\":\"Q4_K\",\"shape\":[64,256],\"data_offsets\":[17,17]},"
                                  "\"i32\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[17,21]},"
                                  "\"i64\":{\"shape\":[1],\"data_offsets\":[21,29],\"dtype\":\"I64\"},"
                                  "\"none.last\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[29,29]}}   ";
#define GOOD_DATA 29

START_TEST(one_file) {
    put_text("config.json", "{\"model_type\":\"m\"}");
    put_text("generation_config.json", "{\"eos_token_id\":1}");
    put_weights("model.safetensors", good_header, GOOD_DATA);
    put_text("model.safetensors.index.json", "not read where the one file is");
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        fr_checkpoint checkpoint;
        fr_status status = fr_checkpoint_open(&checkpoint, folder, use_mmap);
        ck_assert_msg(status == FR_OK, "%s", fr_last_error());
        ck_assert_str_eq(checkpoint.path, folder);
        ck_assert(json_object_get(checkpoint.config, "model_type") && checkpoint.generation);
        ck_assert_uint_eq(checkpoint.file_count, 1);
        ck_assert_str_eq(checkpoint.file_names[0], "model.safetensors");
        ck_assert_uint_eq(checkpoint.tensors.count, 9);
        ck_assert_uint_eq(checkpoint.unread.count, 2);
        const fr_tensor *f32 = expect_tensor(&checkpoint, "f32", FR_F32, 3, 8);
        ck_assert(f32->dims == 2 && f32->shape[0] == 1 && f32->shape[1] == 2);
        ck_assert_uint_eq(expect_tensor(&checkpoint, "f16", FR_F16, 11, 2)->dims, 0);
        ck_assert_uint_eq(expect_tensor(&checkpoint, "bf16", FR_BF16, 13, 2)->dims, 8);
        expect_tensor(&checkpoint, "u8", FR_U8, 0, 3);
        expect_tensor(&checkpoint, "i32", FR_I32, 17, 4);
        expect_tensor(&checkpoint, "i64", FR_I64, 21, 8);
        expect_tensor(&checkpoint, "none.first", FR_I64, 0, 0);
        expect_tensor(&checkpoint, "none.middle", FR_F32, 15, 0);
        expect_tensor(&checkpoint, "none.last", FR_U8, 29, 0);
        for (size_t i = 1; i < checkpoint.tensors.count; i++)
            ck_assert(checkpoint.tensors.items[i - 1].data <= checkpoint.tensors.items[i].data);
        const fr_tensor *tensor;
        ck_assert_int_eq(fr_checkpoint_tensor(&checkpoint, "vision", &tensor), FR_INPUT);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "tensor vision is of type F8_E5M2, which is not read"));
        ck_assert_int_eq(fr_checkpoint_tensor(&checkpoint, "blocks", &tensor), FR_INPUT);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "tensor blocks is of type Q4_K, which is not read"));
        ck_assert_int_eq(fr_checkpoint_tensor(&checkpoint, "audio", &tensor), FR_INPUT);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "tensor audio is missing"));
        fr_checkpoint_close(&checkpoint);
        fr_checkpoint_close(&checkpoint);
    }
}
END_TEST

START_TEST(config_alone) {
    fr_checkpoint checkpoint;
    put_text("config.json", "{\"model_type\":\"m\",\"x\":null}");
    ck_assert_int_eq(fr_checkpoint_open_config(&checkpoint, folder), FR_OK);
    ck_assert(checkpoint.config && !checkpoint.generation && checkpoint.file_count == 0);
    fr_checkpoint_close(&checkpoint);
}
END_TEST

START_TEST(no_tensors) {
    fr_checkpoint checkpoint;
    put_text("config.json", "{}");
    put_weights("model.safetensors", "{}", 0);
    ck_assert_int_eq(fr_checkpoint_open(&checkpoint, folder, true), FR_OK);
    ck_assert_uint_eq(checkpoint.tensors.count, 0);
    fr_checkpoint_close(&checkpoint);
}
END_TEST

#define SHARD_A "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}"
#define SHARD_B                                                        \
    "{\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}," \
    "\"v\":{\"dtype\":\"F8_E5M2\",\"shape\":[2],\"data_offsets\":[4,6]}}"

static void put_shards(const char *weight_map) {
    char index[1024];
    snprintf(index, sizeof index, "{\"metadata\":{\"total_size\":10},\"weight_map\":%s}", weight_map);
    put_text("config.json", "{}");
    put_text("model.safetensors.index.json", index);
    put_weights("s1", SHARD_A, 4);
    put_weights("s2", SHARD_B, 6);
}

START_TEST(shards) {
    put_shards("{\"b\":\"s2\",\"a\":\"s1\",\"v\":\"s2\"}");
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        fr_checkpoint checkpoint;
        fr_status status = fr_checkpoint_open(&checkpoint, folder, use_mmap);
        ck_assert_msg(status == FR_OK, "%s", fr_last_error());
        ck_assert_uint_eq(checkpoint.file_count, 2);
        ck_assert_str_eq(checkpoint.file_names[expect_tensor(&checkpoint, "a", FR_U8, 0, 4)->file], "s1");
        ck_assert_str_eq(checkpoint.file_names[expect_tensor(&checkpoint, "b", FR_F16, 0, 4)->file], "s2");
        ck_assert_uint_eq(checkpoint.unread.count, 1);
        fr_checkpoint_close(&checkpoint);
    }
}
END_TEST

/* --------------------------------------------------------------------------------------------- unusable checkpoints */

/* T makes a header with one tensor named t. U makes an entry for a tensor of bytes. Each row of the table has one
 * error. */
#define T(dtype, shape, offsets) "{\"t\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define U(name, begin, end, count) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" count "],\"data_offsets\":[" begin "," end "]}"

static const struct {
    const char *header;
    size_t data;
    const char *words;
} bad_headers[] = {
    {"", 0, "the header is not a JSON object"},
    {"[]", 0, "the header is not a JSON object"},
    {" {}", 0, "the header is not a JSON object"},
    {"{", 0, "not valid JSON"},
    {"{}}", 0, "not valid JSON"},
    {"{\"\xff\":{}}", 0, "not valid JSON"},
    {"{\"t\":1}", 0, "tensor t is not an object"},
    {"{\"t\":{}}", 0, "tensor t: dtype is not a string"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
    {"{" U("t", "0", "1", "1") "," U("t", "1", "2", "1") "}", 2, "duplicate"},
    {T("5", "[2]", "[0,2]"), 2, "tensor t: dtype is not a string"},
    {T("\"U8\"", "2", "[0,2]"), 2, "tensor t: shape is not an array"},
    {T("\"U8\"", "null", "[0,2]"), 2, "tensor t: shape is not an array"},
    {T("\"U8\"", "[2.0]", "[0,2]"), 2, "tensor t: dimension 0 is no whole number"},
    {T("\"U8\"", "[1,-2]", "[0,2]"), 2, "tensor t: dimension 1 is no whole number"},
    {T("\"U8\"", "[\"2\"]", "[0,2]"), 2, "tensor t: dimension 0 is no whole number"},
    {T("\"U8\"", "[9223372036854775808]", "[0,2]"), 2, "too big"},
    {T("\"U8\"", "[281474976710657]", "[0,2]"), 2, "tensor t: dimension 0 is no whole number"},
    {T("\"U8\"", "[2,1,1,1,1,1,1,1,1]", "[0,2]"), 2, "tensor t: 9 dimensions"},
    {T("\"U8\"", "[281474976710656,65536]", "[0,0]"), 0, "tensor t: its shape in U8 does not take the 0 bytes"},
    {T("\"U8\"", "[281474976710656,65536,2]", "[0,0]"), 0, "tensor t: its shape in U8 does not take the 0 bytes"},
    {T("\"F32\"", "[65536,281474976710656]", "[0,0]"), 0, "tensor t: its shape in F32 does not take the 0 bytes"},
    {T("\"U8\"", "[3]", "[0,2]"), 2, "tensor t: its shape in U8 does not take the 2 bytes"},
    {T("\"F16\"", "[2]", "[0,2]"), 2, "tensor t: its shape in F16 does not take the 2 bytes"},
    {T("\"F16\"", "[0]", "[0,2]"), 2, "tensor t: its shape in F16 does not take the 2 bytes"},
    {T("\"F16\"", "[]", "[0,0]"), 0, "tensor t: its shape in F16 does not take the 0 bytes"},
    {T("\"U8\"", "[2]", "0"), 2, "tensor t: data_offsets are not two"},
    {T("\"U8\"", "[2]", "[0]"), 2, "tensor t: data_offsets are not two"},
    {T("\"U8\"", "[2]", "[0,2,2]"), 2, "tensor t: data_offsets are not two"},
    {T("\"U8\"", "[2]", "[0.0,2]"), 2, "tensor t: data_offsets are not two"},
    {T("\"U8\"", "[2]", "[0,\"2\"]"), 2, "tensor t: data_offsets are not two"},
    {T("\"U8\"", "[2]", "[-2,0]"), 2, "tensor t: data_offsets -2 to 0"},
    {T("\"U8\"", "[2]", "[2,0]"), 2, "tensor t: data_offsets 2 to 0"},
    {T("\"U8\"", "[2]", "[0,2]"), 1, "tensor t: cut short: its data_offsets 0 to 2 go beyond the file's 1 bytes"},
    {T("\"U8\"", "[1]", "[9223372036854775806,9223372036854775807]"), 2, "tensor t: cut short: its data_offsets 92"},
    {T("\"U8\"", "[2]", "[0,2]"), 3, "the tensors end at byte 2 of 3"},
    {T("\"U8\"", "[2]", "[1,3]"), 3, "tensor t begins at byte 1 of the data, after a hole from byte 0"},
    {T("\"F64\"", "[2]", "[1,3]"), 3, "tensor t begins at byte 1 of the data, after a hole from byte 0"},
    {T("\"F64\"", "[2]", "[0,4]"), 3, "tensor t: cut short: its data_offsets 0 to 4"},
    {"{}", 1, "the tensors end at byte 0 of 1"},
    {"{" U("a", "0", "2", "2") "," U("b", "3", "4", "1") "}", 4, "tensor b begins at byte 3 of the data, after a hole"},
    {"{" U("a", "0", "3", "3") "," U("b", "2", "4", "2") "}", 4, "tensor b begins at byte 2 of the data, inside"},
    {"{" U("a", "0", "4", "4") "," U("b", "0", "4", "4") "}", 4, "begins at byte 0 of the data, inside a tensor"},
    {"{" U("a", "0", "4", "4") "," U("b", "1", "1", "0") "}", 4, "tensor b begins at byte 1 of the data, inside"},
};

START_TEST(header_errors) {
    put_text("config.json", "{}");
    put_weights("model.safetensors", bad_headers[_i].header, bad_headers[_i].data);
    expect_failure(bad_headers[_i].words);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "/model.safetensors: "));
}
END_TEST

START_TEST(header_names) {
    char header[1024], name[512];
    for (int length = 256; length <= 257; length++) {
        memset(name, 'n', sizeof name);
        name[length] = 0;
        snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,%d]}}", name,
                 length == 256 ? 2 : 1);
        put_text("config.json", "{}");
        put_weights("model.safetensors", header, 1);
        /* the tensor's name is long, but the line must still end with the reason of the error */
        expect_failure(length == 256 ? "data_offsets 0 to 2" : "a tensor name of 257 bytes");
    }
    put_weights("model.safetensors", "{\"a\\n\\u001b[2Jb\":0}", 0);
    expect_failure("tensor a??[2Jb is not an object");
}
END_TEST

START_TEST(header_depth) {
    char header[512] = "{\"t\":";
    memset(header + 5, '[', 300);
    put_text("config.json", "{}");
    put_weights("model.safetensors", header, 0);
    expect_failure("nested deeper than 64");
}
END_TEST

/* The first eight bytes of a file are the header's length. Each row here is a wrong length, or a file that is too short
 * to have a length. */
START_TEST(header_lengths) {
    static const struct {
        uint8_t bytes[10];
        size_t size;
        const char *words;
    } rows[] = {
        {"", 0, "0 bytes are too few for a safetensors file"},
        {"\2\0\0\0\0\0\0", 7, "7 bytes are too few for a safetensors file"},
        {"\0\0\0\0\0\0\0\0", 8, "the header is not a JSON object"},
        {"\1\0\0\0\0\0\0\0", 8, "a header of 1 bytes in a file of 8"},
        {"\3\0\0\0\0\0\0\0{}", 10, "a header of 3 bytes in a file of 10"},
        {"\0\0\0\0\0\0\0\x80{}", 10, "a header of 9223372036854775808 bytes in a file of 10"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff{}", 10, "a header of 18446744073709551615 bytes in a file of 10"},
        {"\xfa\xff\xff\xff\xff\xff\xff\xff{}", 10, "a header of 18446744073709551610 bytes in a file of 10"},
    };
    put_text("config.json", "{}");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        put("model.safetensors", rows[i].bytes, rows[i].size);
        expect_failure(rows[i].words);
    }
    /* makes the file long enough for a header of 100,000,001 bytes; the added bytes take no space on the disk */
    put("model.safetensors", "\1\xe1\xf5\5\0\0\0\0{}", 10);
    ck_assert_int_eq(truncate(in_folder("model.safetensors"), 200000000), 0);
    expect_failure("a header of 100000001 bytes, and at most 100000000");
}
END_TEST

static const struct {
    const char *weight_map, *words;
} bad_indexes[] = {
    {"[]", "\"weight_map\" is not an object"},
    {"{}", "weight_map is empty"},
    {"{\"a\":1}", "tensor a: \"(not a string)\" is not a plain file name"},
    {"{\"a\":\"\"}", "tensor a: \"\" is not a plain file name"},
    {"{\"a\":\"../s1\"}", "tensor a: \"../s1\" is not a plain file name"},
    {"{\"a\":\"/etc/passwd\"}", "is not a plain file name"},
    {"{\"a\":\"x/s1\"}", "is not a plain file name"},
    {"{\"a\":\".hidden\"}", "is not a plain file name"},
    {"{\"a\":\"..\"}", "is not a plain file name"},
    {"{\"a\":\"s1\",\"a\":\"s2\"}", "duplicate"},
    {"{\"a\":\"s1\",\"b\":\"s3\"}", "/s3: No such file"},
    {"{\"a\":\"s1\",\"b\":\"s2\"}", "tensor v is in s2, but not in the index"},
    {"{\"a\":\"s1\",\"v\":\"s2\"}", "tensor b is in s2, but not in the index"},
    {"{\"a\":\"s1\",\"b\":\"s2\",\"v\":\"s2\",\"c\":\"s1\"}", "tensor c is not in s1, where the index has it"},
    {"{\"a\":\"s1\",\"b\":\"s1\",\"v\":\"s2\"}", "tensor b is in s2, and the index says s1"},
    {"{\"a\":\"s1\",\"b\":\"s2\",\"v\":\"s1\"}", "tensor v is in s2, and the index says s1"},
    {"{\"a\":\"s1\",\"b\":\"s2\",\"v\":\"s2\",\"d\":\"config.json\"}",
     "/config.json: 2 bytes are too few for a safetensors file"},
};

START_TEST(index_errors) {
    put_shards(bad_indexes[_i].weight_map);
    expect_failure(bad_indexes[_i].words);
}
END_TEST

/* If two shards have the same tensor, this is an error, even if the library does not read the tensor's type. */
START_TEST(index_with_a_tensor_twice) {
    put_shards("{\"a\":\"s1\",\"b\":\"s2\"}");
    put_weights("s2", "{" U("a", "0", "1", "1") "," U("b", "1", "2", "1") "}", 2);
    expect_failure("/s2: tensor a was there before");
    put_weights("s2", "{\"a\":{\"dtype\":\"I16\",\"shape\":[1],\"data_offsets\":[0,1]}," U("b", "1", "2", "1") "}", 2);
    expect_failure("tensor a is in s2, and the index says s1");
}
END_TEST

START_TEST(index_limits) {
    FILE *index = fopen(in_folder("model.safetensors.index.json"), "wb");
    ck_assert_ptr_nonnull(index);
    fprintf(index, "{\"weight_map\":{");
    for (int i = 0; i <= FR_SHARDS_MAX; i++) fprintf(index, "%s\"t%d\":\"s%d\"", i ? "," : "", i, i);
    fprintf(index, "}}");
    ck_assert_int_eq(fclose(index), 0);
    put_text("config.json", "{}");
    expect_failure("more than 1024 shards");
    put_text("model.safetensors.index.json", "[]");
    expect_failure("/model.safetensors.index.json: not a JSON object");
    put_text("model.safetensors.index.json", "");
    expect_failure("/model.safetensors.index.json: not valid JSON");
    put_text("model.safetensors.index.json", "{}");
    expect_failure("\"weight_map\" is not an object");
}
END_TEST

START_TEST(folder_errors) {
    fr_checkpoint checkpoint;
    expect_failure("has no config.json: expected a folder with config.json and model.safetensors");
    put_text("config.json", "{}");
    expect_failure("has neither model.safetensors nor model.safetensors.index.json");
    ck_assert_int_eq(fr_checkpoint_open(&checkpoint, in_folder("config.json"), true), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "is a part of a model: give the folder that it is in, /"));
    put_text("file", "{}");
    ck_assert_int_eq(fr_checkpoint_open(&checkpoint, in_folder("file"), true), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "is neither a GGUF file nor a folder with config.json"));
    ck_assert_int_eq(fr_checkpoint_open(&checkpoint, in_folder("none"), true), FR_INPUT);
    ck_assert_ptr_nonnull(
        strstr(fr_last_error(), "No such file or directory: expected a GGUF file, or a folder with config.json"));
    ck_assert_int_eq(fr_checkpoint_open_config(&checkpoint, ""), FR_INPUT);
    ck_assert_int_eq(mkdir(in_folder("model.safetensors"), 0700), 0);
    expect_failure("/model.safetensors is not a regular file");
    ck_assert_int_eq(rmdir(in_folder("model.safetensors")), 0);
    ck_assert_int_eq(mkfifo(in_folder("model.safetensors"), 0600), 0);
    expect_failure("/model.safetensors is not a regular file");
}
END_TEST

START_TEST(config_errors) {
    put_weights("model.safetensors", good_header, GOOD_DATA);
    static const char *const configs[][2] = {{"", "/config.json: not valid JSON"},
                                             {"[]", "/config.json: not a JSON object"},
                                             {"[1", "/config.json: not valid JSON"},
                                             {"{\"a\":", "/config.json: not valid JSON"}};
    for (size_t i = 0; i < COUNT_OF(configs); i++) {
        put_text("config.json", configs[i][0]);
        expect_failure(configs[i][1]);
    }
    ck_assert_int_eq(truncate(in_folder("config.json"), (16 << 20) + 1), 0);
    expect_failure("/config.json: 16777217 bytes, and at most 16777216");
    put_text("config.json", "{}");
    put_text("generation_config.json", "[1]");
    expect_failure("/generation_config.json: not a JSON object");
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- damage */

static uint64_t random_state;

static uint32_t next_random(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

/* Checks what the library guarantees for every tensor, whatever the file contains. */
static void check_promises(const fr_map *map, const fr_tensors *tensors) {
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *tensor = &tensors->items[i];
        const uint8_t *data = tensor->data;
        bool inside = data >= map->bytes && tensor->bytes <= map->size - (size_t)(data - map->bytes);
        bool apart = i == 0 || data >= (const uint8_t *)tensors->items[i - 1].data + tensors->items[i - 1].bytes;
        uint64_t bytes = fr_dtype_row_bytes(tensor->type, 1);
        for (uint32_t d = 0; d < tensor->dims && d < FR_DIMS_MAX; d++) bytes *= tensor->shape[d];
        bool sized = tensor->dims <= FR_DIMS_MAX && (tensor->type == FR_DTYPE_COUNT || bytes == tensor->bytes);
        if (!inside || !apart || !sized)
            ck_abort_msg("%s: inside %d, apart %d, sized %d", tensor->name, inside, apart, sized);
    }
}

/* Reads a file from an allocation of exactly its size, so that a sanitizer finds reads before or after it. */
static fr_status read_copy(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy, bytes, size);
    char name[] = "damaged";
    fr_map map = {.bytes = size ? copy : NULL, .size = size, .fd = -1, .path = name};
    fr_tensors tensors = {0}, unread = {0};
    fr_status status = fr_safetensors_read(&map, 0, &tensors, &unread);
    ck_assert_msg(status == FR_OK || status == FR_INPUT, "status %d: %s", status, fr_last_error());
    if (status == FR_OK) check_promises(&map, &tensors);
    if (status == FR_OK) check_promises(&map, &unread);
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    free(copy);
    return status;
}

START_TEST(damage_cut) {
    size_t size;
    uint8_t *bytes = weights(good_header, GOOD_DATA, &size);
    ck_assert_int_eq(read_copy(bytes, size), FR_OK);
    for (size_t cut = 0; cut < size; cut++) ck_assert_int_eq(read_copy(bytes, cut), FR_INPUT);
    free(bytes);
}
END_TEST

START_TEST(damage_flips) {
    size_t size;
    uint8_t *bytes = weights(good_header, GOOD_DATA, &size);
    static const uint8_t values[] = {0, ' ', '"', '0', '9', '-', ',', '}', ']', '[', '\\', 0x80, 0xFF};
    size_t refused = 0;
    for (size_t at = 0; at < size - GOOD_DATA; at++) {
        uint8_t before = bytes[at];
        for (size_t i = 0; i < COUNT_OF(values) + 8; i++) {
            bytes[at] = i < 8 ? (uint8_t)(before ^ 1 << i) : values[i - 8];
            refused += read_copy(bytes, size) != FR_OK;
        }
        bytes[at] = before;
    }
    ck_assert_uint_gt(refused, size);
    free(bytes);
}
END_TEST

/* Makes several random changes in each file: bytes are overwritten, runs of bytes are copied to other places, and the
 * end is cut off. The copies produce new numbers and new nesting. */
START_TEST(damage_random) {
    size_t size;
    uint8_t *original = weights(good_header, GOOD_DATA, &size), *bytes = malloc(size);
    ck_assert_ptr_nonnull(bytes);
    random_state = 20240607;
    for (int round = 0; round < 3000; round++) {
        memcpy(bytes, original, size);
        for (uint32_t changes = next_random() % 4 + 1; changes > 0; changes--) {
            size_t to = next_random() % size, from = next_random() % size, run = next_random() % 12;
            if (next_random() % 2)
                bytes[to] = (uint8_t)next_random();
            else if (to + run <= size && from + run <= size)
                memmove(bytes + to, bytes + from, run);
        }
        read_copy(bytes, next_random() % 4 ? size : next_random() % size);
    }
    free(bytes);
    free(original);
}
END_TEST

static void open_either_way(void) {
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        fr_checkpoint checkpoint;
        fr_status status = fr_checkpoint_open(&checkpoint, folder, use_mmap);
        ck_assert_msg(status == FR_OK || status == FR_INPUT, "status %d: %s", status, fr_last_error());
        fr_checkpoint_close(&checkpoint);
    }
}

START_TEST(damage_index) {
    char index[] = "{\"weight_map\":{\"b\":\"s2\",\"a\":\"s1\",\"v\":\"s2\"}}";
    size_t size = strlen(index);
    put_shards("{}");
    random_state = 7;
    for (size_t at = 0; at < size; at++) {
        put("model.safetensors.index.json", index, at);
        open_either_way();
        for (int i = 0; i < 6; i++) {
            char before = index[at];
            index[at] = "\"{}.s1/,a\\"[next_random() % 10];
            put("model.safetensors.index.json", index, size);
            open_either_way();
            index[at] = before;
        }
    }
}
END_TEST

/* The file has 100,000 empty tensors at the same offset. The reader must still sort and find them fast. */
START_TEST(damage_many_tensors) {
    enum { COUNT = 100000 };
    char *header;
    size_t size;
    FILE *out = open_memstream(&header, &size);
    ck_assert_ptr_nonnull(out);
    for (int i = 0; i < COUNT; i++)
        fprintf(out, "%s\"%d\":{\"dtype\":\"%s\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? "," : "{", i,
                i % 2 ? "U8" : "I16");
    fprintf(out, "}");
    ck_assert_int_eq(fclose(out), 0);
    uint8_t *bytes = weights(header, 0, &size);
    ck_assert_int_eq(read_copy(bytes, size), FR_OK);
    free(bytes);
    free(header);
}
END_TEST

static TCase *group(Suite *suite, const char *name, bool with_folder) {
    TCase *cases = tcase_create(name);
    suite_add_tcase(suite, cases);
    if (with_folder) tcase_add_checked_fixture(cases, make_folder, remove_folder);
    /* a quadratic search takes longer than 30 seconds; a correct search is faster, even in an emulator */
    tcase_set_timeout(cases, 30);
    return cases;
}

static void add_basics(Suite *suite) {
    TCase *errors = group(suite, "errors", false), *maps = group(suite, "maps", true);
    tcase_add_test(errors, error_line);
    tcase_add_test(errors, error_line_cut);
    tcase_add_test(errors, error_is_per_thread);
    tcase_add_test(maps, map_reads_and_fills);
    tcase_add_test(maps, mapped_files_are_told_by_address);
    tcase_add_test(maps, map_short_read);
    tcase_add_test(maps, map_takes_regular_files_only);
    tcase_add_test(maps, text_is_read_whole);
    TCase *json = group(suite, "json", true), *tensors = group(suite, "tensors", false);
    tcase_add_loop_test(json, json_errors, 0, COUNT_OF(bad_json));
    tcase_add_test(json, json_depth);
    tcase_add_test(json, json_too_many_values);
    tcase_add_test(json, json_file_with_a_huge_integer);
    tcase_add_test(json, json_file_with_numbers_that_are_not_finite);
    tcase_add_test(json, json_wide_integers);
    tcase_add_test(json, json_wide_errors);
    tcase_add_test(json, json_int);
    tcase_add_test(json, json_real_bool_text_object);
    tcase_add_test(json, json_ids);
    tcase_add_test(tensors, many_tensors);
}

static void add_checkpoints(Suite *suite) {
    TCase *valid = group(suite, "valid", true), *unusable = group(suite, "unusable", true);
    tcase_add_test(valid, one_file);
    tcase_add_test(valid, config_alone);
    tcase_add_test(valid, no_tensors);
    tcase_add_test(valid, shards);
    tcase_add_loop_test(unusable, header_errors, 0, COUNT_OF(bad_headers));
    tcase_add_test(unusable, header_names);
    tcase_add_test(unusable, header_depth);
    tcase_add_test(unusable, header_lengths);
    tcase_add_loop_test(unusable, index_errors, 0, COUNT_OF(bad_indexes));
    tcase_add_test(unusable, index_with_a_tensor_twice);
    tcase_add_test(unusable, index_limits);
    tcase_add_test(unusable, folder_errors);
    tcase_add_test(unusable, config_errors);
    TCase *damage = group(suite, "damage", true);
    tcase_add_test(damage, damage_cut);
    tcase_add_test(damage, damage_flips);
    tcase_add_test(damage, damage_random);
    tcase_add_test(damage, damage_index);
    tcase_add_test(damage, damage_many_tensors);
}

FR_SUITE("formats") {
    add_basics(suite);
    add_checkpoints(suite);
}
