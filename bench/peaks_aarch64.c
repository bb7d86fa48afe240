/* Lists the peaks and reading loops of AArch64 (peaks.h, read.h). */
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "bench/peaks.h"
#include "bench/read.h"

const fr_bench_peak fr_bench_peaks[] = {
    {FR_BENCH_INT8, FR_ISA_NEON, "neon", "smull, sadalp", true, fr_bench_dot_neon},
    {FR_BENCH_INT8, FR_ISA_DOTPROD, "dotprod", "sdot", true, fr_bench_dot_dotprod},
    {FR_BENCH_INT8, FR_ISA_I8MM, "i8mm", "smmla", true, fr_bench_dot_i8mm},
    {FR_BENCH_FP32, FR_ISA_NEON, "neon", "fmla", true, fr_bench_fma_neon},
    {FR_BENCH_BF16, FR_ISA_NEON, "bf16", "bfmmla", false, fr_bench_bfdot_bf16},
};
const size_t fr_bench_peak_count = sizeof fr_bench_peaks / sizeof *fr_bench_peaks;

const fr_bench_reader fr_bench_readers[] = {
    {FR_ISA_SCALAR, fr_bench_read_scalar},
    {FR_ISA_NEON, fr_bench_read_neon},
};
const size_t fr_bench_reader_count = sizeof fr_bench_readers / sizeof *fr_bench_readers;

bool fr_bench_peak_runs(const fr_bench_peak *peak) {
    if (!(fr_cpu_levels() >> peak->level & 1)) return false;
    return peak->operation != FR_BENCH_BF16 || (getauxval(AT_HWCAP2) & HWCAP2_BF16);
}
