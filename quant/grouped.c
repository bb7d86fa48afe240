/* Packs and unpacks tiles of grouped codes: see grouped.h.
 *
 * A word of 32 bits holds the codes of four neighbouring columns of a row, one in each byte. So a run of 32 columns is
 * eight words. In a tile, the run of one row takes one word for each bit of a code. These words are 64 bytes apart,
 * each in a line that holds one word of every row. */
#include "quant/grouped.h"

#include "quant/packed.h"

#include <string.h>

enum { WORDS = FR_GROUPED_RUN / 4, LINE = 4 * FR_TILE_FEATURES };

static const uint32_t LOW_HALVES = 0x0f0f0f0f, ONES = 0x01010101, TWOS = 0x03030303;

static size_t float_bytes(const fr_grouping *form) {
    return form->scale_type == FR_F32 ? 4 : 2;
}

static size_t runs_of(size_t cols) {
    return cols / FR_GROUPED_RUN + (cols % FR_GROUPED_RUN > 0);
}

/* Returns the number of runs in a block. Returns 0 if a group of this length cannot be split into whole blocks. */
static size_t block_runs(const fr_grouping *form, size_t cols) {
    const size_t longest = FR_GROUPED_LONGEST * FR_GROUPED_RUN;
    if (form->group >= cols) return cols < longest ? runs_of(cols) : FR_GROUPED_LONGEST;
    if (form->group % FR_GROUPED_RUN || (form->group > longest && form->group % longest)) return 0;
    return form->group < longest ? form->group / FR_GROUPED_RUN : FR_GROUPED_LONGEST;
}

bool fr_grouped_layout(fr_grouped_tiles *tiles, const fr_grouping *form, size_t cols) {
    bool bits = (form->bits >= 2 && form->bits <= 6) || form->bits == 8;
    if (!bits || form->offset > FR_OFFSET_BIAS || form->scale_type >= FR_FLOAT_TYPES || form->group == 0) return false;
    /* With this bound no size below overflows, because each row of a run of 32 columns takes at most 32 bytes of codes
     * and 8 of scales. */
    if (cols == 0 || cols > SIZE_MAX / 2 / FR_TILE_FEATURES / 8) return false;
    *tiles = (fr_grouped_tiles){.form = *form, .block_runs = block_runs(form, cols), .runs = runs_of(cols)};
    if (tiles->block_runs == 0) return false;
    tiles->blocks = (tiles->runs + tiles->block_runs - 1) / tiles->block_runs;
    tiles->head_bytes = FR_TILE_FEATURES * float_bytes(form);
    if (form->offset == FR_OFFSET_BIAS) tiles->head_bytes *= 2;
    if (form->offset == FR_OFFSET_ZERO) tiles->head_bytes += form->bits <= 4 ? FR_TILE_FEATURES / 2 : FR_TILE_FEATURES;
    tiles->block_bytes = tiles->head_bytes + tiles->block_runs * form->bits * LINE;
    tiles->tile_bytes = tiles->blocks * tiles->head_bytes + tiles->runs * form->bits * LINE;
    return true;
}

size_t fr_grouped_bytes(const fr_grouped_tiles *tiles, size_t rows) {
    size_t count = rows / FR_TILE_FEATURES + (rows % FR_TILE_FEATURES > 0);
    return count <= SIZE_MAX / 2 / tiles->tile_bytes ? count * tiles->tile_bytes : 0;
}

/* --------------------------------------------------------------------------------------------------------- the head */

static void store_float(const fr_grouping *form, uint8_t *floats, size_t feature, float value) {
    uint16_t half = form->scale_type == FR_F16 ? fr_f16_from_f32(value) : fr_bf16_from_f32(value);
    if (form->scale_type == FR_F32)
        memcpy(floats + 4 * feature, &value, sizeof value);
    else
        memcpy(floats + 2 * feature, &half, sizeof half);
}

