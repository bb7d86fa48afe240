#!/bin/sh
# Makes and verifies the tiny families of families.py in tests/data/models: make.sh [FAMILY...] Only the references
# need Python. Its virtual environment is in build/.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
environment=$top/build/references-python

if [ ! -x "$environment/bin/python" ]; then
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --requirement "$here/requirements.txt"
fi
"$environment/bin/python" "$here/make_reference.py" make "$top/tests/data/models" "$@"
"$environment/bin/python" "$here/make_reference.py" verify "$top/tests/data/models" "$@"
