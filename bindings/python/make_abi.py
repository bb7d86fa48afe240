"""Writes the module that tells cffi what forerun.h declares.

In: the path of forerun.h, and the path of the module to write. Out: the module, pure Python, which no version of
Python or of cffi needs compiled. The header is read instead of a list of our own, so the two can't differ.
"""

from __future__ import annotations

import re
import sys

import cffi


def declarations(header: str) -> str:
    """Returns the header's declarations in the part of C that cffi reads.

    Comments go, and so do directives, except constants that are whole numbers. No declaration of the header is
    between directives that choose one.
    """
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    text = text.replace("\\\n", " ").replace('extern "C" {', "")
    lines = []
    guarded = False  # between #ifdef __cplusplus and its #endif
    for line in text.splitlines():
        constant = re.match(r"#define\s+(FR_\w+)\s+\(?(-?\d+)\)?\s*$", line)
        if constant:
            lines.append(f"#define {constant[1]} {constant[2]}")
        elif line.startswith("#ifdef"):
            guarded = True
        elif line.startswith("#endif"):
            guarded = False
        elif not line.startswith("#") and not guarded:
            lines.append(line)
    return "\n".join(lines)


def write_module(header_path: str, module_path: str) -> None:
    """Reads the header and writes the module."""
    with open(header_path, encoding="utf-8") as header:
        text = declarations(header.read())
    ffi = cffi.FFI()
    ffi.cdef(text)
    ffi.set_source("forerun._abi", None)
    ffi.emit_python_code(module_path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: make_abi.py HEADER MODULE")
    write_module(sys.argv[1], sys.argv[2])
