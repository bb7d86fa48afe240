/* Tests the GGUF reader with well-formed files, and with every kind of wrong value in a header.
 *
 * The suite builds its files piece by piece. test_gguf_models.c tests files that other programs wrote. */
/* suite: quick hostile */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "formats/checkpoint.h"
#include "quant/packed.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/suite.h"

#define F32_ID  0
#define Q4_0_ID 2

static char folder[64], path_text[128];

static const char *in_folder(const char *name) {
    snprintf(path_text, sizeof path_text, "%s/%s", folder, name);
    return path_text;
}

static void set_up(void) {
    snprintf(folder, sizeof folder, "/tmp/test_gguf_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void tear_down(void) {
    static const char *const names[] = {"a.gguf", "s-00001-of-00002.gguf", "s-00002-of-00002.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_folder(names[i]));
    ck_assert_int_eq(rmdir(folder), 0);
}

/* Opens the file twice: with memory mapping, and by reading into memory. Both must fail with a line that contains
 * `words`. */
static void expect_failure(fr_builder *b, const char *words) {
    fr_build_write(b, in_folder("a.gguf"));
    fr_build_free(b);
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        fr_checkpoint files;
        fr_status status = fr_checkpoint_open(&files, in_folder("a.gguf"), use_mmap);
        ck_assert_msg(status == FR_INPUT, "status %d where \"%s\" was expected", status, words);
        ck_assert_msg(strstr(fr_last_error(), words), "\"%s\" is not in \"%s\"", words, fr_last_error());
        ck_assert_msg(strstr(fr_last_error(), "a.gguf"), "no path in \"%s\"", fr_last_error());
        ck_assert(!files.path && !files.gguf && !files.files); /* nothing stays open */
    }
}

static void open_built(fr_builder *b, fr_checkpoint *files) {
    fr_build_write(b, in_folder("a.gguf"));
    fr_build_free(b);
    ck_assert_msg(fr_checkpoint_open(files, in_folder("a.gguf"), true) == FR_OK, "%s", fr_last_error());
}

/* ----------------------------------------------------------------------------------------------------- a whole file */

/* Builds a file with three tensors and a key of every type. Its alignment is not the default one. */
static void build_whole(fr_builder *b, uint32_t version) {
    static const uint8_t numbers[] = {1, 2, 3, 4, 5, 6, 7, 0x80};
    fr_build_bytes(b, "GGUF", 4);
    fr_build_u32(b, version);
    fr_build_u64(b, 3);
    fr_build_u64(b, 15);
    fr_build_key_string(b, "general.architecture", "tiny");
    fr_build_key_u32(b, "general.alignment", 64);
    static const fr_gguf_type types[] = {FR_GGUF_U8,  FR_GGUF_I8,  FR_GGUF_U16, FR_GGUF_I16,
                                         FR_GGUF_U32, FR_GGUF_I32, FR_GGUF_U64, FR_GGUF_I64};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char key[16];
        size_t size = fr_gguf_element_bytes(types[i]);
        snprintf(key, sizeof key, "tiny.n%zu", i);
        fr_build_key(b, key, types[i]);
        fr_build_bytes(b, numbers + sizeof numbers - size, size); /* in a signed type this number is negative */
    }
    fr_build_key_f32(b, "tiny.f32", 0.5f);
    fr_build_key(b, "tiny.f64", FR_GGUF_F64);
    fr_build_bytes(b, &(double){-2.25}, 8);
    fr_build_key_bool(b, "tiny.bool", 1);
    fr_build_key_array(b, "tiny.strings", FR_GGUF_STRING, 3);
    fr_build_string(b, "one");
    fr_build_string(b, "");
    fr_build_string(b, "three");
    fr_build_key_array(b, "tiny.list", FR_GGUF_I32, 2);
    fr_build_u32(b, 7);
    fr_build_u32(b, (uint32_t)-3);
    fr_build_tensor(b, "late", 2, (uint64_t[]){32, 2}, Q4_0_ID, 64);
    fr_build_tensor(b, "early", 3, (uint64_t[]){2, 1, 3}, F32_ID, 0);
    fr_build_tensor(b, "odd", 1, (uint64_t[]){5}, 31, 128);
    fr_build_align(b, 64);
    for (int i = 0; i < 6; i++) fr_build_bytes(b, &(float){(float)i}, 4);
    fr_build_zeros(b, 40);
    for (int i = 0; i < 36; i++) fr_build_bytes(b, &(uint8_t){(uint8_t)i}, 1);
    fr_build_zeros(b, 28);
}

