/* Tests importance matrices, which `forerun quantize` uses. Files of both formats are read, or refused if they are
 * damaged. llama-imatrix wrote the files in tests/data/imatrix (tests/references/imatrix.py). Two results are compared
 * with llama.cpp's: files that are quantized with a matrix, and matrices that `forerun imatrix` collects. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/checkpoint.h"
#include "formats/imatrix.h"
#include "tests/support/command.h"
#include "tests/support/suite.h"

#define DATA  "tests/data/imatrix/"
#define LLAMA "tests/data/llama/q4_0.gguf"

static fr_imatrix opened(const char *path) {
    fr_imatrix imatrix;
    ck_assert_msg(fr_imatrix_open(&imatrix, path) == FR_OK, "%s", fr_last_error());
    return imatrix;
}

static void check_refused(const void *bytes, size_t size, const char *part) {
    fr_imatrix imatrix;
    ck_assert_msg(fr_imatrix_open_bytes(&imatrix, bytes, size, "given") == FR_INPUT, "%s", part);
    ck_assert_msg(strstr(fr_last_error(), part) != NULL, "\"%s\" without \"%s\"", fr_last_error(), part);
    ck_assert_ptr_null(imatrix.entries);
}

/* ------------------------------------------------------------------------------------------------------- older form */

typedef struct built {
    uint8_t bytes[512];
    size_t size;
} built;

static void put(built *b, const void *bytes, size_t size) {
    ck_assert_uint_le(b->size + size, sizeof b->bytes);
    memcpy(b->bytes + b->size, bytes, size);
    b->size += size;
}

static void put_number(built *b, int32_t number) {
    put(b, &number, sizeof number);
}

static void put_name(built *b, const char *name) {
    put_number(b, (int32_t)strlen(name));
    put(b, name, strlen(name));
}

static void put_entry(built *b, const char *name, int32_t calls, const float *values, int32_t count) {
    put_name(b, name);
    put_number(b, calls);
    put_number(b, count);
    put(b, values, (size_t)count * sizeof *values);
}

/* Builds a file with two unsorted entries. Sets *entries to the file's size up to the end of the entries, and *chunks
 * to its size up to the end of the number of chunks. A valid file may end at either place. */
static built two_entries(size_t *entries, size_t *chunks) {
    built b = {.size = 0};
    put_number(&b, 2);
    put_entry(&b, "blk.1.x", 2, (float[]){2, 4, 0}, 3);
    put_entry(&b, "blk.0.y", 0, (float[]){5}, 1);
    *entries = b.size;
    put_number(&b, 7);
    *chunks = b.size;
    put_name(&b, "text");
    return b;
}

START_TEST(the_older_form) {
    size_t entries, chunks;
    built b = two_entries(&entries, &chunks);
    for (size_t size = 0; size <= b.size; size++) {
        fr_imatrix imatrix;
        if (size != entries && size != chunks && size != b.size) {
            check_refused(b.bytes, size, size < 4 || size > chunks || size < entries ? "given" : "too early");
            continue;
        }
        ck_assert_int_eq(fr_imatrix_open_bytes(&imatrix, b.bytes, size, "given"), FR_OK);
        ck_assert_uint_eq(imatrix.count, 2);
        ck_assert_str_eq(imatrix.entries[0].name, "blk.0.y");
        const fr_imatrix_entry *x = fr_imatrix_find(&imatrix, "blk.1.x");
        ck_assert(x && x->count == 3 && fabsf(x->means[0] - 1) < 1e-9f && fabsf(x->means[1] - 2) < 1e-9f);
        /* the entry's number of calls is 0, so the value is not divided by it */
        ck_assert(fabsf(imatrix.entries[0].means[0] - 5) < 1e-9f);
        ck_assert_ptr_null(fr_imatrix_find(&imatrix, "blk.1"));
        ck_assert_uint_eq(imatrix.chunks, size == entries ? 0 : 7);
        if (size == b.size)
            ck_assert_str_eq(imatrix.dataset, "text");
        else
            ck_assert_ptr_null(imatrix.dataset);
        fr_imatrix_close(&imatrix);
    }
}
END_TEST