static float load_float(const fr_grouping *form, const uint8_t *floats, size_t feature) {
    float value;
    uint16_t half;
    if (form->scale_type == FR_F32) {
        memcpy(&value, floats + 4 * feature, sizeof value);
        return value;
    }
    memcpy(&half, floats + 2 * feature, sizeof half);
    return form->scale_type == FR_F16 ? fr_f32_from_f16(half) : fr_f32_from_bf16(half);
}

static void store_head(const fr_grouping *form, uint8_t *head, size_t feature, const fr_grouped_row *row,
                       size_t group) {
    uint8_t *second = head + FR_TILE_FEATURES * float_bytes(form);
    const size_t half = FR_TILE_FEATURES / 2;
    store_float(form, head, feature, row->scales[group]);
    if (form->offset == FR_OFFSET_BIAS) store_float(form, second, feature, row->biases[group]);
    if (form->offset != FR_OFFSET_ZERO) return;
    if (form->bits > 4)
        second[feature] = row->zeros[group];
    else
        second[feature % half] |= (uint8_t)((row->zeros[group] & 15) << feature / half * 4);
}

static void load_head(const fr_grouping *form, const uint8_t *head, size_t feature, fr_grouped_block *parts) {
    const uint8_t *second = head + FR_TILE_FEATURES * float_bytes(form);
    const size_t half = FR_TILE_FEATURES / 2;
    parts->scale = load_float(form, head, feature);
    parts->bias = form->offset == FR_OFFSET_BIAS ? load_float(form, second, feature) : 0;
    parts->zero = form->offset == FR_OFFSET_CENTRE ? (uint8_t)(1u << (form->bits - 1)) : 0;
    if (form->offset != FR_OFFSET_ZERO) return;
    parts->zero = form->bits > 4 ? second[feature] : second[feature % half] >> feature / half * 4 & 15;
}

/* -------------------------------------------------------------------------------------------------------- the codes */

/* Collects bit `bit` of every code of a run. Each of the run's words holds four codes, one in each byte. The four bits
 * from word g become bit g of the four bytes of the result. */
static uint32_t collect_bits(const uint32_t *words, unsigned bit) {
    uint32_t line = 0;
    for (unsigned g = 0; g < WORDS; g++) line |= (words[g] >> bit & ONES) << g;
    return line;
}

/* Collects bits `bit` and `bit` + 1 of every code in half a run. The two bits of each code in word j become bits 2j and
 * 2j + 1 of a byte of the result. */
static uint32_t collect_pairs(const uint32_t *words, unsigned bit) {
    uint32_t line = 0;
    for (unsigned j = 0; j < WORDS / 2; j++) line |= (words[j] >> bit & TWOS) << 2 * j;
    return line;
}

/* Converts a run's words, which hold four codes each, to the words of its lines. */
static void words_to_lines(unsigned bits, const uint32_t *words, uint32_t *lines) {
    if (bits == 8) memcpy(lines, words, WORDS * sizeof *lines);
    if (bits == 3) *lines++ = collect_bits(words, 2);
    if (bits == 5) *lines++ = collect_bits(words, 4);
    for (size_t j = 0; bits >= 4 && bits <= 6 && j < WORDS / 2; j++)
        *lines++ = (words[j] & LOW_HALVES) | (words[WORDS / 2 + j] & LOW_HALVES) << 4;
    for (size_t half = 0; (bits <= 3 || bits == 6) && half < 2; half++)
        *lines++ = collect_pairs(words + half * WORDS / 2, bits == 6 ? 4 : 0);
}

/* Converts the words of a run's lines back to words that hold four codes each. */
static void lines_to_words(unsigned bits, const uint32_t *lines, uint32_t *words) {
    bool single = bits == 3 || bits == 5, halves = bits >= 4 && bits <= 6;
    const uint32_t *rest = lines + single, *pairs = halves ? rest + WORDS / 2 : rest;
    for (unsigned g = 0; g < WORDS; g++) {
        unsigned j = g % (WORDS / 2), half = g / (WORDS / 2);
        uint32_t word = bits == 8 ? lines[g] : 0;
        if (halves) word = rest[j] >> 4 * half & LOW_HALVES;
        if (bits <= 3 || bits == 6) word |= (pairs[half] >> 2 * j & TWOS) << (bits == 6 ? 4 : 0);
        if (single) word |= (lines[0] >> g & ONES) << (bits - 1);
        words[g] = word;
    }
}