START_TEST(tensors_of_a_file) {
    fr_builder b = {0};
    fr_checkpoint files;
    const fr_tensor *tensor;
    build_whole(&b, (uint32_t)_i);
    open_built(&b, &files);
    ck_assert_ptr_null(files.config);
    ck_assert_uint_eq(files.gguf->version, (uint32_t)_i);
    ck_assert_uint_eq(files.tensors.count, 2);
    ck_assert_str_eq(files.tensors.items[0].name, "early"); /* the reader sorts tensors by their data's offset */
    ck_assert_int_eq(fr_checkpoint_tensor(&files, "early", &tensor), FR_OK);
    ck_assert_uint_eq(tensor->dims, 3);
    ck_assert_uint_eq(tensor->shape[0], 3);
    ck_assert_uint_eq(tensor->shape[2], 2);
    ck_assert_mem_eq((const uint8_t *)tensor->data + 20, &(float){5}, 4);
    ck_assert_int_eq(fr_checkpoint_tensor(&files, "late", &tensor), FR_OK);
    ck_assert(tensor->type == FR_Q4_0 && !tensor->packed);
    ck_assert_uint_eq(tensor->shape[1], 32);
    ck_assert_uint_eq(tensor->bytes, 36);
    ck_assert_uint_eq(((const uint8_t *)tensor->data)[35], 35);
    ck_assert_int_eq(fr_checkpoint_tensor(&files, "odd", &tensor), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "tensor odd is of type GGUF 31, which is not read"));
    fr_checkpoint_close(&files);
}
END_TEST

START_TEST(values) {
    static const int64_t expected[] = {0x80, -0x80, 0x8007, -0x7FF9, 0x80070605, -0x7FF8F9FB, 0, -0x7FF8F9FAFBFCFDFF};
    fr_builder b = {0};
    fr_checkpoint files;
    build_whole(&b, 3);
    open_built(&b, &files);
    const fr_gguf *gguf = files.gguf;
    int64_t number, both[2];
    double real;
    bool flag;
    fr_text text;
    const fr_gguf_value *array;
    for (size_t i = 0; i < 8; i++) {
        char key[16];
        snprintf(key, sizeof key, ".n%zu", i);
        if (i == 6) continue; /* this value exceeds INT64_MAX; a later test reads it */
        ck_assert_int_eq(fr_gguf_int(gguf, key, INT64_MIN, INT64_MAX, 0, &number), FR_OK);
        ck_assert_int_eq(number, expected[i]);
    }
    ck_assert_int_eq(fr_gguf_int(gguf, ".n6", 0, INT64_MAX - 1, 0, &number), FR_INPUT);
    ck_assert_int_eq(fr_gguf_int(gguf, "tiny.bool", 0, 1, 0, &number), FR_OK);
    ck_assert_int_eq(fr_gguf_real(gguf, ".f32", 0, 1, 0, &real), FR_OK);
    ck_assert(real == 0.5);
    ck_assert_int_eq(fr_gguf_real(gguf, ".f64", -3, 1, 0, &real), FR_OK);
    ck_assert(real == -2.25);
    ck_assert_int_eq(fr_gguf_real(gguf, ".n1", -200, 0, 0, &real), FR_OK);
    ck_assert(real == -128);
    ck_assert_int_eq(fr_gguf_bool(gguf, ".bool", false, &flag), FR_OK);
    ck_assert(flag);
    ck_assert_int_eq(fr_gguf_ints(gguf, ".list", -9, 9, 0, 2, both), FR_OK);
    ck_assert(both[0] == 7 && both[1] == -3);
    ck_assert_int_eq(fr_gguf_ints(gguf, ".n0", 0, 255, 0, 2, both), FR_OK);
    ck_assert(both[0] == 0x80 && both[1] == 0x80);
    ck_assert_int_eq(fr_gguf_text(gguf, "general.architecture", &text), FR_OK);
    ck_assert(text.length == 4 && memcmp(text.bytes, "tiny", 4) == 0);
    ck_assert_int_eq(fr_gguf_array(gguf, ".strings", FR_GGUF_STRING, &array), FR_OK);
    size_t at = 0;
    ck_assert_uint_eq(fr_gguf_next(array, &at).length, 3);
    ck_assert_uint_eq(fr_gguf_next(array, &at).length, 0);
    text = fr_gguf_next(array, &at);
    ck_assert(text.length == 5 && memcmp(text.bytes, "three", 5) == 0);
    ck_assert_uint_eq(at, array->bytes);
    fr_checkpoint_close(&files);
}
END_TEST