/* Builds a file with one entry that has these values. The file must be refused with a line that contains `part`. */
static void check_entry(const char *name, size_t length, int32_t calls, float value, int32_t count, const char *part) {
    built b = {.size = 0};
    put_number(&b, 1);
    put_number(&b, (int32_t)length);
    put(&b, name, length);
    put_number(&b, calls);
    put_number(&b, count);
    put(&b, &value, sizeof value);
    check_refused(b.bytes, b.size, part);
}

START_TEST(damage_to_the_older_form) {
    built b = {.size = 0};
    check_entry("x", 1, 1, NAN, 1, "no sum of squares");
    check_entry("x", 1, 1, INFINITY, 1, "no sum of squares");
    check_entry("x", 1, 1, -1, 1, "no sum of squares");
    check_entry("x", 1, -1, 1, 1, "-1 calls");
    check_entry("x", 1, 1, 1, 0, "0 values");
    check_entry("x", 1, 1, 1, -5, "-5 values");
    check_entry("x", 1, 1, 1, INT32_MAX, "too early");
    check_entry("a\0b", 3, 1, 1, 1, "NUL");
    check_entry("", 0, 1, 1, 1, "0 bytes of a name");
    put_number(&b, -1);
    check_refused(b.bytes, b.size, "-1 entries");
    b.size = 0;
    put_number(&b, 2);
    put_entry(&b, "x", 1, (float[]){1}, 1);
    put_entry(&b, "x", 1, (float[]){1}, 1);
    check_refused(b.bytes, b.size, "x twice");
}
END_TEST

/* ------------------------------------------------------------------------------------------------ llama.cpp's files */

/* The two files have the same matrix in two formats. One format has sums and counts, the other has means. Both must
 * give the same values. */
START_TEST(both_forms_say_the_same) {
    fr_imatrix a = opened(DATA "llama.gguf"), b = opened(DATA "llama.dat");
    ck_assert_uint_eq(a.count, b.count);
    ck_assert_uint_ge(a.count, 7);
    ck_assert_uint_eq(a.chunks, b.chunks);
    ck_assert_str_eq(a.dataset, b.dataset);
    for (size_t i = 0; i < a.count; i++) {
        ck_assert_str_eq(a.entries[i].name, b.entries[i].name);
        ck_assert_uint_eq(a.entries[i].count, b.entries[i].count);
        for (size_t c = 0; c < a.entries[i].count; c++)
            ck_assert(fabsf(a.entries[i].means[c] - b.entries[i].means[c]) <= 1e-6f * a.entries[i].means[c]);
    }
    fr_imatrix_close(&a);
    fr_imatrix_close(&b);
}
END_TEST

/* Any one bit of the file is flipped. The reader must then give an error or numbers, but it must not crash. */
START_TEST(any_bit_of_a_gguf) {
    fr_map map;
    fr_imatrix imatrix;
    ck_assert_int_eq(fr_map_open(&map, DATA "llama.gguf", true), FR_OK);
    uint8_t *bytes = malloc(map.size);
    memcpy(bytes, map.bytes, map.size);
    for (size_t bit = 0; bit < 8 * map.size; bit += bit < 8 * 4096 ? 7 : 997) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (fr_imatrix_open_bytes(&imatrix, bytes, map.size, "given") == FR_OK) {
            for (size_t i = 0; i < imatrix.count; i++)
                for (size_t c = 0; c < imatrix.entries[i].count; c++)
                    ck_assert(isfinite(imatrix.entries[i].means[c]) && imatrix.entries[i].means[c] >= 0);
            fr_imatrix_close(&imatrix);
        }
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t size = 0; size < map.size; size += 1 + size / 16) {
        ck_assert_int_eq(fr_imatrix_open_bytes(&imatrix, bytes, size, "given"), FR_INPUT);
    }
    free(bytes);
    fr_map_close(&map);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------- quantizing */

