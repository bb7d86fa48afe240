/* Tests the words that select instruction sets, the kernel table of each instruction set, and the floating-point
 * environment. */
/* suite: hosts no-valgrind */
#include <check.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fpenv.h"
#include "base/word_list.h"
#include "kernels/cpu.h"
#include "kernels/dispatch.h"
#include "tests/support/suite.h"

START_TEST(words) {
    static const char known[] = "scalar avx2 avxvnni avx512 avx512vnni amx neon dotprod i8mm";
    ck_assert_str_eq(fr_list_words(fr_isa_word).text, known);
    for (fr_isa_level level = 0; level < FR_ISA_WORDS; level++)
        ck_assert_int_eq(fr_isa_from_word(fr_isa_word(level)), level);
    ck_assert_ptr_null(fr_isa_word(FR_ISA_WORDS));
    ck_assert_int_eq(fr_isa_from_word("avx"), FR_ISA_WORDS);
}
END_TEST

/* A comment of the public header lists the words for instruction sets. It can't be generated from the table of words,
 * so this test compares the two. */
START_TEST(the_public_header_has_the_words) {
    char line[256];
    bool found = false;
    FILE *header = fopen("include/forerun.h", "r");
    ck_assert_ptr_nonnull(header);
    while (!found && fgets(line, sizeof line, header)) found = strstr(line, fr_list_words(fr_isa_word).text) != NULL;
    fclose(header);
    ck_assert(found);
}
END_TEST

/* Returns true if this entry of the table is empty by design. Such an entry is a block kernel for a float type, or a
 * number of bits that grouped codes never have. */
static bool is_empty(size_t slot) {
    size_t blocks = offsetof(fr_kernels, matmul_block) / sizeof(void *);
    size_t grouped = offsetof(fr_kernels, matmul_grouped) / sizeof(void *);
    if (slot >= blocks && slot < blocks + FR_FLOAT_TYPES) return true;
    if (slot < grouped || slot >= grouped + 2 * (FR_GROUPED_BITS_MAX + 1)) return false;
    size_t bits = (slot - grouped) % (FR_GROUPED_BITS_MAX + 1);
    return bits < 2 || bits == 7;
}

/* If the machine has the instruction set of a word, the word must give a complete table. Otherwise the word must be
 * refused. */
START_TEST(tables) {
    unsigned here = fr_cpu_levels();
    ck_assert(here & 1u << FR_ISA_SCALAR);
    for (size_t level = 0; fr_isa_word(level); level++) {
        const fr_kernels *kernels;
        fr_status status = fr_kernels_select(fr_isa_word(level), &kernels);
        if (!(here >> level & 1) || !fr_cpu_permits((fr_isa_level)level)) {
            ck_assert_int_eq(status, FR_MACHINE);
            ck_assert_ptr_null(kernels);
            continue;
        }
        ck_assert_int_eq(status, FR_OK);
        ck_assert_str_eq(kernels->isa, fr_isa_word(level));
        void *slots[sizeof *kernels / sizeof(void *)];
        memcpy(slots, kernels, sizeof slots);
        for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) ck_assert((slots[i] == NULL) == is_empty(i));
    }
}
END_TEST

START_TEST(unknown_word) {
    const fr_kernels *kernels;
    ck_assert_int_eq(fr_kernels_select("avx1024", &kernels), FR_USAGE);
    ck_assert_int_eq(fr_kernels_select("", &kernels), FR_USAGE);
    ck_assert_str_eq(fr_last_error(),
                     "isa  is not known (scalar avx2 avxvnni avx512 avx512vnni amx neon dotprod i8mm)");
    ck_assert_ptr_null(kernels);
}
END_TEST

/* Returns true if /proc/cpuinfo lists a feature. The system lists a feature only if programs may use it. */
static bool system_lists(const char *feature) {
    char line[8192], between[32];
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(between, sizeof between, " %s ", feature);
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = ' ';
        found = strstr(line, between) != NULL;
    }
    if (file) fclose(file);
    return found;
}

/* A machine without AMX's tiles must refuse the word "amx" with one line. A machine with AMX's tiles must use the
 * kernels for tiles. */
