"""Reads the version of the library from its header."""

from __future__ import annotations

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def header_version() -> str:
    """Returns FR_VERSION of include/forerun.h, such as "0.2.0"."""
    with open(os.path.join(ROOT, "include", "forerun.h"), encoding="utf-8") as header:
        text = header.read()
    parts = []
    for part in ("MAJOR", "MINOR", "PATCH"):
        found = re.search(rf"#define FR_VERSION_{part} (\d+)", text)
        if not found:
            raise ValueError(f"include/forerun.h has no FR_VERSION_{part}")
        parts.append(found[1])
    return ".".join(parts)
