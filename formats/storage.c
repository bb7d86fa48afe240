/* Decodes the rows of quantized modules from their stored tensors: see storage.h. */
#include "formats/storage.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "quant/fp8.h"

enum { RUN = 256 }; /* columns of AWQ's packing that are read at a time */

/* ----------------------------------------------------------------------------------------------------------- codes */

static uint32_t word_at(const uint8_t *bytes) {
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* nibble_of[i] is the position of integer i of 8 neighbouring ones in a word of AWQ, in units of 4 bits. */
static const uint8_t nibble_of[8] = {0, 4, 1, 5, 2, 6, 3, 7};

/* Returns integer `index` of a line. It can read all packings except FR_PACKED_WORDS. */
static uint8_t code_at(const fr_code_lines *lines, size_t line, size_t index) {
    const uint8_t *data = (const uint8_t *)lines->tensor->data + line * lines->line_step;
    uint32_t mask = (1u << lines->bits) - 1;
    if (lines->packing == FR_PACKED_BYTES)
        return (uint8_t)((data[index * lines->word_step] + (1u << (lines->bits - 1))) & mask);
    if (lines->packing == FR_PACKED_AWQ)
        return word_at(data + index / 8 * lines->word_step) >> 4 * nibble_of[index % 8] & 15;
    size_t word = index * lines->bits / 32, shift = index * lines->bits % 32;
    uint32_t code = word_at(data + word * lines->word_step) >> shift;
    if (shift + lines->bits > 32) code |= word_at(data + (word + 1) * lines->word_step) << (32 - shift);
    return (uint8_t)(code & mask);
}

/* Reads integers [begin, end) of a line whose packing is FR_PACKED_WORDS, where no integer crosses into the next word.
 * This takes a fraction of the time that code_at would need. */
static void read_words(const fr_code_lines *lines, size_t line, size_t begin, size_t end, uint8_t *codes) {
    const uint8_t *data = (const uint8_t *)lines->tensor->data + line * lines->line_step;
    unsigned bits = lines->bits, each = 32 / bits, mask = (1u << bits) - 1;
    for (size_t i = begin; i < end;) {
        uint32_t word = word_at(data + i / each * lines->word_step) >> i % each * bits;
        for (size_t past = fr_smaller(i - i % each + each, end); i < past; i++, word >>= bits)
            codes[i - begin] = (uint8_t)(word & mask);
    }
}

/* Reads the codes of columns [begin, end) of `count` rows from AWQ's packing. A word has the codes of 8 rows for one
 * column. The word of the next column is a whole line away. All `count` rows are in the same words, so each word is
 * read once. */
static void read_awq(const fr_code_lines *lines, size_t row, size_t count, size_t begin, size_t end,
                     uint8_t *const *codes) {
    const uint8_t *data = (const uint8_t *)lines->tensor->data + row / 8 * lines->word_step;
    uint32_t words[RUN] = {0};
    for (size_t at = begin; at < end; at += RUN) {
        size_t columns = fr_smaller(RUN, end - at);
        for (size_t c = 0; c < columns; c++) words[c] = word_at(data + (at + c) * lines->line_step);
        for (size_t i = 0; i < count; i++) {
            uint8_t of_row[RUN];
            unsigned shift = 4 * nibble_of[(row + i) % 8];
            for (size_t c = 0; c < RUN; c++) of_row[c] = words[c] >> shift & 15; /* a fixed count is vectorized */
            memcpy(codes[i] + (at - begin), of_row, columns);
        }
    }
}

/* Reads the codes of columns [begin, end) of a row. FP8 codes are single bytes, so they are only copied. */
static void read_codes(const fr_storage *s, size_t row, size_t begin, size_t end, uint8_t *codes) {
    const fr_code_lines *lines = &s->codes;
    row += s->first;
    if (s->form == FR_STORAGE_FP8) {
        memcpy(codes, (const uint8_t *)lines->tensor->data + row * lines->line_step + begin, end - begin);
    } else if (lines->packing == FR_PACKED_AWQ) {
        read_awq(lines, row, 1, begin, end, &codes);
    } else if (lines->packing == FR_PACKED_WORDS || (lines->packing == FR_PACKED_STREAM && 32 % lines->bits == 0)) {
        read_words(lines, row, begin, end, codes);
    } else {
        for (size_t c = begin; c < end; c++) codes[c - begin] = code_at(lines, row, c);
    }
}

/* ---------------------------------------------------------------------------------------------------------- scales */

static float float_at(const fr_tensor *tensor, size_t index) {
    const uint8_t *bytes = tensor->data;
    float value;
    if (tensor->type == FR_F8_E4M3 || tensor->type == FR_U8) return fr_fp8_value(bytes[index]);
    fr_dtype_decode(tensor->type, bytes + index * fr_dtype_row_bytes(tensor->type, 1), &value, 1);
    return value;
}

static size_t scale_index(const fr_storage *s, size_t row, size_t group) {
    return (s->first + row) / s->scale_rows * s->row_step + group * s->group_step;
}

/* Returns the scale with this index. The scale of the whole matrix is not included. A stored exponent of 255 means NaN,
 * as in Open Compute's MX formats. */
static float scale_at(const fr_storage *s, size_t index) {
    if (!s->exponents) return float_at(s->scales, index);
    int exponent = ((const uint8_t *)s->scales->data)[index];
    return exponent == 255 ? NAN : ldexpf(1.0F, exponent - 127);
}

float fr_storage_scale(const fr_storage *s, size_t row, size_t group) {
    float scale = scale_at(s, scale_index(s, row, group));
    if (!s->of_matrix) return scale;
    float of_matrix = float_at(s->of_matrix, 0);
    return s->divides ? scale / of_matrix : scale * of_matrix;
}

static uint8_t zero_at(const fr_storage *s, size_t row, size_t group) {
    uint8_t zero = code_at(&s->zeros, group, s->first + row);
    return s->zeros_less_one ? (uint8_t)((zero + 1u) & ((1u << s->zeros.bits) - 1)) : zero;
}

/* Returns the group of a column. The group's number was checked when the file was opened. It is checked again here,
 * because the file may have been written to since, and a wrong number would lead outside of the arrays. */
static size_t group_of(const fr_storage *s, size_t col) {
    if (!s->group_of) return col / s->grouping.group;
    size_t group = word_at((const uint8_t *)s->group_of->data + 4 * col);
    return group < s->groups ? group : 0;
}

/* -------------------------------------------------------------------------------------------------------- decoding */

void fr_storage_unpack(const fr_storage *s, size_t row, size_t count, const fr_grouped_row *rows) {
    for (size_t i = 0, some; i < count; i += some) {
        some = 1;
        if (s->codes.packing == FR_PACKED_AWQ) {
            uint8_t *codes[8];
            size_t first = s->first + row + i;
            some = fr_smaller(8 - first % 8, count - i);
            for (size_t k = 0; k < some; k++) codes[k] = rows[i + k].codes;
            read_awq(&s->codes, first, some, 0, s->cols, codes);
        } else {
            read_codes(s, row + i, 0, s->cols, rows[i].codes);
        }
    }
    for (size_t g = 0; g < s->groups; g++)
        for (size_t i = 0; i < count; i++) {
            rows[i].scales[g] = fr_storage_scale(s, row + i, g);
            if (s->grouping.offset == FR_OFFSET_ZERO) rows[i].zeros[g] = zero_at(s, row + i, g);
            if (s->grouping.offset == FR_OFFSET_BIAS)
                rows[i].biases[g] = float_at(s->biases, scale_index(s, row + i, g));
        }
}

/* Holds the scale of one group in one row, and the group's zero point or bias. */
typedef struct group_values {
    size_t group;
    float scale, bias;
    int zero;
} group_values;

static group_values values_of(const fr_storage *s, size_t row, size_t group) {
    group_values of = {.group = group, .scale = fr_storage_scale(s, row, group)};
    if (s->form != FR_STORAGE_GROUPED) return of;
    if (s->grouping.offset == FR_OFFSET_BIAS) of.bias = float_at(s->biases, scale_index(s, row, group));
    if (s->grouping.offset == FR_OFFSET_CENTRE) of.zero = 1 << (s->grouping.bits - 1);
    if (s->grouping.offset == FR_OFFSET_ZERO) of.zero = zero_at(s, row, group);
    return of;
}

static float value_of(const fr_storage *s, const group_values *of, uint8_t code) {
    static const float e2m1[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
    if (s->form == FR_STORAGE_FP8) return fr_fp8_value(code) * of->scale;
    if (s->form == FR_STORAGE_FP4) return (code & 8 ? -e2m1[code & 7] : e2m1[code & 7]) * of->scale;
    float product = (float)(code - of->zero) * of->scale;
    return s->grouping.offset == FR_OFFSET_BIAS ? product + of->bias : product;
}

void fr_storage_decode(const fr_storage *s, size_t row, size_t begin, size_t end, float *values) {
    uint8_t codes[RUN];
    group_values of = {.group = SIZE_MAX};
    for (size_t at = begin; at < end; at += RUN) {
        size_t past = fr_smaller(at + RUN, end);
        read_codes(s, row, at, past, codes);
        for (size_t c = at; c < past; c++) {
            size_t group = group_of(s, c);
            if (group != of.group) of = values_of(s, row, group);
            values[c - begin] = value_of(s, &of, codes[c - at]);
        }
    }
}

/* -------------------------------------------------------------------------------------------------------- checking */

size_t fr_storage_parts(const fr_storage *s, const fr_tensor *parts[FR_STORAGE_PARTS]) {
    const fr_tensor *all[] = {s->codes.tensor, s->scales, s->zeros.tensor, s->biases, s->group_of, s->of_matrix};
    size_t count = 0;
    for (size_t i = 0; i < FR_STORAGE_PARTS; i++)
        if (all[i]) parts[count++] = all[i];
    return count;
}

size_t fr_storage_stacked(const fr_storage *s) {
    const fr_tensor *codes = s->codes.tensor;
    return codes->dims == 3 ? (size_t)(codes->shape[0] * codes->shape[1] / s->rows) : 1;
}

uint64_t fr_storage_bytes(const fr_storage *s) {
    const fr_tensor *parts[FR_STORAGE_PARTS];
    uint64_t bytes = 0;
    size_t count = fr_storage_parts(s, parts);
    for (size_t i = 0; i < count; i++) bytes += parts[i]->bytes;
    return bytes / fr_storage_stacked(s);
}

fr_status fr_storage_check(const fr_storage *s, size_t begin, size_t end, const char *where) {
    for (size_t row = begin; row < end; row++) {
        for (size_t g = 0; g < s->groups; g++) {
            size_t index = scale_index(s, row, g);
            const fr_tensor *bad = isfinite(fr_storage_scale(s, row, g)) ? NULL : s->scales;
            if (!bad && s->biases && !isfinite(float_at(s->biases, index))) bad = s->biases;
            if (bad)
                return fr_fail(FR_INPUT, "%s: tensor %s has %g at index %zu, which is no scale", where, bad->name,
                               (double)(bad == s->scales ? scale_at(s, index) : float_at(bad, index)), index);
        }
        if (s->form != FR_STORAGE_FP8) continue;
        size_t from = (s->first + row) * s->codes.line_step;
        const uint8_t *codes = (const uint8_t *)s->codes.tensor->data + from;
        size_t nan = fr_fp8_find_nan(codes, s->cols);
        if (nan < s->cols)
            return fr_fail(FR_INPUT, "%s: tensor %s has a NaN at index %zu", where, s->codes.tensor->name, from + nan);
    }
    return FR_OK;
}
