/* Makes a table of kernels for an instruction-set word.
 *
 * In: a word, or NULL for the best level of this machine. Out: a table with an implementation of every operation.
 * kernels.def lists the kernels of the weakest level first. The table is filled in that order, so that better kernels
 * replace scalar ones. */
#include "base/error.h"
#include "base/word_list.h"
#include "kernels/amx_kernels.h"
#include "kernels/cpu.h"
#include "kernels/dispatch.h"

#include <pthread.h>
#include <string.h>

static const char *const words[FR_ISA_WORDS] = {
#define FR_ISA(level, word) #word,
#include "kernels/isa.def"
#undef FR_ISA
};

static fr_kernels tables[FR_ISA_WORDS];

const char *fr_isa_word(size_t index) {
    return index < FR_ISA_WORDS ? words[index] : NULL;
}

fr_isa_level fr_isa_from_word(const char *word) {
    fr_isa_level level = 0;
    while (level < FR_ISA_WORDS && strcmp(word, words[level]) != 0) level++;
    return level;
}

unsigned fr_isa_allows(fr_isa_level level) {
    unsigned scalar = 1u << FR_ISA_SCALAR | 1u << FR_ISA_SCALAR_FMA;
    fr_isa_level lowest = level >= FR_ISA_NEON ? FR_ISA_NEON : FR_ISA_AVX2;
    unsigned up_to_level = (2u << level) - 1, below_lowest = (1u << lowest) - 1;
    return scalar | (up_to_level & ~below_lowest);
}

static void fill_table(fr_kernels *table, unsigned levels) {
#define FR_KERNEL(level, kind, slot, function) \
    if (levels >> (level)&1) table->slot = function;
#include "kernels/kernels.def"
#include "kernels/block_kernels.def"
#include "kernels/grouped_kernels.def"
#include "kernels/amx_kernels.def"
#undef FR_KERNEL
}

static void fill_tables(void) {
    unsigned here = fr_cpu_levels();
    for (fr_isa_level level = 0; level < FR_ISA_WORDS; level++) {
        tables[level].isa = words[level];
        fill_table(&tables[level], fr_isa_allows(level) & here);
    }
}

/* Returns the level that is used if the user names no level: the strongest level that the machine has and the system
 * permits. */
static fr_isa_level strongest(unsigned levels) {
    fr_isa_level level = FR_ISA_WORDS - 1;
    while (!(levels >> level & 1) || !fr_cpu_permits(level)) level--;
    return level;
}

fr_status fr_kernels_select(const char *word, const fr_kernels **kernels) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned here = fr_cpu_levels();
    fr_isa_level level = word ? fr_isa_from_word(word) : strongest(here);
    *kernels = NULL;
    if (level == FR_ISA_WORDS)
        return fr_fail(FR_USAGE, "isa %.40s is not known (%s)", word, fr_list_words(fr_isa_word).text);
    if (!(here >> level & 1)) return fr_fail(FR_MACHINE, "this machine has no %s", word);
    if (!fr_cpu_permits(level)) return fr_fail(FR_MACHINE, "the system does not permit %s", word);
    pthread_once(&once, fill_tables);
    *kernels = &tables[level];
    return FR_OK;
}
