/* The block types with a packed form and integer kernels: the one list of them.
 *
 * In: a macro. Out: its expansion for each type, EACH(type, word, ...): FR_Q4_0, q4_0 and what else was given. */
#ifndef FR_QUANT_BLOCK_TYPES_H
#define FR_QUANT_BLOCK_TYPES_H

#define FR_BLOCK_TYPES(EACH, ...)                           \
    EACH(FR_Q8_0, q8_0, __VA_ARGS__)                        \
    EACH(FR_Q4_0, q4_0, __VA_ARGS__)                        \
    EACH(FR_Q4_1, q4_1, __VA_ARGS__)                        \
    EACH(FR_Q5_0, q5_0, __VA_ARGS__)                        \
    EACH(FR_Q5_1, q5_1, __VA_ARGS__)                        \
    EACH(FR_IQ4_NL, iq4_nl, __VA_ARGS__)                    \
    EACH(FR_MXFP4, mxfp4, __VA_ARGS__)                      \
    EACH(FR_Q4_K, q4_k, __VA_ARGS__)                        \
    EACH(FR_Q5_K, q5_k, __VA_ARGS__)                        \
    EACH(FR_Q6_K, q6_k, __VA_ARGS__)                        \
    EACH(FR_IQ4_XS, iq4_xs, __VA_ARGS__)

#endif