START_TEST(missing_and_wrong_values) {
    fr_builder b = {0};
    fr_checkpoint files;
    build_whole(&b, 3);
    open_built(&b, &files);
    const fr_gguf *gguf = files.gguf;
    int64_t number, three[3];
    double real;
    bool flag;
    fr_text text;
    const fr_gguf_value *array;
    ck_assert_int_eq(fr_gguf_int(gguf, ".none", 0, 9, 5, &number), FR_OK);
    ck_assert_int_eq(number, 5);
    ck_assert_int_eq(fr_gguf_ints(gguf, ".none", 0, 9, 4, 3, three), FR_OK);
    ck_assert_int_eq(three[2], 4);
    ck_assert_int_eq(fr_gguf_text(gguf, ".none", &text), FR_OK);
    ck_assert_ptr_null(text.bytes);
    ck_assert_int_eq(fr_gguf_array(gguf, ".none", FR_GGUF_F32, &array), FR_OK);
    ck_assert_ptr_null(array);
    const struct {
        fr_status status;
        const char *words;
    } cases[] = {
        {fr_gguf_int(gguf, ".none", 0, 9, FR_GGUF_REQUIRED, &number), "a.gguf: key tiny.none is missing"},
        {fr_gguf_real(gguf, ".none", 0, 9, NAN, &real), "key tiny.none is missing"},
    };
    for (size_t i = 0; i < 2; i++) ck_assert_int_eq(cases[i].status, FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), cases[1].words));
#define FAILS(call, words)                                                    \
    do {                                                                      \
        ck_assert_int_eq(call, FR_INPUT);                                     \
        ck_assert_msg(strstr(fr_last_error(), words), "%s", fr_last_error()); \
    } while (0)
    FAILS(fr_gguf_int(gguf, ".n0", 0, 9, 0, &number), "key tiny.n0 is 128, not in 0 to 9");
    FAILS(fr_gguf_int(gguf, ".f32", 0, 9, 0, &number), "key tiny.f32 is of type f32, expected an integer");
    FAILS(fr_gguf_int(gguf, ".list", 0, 9, 0, &number), "key tiny.list is an array of i32, expected an integer");
    FAILS(fr_gguf_ints(gguf, ".list", -9, 9, 0, 3, three), "key tiny.list has 2 elements, expected 3");
    FAILS(fr_gguf_ints(gguf, ".strings", -9, 9, 0, 3, three), "an array of string, expected integers");
    FAILS(fr_gguf_ints(gguf, ".list", 0, 9, 0, 2, three), "key tiny.list is -3, not in 0 to 9");
    FAILS(fr_gguf_real(gguf, ".strings", 0, 9, 0, &real), "expected a number");
    FAILS(fr_gguf_real(gguf, ".f32", 0, 0.25, 0, &real), "key tiny.f32 is 0.5, not in 0 to 0.25");
    FAILS(fr_gguf_bool(gguf, ".n0", false, &flag), "key tiny.n0 is 128, not in 0 to 1");
    FAILS(fr_gguf_text(gguf, ".bool", &text), "key tiny.bool is of type boolean, expected a string");
    FAILS(fr_gguf_array(gguf, ".list", FR_GGUF_F32, &array), "an array of i32, expected an array of f32");
    FAILS(fr_gguf_array(gguf, ".bool", FR_GGUF_F32, &array), "of type boolean, expected an array of f32");
    fr_checkpoint_close(&files);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ types */

