/* Defines how rows of activations are quantized to int8 in blocks of 32. The contract is fr_quantize_fn in
 * kernels.h. */
#include "kernels/scalar.h"

enum { BLOCK = 32 };

static void quantize_block(fr_qblock *block, const float *x, size_t count) {
    uint32_t highest = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = bits_of(x[i]) & 0x7fffffff;
        if (bits > highest) highest = bits;
    }
    float m = float_of(highest), r = 127.0f / m;
    *block = (fr_qblock){.d = m / 127.0f};
    if (highest >= 0x7f800000) {
        block->d = block->dsum = float_of(0x7fc00000);
        return;
    }
    if (m < 0x1p-100f) {
        block->d = 0.0f;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        float q = rintf(x[i] * r);
        block->q[i] = (int8_t)(q > 127.0f ? 127.0f : q < -127.0f ? -127.0f : q);
        block->sum += block->q[i];
        if (i < BLOCK / 2) block->half += block->q[i];
    }
    block->dsum = block->d * (float)block->sum;
}

void FR_SCALAR(quantize)(fr_qblock *q, const float *x, size_t cols) {
    for (size_t i = 0; i < cols; i += BLOCK) quantize_block(q++, x + i, cols - i < BLOCK ? cols - i : BLOCK);
}