static void quantize(const char *options, const char *path) {
    fr_command c = fr_command_ok("quantize -m " LLAMA " %s -o %s", options, path);
    fr_command_free(&c);
}

static fr_checkpoint open_model(const char *path) {
    fr_checkpoint files;
    ck_assert_msg(fr_checkpoint_open(&files, path, true) == FR_OK, "%s", fr_last_error());
    return files;
}

/* The quantized file must have the keys that llama-quantize writes. An importance matrix must change the weights, and
 * both formats of the matrix must change them in the same way. */
START_TEST(quantizing_by_it) {
    char with[] = "/tmp/imatrix_a_XXXXXX", without[] = "/tmp/imatrix_b_XXXXXX", older[] = "/tmp/imatrix_c_XXXXXX";
    close(mkstemp(with));
    close(mkstemp(without));
    close(mkstemp(older));
    quantize("--type q4_k --imatrix " DATA "llama.gguf", with);
    quantize("--type q4_k --imatrix " DATA "llama.dat", older);
    quantize("--type q4_k", without);
    fr_checkpoint a = open_model(with), b = open_model(without), c = open_model(older);
    int64_t entries, chunks;
    fr_text file, dataset;
    fr_imatrix matrix = opened(DATA "llama.gguf");
    ck_assert_int_eq(fr_gguf_text(a.gguf, "quantize.imatrix.file", &file), FR_OK);
    ck_assert(fr_text_is(file, DATA "llama.gguf"));
    ck_assert_int_eq(fr_gguf_text(a.gguf, "quantize.imatrix.dataset", &dataset), FR_OK);
    ck_assert(fr_text_is(dataset, matrix.dataset));
    ck_assert_int_eq(fr_gguf_int(a.gguf, "quantize.imatrix.entries_count", 0, 1000, 0, &entries), FR_OK);
    ck_assert_int_eq(fr_gguf_int(a.gguf, "quantize.imatrix.chunks_count", 0, 1000, 0, &chunks), FR_OK);
    ck_assert(entries == (int64_t)matrix.count && chunks == (int64_t)matrix.chunks);
    ck_assert_ptr_null(fr_gguf_find(b.gguf, "quantize.imatrix.file"));
    const char *name = "blk.0.ffn_up.weight";
    const fr_tensor *by = fr_tensors_find(&a.tensors, name), *plain = fr_tensors_find(&b.tensors, name);
    const fr_tensor *same = fr_tensors_find(&c.tensors, name);
    ck_assert(by && plain && same && by->type == plain->type && by->bytes == plain->bytes);
    ck_assert_int_ne(memcmp(by->data, plain->data, (size_t)by->bytes), 0);
    size_t differ = 0; /* one format already has means, so some last bits differ */
    for (size_t i = 0; i < by->bytes; i++) differ += ((const uint8_t *)by->data)[i] != ((const uint8_t *)same->data)[i];
    ck_assert_uint_le(differ, by->bytes / 100);
    fr_imatrix_close(&matrix);
    fr_checkpoint_close(&a);
    fr_checkpoint_close(&b);
    fr_checkpoint_close(&c);
    unlink(with);
    unlink(without);
    unlink(older);
}
END_TEST