/* Each type has a number in GGUF. The number must lead to the type, and the type to the number. A number that is marked
 * as packed is valid only if its type can be packed. */
START_TEST(type_ids) {
    size_t read = 0;
    for (uint32_t id = 0; id < 200; id++) {
        bool packed;
        fr_dtype type = fr_gguf_dtype(id, &packed);
        ck_assert(!packed);
        if (type < FR_DTYPE_COUNT) {
            ck_assert_uint_eq(fr_gguf_type_id(type, false), id);
            read++;
        }
        bool packs = type < FR_DTYPE_COUNT && fr_packs(type), anew = type == FR_Q1_0 || type == FR_Q2_0;
        fr_dtype other = fr_gguf_dtype(FR_GGUF_PACKED | id, &packed);
        ck_assert(packed);
        ck_assert_int_eq(other, packs && !anew ? type : FR_DTYPE_COUNT);
        other = fr_gguf_dtype(FR_GGUF_PACKED_ANEW | id, &packed);
        ck_assert(packed);
        ck_assert_int_eq(other, packs && anew ? type : FR_DTYPE_COUNT);
    }
    ck_assert_uint_eq(read, FR_DTYPE_COUNT - 5); /* GGUF lacks five types: U8, U32, I8, F8_E4M3 and "stored" */
}
END_TEST

/* The tensor has two matrices of 17 rows each. A tile has 16 rows, so each matrix takes two tiles. */
START_TEST(packed_tensor) {
    fr_builder b = {0};
    fr_checkpoint files;
    size_t bytes = 2 * fr_packed_bytes(FR_Q4_0, 17, 64);
    fr_build_header(&b, 1, 0);
    fr_build_tensor(&b, "p", 3, (uint64_t[]){64, 17, 2}, FR_GGUF_PACKED | Q4_0_ID, 0);
    fr_build_align(&b, 32);
    fr_build_zeros(&b, bytes);
    open_built(&b, &files);
    ck_assert(files.tensors.items[0].packed && files.tensors.items[0].type == FR_Q4_0);
    ck_assert_uint_eq(files.tensors.items[0].bytes, bytes);
    ck_assert_uint_eq(bytes, 2 * 32 * 2 * 18);
    fr_checkpoint_close(&files);
    fr_build_header(&b, 1, 0);
    fr_build_tensor(&b, "p", 1, (uint64_t[]){64}, FR_GGUF_PACKED | Q4_0_ID, 0);
    fr_build_zeros(&b, 4096);
    expect_failure(&b, "tensor p is packed, and no matrix");
}
END_TEST

/* ----------------------------------------------------------------------------------------------------- wrong values */

START_TEST(cut_anywhere) {
    fr_builder b = {0};
    build_whole(&b, 3);
    for (size_t size = 0; size + 28 < b.size; size++) { /* the last 28 bytes are only padding */
        fr_checkpoint files;
        fr_builder cut = {b.bytes, size};
        fr_build_write(&cut, in_folder("a.gguf"));
        ck_assert_int_eq(fr_checkpoint_open(&files, in_folder("a.gguf"), size % 2), FR_INPUT);
        ck_assert_msg(strstr(fr_last_error(), size < 4 ? "neither a GGUF file nor" : "cut short") ||
                          strstr(fr_last_error(), "more than fit"),
                      "%zu bytes: %s", size, fr_last_error());
    }
    fr_build_free(&b);
}
END_TEST

