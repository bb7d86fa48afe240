/* Decodes blocks of the cache's types turbo4 and turbo3: see turbo.h. */
#include "quant/turbo.h"

void fr_decode_turbo4(const uint8_t *block, float *y) {
    static const int8_t table[] = {FR_TURBO4_TABLE};
    float d = load_scale(block);
    for (size_t i = 0; i < FR_TURBO_BLOCK / 2; i++) {
        y[i] = d * (float)table[block[2 + i] & 15];
        y[i + FR_TURBO_BLOCK / 2] = d * (float)table[block[2 + i] >> 4];
    }
}

void fr_decode_turbo3(const uint8_t *block, float *y) {
    static const int8_t table[] = {FR_TURBO3_TABLE};
    float d = load_scale(block);
    for (size_t i = 0; i < FR_TURBO_BLOCK; i++) {
        int low = block[2 + i % 8] >> (i / 8 * 2) & 3, high = block[10 + i / 8] >> (i % 8) & 1;
        y[i] = d * (float)table[high << 2 | low];
    }
}
