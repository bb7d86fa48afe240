/* Declares the kernels of amx_kernels.def, whose contracts are those of kernels.h. */
#ifndef FR_KERNELS_AMX_KERNELS_H
#define FR_KERNELS_AMX_KERNELS_H

#include "kernels/kernels.h"

#define FR_KERNEL(level, kind, slot, function) fr_##kind##_fn function;
#include "kernels/amx_kernels.def"
#undef FR_KERNEL

#endif
