/* Tests number types: their names, their sizes and every 16-bit value. The values are compared with values that are
 * computed in another way.
 *
 * The references use ldexp and comparisons of doubles instead of bit operations. This is exact, because double
 * precision holds all values of float16 and bfloat16 and their midpoints. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/dtype.h"
#include "tests/support/suite.h"

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns the value that these bits have in a 16-bit format. For a NaN of the format, returns NAN. */
static double value_of(uint32_t bits, int fraction_bits, int bias) {
    int top = (1 << (15 - fraction_bits)) - 1, exponent = (int)(bits >> fraction_bits) & top;
    double fraction = (double)(bits & ((1u << fraction_bits) - 1)), one = ldexp(1, fraction_bits);
    double size = exponent == top ? (fraction > 0 ? NAN : INFINITY)
                  : exponent > 0  ? ldexp(one + fraction, exponent - bias - fraction_bits)
                                  : ldexp(fraction, 1 - bias - fraction_bits);
    return bits >> 15 ? -size : size;
}

static void check_same(uint32_t code, float got, double expected) {
    bool same = isnan(expected) ? isnan(got) : bits_of(got) == bits_of((float)expected);
    if (!same) ck_abort_msg("%04x: %a, not %a", code, (double)got, expected);
}

START_TEST(every_f16) {
    /* checks the reference function itself */
    ck_assert(value_of(0x3C00, 10, 15) == 1 && value_of(0xFBFF, 10, 15) == -65504);
    for (uint32_t code = 0; code < 0x10000; code++)
        check_same(code, fr_f32_from_f16((uint16_t)code), value_of(code, 10, 15));
}
END_TEST

START_TEST(every_bf16) {
    ck_assert(value_of(0x3F80, 7, 127) == 1 && value_of(0x0001, 7, 127) == 0x1p-133);
    for (uint32_t code = 0; code < 0x10000; code++) {
        float value = fr_f32_from_bf16((uint16_t)code);
        check_same(code, value, value_of(code, 7, 127));
        if (!isnan(value) && fr_bf16_from_f32(value) != code) ck_abort_msg("%04x does not come back", code);
    }
}
END_TEST

/* Rounds to the nearest bfloat16, or to the even one if two are equally near. To do so, compares the distances to the
 * two neighbouring bfloat16 values. Above the largest finite value, the neighbour is 2^128 with the code of
 * infinity. */
static uint16_t nearest_bf16(float value) {
    uint32_t toward_zero = bits_of(value) >> 16, away = toward_zero + 1;
    double low = fabs(value_of(toward_zero, 7, 127)), high = fabs(value_of(away, 7, 127));
    if (isinf(low)) return (uint16_t)toward_zero;
    double to_low = fabs((double)value) - low, to_high = (isinf(high) ? 0x1p128 : high) - fabs((double)value);
    if (to_low == to_high) return (uint16_t)(toward_zero & 1 ? away : toward_zero);
    return (uint16_t)(to_low < to_high ? toward_zero : away);
}

START_TEST(bf16_rounding) {
    static const uint32_t lows[] = {0, 1, 0x1234, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
    for (uint32_t high = 0; high < 0x10000; high++) {
        for (size_t i = 0; i < sizeof lows / sizeof *lows; i++) {
            uint32_t bits = high << 16 | lows[i];
            float value = float_of(bits);
            uint16_t got = fr_bf16_from_f32(value);
            bool right =
                isnan(value) ? isnan(value_of(got, 7, 127)) && got >> 15 == bits >> 31 : got == nearest_bf16(value);
            if (!right) ck_abort_msg("%08x became %04x", bits, got);
        }
    }
}
END_TEST

START_TEST(bf16_landmarks) {
    ck_assert_uint_eq(fr_bf16_from_f32(1 + 0x1p-8f), 0x3F80);           /* a tie, which rounds down to even */
    ck_assert_uint_eq(fr_bf16_from_f32(1 + 0x1p-7f + 0x1p-8f), 0x3F82); /* a tie, which rounds up to even */
    ck_assert_uint_eq(fr_bf16_from_f32(0x1.fffffep127f), 0x7F80);       /* overflows to infinity */
    ck_assert_uint_eq(fr_bf16_from_f32(-0x1.fffffep127f), 0xFF80);
    ck_assert_uint_eq(fr_bf16_from_f32(0x1p-133f), 0x0001); /* the smallest denormal */
    ck_assert_uint_eq(fr_bf16_from_f32(0x1p-149f), 0x0000);
    ck_assert_uint_eq(fr_bf16_from_f32(-0.0f), 0x8000);
    /* All fraction bits of this NaN are in the low half, which is cut off. The result must still be a NaN. */
    ck_assert(isnan(fr_f32_from_bf16(fr_bf16_from_f32(float_of(0x7F800001)))));
}
END_TEST

/* Rounds to the nearest float16, or to the even one if two are equally near. A search by value finds the two
 * neighbours. */
static uint16_t nearest_f16(float value) {
    uint16_t sign = (uint16_t)(bits_of(value) >> 16 & 0x8000), low = 0, high = 0x7C00;
    double size = fabs((double)value);
    if (isinf(size)) return sign | 0x7C00;
    while (high - low > 1) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        *(value_of(middle, 10, 15) <= size ? &low : &high) = middle;
    }
    double to_low = size - value_of(low, 10, 15), to_high = (high == 0x7C00 ? 0x1p16 : value_of(high, 10, 15)) - size;
    bool up = to_high < to_low || (to_high == to_low && low & 1);
    return sign | (up ? high : low);
}