static void store_run(unsigned bits, uint8_t *run, size_t feature, const uint8_t *codes) {
    uint32_t words[WORDS], lines[FR_GROUPED_BITS_MAX];
    memcpy(words, codes, sizeof words);
    words_to_lines(bits, words, lines);
    for (size_t i = 0; i < bits; i++) memcpy(run + LINE * i + 4 * feature, lines + i, sizeof *lines);
}

static void load_run(unsigned bits, const uint8_t *run, size_t feature, uint8_t *codes) {
    uint32_t words[WORDS], lines[FR_GROUPED_BITS_MAX];
    for (size_t i = 0; i < bits; i++) memcpy(lines + i, run + LINE * i + 4 * feature, sizeof *lines);
    lines_to_words(bits, lines, words);
    memcpy(codes, words, sizeof words);
}

/* ---------------------------------------------------------------------------------------------------------- a tile */

static size_t runs_of_block(const fr_grouped_tiles *tiles, size_t block) {
    size_t left = tiles->runs - block * tiles->block_runs;
    return left < tiles->block_runs ? left : tiles->block_runs;
}

void fr_grouped_pack(const fr_grouped_tiles *tiles, uint8_t *tile, const fr_grouped_row *rows, size_t count,
                     size_t cols) {
    const fr_grouping *form = &tiles->form;
    size_t run_bytes = (size_t)form->bits * LINE;
    memset(tile, 0, tiles->tile_bytes);
    for (size_t block = 0; block < tiles->blocks; block++, tile += tiles->block_bytes) {
        size_t from = block * tiles->block_runs * FR_GROUPED_RUN, group = from / form->group;
        for (size_t o = 0; o < count; o++) {
            store_head(form, tile, o, &rows[o], group);
            for (size_t i = 0; i < runs_of_block(tiles, block); i++) {
                size_t column = from + i * FR_GROUPED_RUN, left = cols - column;
                uint8_t codes[FR_GROUPED_RUN] = {0};
                memcpy(codes, rows[o].codes + column, left < sizeof codes ? left : sizeof codes);
                store_run(form->bits, tile + tiles->head_bytes + i * run_bytes, o, codes);
            }
        }
    }
}

size_t fr_grouped_parts(const fr_grouped_tiles *tiles, fr_grouped_block *parts, const uint8_t *tile, size_t block,
                        size_t feature) {
    size_t runs = runs_of_block(tiles, block), run_bytes = (size_t)tiles->form.bits * LINE;
    tile += block * tiles->block_bytes;
    load_head(&tiles->form, tile, feature, parts);
    for (size_t i = 0; i < runs; i++)
        load_run(tiles->form.bits, tile + tiles->head_bytes + i * run_bytes, feature,
                 parts->codes + i * FR_GROUPED_RUN);
    return runs;
}

void fr_grouped_decode(const fr_grouped_tiles *tiles, float *values, const uint8_t *tile, size_t feature, size_t cols) {
    size_t columns = tiles->block_runs * FR_GROUPED_RUN;
    for (size_t block = 0; block < tiles->blocks; block++) {
        fr_grouped_block parts;
        fr_grouped_parts(tiles, &parts, tile, block, feature);
        size_t left = cols - block * columns, count = left < columns ? left : columns;
        for (size_t c = 0; c < count; c++, values++) {
            *values = (float)(parts.codes[c] - parts.zero) * parts.scale;
            if (tiles->form.offset == FR_OFFSET_BIAS) *values += parts.bias;
        }
    }
}
