#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs of examples/gpu whose kernels start messages, compiled for the host, run
# on the stand-in for HIP's runtime: their own part, as their kernels are those that
# test_st_gpu_device runs.
# usage: gpu_examples.sh RANKS PROGRAM REGEX
#   RANKS ranks print a line that matches
# Needs srcdir, builddir and ST_RUN in the environment, as test/run.py sets them.
set -uo pipefail

standin=${builddir:?}/test/standin
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

fail()
{
    echo "gpu_examples.sh: $*" >&2
    cat "$temp/log" >&2
    exit 1
}

command -v g++ >/dev/null || { echo "skipped: there is no g++"; exit 77; }
# A launch is no C++; a block of the stand-in has four threads at most
sed 's/\([a-z_]*\)<<<\(.*\), \(.*\), 0, stream>>>(\(.*\));/STANDIN_LAUNCH(\1, \2, \3, stream, \4);/
     s/THREADS = [0-9]*/THREADS = 4/' "${srcdir:?}/examples/gpu/$2.cpp" \
    >"$temp/program.cpp"
read -ra mpi <<<"$(mpicc --showme:compile)"
read -ra libs <<<"$(mpicc --showme:link)"
g++ -D__HIPCC__ -DOMPI_SKIP_MPICXX -O1 -I"$srcdir/test/standin" -I"$srcdir/examples/gpu" \
    -I"$srcdir/contrib/openmpi/mpix_queue" -I"$srcdir/src/ucp/st/api" \
    -I"$srcdir/src/ucs_ext/api" "${mpi[@]}" "$temp/program.cpp" \
    -L"$builddir/contrib/openmpi/mpix_queue/.libs" -lmpix_queue "${libs[@]}" \
    "$standin/libamdhip64.so.5" -Wl,--allow-shlib-undefined \
    -o "$temp/program" >"$temp/log" 2>&1 || fail "$2 does not compile"
path=$builddir/contrib/openmpi/mpix_queue/.libs:$builddir/src/ucp/st/.libs
path+=:$builddir/src/ucs_ext/.libs:$builddir/src/uct/cxi_trig/.libs:$standin
LD_LIBRARY_PATH=$path:${LD_LIBRARY_PATH:-} STANDIN_KERNELS=$standin/test_kernels.so \
    "${ST_RUN:?}" -q mpirun -n "$1" "$temp/program" >"$temp/log" 2>&1 ||
    fail "status $?"
cat "$temp/log"
[ "$(grep -cE "$3" "$temp/log")" -eq 1 ] || fail "no line \"$3\""
