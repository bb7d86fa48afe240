/* Chooses the loop that reads memory (read.h). */
#include "bench/read.h"

#include <string.h>

bool fr_bench_listed(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || !at[length])) return true;
    }
    return !list;
}

/* Gives the levels that a list of instruction sets allows: the level of each set, and all levels below it. */
static unsigned allowed(const char *words) {
    unsigned levels = 1u << FR_ISA_SCALAR;
    for (size_t i = 0; fr_isa_word(i); i++)
        if (fr_bench_listed(words, fr_isa_word(i))) levels |= fr_isa_allows((fr_isa_level)i);
    return levels;
}

const fr_bench_reader *fr_bench_widest_reader(const char *words) {
    unsigned levels = fr_cpu_levels() & allowed(words);
    size_t widest = 0;
    for (size_t i = 0; i < fr_bench_reader_count; i++)
        if (levels >> fr_bench_readers[i].level & 1) widest = i;
    return &fr_bench_readers[widest];
}
