#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A profiling tool and this library in one program: both see its requests.
# usage: mpix_tool.sh preload|front|behind
# Needs builddir and ST_RUN in the environment, as test/run.py sets them.
set -uo pipefail

fail()
{
    echo "mpix_tool.sh: $*" >&2
    exit 1
}

dir=${builddir:?}/test/integration
case ${1:?usage: mpix_tool.sh preload|front|behind} in
preload)
    tool=$dir/.libs/libmpix_tool.so
    if grep -q HYDRA <<<"$(mpirun --version)"; then # MPICH
        preload=(-genv LD_PRELOAD "$tool")
    else
        preload=(-x "LD_PRELOAD=$tool")
    fi
    run=(mpirun -n 2 "${preload[@]}" "$dir/mpix_match")
    ;;
front) run=(mpirun -n 2 "$dir/mpix_tool_front") ;;
behind) run=(mpirun -n 2 "$dir/mpix_tool_behind") ;;
*) fail "no such place: $1" ;;
esac
out=$("$ST_RUN" -q "${run[@]}" 2>&1) || fail "status $?: $out"
echo "$out"
[ "$(grep -c '^tool: [1-9][0-9]* persistent requests$' <<<"$out")" -eq 2 ] ||
    fail "the tool did not see the requests of both ranks"
grep -q '^mpix_match: 2 ranks, 0 checks failed$' <<<"$out" ||
    fail "the program has failed"
