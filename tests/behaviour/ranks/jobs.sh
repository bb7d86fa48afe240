# What tests of ranks begin with; to be sourced.
#
# In: BUILD, with forerun-mpi and tests/behaviour/ranks (make ranks-programs), and mpirun, without which there is
# nothing to look at: the test ends well. Out: $build, $forerun, $job the words that start one, $folder for what is
# written, which who sources this removes.
# shellcheck shell=bash disable=SC2034  # of whoever sources it
build=${BUILD:-build}
forerun=$build/forerun-mpi
[ -x "$forerun" ] && [ -x "$build/tests/behaviour/ranks/led" ] && command -v mpirun >/dev/null ||
    { echo "no mpirun, or make ranks-programs has not run: not tested" >&2; exit 0; }
folder=$(mktemp -d)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
job=(mpirun --oversubscribe --bind-to none -q)
host="[(]$(uname -n)[)]" # in lines, as a pattern

fail() {
    echo "$1" >&2
    exit 1
}

ranks() { # COUNT COMMAND...
    timeout 300 "${job[@]}" -n "$@"
}

rank_of() { # MPIRUN RANK: its process
    local pid
    for pid in $(pgrep -P "$1"); do
        grep -qsaz "^OMPI_COMM_WORLD_RANK=$2\$" "/proc/$pid/environ" && echo "$pid" && return
    done
}