static void check_f16(float value) {
    for (int minus = 0; minus < 2; minus++) {
        float x = minus ? -value : value;
        uint16_t got = fr_f16_from_f32(x), expected = nearest_f16(x);
        if (got != expected) ck_abort_msg("%a became %04x, not %04x", (double)x, got, expected);
    }
}

/* Checks every float16 value and every midpoint between two values. Also checks the floats just below and just above
 * each midpoint. */
START_TEST(f16_rounding) {
    for (uint32_t code = 0; code < 0x7C00; code++) {
        double next = code == 0x7BFF ? 0x1p16 : value_of(code + 1, 10, 15);
        float value = (float)value_of(code, 10, 15), midpoint = (float)((value_of(code, 10, 15) + next) / 2);
        const float centres[] = {value, midpoint};
        for (int i = 0; i < 2; i++) {
            check_f16(centres[i]);
            check_f16(nextafterf(centres[i], INFINITY));
            if (centres[i] > 0) check_f16(nextafterf(centres[i], 0));
        }
    }
    for (uint32_t bits = 0; bits <= 0x7F800000; bits += 0x1235) check_f16(float_of(bits)); /* all exponents */
    check_f16(float_of(0x7F7FFFFF));
    check_f16(INFINITY);
}
END_TEST

START_TEST(f16_landmarks) {
    ck_assert_uint_eq(fr_f16_from_f32(1 + 0x1p-11f), 0x3C00);            /* a tie, which rounds down to even */
    ck_assert_uint_eq(fr_f16_from_f32(1 + 0x1p-10f + 0x1p-11f), 0x3C02); /* a tie, which rounds up to even */
    ck_assert_uint_eq(fr_f16_from_f32(65519.996f), 0x7BFF);
    ck_assert_uint_eq(fr_f16_from_f32(-65520), 0xFC00);   /* overflows to infinity */
    ck_assert_uint_eq(fr_f16_from_f32(0x1p-24f), 0x0001); /* the smallest denormal */
    ck_assert_uint_eq(fr_f16_from_f32(0x1p-25f), 0x0000); /* a tie, which rounds down to zero */
    ck_assert_uint_eq(fr_f16_from_f32(-0.0f), 0x8000);
    for (uint32_t bits = 0x7F800001; bits <= 0x7FFFFFFF; bits += bits < 0x7F802000 ? 1 : 0x1235) {
        uint16_t plus = fr_f16_from_f32(float_of(bits)), minus = fr_f16_from_f32(float_of(bits | 0x80000000));
        ck_assert(isnan(fr_f32_from_f16(plus)) && plus < 0x8000);
        ck_assert(isnan(fr_f32_from_f16(minus)) && minus >= 0x8000);
    }
}
END_TEST

/* The expected sizes are those of GGML_QUANT_SIZES in the gguf package. The sizes of PQ2_0 and PTQ1_0 come from
 * PrismML's ggml. */