START_TEST(matrices_of_other_models) {
    static const struct {
        const char *line, *part;
    } cases[] = {
        {"quantize -m tests/data/models/gemma4-e --type q4_k --imatrix " DATA "llama.gguf -o /dev/null",
         "it is of another model"},
        {"quantize -m " LLAMA " --type q4_k --imatrix " LLAMA " -o /dev/null", "no importance matrix"},
        {"quantize -m " LLAMA " --type q4_k --imatrix README.md -o /dev/null", "no importance matrix"},
        {"quantize -m " LLAMA " --type q4_k --imatrix /nowhere -o /dev/null", "/nowhere"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fr_command c = fr_command_run(cases[i].line, NULL);
        ck_assert_msg(c.status == 1 && strstr(c.err, cases[i].part), "%s: %d, %s", cases[i].line, c.status, c.err);
        fr_command_free(&c);
    }
}
END_TEST

/* ------------------------------------------------------------------------------------------------------- collecting */

static fr_imatrix collected(const char *model, const char *options) {
    char path[] = "/tmp/imatrix_d_XXXXXX";
    close(mkstemp(path));
    fr_command c = fr_command_ok("imatrix -m %s -f " DATA "text.txt -c 32 --chunks 4 %s -o %s", model, options, path);
    ck_assert_str_eq(c.out, "");
    fr_command_free(&c);
    fr_imatrix imatrix = opened(path);
    unlink(path);
    return imatrix;
}

/* Compares collected means with llama.cpp's. They can only be near each other, because the two engines round rows
 * differently. */
static void check_near(const fr_imatrix *ours, const fr_imatrix *theirs, double most) {
    ck_assert_uint_eq(ours->chunks, theirs->chunks);
    for (size_t i = 0; i < theirs->count; i++) {
        const fr_imatrix_entry *expected = &theirs->entries[i], *got = fr_imatrix_find(ours, expected->name);
        ck_assert_msg(got && got->count == expected->count, "%s", expected->name);
        double apart = 0, size = 0;
        for (size_t c = 0; c < got->count; c++) {
            apart += fabs((double)got->means[c] - (double)expected->means[c]);
            size += (double)expected->means[c];
        }
        ck_assert_msg(apart <= most * size, "%s: %g of %g", expected->name, apart, size);
    }
}

START_TEST(collected_as_llama_imatrix_does) {
    fr_imatrix theirs = opened(DATA "llama.gguf"), ours = collected(LLAMA, ""), older;
    ck_assert_uint_eq(ours.count, theirs.count);
    check_near(&ours, &theirs, 0.02);
    older = collected(LLAMA, "--output-format dat");
    check_near(&older, &ours, 1e-6);
    ck_assert_str_eq(older.dataset, DATA "text.txt");
    fr_imatrix_close(&older);
    fr_imatrix_close(&ours);
    fr_imatrix_close(&theirs);
    theirs = opened(DATA "moe.gguf");
    ours = collected("tests/data/gguf/moe-odd.gguf", "");
    check_near(&ours, &theirs, 0.05);
    fr_imatrix_close(&ours);
    fr_imatrix_close(&theirs);
}
END_TEST

/* The sums must not depend on the number of threads, or on the chunks in which a prompt is run. */
START_TEST(one_answer) {
    static const char *const ways[] = {"-t 3", "--chunk 5", "-t 2 --chunk 1"}, *const models[] = {
                                                                                   LLAMA,
                                                                                   "tests/data/gguf/moe-odd.gguf"};
    for (size_t m = 0; m < 2; m++) {
        fr_imatrix first = collected(models[m], "-t 1");
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            fr_imatrix other = collected(models[m], ways[i]);
            ck_assert_uint_eq(other.count, first.count);
            for (size_t e = 0; e < first.count; e++)
                ck_assert_msg(
                    memcmp(other.entries[e].means, first.entries[e].means, first.entries[e].count * sizeof(float)) == 0,
                    "%s: %s", ways[i], first.entries[e].name);
            fr_imatrix_close(&other);
        }
        fr_imatrix_close(&first);
    }
}
END_TEST

FR_SUITE("imatrix") {
    TCase *tests = tcase_create("imatrix");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_older_form);
    tcase_add_test(tests, damage_to_the_older_form);
    tcase_add_test(tests, both_forms_say_the_same);
    tcase_add_test(tests, any_bit_of_a_gguf);
    tcase_add_test(tests, quantizing_by_it);
    tcase_add_test(tests, matrices_of_other_models);
    tcase_add_test(tests, collected_as_llama_imatrix_does);
    tcase_add_test(tests, one_answer);
    suite_add_tcase(suite, tests);
}