START_TEST(header_lies) {
    fr_builder b = {0};
    fr_build_bytes(&b, "GGUG\3\0\0\0", 8);
    expect_failure(&b, "neither a GGUF file nor a folder");
    static const struct {
        uint32_t version;
        const char *words;
    } versions[] = {{0, "version 0"}, {1, "version 1"}, {4, "version 4"}, {3u << 24, "big-endian"}};
    for (size_t i = 0; i < 4; i++) {
        fr_build_bytes(&b, "GGUF", 4);
        fr_build_u32(&b, versions[i].version);
        fr_build_zeros(&b, 64);
        expect_failure(&b, versions[i].words);
    }
    static const uint64_t counts[] = {1, 2, FR_GGUF_KEYS_MAX + 1, (uint64_t)1 << 63, UINT64_MAX};
    for (size_t i = 0; i < 5; i++) {
        fr_build_header(&b, 0, counts[i]);
        expect_failure(&b, "keys in a file of 24 bytes");
        fr_build_header(&b, counts[i], 0);
        expect_failure(&b, "tensors in a file of 24 bytes");
    }
}
END_TEST

START_TEST(key_lies) {
    fr_builder b = {0};
    char name[300];
    memset(name, 'k', sizeof name);
    name[257] = '\0';
    fr_build_header(&b, 0, 1);
    fr_build_key_u32(&b, "", 1);
    fr_build_zeros(&b, 32);
    expect_failure(&b, "a key of 0 bytes");
    fr_build_header(&b, 0, 1);
    fr_build_key_u32(&b, name, 1);
    expect_failure(&b, "a key of 257 bytes, expected 1 to 256");
    fr_build_header(&b, 0, 1);
    fr_build_u64(&b, 3);
    fr_build_bytes(&b, "a\0b", 3);
    fr_build_zeros(&b, 32);
    expect_failure(&b, "a key has a zero byte in it");
    static const uint64_t lengths[] = {1000, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 31};
    for (size_t i = 0; i < 4; i++) {
        fr_build_header(&b, 0, 1);
        fr_build_u64(&b, lengths[i]);
        fr_build_zeros(&b, 32);
        expect_failure(&b, "cut short");
        fr_build_header(&b, 0, 1);
        fr_build_key(&b, "text", FR_GGUF_STRING);
        fr_build_u64(&b, lengths[i]);
        fr_build_zeros(&b, 32);
        expect_failure(&b, "cut short");
        for (fr_gguf_type type = FR_GGUF_U8; type < FR_GGUF_TYPES; type++) {
            if (type == FR_GGUF_ARRAY) continue;
            fr_build_header(&b, 0, 1);
            fr_build_key_array(&b, "list", type, lengths[i]);
            fr_build_zeros(&b, 32);
            expect_failure(&b, "cut short");
        }
    }
    fr_build_header(&b, 0, 2);
    fr_build_key_u32(&b, "twice", 1);
    fr_build_key_f32(&b, "twice", 1);
    expect_failure(&b, "key twice stands twice");
    fr_build_header(&b, 0, 1);
    fr_build_key(&b, "what", FR_GGUF_TYPES);
    fr_build_zeros(&b, 32);
    expect_failure(&b, "key what: a value's type 13 is not read");
    fr_build_header(&b, 0, 1);
    fr_build_key_array(&b, "nested", FR_GGUF_ARRAY, 1);
    fr_build_zeros(&b, 32);
    expect_failure(&b, "key nested: an array's type 9 is not read");
    fr_build_header(&b, 0, 1);
    fr_build_key_bool(&b, "maybe", 2);
    expect_failure(&b, "key maybe: a boolean is 2");
    fr_build_header(&b, 0, 1);
    fr_build_key_u32(&b, "general.architecture", 2);
    expect_failure(&b, "key general.architecture is of type u32, expected a string");
    name[100] = '\0';
    fr_build_header(&b, 0, 1);
    fr_build_key_string(&b, "general.architecture", name);
    expect_failure(&b, "key general.architecture is no name");
}
END_TEST

START_TEST(alignment_lies) {
    static const uint32_t alignments[] = {0, 3, 48, (1 << 20) + 1, 1 << 21, 1u << 31};
    fr_builder b = {0};
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        fr_build_header(&b, 0, 1);
        fr_build_key_u32(&b, "general.alignment", alignments[i]);
        expect_failure(&b, "key general.alignment is");
    }
    fr_build_header(&b, 0, 1);
    fr_build_key_string(&b, "general.alignment", "32");
    expect_failure(&b, "key general.alignment is of type string, expected an integer");
}
END_TEST

