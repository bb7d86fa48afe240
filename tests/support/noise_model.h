/* Makes models with block types that no quantizer here writes.
 *
 * In: a GGUF file, a block type. Out: the same file with noise in that type in place of every Q8_0 matrix whose rows
 * fill the type's blocks (for types without a kernel: only those of the first layer). The bytes are drawn until their
 * values are as large as weights are. The same type gives the same file. */
#ifndef FR_TESTS_NOISE_MODEL_H
#define FR_TESTS_NOISE_MODEL_H

#include "quant/dtype.h"

/* Ends the test on any failure, and where no matrix has been replaced. */
void fr_noise_model(const char *from, fr_dtype type, const char *to);

#endif
