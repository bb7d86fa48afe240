/* Lists the block types that have a packed form and integer kernels, with the sizes of their tiles. There is no other
 * such list.
 *
 * In: a macro EACH. Out: EACH(type, word, bits, runs, head, ...) for each type of a list. The arguments are
 *
 *     type   the enumerator, for example FR_Q4_0
 *     word   the part of a kernel's name, for example q4_0
 *     bits   the bits of a code
 *     runs   the number of runs of 32 columns in a tile's block
 *     head   the bytes of the block before its first run, which hold d and other scales (packed.h has their layout)
 *     ...    any further arguments of the list
 *
 * FR_TWIN_TYPES lists types whose tiles have the same form and meaning as those of another type. They use the kernels
 * and the word of that type. FR_TILE_TYPES lists all other types. It joins the five lists FR_PLAIN_TYPES to
 * FR_FEW_VALUES_TYPES. There are five lists because kernels that take long to compile have a file for each list. Each
 * of the five lists, and FR_TWIN_TYPES too, joins two lists: "whole" types, whose runs have one scale, and "halved"
 * types, whose halves of runs have scales of their own. FR_WHOLE_TYPES joins the whole types of FR_TILE_TYPES. */
#ifndef FR_QUANT_BLOCK_TYPES_H
#define FR_QUANT_BLOCK_TYPES_H

#define FR_PLAIN_TYPES(EACH, ...)              \
    EACH(FR_Q8_0, q8_0, 8, 1, 32, __VA_ARGS__) \
    EACH(FR_Q4_0, q4_0, 4, 1, 32, __VA_ARGS__) \
    EACH(FR_Q4_1, q4_1, 4, 1, 64, __VA_ARGS__) \
    EACH(FR_Q5_0, q5_0, 5, 1, 32, __VA_ARGS__) \
    EACH(FR_Q5_1, q5_1, 5, 1, 64, __VA_ARGS__)

#define FR_WHOLE_K_TYPES(EACH, ...)             \
    EACH(FR_Q4_K, q4_k, 4, 8, 256, __VA_ARGS__) \
    EACH(FR_Q5_K, q5_k, 5, 8, 256, __VA_ARGS__)

#define FR_HALVED_K_TYPES(EACH, ...)            \
    EACH(FR_Q6_K, q6_k, 6, 8, 288, __VA_ARGS__) \
    EACH(FR_Q2_K, q2_k, 2, 8, 320, __VA_ARGS__) \
    EACH(FR_Q3_K, q3_k, 3, 8, 224, __VA_ARGS__)

#define FR_TABLE_TYPES(EACH, ...)                    \
    EACH(FR_IQ4_NL, iq4_nl, 4, 1, 32, __VA_ARGS__)   \
    EACH(FR_IQ4_XS, iq4_xs, 4, 8, 128, __VA_ARGS__)  \
    EACH(FR_IQ3_XXS, iq3_xxs, 4, 8, 96, __VA_ARGS__) \
    EACH(FR_IQ3_S, iq3_s, 4, 8, 96, __VA_ARGS__)

#define FR_WHOLE_GRID_TYPES(EACH, ...)               \
    EACH(FR_IQ2_XXS, iq2_xxs, 3, 8, 96, __VA_ARGS__) \
    EACH(FR_IQ1_S, iq1_s, 3, 8, 96, __VA_ARGS__)

#define FR_HALVED_GRID_TYPES(EACH, ...)             \
    EACH(FR_IQ2_XS, iq2_xs, 3, 8, 160, __VA_ARGS__) \
    EACH(FR_IQ1_M, iq1_m, 3, 8, 160, __VA_ARGS__)

#define FR_WHOLE_FEW_VALUES_TYPES(EACH, ...)     \
    EACH(FR_MXFP4, mxfp4, 4, 1, 16, __VA_ARGS__) \
    EACH(FR_Q1_0, q1_0, 1, 4, 32, __VA_ARGS__)   \
    EACH(FR_Q2_0, q2_0, 2, 2, 32, __VA_ARGS__)   \
    EACH(FR_TQ2_0, tq2_0, 2, 8, 32, __VA_ARGS__) \
    EACH(FR_PQ2_0, pq2_0, 2, 4, 32, __VA_ARGS__)

#define FR_HALVED_FEW_VALUES_TYPES(EACH, ...) EACH(FR_NVFP4, nvfp4, 4, 1, 32, __VA_ARGS__)

/* clang-format off */
#define FR_K_TYPES(EACH, ...)             \
    FR_WHOLE_K_TYPES(EACH, __VA_ARGS__)   \
    FR_HALVED_K_TYPES(EACH, __VA_ARGS__)

#define FR_GRID_TYPES(EACH, ...)             \
    FR_WHOLE_GRID_TYPES(EACH, __VA_ARGS__)   \
    FR_HALVED_GRID_TYPES(EACH, __VA_ARGS__)

#define FR_FEW_VALUES_TYPES(EACH, ...)             \
    FR_WHOLE_FEW_VALUES_TYPES(EACH, __VA_ARGS__)   \
    FR_HALVED_FEW_VALUES_TYPES(EACH, __VA_ARGS__)

#define FR_WHOLE_TYPES(EACH, ...)                 \
    FR_PLAIN_TYPES(EACH, __VA_ARGS__)             \
    FR_WHOLE_K_TYPES(EACH, __VA_ARGS__)           \
    FR_TABLE_TYPES(EACH, __VA_ARGS__)             \
    FR_WHOLE_GRID_TYPES(EACH, __VA_ARGS__)        \
    FR_WHOLE_FEW_VALUES_TYPES(EACH, __VA_ARGS__)

#define FR_TILE_TYPES(EACH, ...)           \
    FR_PLAIN_TYPES(EACH, __VA_ARGS__)      \
    FR_K_TYPES(EACH, __VA_ARGS__)          \
    FR_TABLE_TYPES(EACH, __VA_ARGS__)      \
    FR_GRID_TYPES(EACH, __VA_ARGS__)       \
    FR_FEW_VALUES_TYPES(EACH, __VA_ARGS__)
/* clang-format on */

#define FR_WHOLE_TWIN_TYPES(EACH, ...)           \
    EACH(FR_TQ1_0, tq2_0, 2, 8, 32, __VA_ARGS__) \
    EACH(FR_PTQ1_0, pq2_0, 2, 4, 32, __VA_ARGS__)

#define FR_TWIN_TYPES(EACH, ...)                   \
    EACH(FR_IQ2_S, iq2_xs, 3, 8, 160, __VA_ARGS__) \
    FR_WHOLE_TWIN_TYPES(EACH, __VA_ARGS__)

#define FR_BLOCK_TYPES(EACH, ...) FR_TILE_TYPES(EACH, __VA_ARGS__) FR_TWIN_TYPES(EACH, __VA_ARGS__)

/* Defines the sizes of each type's tiles as constants named after the type's word: FR_BITS_q4_0 and so on. A run of a
 * tile takes 64 bytes for each bit of a code. */
#define FR_TILE_SIZES(type, word, bits, runs, head, ...)                                                        \
    FR_BITS_##word = bits, FR_RUNS_##word = runs, FR_HEAD_BYTES_##word = head, FR_RUN_BYTES_##word = 64 * bits, \
    FR_TILE_BYTES_##word = head + runs * 64 * bits,
enum { FR_TILE_TYPES(FR_TILE_SIZES) };
#undef FR_TILE_SIZES

#endif