/* Builds a file with one tensor and 4096 bytes of data. Opening it must fail with a line that contains `words`. */
static void expect_tensor_failure(uint32_t dims, const uint64_t *dim, uint32_t type, uint64_t offset,
                                  const char *words) {
    fr_builder b = {0};
    fr_build_header(&b, 1, 0);
    fr_build_tensor(&b, "t", dims, dim, type, offset);
    fr_build_align(&b, 32);
    fr_build_zeros(&b, 4096);
    expect_failure(&b, words);
}

START_TEST(tensor_lies) {
    const uint64_t most = (uint64_t)1 << 48;
    expect_tensor_failure(5, (uint64_t[]){1, 1, 1, 1, 1}, F32_ID, 0, "5 dimensions, and at most 4");
    expect_tensor_failure(UINT32_MAX, NULL, F32_ID, 0, "4294967295 dimensions");
    expect_tensor_failure(1, (uint64_t[]){most + 1}, F32_ID, 0, "at most 2^48");
    expect_tensor_failure(1, (uint64_t[]){UINT64_MAX}, F32_ID, 0, "at most 2^48");
    expect_tensor_failure(1, (uint64_t[]){1025}, F32_ID, 0, "cut short");
    expect_tensor_failure(1, (uint64_t[]){most}, F32_ID, 0, "cut short");
    expect_tensor_failure(2, (uint64_t[]){most, most}, F32_ID, 0, "cut short");
    expect_tensor_failure(4, (uint64_t[]){most, most, most, most}, F32_ID, 0, "cut short");
    expect_tensor_failure(4, (uint64_t[]){32, most, most, 1 << 16}, Q4_0_ID, 0, "cut short");
    expect_tensor_failure(3, (uint64_t[]){32, most, 1 << 12}, FR_GGUF_PACKED | Q4_0_ID, 0, "cut short");
    expect_tensor_failure(1, (uint64_t[]){48}, Q4_0_ID, 0, "rows of 48 values are no multiple of Q4_0's blocks of 32");
    expect_tensor_failure(1, (uint64_t[]){8}, F32_ID, 4, "offset 4 is no multiple of the alignment 32");
    expect_tensor_failure(1, (uint64_t[]){8}, F32_ID, 4096, "cut short");
    expect_tensor_failure(1, (uint64_t[]){8}, F32_ID, 1 << 30, "cut short");
    expect_tensor_failure(1, (uint64_t[]){8}, F32_ID, UINT64_MAX - 31, "cut short");
    /* a tensor must be inside the file, even if the library does not read its type */
    expect_tensor_failure(1, (uint64_t[]){8}, 31, 1 << 30, "cut short");
}
END_TEST