START_TEST(names_and_sizes) {
    static const struct {
        fr_dtype type;
        const char *name;
        size_t block, bytes;
    } rows[] = {
        {FR_F32, "F32", 1, 4},
        {FR_F16, "F16", 1, 2},
        {FR_BF16, "BF16", 1, 2},
        {FR_Q8_0, "Q8_0", 32, 34},
        {FR_Q4_0, "Q4_0", 32, 18},
        {FR_Q4_1, "Q4_1", 32, 20},
        {FR_Q5_0, "Q5_0", 32, 22},
        {FR_Q5_1, "Q5_1", 32, 24},
        {FR_IQ4_NL, "IQ4_NL", 32, 18},
        {FR_MXFP4, "MXFP4", 32, 17},
        {FR_Q4_K, "Q4_K", 256, 144},
        {FR_Q5_K, "Q5_K", 256, 176},
        {FR_Q6_K, "Q6_K", 256, 210},
        {FR_IQ4_XS, "IQ4_XS", 256, 136},
        {FR_Q2_K, "Q2_K", 256, 84},
        {FR_Q3_K, "Q3_K", 256, 110},
        {FR_IQ1_S, "IQ1_S", 256, 50},
        {FR_IQ1_M, "IQ1_M", 256, 56},
        {FR_IQ2_XXS, "IQ2_XXS", 256, 66},
        {FR_IQ2_XS, "IQ2_XS", 256, 74},
        {FR_IQ2_S, "IQ2_S", 256, 82},
        {FR_IQ3_XXS, "IQ3_XXS", 256, 98},
        {FR_IQ3_S, "IQ3_S", 256, 110},
        {FR_TQ1_0, "TQ1_0", 256, 54},
        {FR_TQ2_0, "TQ2_0", 256, 66},
        {FR_NVFP4, "NVFP4", 64, 36},
        {FR_Q1_0, "Q1_0", 128, 18},
        {FR_Q2_0, "Q2_0", 64, 18},
        {FR_PQ2_0, "PQ2_0", 128, 34},
        {FR_PTQ1_0, "PTQ1_0", 128, 28},
        {FR_F8_E4M3, "F8_E4M3", 1, 1},
        {FR_I32, "I32", 1, 4},
        {FR_I64, "I64", 1, 8},
        {FR_U8, "U8", 1, 1},
        {FR_I8, "I8", 1, 1},
        {FR_U32, "U32", 1, 4},
    };
    size_t count = sizeof rows / sizeof *rows;
    ck_assert_uint_eq(count, FR_DTYPE_COUNT - 1); /* FR_STORED has no name and no size of its own */
    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(fr_dtype_name(rows[i].type), rows[i].name);
        ck_assert_int_eq(fr_dtype_from_name(rows[i].name), rows[i].type);
        ck_assert_uint_eq(fr_dtype_block(rows[i].type), rows[i].block);
        ck_assert_uint_eq(fr_dtype_row_bytes(rows[i].type, 0), 0);
        ck_assert_uint_eq(fr_dtype_row_bytes(rows[i].type, 3 * rows[i].block), 3 * rows[i].bytes);
        size_t most = (size_t)1 << 48;
        ck_assert_uint_eq(fr_dtype_row_bytes(rows[i].type, most), most / rows[i].block * rows[i].bytes);
    }
    static const char *const others[] = {"",     "f32", "F3",   "F322",   "F64",  "F8_E5M2",
                                         "BOOL", "Q4",  "q4_0", "Q4_K_M", "Q8_1", "Q8_K"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_int_eq(fr_dtype_from_name(others[i]), FR_DTYPE_COUNT);
    ck_assert_str_eq(fr_dtype_name(FR_DTYPE_COUNT), "unknown");
    ck_assert_uint_eq(fr_dtype_block(FR_DTYPE_COUNT), 1);
    ck_assert_uint_eq(fr_dtype_row_bytes(FR_DTYPE_COUNT, 32), 0);
}
END_TEST

/* Decodes rows at every alignment. Bytes after the decoded values must stay unchanged. */
START_TEST(decoding) {
    static const float expected[] = {1, -2.5f, 0, 0x1p-24f, 65504, -INFINITY, 0.333251953125f};
    static const uint16_t f16[] = {0x3C00, 0xC100, 0x0000, 0x0001, 0x7BFF, 0xFC00, 0x3555};
    enum { COUNT = sizeof expected / sizeof *expected };
    for (size_t shift = 0; shift < 8; shift++) {
        for (size_t cols = 0; cols <= COUNT; cols++) {
            uint8_t source[COUNT * 4 + 8];
            float target[COUNT + 1];
            for (int pass = 0; pass < 3; pass++) {
                fr_dtype type = (fr_dtype[]){FR_F32, FR_F16, FR_BF16}[pass];
                for (size_t i = 0; i <= COUNT; i++) target[i] = 77;
                for (size_t i = 0; i < cols; i++) {
                    uint16_t bf16 = (uint16_t)(bits_of(expected[i]) >> 16);
                    const void *value = pass == 0 ? (const void *)&expected[i] : pass == 1 ? &f16[i] : &bf16;
                    size_t bytes = fr_dtype_row_bytes(type, 1);
                    memcpy(source + shift + i * bytes, value, bytes);
                }
                fr_dtype_decode(type, source + shift, target, cols);
                for (size_t i = 0; i < cols; i++) {
                    uint32_t kept = pass == 2 ? 0xFFFF0000 : 0xFFFFFFFF;
                    ck_assert_uint_eq(bits_of(target[i]), bits_of(expected[i]) & kept);
                }
                ck_assert(target[cols] == 77);
            }
        }
    }
    fr_dtype_decode(FR_F32, NULL, NULL, 0);
    fr_dtype_decode(FR_BF16, NULL, NULL, 0);
}
END_TEST

FR_SUITE("dtype") {
    TCase *cases = tcase_create("dtype");
    suite_add_tcase(suite, cases);
    tcase_add_test(cases, every_f16);
    tcase_add_test(cases, every_bf16);
    tcase_add_test(cases, bf16_rounding);
    tcase_add_test(cases, bf16_landmarks);
    tcase_add_test(cases, f16_rounding);
    tcase_add_test(cases, f16_landmarks);
    tcase_add_test(cases, names_and_sizes);
    tcase_add_test(cases, decoding);
    tcase_set_timeout(cases, 60);
}