START_TEST(amx_is_what_the_system_lists) {
    const fr_kernels *kernels, *below;
    bool listed = system_lists("amx_int8") && system_lists("avx512_vnni");
    fr_status status = fr_kernels_select("amx", &kernels);
    if (!listed || status != FR_OK) {
        const char *refusal =
            fr_cpu_levels() >> FR_ISA_AMX & 1 ? "the system does not permit amx" : "this machine has no amx";
        ck_assert_int_eq(status, FR_MACHINE);
        ck_assert_str_eq(fr_last_error(), refusal);
        if (listed) fr_test_skipped("the system lists AMX, but does not permit it or is emulated");
        return;
    }
    ck_assert_int_eq(status, FR_OK);
    ck_assert_int_eq(fr_kernels_select("avx512vnni", &below), FR_OK);
    ck_assert(kernels->matmul_block[FR_Q4_0] != below->matmul_block[FR_Q4_0] && kernels->attn == below->attn);
}
END_TEST

/* If the user gives no word for an instruction set, the kernels are those of the strongest set that the machine has and
 * the system permits. If the user gives a word, every kernel must be of this set or a weaker one. */
START_TEST(order) {
    const fr_kernels *best, *scalar, *word;
    unsigned here = fr_cpu_levels();
    ck_assert_int_eq(fr_kernels_select(NULL, &best), FR_OK);
    ck_assert_int_eq(fr_kernels_select("scalar", &scalar), FR_OK);
    size_t strongest = 0;
    for (size_t level = 0; fr_isa_word(level); level++)
        if ((here >> level & 1) && fr_cpu_permits((fr_isa_level)level)) strongest = level;
    ck_assert_str_eq(best->isa, fr_isa_word(strongest));
    ck_assert_uint_eq(fr_isa_allows(FR_ISA_SCALAR), 1u << FR_ISA_SCALAR | 1u << FR_ISA_SCALAR_FMA);
    ck_assert(!(fr_isa_allows(FR_ISA_AVX2) & 1u << FR_ISA_AVX512));
    ck_assert(fr_isa_allows(FR_ISA_AVX512VNNI) & 1u << FR_ISA_AVX2);
    ck_assert(!(fr_isa_allows(FR_ISA_I8MM) & 1u << FR_ISA_AVX2) && fr_isa_allows(FR_ISA_I8MM) & 1u << FR_ISA_NEON);
    if (here >> FR_ISA_AVX2 & 1) {
        ck_assert_int_eq(fr_kernels_select("avx2", &word), FR_OK);
        ck_assert(word->attn != scalar->attn && (word->attn != best->attn || !(here >> FR_ISA_AVX512 & 1)));
        ck_assert(word->topk == scalar->topk); /* no avx2 version exists */
    }
}
END_TEST

static float product(float a, float b) {
    volatile float x = a, y = b;
    return x * y;
}

/* The bits of this architecture's control word that turn denormal numbers to zero. */
#ifdef __x86_64__
static const uint64_t flush = 0x8040; /* FTZ and DAZ */
#else
static const uint64_t flush = 1 << 24; /* FZ */
#endif

START_TEST(environment) {
    uint64_t fresh = fr_fpenv_enter();
    fr_fpenv_leave(fresh | flush);
    ck_assert(product(0x1p-100f, 0x1p-40f) == 0);
    uint64_t callers = fr_fpenv_enter();
    ck_assert(product(0x1p-100f, 0x1p-40f) == 0x1p-140f);
    fr_fpenv_leave(callers);
    ck_assert(product(0x1p-100f, 0x1p-40f) == 0);
    fr_fpenv_leave(fresh);
    ck_assert(product(0x1p-100f, 0x1p-40f) == 0x1p-140f);
}
END_TEST

START_TEST(rounding_and_flags) {
    fesetround(FE_UPWARD);
    feclearexcept(FE_ALL_EXCEPT);
    uint64_t callers = fr_fpenv_enter();
    ck_assert(product(0x1.000002p0f, 0x1.000002p0f) == 0x1.000004p0f);
    product(0x1p100f, 0x1p100f);
    fr_fpenv_leave(callers);
    ck_assert_int_eq(fegetround(), FE_UPWARD);
    ck_assert_int_eq(fetestexcept(FE_OVERFLOW), 0);
    ck_assert(product(0x1.000002p0f, 0x1.000002p0f) == 0x1.000006p0f);
    fesetround(FE_TONEAREST);
}
END_TEST

FR_SUITE("isa") {
    TCase *selection = tcase_create("selection"), *state = tcase_create("environment");
    tcase_add_test(selection, words);
    tcase_add_test(selection, the_public_header_has_the_words);
    tcase_add_test(selection, tables);
    tcase_add_test(selection, unknown_word);
    tcase_add_test(selection, amx_is_what_the_system_lists);
    tcase_add_test(selection, order);
    tcase_add_test(state, environment);
    tcase_add_test(state, rounding_and_flags);
    suite_add_tcase(suite, selection);
    suite_add_tcase(suite, state);
}
