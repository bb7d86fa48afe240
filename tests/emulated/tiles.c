/* Emulates AMX's instructions: see tiles.h. */
#include "tests/emulated/tiles.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu_tiles.h"

/* Palette 1 of AMX: eight tiles, each with 16 rows of 64 bytes. */
enum { TILES = 8, ROWS = 16, ROW_BYTES = 64 };

static _Thread_local struct {
    bool configured;
    unsigned rows[TILES], row_bytes[TILES];
    uint8_t bytes[TILES][ROWS][ROW_BYTES];
} state;

/* These two functions replace the library's functions. So `--isa amx` uses the emulated kernels. */
bool fr_cpu_has_tiles(void) {
    return true;
}

bool fr_cpu_ask_for_tiles(void) {
    return true;
}

static void require(bool holds, const char *instruction, const char *rule) {
    if (holds) return;
    fprintf(stderr, "emulated tiles: %s: %s\n", instruction, rule);
    abort();
}

static void require_tile(unsigned tile, const char *instruction) {
    require(state.configured, instruction, "tiles are not configured");
    require(tile < TILES && state.rows[tile] > 0, instruction, "the tile is not configured");
}

void fr_emulated_ldtilecfg(const fr_tile_shapes *shapes) {
    static const uint8_t zeros[14];
    memset(&state, 0, sizeof state);
    require(shapes->palette <= 1, "ldtilecfg", "no such palette");
    if (shapes->palette == 0) return;
    require(memcmp(shapes->reserved, zeros, sizeof zeros) == 0, "ldtilecfg", "reserved bytes are not zero");
    require(shapes->start_row == 0, "ldtilecfg", "a start row, which no kernel uses");
    for (unsigned t = 0; t < ROWS; t++) {
        unsigned rows = shapes->rows[t], row_bytes = shapes->row_bytes[t];
        require(t < TILES || (rows == 0 && row_bytes == 0), "ldtilecfg", "a ninth tile");
        require(rows <= ROWS && row_bytes <= ROW_BYTES, "ldtilecfg", "a tile that is too large");
        require((rows == 0) == (row_bytes == 0), "ldtilecfg", "rows without bytes, or bytes without rows");
        if (t == TILES) break;
        state.rows[t] = rows;
        state.row_bytes[t] = row_bytes;
    }
    state.configured = true;
}

void fr_emulated_tilerelease(void) {
    memset(&state, 0, sizeof state);
}

void fr_emulated_tilezero(unsigned tile) {
    require_tile(tile, "tilezero");
    memset(state.bytes[tile], 0, sizeof state.bytes[tile]);
}

/* Bytes of a tile that are not loaded become zero. */
void fr_emulated_tileloadd(unsigned tile, const void *base, ptrdiff_t stride) {
    require_tile(tile, "tileloadd");
    memset(state.bytes[tile], 0, sizeof state.bytes[tile]);
    for (unsigned r = 0; r < state.rows[tile]; r++)
        memcpy(state.bytes[tile][r], (const uint8_t *)base + (ptrdiff_t)r * stride, state.row_bytes[tile]);
}

void fr_emulated_tilestored(unsigned tile, void *base, ptrdiff_t stride) {
    require_tile(tile, "tilestored");
    for (unsigned r = 0; r < state.rows[tile]; r++)
        memcpy((uint8_t *)base + (ptrdiff_t)r * stride, state.bytes[tile][r], state.row_bytes[tile]);
}

/* Adds four products to a sum of 32 bits. If the sum overflows, it wraps around. */
static uint32_t add_products(uint32_t sum, const uint8_t *a, const uint8_t *b, bool b_signed) {
    for (unsigned i = 0; i < 4; i++) sum += (uint32_t)((int8_t)a[i] * (b_signed ? (int8_t)b[i] : b[i]));
    return sum;
}

static void multiply(const char *name, unsigned sums, unsigned a, unsigned b, bool b_signed) {
    require_tile(sums, name);
    require_tile(a, name);
    require_tile(b, name);
    require(sums != a && sums != b && a != b, name, "one tile is two operands");
    require(state.row_bytes[sums] % 4 == 0 && state.row_bytes[a] % 4 == 0 && state.row_bytes[b] % 4 == 0, name,
            "rows are not whole groups of four bytes");
    require(state.rows[sums] == state.rows[a] && state.row_bytes[sums] == state.row_bytes[b] &&
                state.row_bytes[a] / 4 == state.rows[b],
            name, "shapes that do not match");
    unsigned groups = state.row_bytes[a] / 4, columns = state.row_bytes[sums] / 4;
    for (unsigned m = 0; m < state.rows[sums]; m++) {
        uint32_t row[ROW_BYTES / 4] = {0};
        memcpy(row, state.bytes[sums][m], columns * sizeof *row);
        for (unsigned k = 0; k < groups; k++)
            for (unsigned n = 0; n < columns; n++)
                row[n] = add_products(row[n], state.bytes[a][m] + 4 * k, state.bytes[b][k] + 4 * n, b_signed);
        memcpy(state.bytes[sums][m], row, sizeof row);
    }
}

void fr_emulated_tdpbssd(unsigned sums, unsigned a, unsigned b) {
    multiply("tdpbssd", sums, a, b, true);
}

void fr_emulated_tdpbsud(unsigned sums, unsigned a, unsigned b) {
    multiply("tdpbsud", sums, a, b, false);
}
