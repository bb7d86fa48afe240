# Defines what all tests of ranks need; the tests source this file.
#
# In: BUILD, with forerun-mpi and tests/behaviour/ranks (make ranks-programs), and mpirun; without them the test fails.
# Out: $build; $forerun; $job, the words that start a job; and $folder, in which the tests write and which they remove.
# shellcheck shell=bash disable=SC2034  # the tests use the variables
build=${BUILD:-build}
forerun=$build/forerun-mpi
command -v mpirun >/dev/null || { echo "there is no mpirun; tools/setup ranks installs it" >&2; exit 1; }
[ -x "$forerun" ] && [ -x "$build/tests/behaviour/ranks/led" ] ||
    { echo "the programs of tests of ranks are missing; make ranks-programs builds them" >&2; exit 1; }
folder=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
job=(mpirun --oversubscribe --bind-to none -q)
host="[(]$(uname -n)[)]" # the host's name in error lines, as a pattern

fail() {
    echo "$1" >&2
    exit 1
}

ranks() { # COUNT COMMAND...
    timeout 300 "${job[@]}" -n "$@"
}

rank_of() { # MPIRUN RANK: prints the id of the rank's process
    local pid
    for pid in $(pgrep -P "$1"); do
        grep -qsaz "^OMPI_COMM_WORLD_RANK=$2\$" "/proc/$pid/environ" && echo "$pid" && return
    done
}
