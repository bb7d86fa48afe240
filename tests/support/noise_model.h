/* Models of block types that no quantizer here writes.
 *
 * In: a GGUF file, a block type. Out: the same file, every matrix of Q8_0 whose rows fill the type's blocks (of types
 * without a kernel: those of the first layer) replaced by noise in that type, bytes drawn until their values are as
 * large as weights are. The same type gives the same file. */
#ifndef FR_TESTS_NOISE_MODEL_H
#define FR_TESTS_NOISE_MODEL_H

#include "quant/dtype.h"

/* Ends the test on any failure, and where no matrix has been replaced. */
void fr_noise_model(const char *from, fr_dtype type, const char *to);

#endif
