/* Lists the peaks and reading loops of x86-64 (peaks.h, read.h). */
#include <cpuid.h>
#include <string.h>

#include "bench/peaks.h"
#include "bench/read.h"
#include "kernels/cpu_tiles.h"

const fr_bench_peak fr_bench_peaks[] = {
    {FR_BENCH_INT8, FR_ISA_AVX2, "avx2", "vpmaddubsw, vpmaddwd, vpaddd ymm", true, fr_bench_dot_avx2},
    {FR_BENCH_INT8, FR_ISA_AVXVNNI, "avxvnni", "vpdpbusd ymm", true, fr_bench_dot_avxvnni},
    {FR_BENCH_INT8, FR_ISA_AVX512, "avx512", "vpmaddubsw, vpmaddwd, vpaddd zmm", true, fr_bench_dot_avx512},
    {FR_BENCH_INT8, FR_ISA_AVX512VNNI, "avx512vnni", "vpdpbusd zmm", true, fr_bench_dot_avx512vnni},
    {FR_BENCH_INT8, FR_ISA_AMX, "amx", "tdpbssd", true, fr_bench_dot_amx},
    {FR_BENCH_FP32, FR_ISA_AVX2, "avx2", "vfmadd231ps ymm", true, fr_bench_fma_avx2},
    {FR_BENCH_FP32, FR_ISA_AVX512, "avx512", "vfmadd231ps zmm", true, fr_bench_fma_avx512},
    {FR_BENCH_BF16, FR_ISA_AVX512, "avx512bf16", "vdpbf16ps zmm", false, fr_bench_bfdot_avx512bf16},
    {FR_BENCH_BF16, FR_ISA_AVX512VNNI, "amx", "tdpbf16ps", false, fr_bench_bfdot_amx},
};
const size_t fr_bench_peak_count = sizeof fr_bench_peaks / sizeof *fr_bench_peaks;

const fr_bench_reader fr_bench_readers[] = {
    {FR_ISA_SCALAR, fr_bench_read_scalar},
    {FR_ISA_AVX2, fr_bench_read_avx2},
    {FR_ISA_AVX512, fr_bench_read_avx512},
};
const size_t fr_bench_reader_count = sizeof fr_bench_readers / sizeof *fr_bench_readers;

bool fr_bench_peak_runs(const fr_bench_peak *peak) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (!(fr_cpu_levels() >> peak->level & 1)) return false;
    if (strcmp(peak->isa, "amx") == 0) {
        __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
        return fr_cpu_has_tiles() && fr_cpu_ask_for_tiles() && (peak->operation != FR_BENCH_BF16 || (edx >> 22 & 1));
    }
    __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx);
    return peak->operation != FR_BENCH_BF16 || (eax >> 5 & 1);
}