START_TEST(tensor_pairs) {
    fr_builder b = {0};
    fr_build_header(&b, 2, 0);
    fr_build_tensor(&b, "a", 1, (uint64_t[]){9}, F32_ID, 0);
    fr_build_tensor(&b, "b", 1, (uint64_t[]){8}, F32_ID, 32);
    fr_build_align(&b, 32);
    fr_build_zeros(&b, 64);
    expect_failure(&b, "tensor b: offset 32 is inside tensor a, which ends at 36");
    fr_build_header(&b, 2, 0);
    fr_build_tensor(&b, "a", 1, (uint64_t[]){8}, F32_ID, 0);
    fr_build_tensor(&b, "a", 1, (uint64_t[]){8}, F32_ID, 32);
    fr_build_align(&b, 32);
    fr_build_zeros(&b, 64);
    expect_failure(&b, "tensor a was there before");
    fr_build_header(&b, 1, 0);
    fr_build_tensor(&b, "", 1, (uint64_t[]){8}, F32_ID, 0);
    fr_build_zeros(&b, 64);
    expect_failure(&b, "a tensor's name of 0 bytes");
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- shards */

static void write_shard(const char *name, uint32_t number, uint32_t count, uint32_t tensors, const char *tensor) {
    fr_builder b = {0};
    fr_build_header(&b, 1, 3);
    fr_build_key_u32(&b, "split.no", number);
    fr_build_key_u32(&b, "split.count", count);
    fr_build_key_u32(&b, "split.tensors.count", tensors);
    fr_build_tensor(&b, tensor, 1, (uint64_t[]){8}, F32_ID, 0);
    fr_build_align(&b, 32);
    fr_build_zeros(&b, 32);
    fr_build_write(&b, in_folder(name));
    fr_build_free(&b);
}

static void expect_shards(const char *name, const char *words) {
    fr_checkpoint files;
    fr_status status = fr_checkpoint_open(&files, in_folder(name), true);
    if (!words) {
        ck_assert_msg(status == FR_OK, "%s", fr_last_error());
        ck_assert_uint_eq(files.file_count, 2);
        ck_assert_uint_eq(files.tensors.count, 2);
        ck_assert_uint_eq(fr_tensors_find(&files.tensors, "b")->file, 1);
        fr_checkpoint_close(&files);
        return;
    }
    ck_assert_int_eq(status, FR_INPUT);
    ck_assert_msg(strstr(fr_last_error(), words), "\"%s\" is not in \"%s\"", words, fr_last_error());
}

START_TEST(shards) {
    static const char first[] = "s-00001-of-00002.gguf", second[] = "s-00002-of-00002.gguf";
    write_shard(first, 0, 2, 2, "a");
    expect_shards(first, ": 1 of its 2 parts is missing: s-00002-of-00002.gguf");
    write_shard(second, 1, 2, 2, "b");
    expect_shards(first, NULL);
    expect_shards(second, NULL);
    write_shard(second, 0, 2, 2, "b");
    expect_shards(first, "s-00002-of-00002.gguf: it is shard 1 of 2, and its name says 2 of 2");
    write_shard(second, 1, 3, 2, "b");
    expect_shards(first, "it is shard 2 of 3, and its name says 2 of 2");
    write_shard(second, 1, 2, 2, "a");
    expect_shards(first, "tensor a was there before");
    write_shard(second, 1, 2, 2, "b");
    write_shard(first, 0, 2, 3, "a");
    expect_shards(second, "its shards have 2 tensors, and key split.tensors.count is 3");
    write_shard("a.gguf", 1, 2, 2, "a");
    expect_shards("a.gguf", "it is shard 2 of 2, and its name says 1 of 1");
}
END_TEST

/* A file that was merged from shards often still has the name of a shard. As in llama.cpp, the key split.count decides
 * whether the file is a shard. llama-gguf-split writes 0 into merged files. */
START_TEST(whole_file_by_a_shards_name) {
    static const char *const names[] = {"s-00001-of-00002.gguf", "s-00002-of-00002.gguf", "s-00005-of-00002.gguf",
                                        "s-00001-of-02000.gguf"};
    const char *name = names[_i / 4];
    fr_builder b = {0};
    fr_build_header(&b, 1, _i % 4 ? 1 : 0);
    if (_i % 4) fr_build_key_u32(&b, _i % 4 == 3 ? "split.no" : "split.count", _i % 4 == 2);
    fr_build_tensor(&b, "a", 1, (uint64_t[]){8}, F32_ID, 0);
    fr_build_align(&b, 32);
    fr_build_zeros(&b, 32);
    fr_build_write(&b, in_folder(name));
    fr_build_free(&b);
    for (int use_mmap = 0; use_mmap < 2; use_mmap++) {
        fr_checkpoint files;
        ck_assert_msg(fr_checkpoint_open(&files, in_folder(name), use_mmap) == FR_OK, "%s", fr_last_error());
        ck_assert_uint_eq(files.file_count, 1);
        ck_assert_str_eq(files.file_names[0], name);
        ck_assert_uint_eq(files.tensors.count, 1);
        fr_checkpoint_close(&files);
    }
    unlink(in_folder(name));
}
END_TEST

/* Builds a file with two matrices of type number 42, which is Q2_0. The second matrix begins `step` bytes after the
 * first, and the file has `size` bytes of data. Returns the type that the reader gives to the matrices. Returns
 * FR_DTYPE_COUNT if the reader refuses the file. */
static fr_dtype type_of_pairs(uint64_t cols, uint64_t step, size_t size) {
    fr_builder b = {0};
    fr_checkpoint files;
    fr_build_header(&b, 2, 1);
    fr_build_key_string(&b, "general.architecture", "qwen3");
    fr_build_tensor(&b, "b", 2, (uint64_t[]){cols, 16}, 42, step);
    fr_build_tensor(&b, "a", 2, (uint64_t[]){128, 16}, 42, 0);
    fr_build_align(&b, 32);
    fr_build_zeros(&b, size);
    fr_status status = fr_checkpoint_open_bytes(&files, b.bytes, b.size, "memory");
    fr_dtype type = FR_DTYPE_COUNT;
    if (status == FR_OK) {
        const fr_tensor *first = fr_tensors_find(&files.tensors, "a"), *second = fr_tensors_find(&files.tensors, "b");
        ck_assert_int_eq(first->type, second->type);
        ck_assert_uint_eq(first->bytes, 16 * fr_dtype_row_bytes(first->type, 128));
        type = first->type;
        fr_checkpoint_close(&files);
    }
    fr_build_free(&b);
    return type;
}

/* The first files of PrismML use Q2_0's type number for weights of type PQ2_0, whose blocks have another size. The
 * distance between two tensors shows which type they have. */
START_TEST(older_ternary_files) {
    ck_assert_int_eq(type_of_pairs(128, 544, 544 + 544), FR_PQ2_0);
    ck_assert_int_eq(type_of_pairs(128, 576, 576 + 576), FR_Q2_0);
    /* PQ2_0 would leave a gap, and Q2_0 does not fit */
    ck_assert_int_eq(type_of_pairs(128, 576, 576 + 544), FR_DTYPE_COUNT);
    /* 64 columns fill only half of a PQ2_0 block */
    ck_assert_int_eq(type_of_pairs(64, 544, 544 + 288), FR_DTYPE_COUNT);
    ck_assert_int_eq(type_of_pairs(128, 512, 512 + 576), FR_DTYPE_COUNT);
}
END_TEST

/* The weights are stored rotated, but some keys that describe the rotation are missing. Without these keys the results
 * would be wrong, so the file is refused. */
START_TEST(rotated_weights_are_refused) {
    fr_builder b = {0};
    fr_checkpoint files;
    fr_build_header(&b, 1, 2);
    fr_build_key_string(&b, "general.architecture", "qwen35");
    fr_build_key_u32(&b, "prism.hadamard.block", 128);
    fr_build_tensor(&b, "a", 1, (uint64_t[]){8}, F32_ID, 0);
    fr_build_align(&b, 32);
    fr_build_zeros(&b, 32);
    fr_build_write(&b, in_folder("a.gguf"));
    ck_assert_int_eq(fr_checkpoint_open(&files, in_folder("a.gguf"), true), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "key prism.hadamard.version is missing"));
    ck_assert_int_eq(fr_checkpoint_open_bytes(&files, b.bytes, b.size, "memory"), FR_INPUT);
    fr_build_free(&b);
}
END_TEST

FR_SUITE("gguf") {
    TCase *tests = tcase_create("gguf");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, tensors_of_a_file, 2, 4);
    tcase_add_test(tests, values);
    tcase_add_test(tests, missing_and_wrong_values);
    tcase_add_test(tests, type_ids);
    tcase_add_test(tests, packed_tensor);
    tcase_add_test(tests, cut_anywhere);
    tcase_add_test(tests, header_lies);
    tcase_add_test(tests, key_lies);
    tcase_add_test(tests, alignment_lies);
    tcase_add_test(tests, tensor_lies);
    tcase_add_test(tests, tensor_pairs);
    tcase_add_test(tests, shards);
    tcase_add_loop_test(tests, whole_file_by_a_shards_name, 0, 16);
    tcase_add_test(tests, rotated_weights_are_refused);
    tcase_add_test(tests, older_ternary_files);
    suite_add_tcase(suite, tests);
}
