"""Writes quant/iq_grids.c from the tables of the gguf package.

    python3 tests/references/iq_grids.py > quant/iq_grids.c

The package has each grid as floats, of which only a few values are different. In the C file a point is one number of
16 bits: 8 coordinates of 2 bits or 4 coordinates of 4 bits, the first one lowest. Each coordinate is an index into the
type's table of values.
"""
import numpy as np
from gguf import quants

GRIDS = [("iq1", quants.IQ1_S), ("iq2_xxs", quants.IQ2_XXS), ("iq2_xs", quants.IQ2_XS), ("iq2_s", quants.IQ2_S),
         ("iq3_xxs", quants.IQ3_XXS), ("iq3_s", quants.IQ3_S)]
A_LINE = 14


def points(kind):
    kind.init_grid()
    coordinates = kind.grid.reshape(kind.grid_shape)
    codes = np.searchsorted(np.array(kind.grid_map, dtype=np.float32), coordinates)
    width = 16 // kind.grid_shape[1]
    return (codes << (width * np.arange(kind.grid_shape[1]))).sum(axis=1)


print("/* The points of the IQ types' grids, one number each. Made by tests/references/iq_grids.py. */")
print('#include "quant/iq_grids.h"')
for name, kind in GRIDS:
    numbers = [f"0x{point:04X}," for point in points(kind)]
    print(f"\nconst uint16_t fr_grid_{name}[{len(numbers)}] = {{")
    for i in range(0, len(numbers), A_LINE):
        print("    " + " ".join(numbers[i:i + A_LINE]))
    print("};")
