#!/usr/bin/env bash
# Tests the Python package with the build's shared library, by pytest if it is there, else by unittest.
#
# With FULL=1 mypy checks the types, if it is there.
#
# In: BUILD, a build without sanitizers; PYTHON, default python3. Out: exit 0, or 1 after saying what is wrong, or 77 if
# this machine has no Python with cffi.
set -euo pipefail

BUILD=${BUILD:-build}
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import sys, cffi; sys.exit(sys.version_info < (3, 9))' 2>/dev/null ||
    { echo "skipped: no Python 3.9 with cffi here" >&2; exit 77; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

cp -r bindings/python/forerun "$root"
rm -rf "$root/forerun/lib"
"$PYTHON" bindings/python/make_abi.py include/forerun.h "$root/forerun/_abi.py" >/dev/null
FORERUN_LIBRARY=$(echo "$BUILD"/libforerun.so.*)
[[ $FORERUN_LIBRARY == /* ]] || FORERUN_LIBRARY=$PWD/$FORERUN_LIBRARY
export FORERUN_LIBRARY PYTHONPATH=$root PYTHONDONTWRITEBYTECODE=1
if [ -n "${FULL:-}" ] && "$PYTHON" -c 'import mypy' 2>/dev/null; then
    (cd "$root" && "$PYTHON" -m mypy --strict --cache-dir "$root/cache" -p forerun)
fi
if "$PYTHON" -c 'import pytest' 2>/dev/null; then
    "$PYTHON" -m pytest -q -p no:cacheprovider bindings/python/tests
else
    "$PYTHON" -m unittest discover -s bindings/python/tests
fi
